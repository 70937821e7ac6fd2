/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reads.h - reads past the map as a test wants them: alignments that the system asks for, reads
 * that fail, and a count of them
 *
 * A program that includes this links with
 * -Wl,--wrap=direct_open,--wrap=engine_put,--wrap=engine_get.
 */
#ifndef TESTS_LOAD_READS_H
#define TESTS_LOAD_READS_H

#include <stdatomic.h>

#include "libshard/io/io.h"

static enum { AS_IT_IS, NO_DIRECT, ALIGN_512, ALIGN_4096 } system_says;
static atomic_int fail_read; /* the read that fails with fail_code, counted from 1; 0: none */
static int fail_code;

/* Of all engines since it was zeroed. */
static struct {
	atomic_uint count, under_way;
	_Atomic uint64_t bytes, longest, most; /* most: under way at a time */
	uint64_t shift_longer_than, shift;     /* a mistake: reads that are longer begin so far behind their place */
} reads;

int __real_direct_open(const char *path, uint64_t inode, uint64_t bytes, bool want_direct, struct direct_file *out);
int __wrap_direct_open(const char *path, uint64_t inode, uint64_t bytes, bool want_direct, struct direct_file *out);
void __real_engine_put(struct engine *e, struct engine_read *r);
void __wrap_engine_put(struct engine *e, struct engine_read *r);
struct engine_read *__real_engine_get(struct engine *e);
struct engine_read *__wrap_engine_get(struct engine *e);

int __wrap_direct_open(const char *path, uint64_t inode, uint64_t bytes, bool want_direct, struct direct_file *out)
{
	int rc = __real_direct_open(path, inode, bytes, want_direct && system_says != NO_DIRECT, out);

	if (!rc && out->direct && system_says == ALIGN_4096)
		out->offset_align = out->memory_align = 4096;
	if (!rc && out->direct && system_says == ALIGN_512)
		out->offset_align = out->memory_align = 512;
	return rc;
}

static inline void raise_to(_Atomic uint64_t *most, uint64_t value)
{
	uint64_t before = atomic_load(most);

	while (before < value && !atomic_compare_exchange_weak(most, &before, value))
		;
}

void __wrap_engine_put(struct engine *e, struct engine_read *r)
{
	raise_to(&reads.most, atomic_fetch_add(&reads.under_way, 1) + 1);
	atomic_fetch_add(&reads.count, 1);
	atomic_fetch_add(&reads.bytes, r->bytes);
	raise_to(&reads.longest, r->bytes);
	if (reads.shift && r->bytes > reads.shift_longer_than)
		r->offset += reads.shift;
	__real_engine_put(e, r);
}

struct engine_read *__wrap_engine_get(struct engine *e)
{
	struct engine_read *r = __real_engine_get(e);

	if (!r)
		return NULL;
	atomic_fetch_sub(&reads.under_way, 1);
	if (atomic_load(&fail_read) > 0 && atomic_fetch_sub(&fail_read, 1) == 1)
		r->os_code = fail_code;
	return r;
}

#endif
