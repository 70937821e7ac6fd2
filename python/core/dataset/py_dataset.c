/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_dataset.c - an open dataset: its handle, names of fields, and places of records
 */
#include "python/core/dataset/py_dataset.h"

#include "python/core/base/py_errors.h"
#include "python/core/base/py_map.h"
#include "shard_pack.h"

#define SHARDS_VIEWED 16384u /* by so many maps at most */

_Static_assert(offsetof(struct dataset, ds) == offsetof(struct map_owner, ds), "a dataset is a map_owner");

bool dataset_is_open(const struct dataset *d)
{
	if (!d->closed && d->ds)
		return true;
	fail_closed("dataset");
	return false;
}

/* Reading the manifest's lines for each record would take longer than everything else. */
static int learn_shards(struct dataset *d, struct shard_error *err)
{
	struct shard_dataset_info info;
	struct shard_entry e;
	int rc = SHARD_OK;

	shard_dataset_info(d->ds, &info);
	d->first_record = PyMem_Calloc(info.shard_count + 1, sizeof(*d->first_record));
	if (!d->first_record) {
		PyErr_NoMemory();
		return SHARD_E_MEMORY;
	}
	for (uint64_t i = 0; !rc && i < info.shard_count; i++) {
		rc = shard_dataset_entry(d->ds, i, &e, err);
		d->first_record[i] = rc ? 0 : e.first_record;
	}
	d->first_record[info.shard_count] = info.record_count;
	d->shard_count = info.shard_count;
	if (rc) {
		PyMem_Free(d->first_record);
		d->first_record = NULL;
	}
	return rc;
}

int dataset_is_copied(struct dataset *d, bool *copied, struct shard_error *err)
{
	int rc = d->first_record ? SHARD_OK : learn_shards(d, err);

	*copied = d->shard_count > SHARDS_VIEWED;
	return rc;
}

int dataset_find(struct dataset *d, uint64_t idx, struct shard_reader **reader, uint64_t *within, uint64_t *shard_end,
		 struct shard_error *err)
{
	int rc = d->first_record ? SHARD_OK : learn_shards(d, err);
	uint64_t low = 0, high, mid;

	if (rc)
		return rc;
	for (high = d->shard_count; high - low > 1;) {
		mid = low + (high - low) / 2;
		if (d->first_record[mid] <= idx)
			low = mid;
		else
			high = mid;
	}
	*within = idx - d->first_record[low];
	*shard_end = d->first_record[low + 1];
	return shard_dataset_reader(d->ds, low, reader, err);
}
