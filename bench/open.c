/* SPDX-License-Identifier: Apache-2.0 */
/*
 * open.c - 100 million records in 10,000 shards: open the dataset, and read the first, middle and
 * last record
 *
 * The shards are sparse: common/sparse.c makes them.  The three records that are read are there, so
 * that every hash that the reads meet is right.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench/common/bound_open.h"
#include "bench/common/sparse.h"
#include "shard_inspect.h"

#define SHARD_COUNT   10000u
#define SHARD_RECORDS 10000u
#define READS	      3

struct job {
	char *dir;
	uint64_t record[READS];
	struct bound_open file[READS];
	uint8_t *image;	   /* READS of them */
	uint8_t *manifest; /* room for its bytes */
	size_t manifest_bytes;
	struct shard_dataset *ds; /* opened by prepare */
};

static void find_records(struct job *j, const uint64_t *filled)
{
	struct shard_dataset *ds;
	struct shard_error err;
	struct shard_view manifest;

	if (shard_dataset_open(&ds, j->dir, NULL, &err))
		bench_die("%s", err.message);
	shard_dataset_manifest(ds, &manifest);
	j->manifest_bytes = manifest.bytes;
	j->manifest = bench_memory(j->manifest_bytes);
	j->image = bench_memory(READS * DATA_IMAGE_BYTES);
	for (int i = 0; i < READS; i++) {
		uint64_t shard = i == 0 ? 0 : i == 1 ? SHARD_COUNT / 2 : SHARD_COUNT - 1;
		struct shard_section images;
		struct shard_reader *r;
		struct shard_entry e;
		char *path;

		if (shard_dataset_entry(ds, shard, &e, &err) || shard_dataset_reader(ds, shard, &r, &err) ||
		    shard_reader_section(r, 0, &images, &err))
			bench_die("%s", err.message);
		if (asprintf(&path, "%s/%.*s", j->dir, (int)e.file_name_bytes, e.file) < 0)
			bench_die("out of memory");
		j->record[i] = e.first_record + filled[i];
		j->file[i] = (struct bound_open){path, e.file_bytes, images.offset + filled[i] * DATA_IMAGE_BYTES};
	}
	shard_dataset_close(ds);
}

static double run_manifest(void *context)
{
	struct job *j = context;
	struct shard_error err;
	double begin = bench_seconds();

	if (shard_dataset_open(&j->ds, j->dir, NULL, &err))
		bench_die("%s", err.message);
	return (bench_seconds() - begin) * 1e3;
}

static double run_manifest_bare(void *context)
{
	struct job *j = context;
	char path[4096];

	snprintf(path, sizeof(path), "%s/dataset.manifest", j->dir);
	return bound_load(path, j->manifest, j->manifest_bytes);
}

static bool close_dataset(void *context)
{
	struct job *j = context;

	shard_dataset_close(j->ds);
	j->ds = NULL;
	return true;
}

static bool open_dataset(void *context)
{
	run_manifest(context);
	return true;
}

static double run_reads(void *context)
{
	struct job *j = context;
	void *dst[SHARD_GROUPS_MAX] = {j->image};
	struct shard_error err;
	double begin = bench_seconds();

	if (shard_dataset_read(j->ds, j->record, READS, dst, &err))
		bench_die("%s", err.message);
	return (bench_seconds() - begin) * 1e3;
}

static double run_all(void *context)
{
	double opened = run_manifest(context);

	return opened + run_reads(context);
}

static double run_bare(void *context)
{
	struct job *j = context;

	return bound_open(j->file, READS, DATA_IMAGE_BYTES, j->image);
}

static bool evict(void *context)
{
	struct job *j = context;

	for (int i = 0; i < READS; i++) {
		int fd = open(j->file[i].path, O_RDONLY | O_CLOEXEC);

		if (fd < 0 || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED))
			bench_die("%s: cannot be dropped from memory", j->file[i].path);
		close(fd);
	}
	return true;
}

static bool evict_and_open(void *context)
{
	return evict(context) && open_dataset(context);
}

int main(int argc, char **argv)
{
	struct bench *b = bench_open(argc, argv);
	static const uint64_t filled[READS] = {0, SHARD_RECORDS / 2, SHARD_RECORDS - 1};
	struct job j = {0};
	const struct bench_row row[] = {
		{.name = "open/manifest",
		 .unit = "ms",
		 .less_is_better = true,
		 .warm_up_count = 1,
		 .context = &j,
		 .side = {{"shard_dataset_open", run_manifest, NULL, close_dataset, 0},
			  {"read it and XXH3-128 it", run_manifest_bare, NULL, NULL, 0}}},
		{.name = "open/3-records/hot",
		 .unit = "ms",
		 .less_is_better = true,
		 .warm_up_count = 1,
		 .context = &j,
		 .side = {{"shard_dataset_read of the three", run_reads, open_dataset, close_dataset, 0},
			  {"open, two pages, record, close", run_bare, NULL, NULL, 0}}},
		{.name = "open/3-records/cold",
		 .unit = "ms",
		 .less_is_better = true,
		 .context = &j,
		 .side = {{"shard_dataset_read of the three", run_reads, evict_and_open, close_dataset, 0},
			  {"open, two pages, record, close", run_bare, evict, NULL, 0}}},
		{.name = "open/all/hot",
		 .unit = "ms",
		 .less_is_better = true,
		 .warm_up_count = 1,
		 .context = &j,
		 .side = {{"shard_dataset_open and the three", run_all, NULL, close_dataset, 0}}},
	};
	bool wanted = false;

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		wanted = wanted || bench_wants(b, row[i].name);
	if (!wanted)
		return bench_close(b);
	j.dir = data_make_sparse(
		b, &(struct data_shape){"sparse", DATA_IMAGE_BYTES, SHARD_COUNT, SHARD_RECORDS, SHARD_RAW}, filled,
		READS);
	find_records(&j, filled);
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		bench_run(b, &row[i]);
	for (int i = 0; i < READS; i++)
		free((void *)(uintptr_t)j.file[i].path);
	free(j.image);
	free(j.manifest);
	free(j.dir);
	return bench_close(b);
}
