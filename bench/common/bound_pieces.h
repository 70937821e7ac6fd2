/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bound_pieces.h - the bare loops over pieces of files
 */
#ifndef SHARD_COMMON_BOUND_PIECES_H
#define SHARD_COMMON_BOUND_PIECES_H

#include "bench/common/data.h"

/*
 * Read pieces of files past the page cache, in that order, into a ring of places for one each.
 * Offsets and sizes must suit direct reads.  GB/s of work_bytes.
 */
struct bound_piece {
	uint64_t offset;
	uint32_t file, bytes;
};
struct bound_pieces {
	const struct data_files *files;
	const struct bound_piece *piece; /* [count] */
	size_t count, piece_most;	 /* no piece is longer; a multiple of 4096 */
	uint64_t work_bytes;		 /* of the records in them */
	uint8_t *ring;
	size_t ring_bytes;
};
double bound_pieces(const struct bound_pieces *p, unsigned thread_count); /* pread, one at a time in each thread */
/* Descriptors for these loops. */
int *bound_open_direct(const struct data_files *files);
void bound_close_direct(const struct data_files *files, int *fd);

#endif
