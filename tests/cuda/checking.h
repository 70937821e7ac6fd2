/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checking.h - damaged records, in files that lie in memory so that a GPU reads them there
 */
#ifndef TESTS_CUDA_CHECKING_H
#define TESTS_CUDA_CHECKING_H

#include <fcntl.h>

#include "libshard/dataset/dataset.h"
#include "shard_gpu.h"
#include "tests/load/batches.h"

/* Damage a record of a group in its file, or repair what was damaged so. */
static inline void damage(uint32_t group, uint64_t record)
{
	uint64_t shard = dataset_shard_of(ds, record), at;
	uint8_t byte;
	struct shard_reader *r;
	int fd;

	CHECK_OK(dataset_use_shard(ds, shard, &r, &fixture_err));
	at = reader_raw_begin(r, group) + (record - ds->first_record[shard]) * schema.group[group].stride;
	at += group ? 0 : 1000;
	fd = open(r->path, O_RDWR);
	CHECK(fd >= 0);
	CHECK_EQ(pread(fd, &byte, 1, (off_t)at), 1);
	byte ^= 32;
	CHECK_EQ(pwrite(fd, &byte, 1, (off_t)at), 1);
	close(fd);
}

/* Read all shards, so that they are in memory. */
static inline void warm(void)
{
	static uint8_t bytes[1 << 16];

	for (uint64_t i = 0; i < ds->m.shard_count; i++) {
		struct shard_reader *r;
		int fd;

		CHECK_OK(dataset_use_shard(ds, i, &r, &fixture_err));
		fd = open(r->path, O_RDONLY);
		CHECK(fd >= 0);
		while (read(fd, bytes, sizeof(bytes)) > 0)
			;
		close(fd);
	}
}

/*
 * Open the GPU of a loader.  What threads have filled before it is there goes through the ring, so
 * drop that.
 */
static inline void begin_checked(struct shard_loader *l, void *stream)
{
	warm();
	CHECK_OK(shard_loader_begin_device(l, stream, &fixture_err));
	CHECK_OK(shard_loader_seek(l, 0, 0, &fixture_err));
}

#endif
