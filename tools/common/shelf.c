/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shelf.c - memory that grows, and that lies in unnamed files once it is large
 *
 * Its sort is a merge sort from the bottom up.  Runs of RUN_ITEMS are sorted in their place, then
 * merged in pairs from one array into the other and back.  So both are read and written from end to
 * end.
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

#include "tools/common/exit_code.h"
#include "tools/common/message.h"

#define FIRST_BYTES 4096
#define STEP_BYTES  ((size_t)1 << 20) /* files have a multiple of it; so a page is a part of it */

#define RUN_ITEMS      8 /* that are sorted in their place */
#define ITEM_BYTES_MAX 256

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
	int os_code; /* why the last thing did not fit; 0: memory */
};

struct shelf *shelf_open(const char *dir)
{
	struct shelf *s = calloc(1, sizeof(*s));

	if (s)
		s->dir = strdup(dir);
	if (s && !s->dir) {
		free(s);
		return NULL;
	}
	return s;
}

int shelf_open_unnamed(const char *dir)
{
	int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	char *name = NULL;

	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR))
		return fd;
	if (asprintf(&name, "%s/.tmp.spool.XXXXXX", dir) < 0) {
		errno = ENOMEM;
		return -1;
	}
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

/* Blocks of the disk for all of it; false, with the reason kept. */
static bool take_blocks(struct shelf *s, const struct sheet *sheet, size_t bytes)
{
	do
		s->os_code = posix_fallocate(sheet->fd, (off_t)sheet->bytes, (off_t)(bytes - sheet->bytes));
	while (s->os_code == EINTR); /* whoever is filling it looks for signals */
	return !s->os_code;
}

static bool stretch(struct shelf *s, struct sheet *sheet, size_t bytes)
{
	void *data;

	if (!take_blocks(s, sheet, bytes))
		return false;
	data = sheet->data ? mremap(sheet->data, sheet->bytes, bytes, MREMAP_MAYMOVE)
			   : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, sheet->fd, 0);
	if (data == MAP_FAILED) {
		s->os_code = errno;
		return false;
	}
	sheet->data = data;
	sheet->bytes = bytes;
	return true;
}

/* A quarter more than is needed: mapped bytes need not be copied, and blocks are not for waste. */
static void *grow_sheet(struct shelf *s, struct sheet *sheet, size_t *room, size_t need)
{
	size_t bytes = (need + need / 4 + STEP_BYTES - 1) / STEP_BYTES * STEP_BYTES;

	if (need > sheet->bytes && !stretch(s, sheet, bytes))
		return NULL;
	*room = sheet->bytes;
	return sheet->data;
}

static void *move_to_file(struct shelf *s, void *data, size_t *room, size_t need)
{
	struct sheet *sheet = calloc(1, sizeof(*sheet));
	size_t old = *room;

	s->os_code = 0;
	if (!sheet)
		return NULL;
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

static void *grow_memory(struct shelf *s, void *data, size_t *room, size_t need)
{
	size_t bytes = *room > FIRST_BYTES ? *room : FIRST_BYTES;
	void *out;

	while (bytes < need)
		bytes *= 2;
	if (s && bytes > SHELF_MEMORY_BYTES)
		bytes = SHELF_MEMORY_BYTES;
	if (s)
		s->os_code = 0;
	out = realloc(data, bytes);
	if (out)
		*room = bytes;
	return out;
}

void *shelf_grow(struct shelf *s, void *data, size_t *room, size_t need)
{
	struct sheet *sheet = s && data ? *find(s, data) : NULL;

	if (need > SIZE_MAX / 4) {
		if (s)
			s->os_code = 0;
		return NULL;
	}
	if (sheet)
		return grow_sheet(s, sheet, room, need);
	return s && need > SHELF_MEMORY_BYTES ? move_to_file(s, data, room, need) : grow_memory(s, data, room, need);
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
	if (!s || !s->os_code)
		return fail(EXIT_IO, "out of memory for %s", what);
	return fail(EXIT_IO, "%s: no room for %s, which needs a file there: %s; choose another folder with --spool DIR",
		    s->dir, what, strerror(s->os_code));
}

/* ---- sorting ---- */

struct sorting {
	size_t item_bytes;
	int (*compare)(const void *a, const void *b, void *context);
	void *context;
};

static bool is_sorted(const struct sorting *s, const char *items, uint64_t count)
{
	for (uint64_t i = 1; i < count; i++, items += s->item_bytes)
		if (s->compare(items, items + s->item_bytes, s->context) > 0)
			return false;
	return true;
}

static void sort_run(const struct sorting *s, char *items, uint64_t count)
{
	char item[ITEM_BYTES_MAX];
	size_t bytes = s->item_bytes;

	for (uint64_t i = 1; i < count; i++) {
		char *at = items + i * bytes;

		if (s->compare(at - bytes, at, s->context) <= 0)
			continue;
		memcpy(item, at, bytes);
		do {
			memcpy(at, at - bytes, bytes);
			at -= bytes;
		} while (at > items && s->compare(at - bytes, item, s->context) > 0);
		memcpy(at, item, bytes);
	}
}

/* Two runs that lie side by side, at `from` and at `middle`, into one. */
static void merge(const struct sorting *s, char *to, const char *from, const char *middle, const char *end)
{
	const char *a = from, *b = middle;
	size_t bytes = s->item_bytes;

	if (b < end && s->compare(b - bytes, b, s->context) > 0) /* else they are in order as they lie */
		while (a < middle && b < end) {
			const char **least = s->compare(b, a, s->context) < 0 ? &b : &a;

			memcpy(to, *least, bytes);
			*least += bytes;
			to += bytes;
		}
	memcpy(to, a, (size_t)(middle - a));
	memcpy(to + (middle - a), b, (size_t)(end - b));
}

/* Runs of `run` items of `from` become runs of twice as many of `to`. */
static void merge_all(const struct sorting *s, char *to, const char *from, uint64_t count, uint64_t run)
{
	for (uint64_t i = 0; i < count; i += 2 * run) {
		uint64_t middle = i + run < count ? i + run : count, end = i + 2 * run < count ? i + 2 * run : count;

		merge(s, to + i * s->item_bytes, from + i * s->item_bytes, from + middle * s->item_bytes,
		      from + end * s->item_bytes);
	}
}

bool shelf_sort(struct shelf *shelf, void *items, uint64_t count, size_t item_bytes,
		int (*compare)(const void *a, const void *b, void *context), void *context)
{
	struct sorting s = {item_bytes, compare, context};
	size_t room = 0;
	char *from = items, *to, *other;

	if (is_sorted(&s, items, count))
		return true;
	other = shelf_grow(shelf, NULL, &room, (size_t)count * item_bytes);
	if (!other)
		return false;
	for (uint64_t i = 0; i < count; i += RUN_ITEMS)
		sort_run(&s, from + i * item_bytes, count - i < RUN_ITEMS ? count - i : RUN_ITEMS);
	to = other;
	for (uint64_t run = RUN_ITEMS; run < count; run *= 2) {
		merge_all(&s, to, from, count, run);
		to = from;
		from = from == other ? items : other;
	}
	if (from == other)
		memcpy(items, other, (size_t)count * item_bytes);
	shelf_free(shelf, other);
	return true;
}

uint64_t *shelf_number(struct shelf *s, uint64_t count, int (*compare)(const void *a, const void *b, void *context),
		       void *context)
{
	size_t room = 0;
	uint64_t *order =
		count < SIZE_MAX / 64 ? shelf_grow(s, NULL, &room, (size_t)(count + 1) * sizeof(*order)) : NULL;

	for (uint64_t i = 0; order && i < count; i++)
		order[i] = i;
	if (order && !shelf_sort(s, order, count, sizeof(*order), compare, context)) {
		shelf_free(s, order);
		return NULL;
	}
	return order;
}
