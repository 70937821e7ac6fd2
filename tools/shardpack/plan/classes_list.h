/* SPDX-License-Identifier: Apache-2.0 */
/*
 * classes_list.h - the classes that a user lists: a dataset's, lines of text, or JSON
 */
#ifndef SHARD_PLAN_CLASSES_LIST_H
#define SHARD_PLAN_CLASSES_LIST_H

#include <stdbool.h>
#include <stdio.h>

struct classes;

/*
 * Add all names of a list, and index them.  `path` is a dataset's folder; or JSON, if its name ends
 * so, which is an array of names or an object from name to number; or a file with one name on each
 * line.  Numbers of an object must be 0 to count - 1, each once.  Says why it fails, and returns
 * the exit code.
 */
int classes_from_list(struct classes *c, const char *path);

/*
 * Add a name for each line of a text; messages call it `file`.  Says why it fails, and returns the
 * exit code.
 */
int classes_add_lines(struct classes *c, FILE *in, const char *file, bool skip_empty);

#endif
