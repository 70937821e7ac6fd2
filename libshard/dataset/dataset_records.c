/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dataset_records.c - records and keys by their number in the dataset
 */
#include <inttypes.h>
#include <string.h>

#include "libshard/base/error.h"
#include "libshard/dataset/dataset.h"
#include "shard_pack.h"
#include "shard_select.h"

#define AT_ONCE 256u /* records that are read before readers may be closed */

/* Shard and index within it. */
static int locate(const struct shard_dataset *ds, uint64_t idx, uint64_t *shard, uint64_t *inside,
		  struct shard_error *err)
{
	struct shown s;

	if (idx >= ds->m.record_count)
		return error_set(err, SHARD_E_ARGUMENT, "%s: there is no record %" PRIu64 "; the dataset has %" PRIu64,
				 show(&s, ds->dir), idx, ds->m.record_count);
	*shard = dataset_shard_of(ds, idx);
	*inside = idx - ds->first_record[*shard];
	return SHARD_OK;
}

/* again: these were read, and are checked and copied once more. */
static int read_records(struct shard_dataset *ds, const uint64_t *idx, size_t count, void *const *dst, bool again,
			struct shard_error *err)
{
	struct shard_reader *r = NULL;
	uint64_t shard = 0, inside = 0;
	unsigned entered = readers_enter(&ds->readers);
	int rc = SHARD_OK;

	for (size_t i = 0; !rc && i < count; i++) {
		if (i && i % AT_ONCE == 0) {
			readers_leave(&ds->readers, entered);
			entered = readers_enter(&ds->readers);
		}
		rc = locate(ds, idx[i], &shard, &inside, err);
		rc = rc ? rc : dataset_use_shard(ds, shard, &r, err);
		for (uint32_t g = 0; !rc && g < ds->m.schema.group_count; g++)
			if (dst[g]) {
				if (again)
					reader_forget(r, g, inside, 1);
				rc = reader_read(r, g, inside, 1, (uint8_t *)dst[g] + i * ds->m.schema.group[g].stride,
						 err);
			}
	}
	readers_leave(&ds->readers, entered);
	return rc;
}

int shard_dataset_read(struct shard_dataset *ds, const uint64_t *idx, size_t count, void *const *dst,
		       struct shard_error *err)
{
	int rc = read_records(ds, idx, count, dst, false, err);

	if (!rc && ds->o.check == SHARD_CHECK_DEVICE && reader_had_faults())
		rc = read_records(ds, idx, count, dst, true, err);
	return rc;
}

int shard_dataset_key(struct shard_dataset *ds, uint64_t idx, struct shard_view *out, struct shard_error *err)
{
	struct shard_reader *r = NULL;
	uint64_t shard = 0, inside = 0;
	int rc = locate(ds, idx, &shard, &inside, err);

	rc = rc ? rc : shard_dataset_reader(ds, shard, &r, err);
	return rc ? rc : shard_reader_key(r, inside, out, err);
}

struct key_copy {
	struct shard_view from;
	char *to;
};

static void copy_key(void *context)
{
	struct key_copy *copy = context;

	memcpy(copy->to, copy->from.data, copy->from.bytes);
}

int shard_dataset_read_key(struct shard_dataset *ds, uint64_t idx, char *out, size_t *bytes, struct shard_error *err)
{
	struct shard_reader *r = NULL;
	struct key_copy copy = {.to = out};
	uint64_t shard = 0, inside = 0;
	unsigned entered;
	int rc = locate(ds, idx, &shard, &inside, err);

	if (rc)
		return rc;
	entered = readers_enter(&ds->readers);
	rc = dataset_use_shard(ds, shard, &r, err);
	rc = rc ? rc : shard_reader_key(r, inside, &copy.from, err);
	if (!rc && copy.from.bytes)
		rc = reader_guarded(r, copy_key, &copy, err);
	readers_leave(&ds->readers, entered);
	*bytes = rc ? 0 : (size_t)copy.from.bytes;
	return rc;
}
