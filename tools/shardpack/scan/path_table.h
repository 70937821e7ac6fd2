/* SPDX-License-Identifier: Apache-2.0 */
/*
 * path_table.h - a list of files with labels: CSV, TSV or JSON lines, by the extension of its name
 *
 * The first line of a CSV or TSV names the columns.  Files stand in the column `path`; if there is
 * none, in `file_name`, else in `image`.  Labels stand in the column `label`, or in
 * the one that --label-key names.
 */
#ifndef SHARD_SCAN_PATH_TABLE_H
#define SHARD_SCAN_PATH_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/shardpack/plan/recipe.h"

struct path_row {
	const char *path, *label; /* label: NULL if none was asked for */
	/* of the recipe's fields that have a column, as text; in JSON NULL if there is none */
	const char *value[RECIPE_NAMED_MAX];
	uint64_t line;
};

/* Has the name such an extension? */
bool path_table_is_one(const char *name);

/*
 * Call `each` for every row, until it returns another code than EXIT_DONE.  `label_key` NULL means
 * that labels are not looked for, `columns` NULL that nothing else is.  Says what is wrong, with
 * `name` and the line, and returns the exit code.
 */
int path_table_read(const char *file, const char *name, const char *label_key, const struct recipe *columns,
		    int (*each)(void *context, const struct path_row *row), void *context);

#endif
