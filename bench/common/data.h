/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data.h - datasets to measure on: random bytes in shards, and where they lie
 */
#ifndef SHARD_COMMON_DATA_H
#define SHARD_COMMON_DATA_H

#include "bench/common/bench.h"
#include "shard.h"
#include "shard_pack.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DATA_IMAGE_BYTES       UINT64_C(150528) /* u8 [224,224,3], also the stride */
#define DATA_LARGE_IMAGE_BYTES UINT64_C(196608) /* u8 [256,256,3], likewise */

/*
 * Records of DATA_IMAGE_BYTES or DATA_LARGE_IMAGE_BYTES are photos: an image in group 0 and a label
 * in group 1.  Others are one field of as many bytes, a multiple of 64, which is also their stride.
 * LZ4 makes some two fifths of compressed ones.
 */
struct data_shape {
	const char *name; /* of its folder in bench_dir() */
	uint64_t record_bytes, shard_count, shard_records;
	uint32_t codec; /* of plain records */
};

/* Write one shard of that shape; fill() puts record i together. */
typedef void data_fill(void *context, uint64_t i, uint8_t *record);
void data_write_shard(const char *path, const struct data_shape *shape, data_fill *fill, void *context,
		      struct shard_written *written);

/*
 * Make it of random bytes, or phrases if they are compressed, unless it is there already.  Returns
 * the folder's path, to be freed.
 */
char *data_make(const struct bench *b, const struct data_shape *shape);

/* Likewise, of plain records in one shard, with a field "episode" in group 1: so many records have the same. */
char *data_make_episodes(const struct bench *b, const struct data_shape *shape, uint64_t episode_records);

/* Remove the dataset, and free the path. */
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

#ifdef __cplusplus
}
#endif

#endif
