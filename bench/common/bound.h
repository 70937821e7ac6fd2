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
 * Copy records of a multiple of 64 bytes, in that order, one behind the other into a ring that starts over at its end.
 * Threads take a batch at a time.  GB/s.  Not every machine can do it in every way.
 */
enum bound_copy_how { BOUND_COPY_LIBC, BOUND_COPY_AVX2, BOUND_COPY_STREAM /* AVX2, non-temporal stores */ };
struct bound_copy {
	const uint8_t *const *record; /* [count] where each lies */
	size_t count, record_bytes, batch_records;
	uint8_t *ring;
	size_t ring_records; /* whole batches */
};
bool bound_copy_can(enum bound_copy_how how);
double bound_copy(const struct bound_copy *c, enum bound_copy_how how, unsigned thread_count);

/*
 * Window by window: decode its chunks, in this order, each to its place in memory for a window; then copy its records from
 * there as above.  GB/s of the records.
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

/*
 * Read pieces of files past the page cache, in that order, into a ring of places for one each.  Offsets and sizes must
 * suit direct reads.  GB/s of work_bytes.
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
double bound_uring(const struct bound_pieces *p, unsigned depth);	  /* one thread, that many reads in flight */
bool bound_uring_can(void);						  /* not every system permits it */

/* Descriptors for these loops. */
int *bound_open_direct(const struct data_files *files);
void bound_close_direct(const struct data_files *files, int *fd);

/* Open these files, read both pages and `bytes` at `offset` of each, and close them.  Milliseconds. */
struct bound_open {
	const char *path;
	uint64_t file_bytes, offset;
};
double bound_open(const struct bound_open *file, size_t count, size_t bytes, uint8_t *out);

/* Read a small file and hash it.  Milliseconds. */
double bound_load(const char *path, uint8_t *out, size_t bytes);

#endif
