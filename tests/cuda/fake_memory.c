/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_memory.c - device memory that only the device reads, page-locks, and copies
 *
 * An address of the device is a page that nobody may touch, so a host that follows it dies at once;
 * its bytes lie elsewhere, and are poison until something is copied there.
 */
#include <sys/mman.h>

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

int fake_cuMemHostRegister(void *memory, size_t bytes, unsigned flags)
{
	struct region *r;

	ENTER("cuMemHostRegister");
	if (!memory || !bytes || flags & ~15u)
		return call_leave(INVALID_VALUE);
	if (!current_context())
		return call_leave(INVALID_CONTEXT);
	if (region_of(memory, bytes, false))
		return call_leave(ALREADY_REGISTERED);
	r = calloc(1, sizeof(*r));
	*r = (struct region){fake.regions, current_context(), memory, bytes, flags & 1};
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

/* With the lock: queue a copy between the block at `device_memory` and the host's `host`. */
static int copy(uint64_t device_memory, const void *host, void *host_out, size_t bytes, void *handle)
{
	struct stream *s;
	struct block *b = block_of(device_memory, bytes);
	struct region *whole = region_of(host, bytes, true);
	int rc = stream_take(handle, &s);
	struct work *w;

	if (rc || !bytes || s->captures)
		return rc;
	if (!b || (!whole && region_of(host, bytes, false))) /* of several page-locks, the driver takes none */
		return INVALID_VALUE;
	if (b->context != s->context) {
		sinned(FAKE_WRONG_CONTEXT);
		return INVALID_CONTEXT;
	}
	if (!whole || (!whole->portable && whole->context != s->context)) {
		sinned(FAKE_UNREGISTERED);
		whole = NULL;
	}
	w = work_add(s, COPY);
	w->bytes = bytes;
	w->device_memory = device_memory;
	w->host_memory = whole ? host : NULL;
	if (host_out) {
		w->to = host_out;
		w->from = b->store + (device_memory - b->address);
		return OK;
	}
	w->to = b->store + (device_memory - b->address);
	w->from = host;
	if (!whole) { /* taken at once: the caller may write there again */
		w->from = w->staged = malloc(bytes);
		memcpy(w->staged, host, bytes);
	}
	return OK;
}

int fake_cuMemcpyHtoDAsync(uint64_t to, const void *from, size_t bytes, void *stream)
{
	ENTER("cuMemcpyHtoDAsync");
	return call_leave(copy(to, from, NULL, bytes, stream));
}

int fake_cuMemcpyDtoHAsync(void *to, uint64_t from, size_t bytes, void *stream)
{
	ENTER("cuMemcpyDtoHAsync");
	return call_leave(copy(from, to, to, bytes, stream));
}
