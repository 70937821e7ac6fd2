/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data.c - make datasets of random photos through the public writer, and say where their images lie
 */
#include "bench/common/data.h"

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

void data_photo_schema(struct shard_schema *schema)
{
	struct shard_error err;

	*schema = (struct shard_schema){
		.group_count = 2,
		.field_count = 2,
		.field = {{.name = "image",
			   .dtype = SHARD_U8,
			   .layout = SHARD_HWC,
			   .semantic = SHARD_IMAGE,
			   .ndim = 3,
			   .shape = {224, 224, 3}},
			  {.name = "label", .dtype = SHARD_I64, .semantic = SHARD_LABEL, .group = 1}},
	};
	if (shard_schema_lay_out(schema, 0, &err))
		bench_die("%s", err.message);
}

static void write_shard(const char *path, uint64_t seed, uint64_t record_count, struct shard_written *written)
{
	struct shard_writer_options o = {.size = sizeof(o), .planned_records = record_count, .skip_read_back = 1};
	uint8_t *image = malloc(DATA_IMAGE_BYTES);
	struct shard_schema schema;
	struct shard_writer *w;
	struct shard_error err;
	int rc;

	if (!image)
		bench_die("out of memory");
	data_photo_schema(&schema);
	rc = shard_writer_open(&w, path, &schema, &o, &err);
	for (uint64_t i = 0; !rc && i < record_count; i++) {
		int64_t label = (int64_t)(i % 1000);
		const void *group[] = {image, &label};

		bench_random_fill(image, DATA_IMAGE_BYTES, seed + i);
		rc = shard_writer_append(w, group, NULL, 0, &err);
	}
	if (!rc)
		rc = shard_writer_finish(w, written, &err);
	if (rc)
		bench_die("%s", err.message);
	shard_writer_close(w);
	free(image);
}

char *data_make_photos(const struct bench *b, const char *name, uint64_t shard_count, uint64_t shard_records)
{
	struct shard_seal_options o = {.size = sizeof(o)};
	char *dir = join(bench_dir(b), name), *manifest = join(dir, "dataset.manifest");
	struct shard_seal *seal;
	struct shard_error err;
	int rc;

	if (access(manifest, F_OK) == 0) {
		free(manifest);
		return dir;
	}
	free(manifest);
	fprintf(stderr, "making %s: %.1f GB\n", dir, (double)(shard_count * shard_records * DATA_IMAGE_BYTES) / 1e9);
	if (mkdir(dir, 0777))
		bench_die("%s: cannot be made", dir);
	rc = shard_seal_open(&seal, dir, &o, &err);
	for (uint64_t i = 0; !rc && i < shard_count; i++) {
		struct shard_written written;
		char file[32], *path;

		snprintf(file, sizeof(file), "%05llu.shard", (unsigned long long)i);
		path = join(dir, file);
		write_shard(path, 1 + i * shard_records, shard_records, &written);
		rc = shard_seal_add(seal, file, written.sha256, &err);
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

void data_files_open(struct data_files *files, const char *dir)
{
	struct shard_dataset_info info;
	struct shard_dataset *ds;
	struct shard_error err;

	if (shard_dataset_open(&ds, dir, NULL, &err))
		bench_die("%s", err.message);
	shard_dataset_info(ds, &info);
	*files = (struct data_files){.file = calloc(info.shard_count, sizeof(*files->file)), .count = info.shard_count};
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
		f->image_offset = section.offset; /* the first section is the images */
		f->image_count = e.record_count;
		files->bytes += e.file_bytes;
		files->image_count += e.record_count;
	}
	shard_dataset_close(ds);
}

void data_files_close(struct data_files *files)
{
	for (size_t i = 0; i < files->count; i++)
		free(files->file[i].path);
	free(files->file);
}
