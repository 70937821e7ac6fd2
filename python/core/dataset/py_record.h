/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_record.h - records as dicts of values: one, a slice of neighbours, or any indices
 */
#ifndef SHARD_DATASET_PY_RECORD_H
#define SHARD_DATASET_PY_RECORD_H

#include "python/core/dataset/py_dataset.h"

PyObject *record_at(struct dataset *d, uint64_t idx);
PyObject *record_slice(struct dataset *d, uint64_t first, int64_t step, uint64_t count);
PyObject *record_gather(struct dataset *d, const uint64_t *idx, size_t count);

#endif
