/* SPDX-License-Identifier: Apache-2.0 */
/*
 * column.c - see column.h
 */
#include "bench/common/column.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int write_shard(const char *path, uint32_t dtype, uint64_t record_count, struct shard_written *written,
		       struct shard_error *err)
{
	struct shard_schema schema = {.group_count = 1, .field_count = 1, .field = {{.name = "x", .dtype = dtype}}};
	struct shard_writer_options o = {.size = sizeof(o), .planned_records = record_count, .skip_read_back = 1};
	struct shard_writer *w = NULL;
	int rc = shard_schema_lay_out(&schema, 0, err);

	if (!rc)
		rc = shard_writer_open(&w, path, &schema, &o, err);
	for (uint64_t i = 0; !rc && i < record_count; i++) {
		uint64_t x = i % 251; /* little-endian: its first bytes are the number in any type */
		const void *group[] = {&x};

		rc = shard_writer_append(w, group, NULL, 0, err);
	}
	if (!rc)
		rc = shard_writer_finish(w, written, err);
	shard_writer_close(w);
	return rc;
}

char *data_make_column(const struct bench *b, const char *name, uint32_t dtype, uint64_t record_count)
{
	struct shard_seal_options o = {.size = sizeof(o)};
	struct shard_written written;
	struct shard_seal *seal = NULL;
	struct shard_error err;
	char *dir, path[4096];
	int rc;

	if (asprintf(&dir, "%s/%s", bench_dir(b), name) < 0)
		bench_die("out of memory");
	snprintf(path, sizeof(path), "%s/dataset.manifest", dir);
	if (access(path, F_OK) == 0)
		return dir;
	snprintf(path, sizeof(path), "%s/00000.shard", dir);
	if (mkdir(dir, 0777))
		bench_die("%s: cannot be made", dir);
	rc = write_shard(path, dtype, record_count, &written, &err);
	if (!rc)
		rc = shard_seal_open(&seal, dir, &o, &err);
	if (!rc)
		rc = shard_seal_add(seal, "00000.shard", NULL, written.sha256, &err);
	if (!rc)
		rc = shard_seal_finish(seal, &err);
	if (rc)
		bench_die("%s", err.message);
	shard_seal_close(seal);
	return dir;
}
