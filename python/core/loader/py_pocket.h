/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_pocket.h - what a batch has as Python has it: its fields, and what it knows of each row
 *
 * If a function returns false or NULL, an exception is set.
 */
#ifndef SHARD_LOADER_PY_POCKET_H
#define SHARD_LOADER_PY_POCKET_H

#include "python/core/array/py_array.h"
#include "python/core/base/py_memory.h"
#include "python/core/loader/py_loader.h"

/* Memory for the small fields, and how much of it is taken. */
struct pocket {
	struct memory *memory;
	size_t used;
};

bool pocket_open(struct pocket *p, const struct loader *l, const struct shard_batch *b);

/* Is the field delivered?  A string that is a list has no use for its length. */
bool pocket_wants(const struct loader *l, const struct shard_batch *b, uint32_t f);
PyObject *pocket_field(struct pocket *p, const struct loader *l, struct lease *lease, uint32_t f);

/*
 * A number for each row: any; the source, in the type of an index; and whether it holds the record
 * that the order names.
 */
PyObject *pocket_rows(struct pocket *p, uint32_t dtype, const void *data, uint32_t count);
PyObject *pocket_component(struct pocket *p, const struct shard_batch *b);
PyObject *pocket_valid(struct pocket *p, const struct shard_batch *b);

#endif
