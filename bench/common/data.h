/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data.h - datasets to measure on: random images and labels, and where their bytes lie
 */
#ifndef BENCH_COMMON_DATA_H
#define BENCH_COMMON_DATA_H

#include "bench/common/bench.h"
#include "shard.h"

#define DATA_IMAGE_BYTES UINT64_C(150528) /* u8 [224,224,3], also the stride */

/* The schema of photos: image in group 0, label in group 1. */
void data_photo_schema(struct shard_schema *schema);

/*
 * Make `dir`/NAME, shards of random photos, unless it is there already.  Returns the folder's path, to be freed.
 */
char *data_make_photos(const struct bench *b, const char *name, uint64_t shard_count, uint64_t shard_records);

/* The files of a dataset, and the images in each. */
struct data_file {
	char *path;
	uint64_t bytes, image_offset, image_count;
};
struct data_files {
	struct data_file *file;
	size_t count;
	uint64_t bytes; /* of all files */
	uint64_t image_count;
};
void data_files_open(struct data_files *files, const char *dir);
void data_files_close(struct data_files *files);

/* Map every file; map[i] is that of file[i].  Populated: with all its pages in place. */
const uint8_t **data_map(const struct data_files *files, bool populated);
void data_unmap(const struct data_files *files, const uint8_t **map);

/* ---- cold and hot ---- */

/* Drop all of it from the page cache; false, with bench_skip(), if 1 % or more of it stayed. */
bool data_evict(const struct data_files *files);

/*
 * Evict, then read all of it as a first epoch does: in order, buffered.  So the pages are of the size that the system
 * makes when it reads; those of a file just written are smaller, and slow to map.  False if it does not stay in memory.
 */
bool data_warm(const struct data_files *files);
double data_residency(const struct data_files *files); /* 0 to 1; for files that we own */

/* Bytes that this process has made the system read from devices so far. */
uint64_t data_device_bytes(void);

#endif
