/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sparse.c - datasets that are larger than any disk: shards whose records are a hole
 *
 * One shard is written in full, and removed at the end.  Each shard of the dataset gets that one's
 * pages and tables; the records in between are zeros that lie nowhere, and their hashes are right.
 */
#include "bench/common/sparse.h"
#include "shard_pack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What each shard has of the one written in full. */
struct skeleton {
	int fd;
	uint8_t header[4096], *tail;
	uint64_t file_bytes, record_bytes, records_offset, tail_offset;
	const uint64_t *filled;
	size_t filled_count;
	uint8_t *record;
};

static bool is_filled(const struct skeleton *s, uint64_t record)
{
	for (size_t i = 0; i < s->filled_count; i++)
		if (s->filled[i] == record)
			return true;
	return false;
}

static void fill_record(void *context, uint64_t i, uint8_t *record)
{
	const struct skeleton *s = context;

	if (is_filled(s, i))
		bench_random_fill(record, s->record_bytes, i + 1);
	else
		memset(record, 0, s->record_bytes);
}

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

static void take_skeleton(struct skeleton *s, const char *path)
{
	struct shard_section records;
	struct shard_reader *r;
	struct shard_info info;
	struct shard_error err;

	if (shard_reader_open(&r, path, NULL, &err) || shard_reader_section(r, 0, &records, &err))
		bench_die("%s", err.message);
	shard_reader_info(r, &info);
	shard_reader_close(r);
	s->file_bytes = info.file_bytes;
	s->records_offset = records.offset;
	s->tail_offset = records.offset + records.bytes;
	s->tail = malloc(s->file_bytes - s->tail_offset);
	s->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (!s->tail || s->fd < 0)
		bench_die("%s: cannot be read", path);
	read_or_die(s->fd, s->header, sizeof(s->header), 0);
	read_or_die(s->fd, s->tail, s->file_bytes - s->tail_offset, s->tail_offset);
}

static void sparse_copy(const struct skeleton *s, const char *path, bool with_filled)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);

	if (fd < 0 || ftruncate(fd, (off_t)s->file_bytes))
		bench_die("%s: a sparse file of %llu bytes cannot be made: %s", path, (unsigned long long)s->file_bytes,
			  strerror(errno));
	write_or_die(fd, s->header, sizeof(s->header), 0, path);
	write_or_die(fd, s->tail, s->file_bytes - s->tail_offset, s->tail_offset, path);
	for (size_t i = 0; with_filled && i < s->filled_count; i++) {
		uint64_t offset = s->records_offset + s->filled[i] * s->record_bytes;

		read_or_die(s->fd, s->record, s->record_bytes, offset);
		write_or_die(fd, s->record, s->record_bytes, offset, path);
	}
	close(fd);
}

static void make(const char *dir, struct skeleton *s, const struct data_shape *shape)
{
	struct shard_seal_options o = {.size = sizeof(o)};
	struct shard_written written;
	struct shard_seal *seal;
	struct shard_error err;
	char template[4096], path[4096];
	int rc;

	fprintf(stderr, "making %s: %llu sparse shards\n", dir, (unsigned long long)shape->shard_count);
	if (mkdir(dir, 0777))
		bench_die("%s: cannot be made: %s", dir, strerror(errno));
	snprintf(template, sizeof(template), "%s/template", dir);
	data_write_shard(template, shape, fill_record, s, &written);
	take_skeleton(s, template);
	rc = shard_seal_open(&seal, dir, &o, &err);
	for (uint64_t i = 0; !rc && i < shape->shard_count; i++) {
		char file[32];

		snprintf(file, sizeof(file), "%05llu.shard", (unsigned long long)i);
		snprintf(path, sizeof(path), "%s/%s", dir, file);
		sparse_copy(s, path, !i || i == shape->shard_count / 2 || i == shape->shard_count - 1);
		rc = shard_seal_add(seal, file, NULL, written.sha256, &err);
	}
	if (!rc)
		rc = shard_seal_finish(seal, &err);
	if (rc)
		bench_die("%s", err.message);
	shard_seal_close(seal);
	close(s->fd);
	free(s->tail);
	unlink(template);
	sync();
}

char *data_make_sparse(const struct bench *b, const struct data_shape *shape, const uint64_t *filled,
		       size_t filled_count)
{
	struct skeleton s = {.record_bytes = shape->record_bytes, .filled = filled, .filled_count = filled_count};
	char *dir, manifest[4096];

	if (asprintf(&dir, "%s/%s", bench_dir(b), shape->name) < 0)
		bench_die("out of memory");
	snprintf(manifest, sizeof(manifest), "%s/dataset.manifest", dir);
	if (access(manifest, F_OK) == 0)
		return dir;
	s.record = malloc(shape->record_bytes);
	if (!s.record)
		bench_die("out of memory");
	make(dir, &s, shape);
	free(s.record);
	return dir;
}
