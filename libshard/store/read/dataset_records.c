/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dataset_records.c - records and keys by their number in the dataset
 */
#include <inttypes.h>

#include "libshard/base/error.h"
#include "libshard/store/read/dataset.h"
#include "shard_pack.h"

/* Reader and index within it. */
static int locate(struct shard_dataset *ds, uint64_t idx, struct shard_reader **r, uint64_t *inside,
		  struct shard_error *err)
{
	struct shown s;
	uint64_t shard;

	if (idx >= ds->m.record_count)
		return error_set(err, SHARD_E_ARGUMENT, "%s: there is no record %" PRIu64 "; the dataset has %" PRIu64,
				 show(&s, ds->dir), idx, ds->m.record_count);
	shard = dataset_shard_of(ds, idx);
	*inside = idx - ds->first_record[shard];
	return shard_dataset_reader(ds, shard, r, err);
}

/* again: these were read, and are checked and copied once more. */
static int read_records(struct shard_dataset *ds, const uint64_t *idx, size_t count, void *const *dst, bool again,
			struct shard_error *err)
{
	struct shard_reader *r = NULL;
	uint64_t inside = 0;
	int rc = SHARD_OK;

	for (size_t i = 0; !rc && i < count; i++) {
		rc = locate(ds, idx[i], &r, &inside, err);
		for (uint32_t g = 0; !rc && g < ds->m.schema.group_count; g++)
			if (dst[g]) {
				if (again)
					reader_forget(r, g, inside, 1);
				rc = reader_read(r, g, inside, 1, (uint8_t *)dst[g] + i * ds->m.schema.group[g].stride,
						 err);
			}
	}
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
	uint64_t inside = 0;
	int rc = locate(ds, idx, &r, &inside, err);

	return rc ? rc : shard_reader_key(r, inside, out, err);
}
