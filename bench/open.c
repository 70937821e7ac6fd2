/* SPDX-License-Identifier: Apache-2.0 */
/*
 * open.c - 100 million records in 10,000 shards: open the dataset, and read the first, middle and last record
 *
 * The shards are sparse.  One is written in full, once; each of the others gets its pages and tables, and a hole where
 * the images would be.  The three that are read get theirs, so that every hash that the reads meet is right.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/common/bound.h"

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

/* ---- making it ---- */

static void template_write(const char *path, struct shard_written *written)
{
	struct shard_writer_options o = {.size = sizeof(o), .planned_records = SHARD_RECORDS, .skip_read_back = 1};
	static uint8_t zeros[DATA_IMAGE_BYTES], random[DATA_IMAGE_BYTES];
	struct shard_schema schema;
	struct shard_writer *w;
	struct shard_error err;
	int rc;

	data_photo_schema(&schema);
	rc = shard_writer_open(&w, path, &schema, &o, &err);
	for (uint64_t i = 0; !rc && i < SHARD_RECORDS; i++) {
		bool is_read = !i || i == SHARD_RECORDS / 2 || i == SHARD_RECORDS - 1;
		int64_t label = (int64_t)(i % 1000);
		const void *group[] = {is_read ? random : zeros, &label};

		bench_random_fill(random, is_read ? sizeof(random) : 0, i + 1);
		rc = shard_writer_append(w, group, NULL, 0, &err);
	}
	if (!rc)
		rc = shard_writer_finish(w, written, &err);
	if (rc)
		bench_die("%s", err.message);
	shard_writer_close(w);
}

/* What a sparse copy has of the template: the page, the tables and the other page. */
struct skeleton {
	int fd;
	uint8_t header[4096], *tail;
	uint64_t file_bytes, image_offset, tail_offset;
};

static void read_or_die(int fd, void *out, size_t bytes, uint64_t offset)
{
	if (pread(fd, out, bytes, (off_t)offset) != (ssize_t)bytes)
		bench_die("the template shard cannot be read: %s", strerror(errno));
}

static void write_or_die(int fd, const void *data, size_t bytes, uint64_t offset, const char *path)
{
	if (pwrite(fd, data, bytes, (off_t)offset) != (ssize_t)bytes)
		bench_die("%s: cannot be written: %s", path, strerror(errno));
}

static void skeleton_open(struct skeleton *s, const char *path)
{
	struct shard_section images;
	struct shard_reader *r;
	struct shard_info info;
	struct shard_error err;

	if (shard_reader_open(&r, path, NULL, &err) || shard_reader_section(r, 0, &images, &err))
		bench_die("%s", err.message);
	shard_reader_info(r, &info);
	shard_reader_close(r);
	s->file_bytes = info.file_bytes;
	s->image_offset = images.offset;
	s->tail_offset = images.offset + images.bytes;
	s->tail = malloc(s->file_bytes - s->tail_offset);
	s->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (!s->tail || s->fd < 0)
		bench_die("%s: cannot be read", path);
	read_or_die(s->fd, s->header, sizeof(s->header), 0);
	read_or_die(s->fd, s->tail, s->file_bytes - s->tail_offset, s->tail_offset);
}

static void copy_image(const struct skeleton *s, int fd, uint64_t record, const char *path)
{
	static uint8_t image[DATA_IMAGE_BYTES];

	read_or_die(s->fd, image, sizeof(image), s->image_offset + record * DATA_IMAGE_BYTES);
	write_or_die(fd, image, sizeof(image), s->image_offset + record * DATA_IMAGE_BYTES, path);
}

static void sparse_copy(const struct skeleton *s, const char *path, bool with_images)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);

	if (fd < 0 || ftruncate(fd, (off_t)s->file_bytes))
		bench_die("%s: a sparse file of %llu bytes cannot be made: %s", path, (unsigned long long)s->file_bytes, strerror(errno));
	write_or_die(fd, s->header, sizeof(s->header), 0, path);
	write_or_die(fd, s->tail, s->file_bytes - s->tail_offset, s->tail_offset, path);
	if (with_images) {
		copy_image(s, fd, 0, path);
		copy_image(s, fd, SHARD_RECORDS / 2, path);
		copy_image(s, fd, SHARD_RECORDS - 1, path);
	}
	close(fd);
}

static void make(const char *dir)
{
	struct shard_seal_options o = {.size = sizeof(o)};
	struct shard_written written;
	struct skeleton skeleton;
	struct shard_seal *seal;
	struct shard_error err;
	char path[4096];
	int rc;

	fprintf(stderr, "making %s: %u sparse shards\n", dir, SHARD_COUNT);
	if (mkdir(dir, 0777))
		bench_die("%s: cannot be made: %s", dir, strerror(errno));
	snprintf(path, sizeof(path), "%s/template", dir);
	template_write(path, &written);
	skeleton_open(&skeleton, path);
	rc = shard_seal_open(&seal, dir, &o, &err);
	for (unsigned i = 0; !rc && i < SHARD_COUNT; i++) {
		char file[32];

		snprintf(file, sizeof(file), "%05u.shard", i);
		snprintf(path, sizeof(path), "%s/%s", dir, file);
		sparse_copy(&skeleton, path, !i || i == SHARD_COUNT / 2 || i == SHARD_COUNT - 1);
		rc = shard_seal_add(seal, file, written.sha256, &err);
	}
	if (!rc)
		rc = shard_seal_finish(seal, &err);
	if (rc)
		bench_die("%s", err.message);
	shard_seal_close(seal);
	close(skeleton.fd);
	free(skeleton.tail);
	snprintf(path, sizeof(path), "%s/template", dir);
	unlink(path);
	sync();
}

/* ---- measuring it ---- */

static void find_records(struct job *j)
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
		uint64_t inside = i == 0 ? 0 : i == 1 ? SHARD_RECORDS / 2 : SHARD_RECORDS - 1;
		struct shard_section images;
		struct shard_reader *r;
		struct shard_entry e;
		char *path;

		if (shard_dataset_entry(ds, shard, &e, &err) || shard_dataset_reader(ds, shard, &r, &err) ||
		    shard_reader_section(r, 0, &images, &err))
			bench_die("%s", err.message);
		if (asprintf(&path, "%s/%.*s", j->dir, (int)e.file_name_bytes, e.file) < 0)
			bench_die("out of memory");
		j->record[i] = e.first_record + inside;
		j->file[i] = (struct bound_open){path, e.file_bytes, images.offset + inside * DATA_IMAGE_BYTES};
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
	struct job j = {0};
	const struct bench_row row[] = {
		{.name = "open/manifest", .unit = "ms", .less_is_better = true, .warm_up_count = 1, .context = &j,
		 .side = {{"shard_dataset_open", run_manifest, NULL, close_dataset, 0},
			  {"read it and XXH3-128 it", run_manifest_bare, NULL, NULL, 0}}},
		{.name = "open/3-records/hot", .unit = "ms", .less_is_better = true, .warm_up_count = 1, .context = &j,
		 .side = {{"shard_dataset_read of the three", run_reads, open_dataset, close_dataset, 0},
			  {"open, two pages, record, close", run_bare, NULL, NULL, 0}}},
		{.name = "open/3-records/cold", .unit = "ms", .less_is_better = true, .context = &j,
		 .side = {{"shard_dataset_read of the three", run_reads, evict_and_open, close_dataset, 0},
			  {"open, two pages, record, close", run_bare, evict, NULL, 0}}},
		{.name = "open/all/hot", .unit = "ms", .less_is_better = true, .warm_up_count = 1, .context = &j,
		 .side = {{"shard_dataset_open and the three", run_all, NULL, close_dataset, 0}}},
	};
	char manifest[4096];
	bool wanted = false;

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		wanted = wanted || bench_wants(b, row[i].name);
	if (!wanted)
		return bench_close(b);
	if (asprintf(&j.dir, "%s/sparse", bench_dir(b)) < 0)
		bench_die("out of memory");
	snprintf(manifest, sizeof(manifest), "%s/dataset.manifest", j.dir);
	if (access(manifest, F_OK))
		make(j.dir);
	find_records(&j);
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		bench_run(b, &row[i]);
	for (int i = 0; i < READS; i++)
		free((void *)(uintptr_t)j.file[i].path);
	free(j.image);
	free(j.manifest);
	free(j.dir);
	return bench_close(b);
}
