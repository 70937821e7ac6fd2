/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shelf.c - memory that grows, and that lies in unnamed files once it is large
 *
 * glibc's qsort_r() takes as much plain memory as what it sorts.  So it sorts pieces of SORT_BYTES,
 * and these are merged, with half of the items aside on the shelf.
 */
#include "tools/common/shelf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tools/common/memory.h"
#include "tools/common/message.h"

#define FIRST_BYTES 4096
#define STEP_BYTES  ((size_t)1 << 20) /* files have a multiple of it; so a page is a part of it */
#define SORT_BYTES  ((size_t)1 << 20) /* of items that qsort_r() sorts at once */
#define FIRST_COUNT 64		      /* items of an array that grows */

/* Something that lies in a file. */
struct sheet {
	void *data;
	size_t bytes;
	int fd;
	struct sheet *next;
};

struct shelf {
	char *dir;
	struct sheet *first;
	int os_code; /* why the last thing did not fit */
};

struct shelf *shelf_open(const char *dir)
{
	struct shelf *s = xcalloc(1, sizeof(*s));

	s->dir = xstrdup(dir);
	return s;
}

int shelf_open_unnamed(const char *dir)
{
	int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	char *name;

	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR))
		return fd;
	name = xasprintf("%s/.tmp.spool.XXXXXX", dir);
	fd = mkostemp(name, O_CLOEXEC);
	if (fd >= 0)
		unlink(name);
	free(name);
	return fd;
}

static void drop(struct sheet *sheet)
{
	if (sheet->data)
		munmap(sheet->data, sheet->bytes);
	if (sheet->fd >= 0)
		close(sheet->fd); /* nothing that anyone will read was written */
	free(sheet);
}

void shelf_close(struct shelf *s)
{
	struct sheet *next;

	if (!s)
		return;
	for (struct sheet *sheet = s->first; sheet; sheet = next) {
		next = sheet->next;
		drop(sheet);
	}
	free(s->dir);
	free(s);
}

/* Where the link to a thing's sheet is; that link is NULL if it is plain memory. */
static struct sheet **find(struct shelf *s, const void *data)
{
	struct sheet **at = &s->first;

	while (*at && (*at)->data != data)
		at = &(*at)->next;
	return at;
}

/*
 * Its data, with the disk's blocks for all of it; NULL, with the reason kept.  A quarter more than is
 * needed: mapped bytes need not be copied, and blocks are not for waste.
 */
static void *grow_sheet(struct shelf *s, struct sheet *sheet, size_t *room, size_t need)
{
	size_t bytes = (need + need / 4 + STEP_BYTES - 1) / STEP_BYTES * STEP_BYTES;
	void *data;

	if (need > sheet->bytes) {
		do
			s->os_code = posix_fallocate(sheet->fd, (off_t)sheet->bytes, (off_t)(bytes - sheet->bytes));
		while (s->os_code == EINTR); /* the caller that fills it looks for signals */
		if (s->os_code)
			return NULL;
		data = sheet->data ? mremap(sheet->data, sheet->bytes, bytes, MREMAP_MAYMOVE)
				   : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, sheet->fd, 0);
		if (data == MAP_FAILED) {
			s->os_code = errno;
			return NULL;
		}
		sheet->data = data;
		sheet->bytes = bytes;
	}
	*room = sheet->bytes;
	return sheet->data;
}

static void *move_to_file(struct shelf *s, void *data, size_t *room, size_t need)
{
	struct sheet *sheet = xcalloc(1, sizeof(*sheet));
	size_t old = *room;

	sheet->fd = shelf_open_unnamed(s->dir);
	if (sheet->fd < 0)
		s->os_code = errno;
	if (sheet->fd < 0 || !grow_sheet(s, sheet, room, need)) {
		drop(sheet);
		return NULL;
	}
	if (old)
		memcpy(sheet->data, data, old);
	free(data);
	sheet->next = s->first;
	s->first = sheet;
	return sheet->data;
}

void *shelf_grow(struct shelf *s, void *data, size_t *room, size_t need)
{
	struct sheet *sheet = s && data ? *find(s, data) : NULL;
	size_t bytes = *room > FIRST_BYTES ? *room : FIRST_BYTES;

	if (need > SIZE_MAX / 4)
		exit_without_memory(need);
	if (sheet)
		return grow_sheet(s, sheet, room, need);
	if (s && need > SHELF_MEMORY_BYTES)
		return move_to_file(s, data, room, need);
	while (bytes < need)
		bytes *= 2;
	if (s && bytes > SHELF_MEMORY_BYTES)
		bytes = SHELF_MEMORY_BYTES;
	*room = bytes;
	return xrealloc(data, bytes, 1);
}

void shelf_free(struct shelf *s, void *data)
{
	struct sheet **at = s && data ? find(s, data) : NULL, *sheet = at ? *at : NULL;

	if (!sheet) {
		free(data);
		return;
	}
	*at = sheet->next;
	drop(sheet);
}

int shelf_refuse(const struct shelf *s, const char *fmt, ...)
{
	char what[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	return fail(EXIT_IO, "%s: no room for %s, which needs a file there: %s; choose another folder with --spool DIR",
		    s->dir, what, strerror(s->os_code));
}

/* ---- sorting ---- */

struct sorting {
	size_t item_bytes;
	int (*compare)(const void *a, const void *b, void *context);
	void *context;
};

/* `aside` has room for half of them. */
static void merge_sort(const struct sorting *s, char *items, uint64_t count, char *aside)
{
	size_t bytes = s->item_bytes, half = (size_t)(count / 2) * bytes;
	const char *a = aside, *b = items + half, *a_end = aside + half, *b_end = items + count * bytes;
	char *to = items;

	if (count * bytes <= SORT_BYTES) {
		qsort_r(items, count, bytes, s->compare, s->context);
		return;
	}
	merge_sort(s, items, count / 2, aside);
	merge_sort(s, items + half, count - count / 2, aside);
	if (s->compare(b - bytes, b, s->context) <= 0)
		return;
	memcpy(aside, items, half);
	for (; a < a_end && b < b_end; to += bytes) {
		const char **least = s->compare(a, b, s->context) <= 0 ? &a : &b;

		memcpy(to, *least, bytes);
		*least += bytes;
	}
	memcpy(to, a, (size_t)(a_end - a)); /* what is left of the others lies in its place */
}

bool shelf_sort(struct shelf *shelf, void *items, uint64_t count, size_t item_bytes,
		int (*compare)(const void *a, const void *b, void *context), void *context)
{
	size_t room = 0;
	char *aside = NULL;

	if (!count)
		return true;
	if (count * item_bytes > SORT_BYTES) {
		aside = shelf_grow(shelf, NULL, &room, (size_t)(count / 2) * item_bytes);
		if (!aside)
			return false;
	}
	merge_sort(&(struct sorting){item_bytes, compare, context}, items, count, aside);
	shelf_free(shelf, aside);
	return true;
}

static int compare_numbers(const void *a, const void *b, void *context)
{
	const struct sorting *s = context;
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	int order = s->compare(a, b, s->context);

	return order ? order : x < y ? -1 : x > y;
}

uint64_t *shelf_number(struct shelf *s, uint64_t count, int (*compare)(const void *a, const void *b, void *context),
		       void *context)
{
	size_t room = 0;
	uint64_t *order = shelf_grow(s, NULL, &room, (size_t)(count + 1) * sizeof(*order));
	struct sorting by_item = {sizeof(*order), compare, context};

	for (uint64_t i = 0; order && i < count; i++)
		order[i] = i;
	if (order && !shelf_sort(s, order, count, sizeof(*order), compare_numbers, &by_item)) {
		shelf_free(s, order);
		return NULL;
	}
	return order;
}

/* ---- arrays that grow as they are filled ---- */

bool grow_on(struct shelf *s, void *array, uint64_t *capacity, uint64_t need, size_t item_bytes)
{
	uint64_t want = need < FIRST_COUNT ? FIRST_COUNT : need;
	size_t room;
	void *items;

	if (need <= *capacity)
		return true;
	if (want > SIZE_MAX / 4 / item_bytes)
		exit_without_memory(SIZE_MAX);
	memcpy(&items, array, sizeof(items)); /* whatever type it points to */
	room = (size_t)*capacity * item_bytes;
	items = shelf_grow(s, items, &room, (size_t)want * item_bytes);
	if (!items)
		return false;
	memcpy(array, &items, sizeof(items));
	*capacity = room / item_bytes;
	return true;
}

void grow(void *array, uint64_t *capacity, uint64_t need, size_t item_bytes)
{
	grow_on(NULL, array, capacity, need, item_bytes);
}

bool grow_if_room(void *array, uint64_t *capacity, uint64_t need, size_t item_bytes)
{
	uint64_t want = need < FIRST_COUNT ? FIRST_COUNT : need;
	void *items;

	if (need <= *capacity)
		return true;
	want = want < 2 * *capacity ? 2 * *capacity : want;
	if (want > SIZE_MAX / 4 / item_bytes)
		return false;
	memcpy(&items, array, sizeof(items)); /* whatever type it points to */
	items = realloc(items, (size_t)want * item_bytes);
	if (!items)
		return false;
	memcpy(array, &items, sizeof(items));
	*capacity = want;
	return true;
}

/* ---- a stream whose bytes are kept in memory ---- */

static ssize_t add(void *context, const char *from, size_t bytes)
{
	struct memory_file *m = context;

	grow(&m->data, &m->capacity, m->bytes + bytes + 1, 1);
	memcpy(m->data + m->bytes, from, bytes);
	m->bytes += bytes;
	m->data[m->bytes] = '\0';
	return (ssize_t)bytes;
}

void memory_file_open(struct memory_file *m)
{
	*m = (struct memory_file){.data = NULL};
	m->stream = fopencookie(m, "w", (cookie_io_functions_t){.write = add});
	if (!m->stream)
		exit_without_memory(BUFSIZ);
}

void memory_file_close(struct memory_file *m)
{
	bool failed = ferror(m->stream);

	if (fclose(m->stream) != 0 || failed)
		exit_without_memory(BUFSIZ); /* of the stream itself, the only thing that may fail */
	m->stream = NULL;
	if (!m->bytes) /* nothing was written: the data is an empty text */
		add(m, "", 0);
}
