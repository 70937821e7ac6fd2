/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bound.h - the plain loops that rows are compared with; each is one short file, bound_*.c
 *
 * They check nothing and handle no damage: how fast the machine can be made to do the work, not how to do it.
 */
#ifndef BENCH_COMMON_BOUND_H
#define BENCH_COMMON_BOUND_H

#include "bench/common/data.h"

/* Hash every image where it is mapped.  GB/s. */
double bound_hash(const struct data_files *files, const uint8_t *const *map, unsigned thread_count);

/* Read all files past the page cache.  GB/s. */
#define BOUND_BLOCK_MOST ((size_t)16 << 20)
double bound_read(const struct data_files *files, size_t block_bytes, unsigned thread_count);

/*
 * Copy images, in that order, one behind the other into a ring that starts over at its end.  GB/s.  Not every machine
 * can do it in every way.
 */
enum bound_copy_how { BOUND_COPY_LIBC, BOUND_COPY_AVX2, BOUND_COPY_STREAM /* AVX2, non-temporal stores */ };
struct bound_copy {
	const uint8_t *const *image; /* [count] where each lies */
	size_t count;
	uint8_t *ring;
	size_t ring_images;
};
bool bound_copy_can(enum bound_copy_how how);
double bound_copy(const struct bound_copy *c, enum bound_copy_how how);

/* Open these files, read both pages and `bytes` at `offset` of each, and close them.  Milliseconds. */
struct bound_open {
	const char *path;
	uint64_t file_bytes, offset;
};
double bound_open(const struct bound_open *file, size_t count, size_t bytes, uint8_t *out);

/* Read a small file and hash it.  Milliseconds. */
double bound_load(const char *path, uint8_t *out, size_t bytes);

#endif
