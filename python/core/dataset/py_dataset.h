/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_dataset.h - an open dataset: its handle, names of fields, and places of records
 */
#ifndef SHARD_DATASET_PY_DATASET_H
#define SHARD_DATASET_PY_DATASET_H

#include "python/core/base/py_object.h"
#include "shard_pack.h"

struct dataset {
	PyObject_HEAD struct shard_dataset *ds; /* first, as in struct map_owner */
	PyObject *path;
	PyObject *name[SHARD_FIELDS_MAX];    /* of fields */
	uint64_t *first_record, shard_count; /* of each shard, and of the end; NULL before they are needed */
	bool closed;
};

bool dataset_is_open(const struct dataset *d); /* else ClosedError is set */

/*
 * Does the dataset have so many shards that arrays may not be views of them?  Each view keeps the
 * map of its shard, and a process may have 65,530 maps by default.
 */
int dataset_is_copied(struct dataset *d, bool *copied, struct shard_error *err);

/*
 * The shard of a record, its number in that, and the number of the record behind the shard's last.
 */
int dataset_find(struct dataset *d, uint64_t idx, struct shard_reader **reader, uint64_t *within, uint64_t *shard_end,
		 struct shard_error *err);

#endif
