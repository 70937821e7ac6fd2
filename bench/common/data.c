/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data.c - make datasets of random bytes through the public writer, and say where their records lie
 */
#include "bench/common/data.h"
#include "shard_pack.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char *join(const char *dir, const char *name)
{
	char *path;

	if (asprintf(&path, "%s/%s", dir, name) < 0)
		bench_die("out of memory");
	return path;
}

static void lay_out(const struct data_shape *shape, bool episodes, struct shard_schema *schema)
{
	const uint32_t side = shape->record_bytes == DATA_IMAGE_BYTES ? 224 : 256;
	const struct shard_field image = {.name = "image",
					  .dtype = SHARD_U8,
					  .layout = SHARD_HWC,
					  .semantic = SHARD_IMAGE,
					  .ndim = 3,
					  .shape = {side, side, 3}};
	const struct shard_field plain = {
		.name = "x", .dtype = SHARD_U8, .ndim = 1, .shape = {(uint32_t)shape->record_bytes}};
	static const struct shard_field label = {
		.name = "label", .dtype = SHARD_I64, .semantic = SHARD_LABEL, .group = 1};
	static const struct shard_field episode = {.name = "episode", .dtype = SHARD_I64, .group = 1};
	bool photos = shape->record_bytes == DATA_IMAGE_BYTES || shape->record_bytes == DATA_LARGE_IMAGE_BYTES;
	uint32_t count = photos || episodes ? 2 : 1;
	struct shard_error err;

	*schema = (struct shard_schema){.group_count = count,
					.field_count = count,
					.field = {photos ? image : plain, photos ? label : episode}};
	schema->group[0].codec = photos ? SHARD_RAW : shape->codec;
	if (shard_schema_lay_out(schema, 0, &err))
		bench_die("%s", err.message);
	if (schema->group[0].stride != shape->record_bytes)
		bench_die("records of %llu bytes lie %llu apart", (unsigned long long)shape->record_bytes,
			  (unsigned long long)schema->group[0].stride);
}

/*
 * Pieces of 8 to 15 bytes out of 4 KiB that are the same everywhere, and as many random bytes to a
 * third of them.
 */
static void fill_phrases(uint8_t *out, size_t bytes, uint64_t seed)
{
	static uint8_t phrase[4096 + 16];
	uint64_t random[64];

	if (!phrase[0])
		bench_random_fill(phrase, sizeof(phrase), 0);
	for (size_t at = 0, n = 0; at < bytes; n++) {
		uint64_t r, length;

		if (n % 64 == 0)
			bench_random_fill(random, sizeof(random), seed * 1000003 + n);
		r = random[n % 64];
		length = 8 + (r >> 12) % 8;
		length = length < bytes - at ? length : bytes - at;
		memcpy(out + at, (r >> 20) % 3 ? phrase + r % 4096 : (const uint8_t *)&random[(n + 1) % 60], length);
		at += length;
	}
}

struct content {
	const struct data_shape *shape;
	uint64_t seed;
};

static void fill_record(void *context, uint64_t i, uint8_t *record)
{
	const struct content *c = context;

	if (c->shape->codec == SHARD_RAW)
		bench_random_fill(record, c->shape->record_bytes, c->seed + i);
	else
		fill_phrases(record, c->shape->record_bytes, c->seed + i);
}

static void write_shard(const char *path, const struct data_shape *shape, uint64_t episode_records, data_fill *fill,
			void *context, struct shard_written *written)
{
	struct shard_writer_options o = {
		.size = sizeof(o), .planned_records = shape->shard_records, .skip_read_back = 1};
	uint8_t *record = malloc(shape->record_bytes);
	struct shard_schema schema;
	struct shard_writer *w;
	struct shard_error err;
	int rc;

	if (!record)
		bench_die("out of memory");
	lay_out(shape, episode_records, &schema);
	rc = shard_writer_open(&w, path, &schema, &o, &err);
	for (uint64_t i = 0; !rc && i < shape->shard_records; i++) {
		int64_t number = (int64_t)(episode_records ? i / episode_records : i % 1000);
		const void *group[] = {record, &number}; /* most plain records have no second group */

		fill(context, i, record);
		rc = shard_writer_append(w, group, NULL, 0, &err);
	}
	if (!rc)
		rc = shard_writer_finish(w, written, &err);
	if (rc)
		bench_die("%s", err.message);
	shard_writer_close(w);
	free(record);
}

void data_write_shard(const char *path, const struct data_shape *shape, data_fill *fill, void *context,
		      struct shard_written *written)
{
	write_shard(path, shape, 0, fill, context, written);
}

char *data_make(const struct bench *b, const struct data_shape *shape)
{
	return data_make_episodes(b, shape, 0);
}

char *data_make_episodes(const struct bench *b, const struct data_shape *shape, uint64_t episode_records)
{
	struct shard_seal_options o = {.size = sizeof(o), .order = SHARD_ORDER_SOURCE};
	char *dir = join(bench_dir(b), shape->name), *manifest = join(dir, "dataset.manifest");
	struct shard_seal *seal;
	struct shard_error err;
	int rc;

	if (access(manifest, F_OK) == 0) {
		free(manifest);
		return dir;
	}
	free(manifest);
	fprintf(stderr, "making %s: %.1f GB\n", dir,
		(double)(shape->shard_count * shape->shard_records * shape->record_bytes) / 1e9);
	if (mkdir(dir, 0777))
		bench_die("%s: cannot be made", dir);
	rc = shard_seal_open(&seal, dir, &o, &err);
	for (uint64_t i = 0; !rc && i < shape->shard_count; i++) {
		struct shard_written written;
		char file[32], *path;

		snprintf(file, sizeof(file), "%05llu.shard", (unsigned long long)i);
		path = join(dir, file);
		write_shard(path, shape, episode_records, fill_record,
			    &(struct content){shape, 1 + i * shape->shard_records}, &written);
		rc = shard_seal_add(seal, file, NULL, written.sha256, &err);
		free(path);
	}
	if (!rc)
		rc = shard_seal_finish(seal, &err);
	if (rc)
		bench_die("%s", err.message);
	shard_seal_close(seal);
	sync(); /* or its writing back would be measured with the first row */
	return dir;
}

void data_remove(char *dir)
{
	DIR *d = opendir(dir);

	for (struct dirent *e; d && (e = readdir(d));)
		if (e->d_name[0] != '.' && unlinkat(dirfd(d), e->d_name, 0))
			bench_die("%s/%s: cannot be removed", dir, e->d_name);
	if (!d || rmdir(dir))
		bench_die("%s: cannot be removed", dir);
	closedir(d);
	free(dir);
}

void data_files_open(struct data_files *files, const char *dir)
{
	struct shard_dataset_info info;
	struct shard_dataset *ds;
	struct shard_error err;

	if (shard_dataset_open(&ds, dir, NULL, &err))
		bench_die("%s", err.message);
	shard_dataset_info(ds, &info);
	*files = (struct data_files){.file = calloc(info.shard_count, sizeof(*files->file)), .count = info.shard_count};
	files->record_bytes = shard_dataset_schema(ds)->group[0].stride;
	if (!files->file)
		bench_die("out of memory");
	for (size_t i = 0; i < files->count; i++) {
		struct data_file *f = &files->file[i];
		struct shard_section section;
		struct shard_reader *r;
		struct shard_entry e;

		if (shard_dataset_entry(ds, i, &e, &err) || shard_dataset_reader(ds, i, &r, &err) ||
		    shard_reader_section(r, 0, &section, &err))
			bench_die("%s", err.message);
		if (asprintf(&f->path, "%s/%.*s", dir, (int)e.file_name_bytes, e.file) < 0)
			bench_die("out of memory");
		f->bytes = e.file_bytes;
		f->record_offset = section.offset; /* the first section is group 0 */
		f->record_count = e.record_count;
		files->bytes += e.file_bytes;
		files->record_count += e.record_count;
	}
	shard_dataset_close(ds);
}

void data_files_close(struct data_files *files)
{
	for (size_t i = 0; i < files->count; i++)
		free(files->file[i].path);
	free(files->file);
}
