/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bound_chunks.h - the bare loop over compressed records
 */
#ifndef SHARD_COMMON_BOUND_CHUNKS_H
#define SHARD_COMMON_BOUND_CHUNKS_H

#include "bench/common/bound_copy.h"

/*
 * Window by window: decode its chunks, in this order, each to its place in memory for a window;
 * then copy its records from there as above.  GB/s of the records.
 */
struct bound_chunk {
	const uint8_t *stored;
	uint8_t *decoded;
	uint32_t stored_bytes, is_lz4;
};
struct bound_window {
	size_t first_chunk, first_record;
};
struct bound_chunks {
	const struct bound_chunk *chunk;
	const struct bound_window *window; /* [window_count + 1] */
	size_t window_count, chunk_bytes;
	struct bound_copy copy; /* of all records */
};
double bound_chunks(const struct bound_chunks *c, enum bound_copy_how how, unsigned thread_count);

#endif
