/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data.h - datasets to measure on: random bytes in shards, and where they lie
 */
#ifndef BENCH_COMMON_DATA_H
#define BENCH_COMMON_DATA_H

#include "bench/common/bench.h"
#include "shard.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DATA_IMAGE_BYTES UINT64_C(150528) /* u8 [224,224,3], also the stride */

/*
 * Records of DATA_IMAGE_BYTES are photos: an image in group 0 and a label in group 1.  Others are one field of as many
 * bytes, a multiple of 64, which is also their stride.  LZ4 makes some two fifths of compressed ones.
 */
struct data_shape {
	const char *name; /* of its folder in bench_dir() */
	uint64_t record_bytes, shard_count, shard_records;
	uint32_t codec; /* of plain records */
};
void data_schema(uint64_t record_bytes, uint32_t codec, struct shard_schema *schema);

/* Make it of random bytes, or phrases if they are compressed, unless it is there already.  Returns the folder's path, to be freed. */
char *data_make(const struct bench *b, const struct data_shape *shape);

/*
 * The same of sparse shards: they have their pages and tables, and a hole of zeros where the records would be.  Of the
 * records `filled`, every shard has the hashes of random bytes, but only the first, the middle and the last shard have
 * these bytes; without any, each hash is right.
 */
char *data_make_sparse(const struct bench *b, const struct data_shape *shape, const uint64_t *filled, size_t filled_count);

/* Remove what was made, and free the path. */
void data_remove(char *dir);

/* The files of a dataset, and the records of its first group in each. */
struct data_file {
	char *path;
	uint64_t bytes, record_offset, record_count;
};
struct data_files {
	struct data_file *file;
	size_t count;
	uint64_t bytes; /* of all files */
	uint64_t record_bytes, record_count;
};
void data_files_open(struct data_files *files, const char *dir);
void data_files_close(struct data_files *files);

/* Map every file; map[i] is that of file[i].  Populated: with all its pages in place. */
const uint8_t **data_map(const struct data_files *files, bool populated);
void data_unmap(const struct data_files *files, const uint8_t **map);

/* ---- cold and hot ---- */

/* Drop all of it from the page cache; false, with bench_skip(), if 1 % or more of it stayed. */
bool data_evict(const struct data_files *files);

/* The same before a run whose reads are counted; *device_before is data_device_bytes() then. */
bool data_make_cold(const struct data_files *files, uint64_t *device_before);

/*
 * Evict, then read all of it as a first epoch does: in order, buffered.  So the pages are of the size that the system
 * makes when it reads; those of a file just written are smaller, and slow to map.  False if it does not stay in memory.
 */
bool data_warm(const struct data_files *files);
double data_residency(const struct data_files *files); /* 0 to 1; for files that we own */

/* Bytes that this process has made the system read from devices so far. */
uint64_t data_device_bytes(void);

#ifdef __cplusplus
}
#endif

#endif
