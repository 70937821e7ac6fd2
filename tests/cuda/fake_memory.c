/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_memory.c - device memory that only the device reads, page-locks, and copies
 *
 * An address of the device is a page that nobody may touch, so a host that follows it dies at once;
 * its bytes lie elsewhere, and are poison until something is copied there.
 */
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/vfs.h>

#include "tests/cuda/fake_driver.h"

/* ---- device memory ---- */

struct block *block_of(uint64_t address, size_t bytes)
{
	for (struct block *b = fake.blocks; b; b = b->next)
		if (address >= b->address && address - b->address <= b->bytes &&
		    bytes <= b->bytes - (address - b->address))
			return b;
	return NULL;
}

/* Does a kernel have an address within the block among its arguments, or in one of them? */
static bool is_argument(const struct work *w, const struct block *b)
{
	uint64_t word;

	for (unsigned i = 0, from = 0; w->kind == KERNEL && i < w->kernel->count; from += argument_room(w->kernel, i++))
		for (unsigned at = 0; at + sizeof(word) <= w->kernel->bytes[i]; at += sizeof(word)) {
			memcpy(&word, w->arguments + from + at, sizeof(word));
			if (word - b->address < b->bytes)
				return true;
		}
	return false;
}

bool block_in_use(const struct block *b)
{
	for (const struct stream *s = fake.streams; s; s = s->next)
		for (const struct work *w = s->first; w; w = w->next)
			if ((w->kind == COPY && w->device_memory - b->address < b->bytes) || is_argument(w, b))
				return true;
	return false;
}

int fake_cuMemAlloc(uint64_t *memory, size_t bytes)
{
	struct block *b;
	void *address;

	ENTER("cuMemAlloc");
	if (!bytes)
		return call_leave(INVALID_VALUE);
	if (!current_context())
		return call_leave(INVALID_CONTEXT);
	address = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (address == MAP_FAILED)
		return call_leave(OUT_OF_MEMORY);
	b = calloc(1, sizeof(*b));
	*b = (struct block){fake.blocks, current_context(), (uintptr_t)address, bytes, malloc(bytes)};
	memset(b->store, POISON, bytes);
	fake.blocks = b;
	*memory = b->address;
	return call_leave(OK);
}

int fake_cuMemFree(uint64_t memory)
{
	struct block **p = &fake.blocks, *b;

	ENTER("cuMemFree");
	while (*p && (*p)->address != memory)
		p = &(*p)->next;
	b = *p;
	if (!b) {
		sinned(FAKE_BAD_HANDLE);
		return call_leave(INVALID_VALUE);
	}
	if (b->context != current_context()) {
		sinned(FAKE_WRONG_CONTEXT);
		return call_leave(INVALID_CONTEXT);
	}
	if (!fake.broken && block_in_use(b))
		sinned(FAKE_FREED_IN_USE);
	/* what came of it is told; what it would do to the heap helps nobody */
	while (!fake.broken && block_in_use(b))
		pthread_cond_wait(&fake.change, &fake.lock);
	for (p = &fake.blocks; *p != b; p = &(*p)->next)
		;
	*p = b->next;
	munmap((void *)(uintptr_t)b->address, b->bytes);
	free(b->store);
	free(b);
	return call_leave(OK);
}

int fake_cuMemGetInfo(size_t *free_bytes, size_t *bytes)
{
	size_t used = 0;

	ENTER("cuMemGetInfo");
	if (!current_context())
		return call_leave(INVALID_CONTEXT);
	for (const struct block *b = fake.blocks; b; b = b->next)
		used += b->context->device == current_context()->device ? b->bytes : 0;
	*free_bytes = used < MEMORY_BYTES ? MEMORY_BYTES - used : 0;
	*bytes = MEMORY_BYTES;
	return call_leave(OK);
}

/* ---- page-locks ---- */

/* The one that has all of [at, at + bytes), any part of it, or NULL. */
static struct region *region_of(const void *at, size_t bytes, bool whole)
{
	const uint8_t *first = at, *last = first + bytes - 1;

	for (struct region *r = fake.regions; r; r = r->next) {
		const uint8_t *end = r->at + r->bytes - 1;

		if (whole ? first >= r->at && last <= end : first <= end && last >= r->at)
			return r;
	}
	return NULL;
}

/* What is mapped somewhere. */
struct mapped {
	bool whole;		  /* all of it is memory that can be read */
	bool writable;		  /* all of it can be written */
	bool shares_disk, copies; /* some of it is a shared map of a file on a disk, or a private map of a file */
	uint64_t file;		  /* which file the first of it is of; 0: of none */
};

/* Is a shared map of this "file" one of memory, so that no file system has a say? */
static bool is_in_memory(const char *path)
{
	struct statfs fs;

	return !strncmp(path, "/memfd:", 7) || !strncmp(path, "/dev/zero", 9) || !strncmp(path, "/SYSV", 5) ||
	       (!statfs(path, &fs) && fs.f_type == TMPFS_MAGIC);
}

static int look_at_maps(const void *at, size_t bytes, struct mapped *out)
{
	uint64_t first = (uintptr_t)at, end = first + bytes, from, to, inode;
	FILE *f = fopen("/proc/self/maps", "re");
	unsigned major, minor;
	char line[4400], may[5];
	int path;

	if (!f)
		return OPERATING_SYSTEM;
	*out = (struct mapped){.writable = true};
	for (uint64_t next = first; next < end && fgets(line, sizeof(line), f);) {
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %*x %x:%x %" SCNu64 " %n", &from, &to, may, &major,
			   &minor, &inode, &path) < 6 ||
		    to <= next)
			continue;
		if (from > next || may[0] != 'r')
			break;
		line[strcspn(line, "\n")] = 0;
		out->writable &= may[1] == 'w';
		out->copies |= inode && may[3] == 'p';
		out->shares_disk |= inode && may[3] == 's' && !is_in_memory(line + path);
		if (next == first && inode)
			out->file = inode << 24 ^ (uint64_t)major << 12 ^ minor ^ UINT64_C(1) << 63;
		next = to;
		out->whole = next >= end;
	}
	fclose(f);
	return OK;
}

/*
 * What memory and flags a driver takes was measured (580.159, Linux 6.18, ext4): without READ_ONLY
 * it takes only what can be written, and no shared map of a file on a disk.  A private map of a file
 * is taken, and copied.
 */
int fake_cuMemHostRegister(void *memory, size_t bytes, unsigned flags)
{
	struct mapped m;
	struct region *r;
	int rc;

	ENTER("cuMemHostRegister");
	if (!memory || !bytes || flags & ~15u)
		return call_leave(INVALID_VALUE);
	if (!current_context())
		return call_leave(INVALID_CONTEXT);
	if (region_of(memory, bytes, false))
		return call_leave(ALREADY_REGISTERED);
	rc = look_at_maps(memory, bytes, &m);
	if (!rc && (!m.whole || (!(flags & 8) && (!m.writable || m.shares_disk))))
		rc = INVALID_VALUE;
	if (rc)
		return call_leave(rc);
	if (m.copies)
		sinned(FAKE_COPIED_FILE);
	r = calloc(1, sizeof(*r));
	*r = (struct region){fake.regions, current_context(), memory, bytes, flags & 1, flags & 8, m.file};
	fake.regions = r;
	return call_leave(OK);
}

static bool region_in_use(const struct region *region)
{
	for (const struct stream *s = fake.streams; s; s = s->next)
		for (const struct work *w = s->first; w; w = w->next)
			if (w->kind == COPY && w->host_memory && region_of(w->host_memory, w->bytes, false) == region)
				return true;
	return false;
}

int fake_cuMemHostUnregister(void *memory)
{
	struct region **p = &fake.regions, *r;
	struct mapped m;

	ENTER("cuMemHostUnregister");
	while (*p && (*p)->at != memory)
		p = &(*p)->next;
	r = *p;
	if (!r) {
		sinned(FAKE_BAD_HANDLE);
		return call_leave(NOT_REGISTERED);
	}
	if (!fake.broken && region_in_use(r))
		sinned(FAKE_FREED_IN_USE);
	if (!look_at_maps(r->at, r->bytes, &m) && (!m.whole || m.file != r->map))
		sinned(FAKE_UNMAPPED);
	*p = r->next;
	free(r);
	return call_leave(OK);
}

int fake_cuPointerGetAttribute(void *out, int attribute, uint64_t pointer)
{
	ENTER("cuPointerGetAttribute");
	if (attribute != 1 && attribute != 2) /* the context, or the kind of memory */
		return call_leave(INVALID_VALUE);
	if (attribute == 1 && block_of(pointer, 1)) { /* whichever context is current */
		*(void **)out = block_of(pointer, 1)->context;
		return call_leave(OK);
	}
	if (attribute == 1)
		return call_leave(INVALID_VALUE);
	if (!current_context())
		return call_leave(INVALID_CONTEXT);
	if (!block_of(pointer, 1) && !region_of((void *)(uintptr_t)pointer, 1, true))
		return call_leave(INVALID_VALUE);
	*(unsigned *)out = block_of(pointer, 1) ? 2 : 1;
	return call_leave(OK);
}

/* ---- copies ---- */

/* A copy between the block at `device_memory` and the host's `host`, before anything is queued. */
struct piece {
	uint64_t device_memory;
	const void *host;
	void *host_out; /* NULL: the copy goes to the device */
	size_t bytes;
	bool now; /* memory that is not page-locked is read at once */
};

/* With the lock: may it be queued on this stream? */
static int check_piece(const struct piece *p, const struct stream *s)
{
	struct block *b = block_of(p->device_memory, p->bytes);
	const struct region *whole = region_of(p->host, p->bytes, true);

	if (!b || (!whole && region_of(p->host, p->bytes, false))) /* of several page-locks, the driver takes none */
		return INVALID_VALUE;
	/* Which error that is, the documentation does not say. */
	if (p->host_out && whole && whole->read_only)
		return INVALID_VALUE;
	if (b->context == s->context)
		return OK;
	sinned(FAKE_WRONG_CONTEXT);
	return INVALID_CONTEXT;
}

static void queue_piece(const struct piece *p, struct stream *s)
{
	struct block *b = block_of(p->device_memory, p->bytes);
	const struct region *whole = region_of(p->host, p->bytes, true);
	struct work *w;

	if (!whole || (!whole->portable && whole->context != s->context)) {
		sinned(FAKE_UNREGISTERED);
		whole = NULL;
	}
	w = work_add(s, COPY);
	w->bytes = p->bytes;
	w->device_memory = p->device_memory;
	w->host_memory = whole ? p->host : NULL;
	if (p->host_out) {
		w->to = p->host_out;
		w->from = b->store + (p->device_memory - b->address);
		return;
	}
	w->to = b->store + (p->device_memory - b->address);
	w->from = p->host;
	if (!whole && p->now) { /* taken at once: the caller may write there again */
		w->from = w->staged = malloc(p->bytes);
		memcpy(w->staged, p->host, p->bytes);
	}
}

static int copy(const struct piece *p, void *handle)
{
	struct stream *s;
	int rc = stream_take(handle, &s);

	if (rc || !p->bytes || s->captures)
		return rc;
	rc = check_piece(p, s);
	if (!rc)
		queue_piece(p, s);
	return rc;
}

int fake_cuMemcpyHtoDAsync(uint64_t to, const void *from, size_t bytes, void *stream)
{
	ENTER("cuMemcpyHtoDAsync");
	return call_leave(copy(&(struct piece){to, from, NULL, bytes, true}, stream));
}

int fake_cuMemcpyDtoHAsync(void *to, uint64_t from, size_t bytes, void *stream)
{
	ENTER("cuMemcpyDtoHAsync");
	return call_leave(copy(&(struct piece){from, to, to, bytes, true}, stream));
}

/* ---- batches of copies ---- */

/*
 * Is the form of the batch wrong?  NVIDIA's driver API says of cuMemcpyBatchAsync: a first index of
 * 0, each further one above the one before it and below `count`, no more attributes than copies,
 * and an order of access for each.  The stream must not be the legacy default stream, whose handles
 * are NULL and 1.
 */
static bool is_malformed(size_t count, int (*attributes)[6], const size_t *firsts, size_t attribute_count, void *stream)
{
	if (!count || !attribute_count || attribute_count > count || firsts[0] || (uintptr_t)stream <= 1)
		return true;
	for (size_t i = 0; i < attribute_count; i++)
		if (attributes[i][0] < 1 || attributes[i][0] > 3 || attributes[i][5] & ~1 ||
		    (i && (firsts[i] <= firsts[i - 1] || firsts[i] >= count)))
			return true;
	return false;
}

/*
 * Queue copies so that they run in an order of chance.  The order of access 1 reads memory that is
 * not page-locked when the copy runs, the others may read it before that.
 *
 * The fake gives nothing that the documentation does not promise.  It refuses an empty copy, and
 * copies in front of a refused one may have been queued.  It knows only copies to the device.
 *
 * A stream that captures refuses, and the capture goes on without the copies: seen with the driver
 * of CUDA 13, and told in rapidsai/rmm, issue 2518.
 */
int fake_cuMemcpyBatchAsync(uint64_t *to, uint64_t *from, size_t *bytes, size_t count, int (*attributes)[6],
			    size_t *firsts, size_t attribute_count, size_t *failed, void *stream)
{
	size_t good = 0, attribute = 0, *order;
	struct piece *piece;
	struct stream *s;
	int rc;

	ENTER("cuMemcpyBatchAsync");
	*failed = SIZE_MAX;
	rc = is_malformed(count, attributes, firsts, attribute_count, stream) ? INVALID_VALUE : stream_take(stream, &s);
	if (!rc && fake.has_other_addresses) /* these name nothing there */
		rc = INVALID_VALUE;
	if (!rc && s->captures)
		rc = CAPTURE_UNSUPPORTED;
	if (rc)
		return call_leave(rc);
	piece = calloc(count, sizeof(*piece));
	order = calloc(count, sizeof(*order));
	for (; good < count; good++) {
		attribute += attribute + 1 < attribute_count && firsts[attribute + 1] == good;
		piece[good] = (struct piece){to[good], (const void *)(uintptr_t)from[good], NULL, bytes[good],
					     attributes[attribute][0] != 1};
		rc = bytes[good] ? check_piece(&piece[good], s) : INVALID_VALUE;
		if (rc) {
			*failed = good;
			break;
		}
	}
	for (size_t i = 0; i < good; i++) { /* one of chance, by insertion */
		size_t at = (size_t)chance(i + 1);

		order[i] = order[at];
		order[at] = i;
	}
	for (size_t i = 0; i < good; i++)
		queue_piece(&piece[order[i]], s);
	free(piece);
	free(order);
	return call_leave(rc);
}
