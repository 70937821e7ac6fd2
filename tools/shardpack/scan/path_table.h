/* SPDX-License-Identifier: Apache-2.0 */
/*
 * path_table.h - a list of files with labels: CSV, TSV or JSON lines, by the extension of its name
 *
 * The first line of a CSV or TSV names the columns.  Files stand in the column that --path-key
 * names, else in `path`; if there is none, in `file_name`, else in `image`.  Labels stand in the
 * column `label`, or in the one that --label-key names.  In JSON lines a column is a key, which may
 * be nested, as objects.bbox.
 */
#ifndef SHARD_SCAN_PATH_TABLE_H
#define SHARD_SCAN_PATH_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/shardpack/plan/recipe.h"

struct bad_input;
struct shelf;

struct path_row {
	const char *path, *label; /* label: NULL if none was asked for */
	/* of the recipe's fields that have a column, as text; NULL if there is none, or "" for --columns */
	const char *value[RECIPE_NAMED_MAX];
	/* then why: "no key is called x; the keys are ...", or NULL where that was said before */
	const char *absent[RECIPE_NAMED_MAX];
	uint64_t line;
	const struct bad_input *bad; /* what is wrong with this row alone, or NULL; then `path` may be NULL, too */
};

/* Has the name such an extension? */
bool path_table_is_one(const char *name);

/*
 * Call `each` for every row, until it returns another code than EXIT_DONE.  `path_key` NULL means
 * the usual names, `label_key` NULL that labels are not looked for, `columns` NULL that nothing
 * else is.  A large table lies on the shelf meanwhile.  Says what is wrong with the table, with
 * `name` and the line, and returns the exit code.  A row that is bad, while the next one can be
 * read, is a row like any other: `each` decides.
 */
int path_table_read(const char *file, const char *name, const char *path_key, const char *label_key,
		    const struct recipe *columns, struct shelf *shelf,
		    int (*each)(void *context, const struct path_row *row), void *context);

#endif
