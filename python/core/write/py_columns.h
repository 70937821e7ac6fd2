/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_columns.h - many records as a mapping of columns, each with a row for every record
 *
 * Columns that are arrays of the fields' dtypes and shapes need no interpreter once they are open.
 * Where a group has one field and the rows of its column are dense, they are not even copied.
 */
#ifndef SHARD_WRITE_PY_COLUMNS_H
#define SHARD_WRITE_PY_COLUMNS_H

#include "python/core/write/py_layout.h"
#include "python/core/write/py_source.h"

struct columns {
	PyObject *value[SHARD_FIELDS_MAX];
	struct source source[SHARD_FIELDS_MAX];
	bool is_open[SHARD_FIELDS_MAX], all_fit; /* the columns are arrays of the fields' dtypes and shapes */
	/* a record of the group lies in its column as it is to be written */
	bool whole[SHARD_GROUPS_MAX];
	uint32_t lead[SHARD_GROUPS_MAX]; /* the field of that column */
};

/*
 * Open the columns of `count` records from row `first` on, the first of which has this number.
 * Else an exception is set; close the columns in either case.
 */
bool columns_open(struct columns *c, const struct layout *l, PyObject *dict, uint64_t first, uint64_t count,
		  unsigned long long number);
void columns_close(struct columns *c);

/*
 * If all_fit: where a row is, in place, or put together in `room`, which has that of a record for
 * each group.  Needs no lock.
 */
void columns_gather(const struct columns *c, const struct layout *l, uint64_t row, char *const *room,
		    const char **group);

#endif
