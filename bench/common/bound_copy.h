/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bound_copy.h - the bare copy loops
 */
#ifndef SHARD_COMMON_BOUND_COPY_H
#define SHARD_COMMON_BOUND_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Copy records of a multiple of 64 bytes, in that order, one behind the other into a ring that
 * starts over at its end.  Threads take a batch at a time.  GB/s.  Not every machine can do it in
 * every way.
 */
enum bound_copy_how {
	BOUND_COPY_LIBC,
	BOUND_COPY_AVX2,
	BOUND_COPY_STREAM, /* AVX2, non-temporal stores */
	BOUND_COPY_AHEAD   /* the same, which prefetches the record that comes 16 later */
};
struct bound_copy {
	const uint8_t *const *record; /* [count] where each lies */
	size_t count, record_bytes, batch_records;
	uint8_t *ring;
	size_t ring_records; /* whole batches */
};
bool bound_copy_can(enum bound_copy_how how);
double bound_copy(const struct bound_copy *c, enum bound_copy_how how, unsigned thread_count);

#endif
