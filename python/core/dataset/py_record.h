/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_record.h - a record as a dict of values: one, a slice of neighbours, or any indices
 */
#ifndef SHARD_DATASET_PY_RECORD_H
#define SHARD_DATASET_PY_RECORD_H

#include "python/core/dataset/py_dataset.h"

PyObject *record_at(struct dataset *d, uint64_t idx);

#endif
