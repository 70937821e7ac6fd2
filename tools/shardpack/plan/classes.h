/* SPDX-License-Identifier: Apache-2.0 */
/*
 * classes.h - the names of the classes, and which number each has
 *
 * The number is the place in the list: folders in byte order, or the order of a list that
 * the user gives so that two datasets agree.
 */
#ifndef SHARD_PLAN_CLASSES_H
#define SHARD_PLAN_CLASSES_H

#include <stddef.h>
#include <stdint.h>

#define CLASSES_MAX	     (UINT32_C(1) << 24) /* format/SHARD.md M8 */
#define CLASS_NAME_BYTES_MAX 1024

struct classes { /* start it zeroed */
	char **name;
	uint64_t count, capacity;
	uint32_t *by_name; /* numbers, ordered by name; made by classes_index() */
};

/*
 * Add a name, in the order of the numbers.  `where` is for the message if it is not fit to
 * be a class name: not UTF-8, empty, too long.  Returns the exit code.
 */
int classes_add(struct classes *c, const char *name, size_t name_bytes, const char *where);

/* Add the names "0" to "count - 1". */
int classes_add_numbers(struct classes *c, uint64_t count);

/* Byte order of the names becomes the order of the numbers. */
void classes_sort(struct classes *c);

/* Call once all are there.  A name that occurs twice is an error of `where`. */
int classes_index(struct classes *c, const char *where);

/* Number of a name, or -1.  Needs classes_index(). */
int64_t classes_find(const struct classes *c, const char *name);

/* All of a list: `path` is a dataset's folder, or a file with one name per line.  Indexed. */
int classes_from_list(struct classes *c, const char *path);

void classes_free(struct classes *c);

#endif
