/* SPDX-License-Identifier: Apache-2.0 */
/*
 * classes.h - the names of the classes, and which number each has
 *
 * The number is the place in the list: folders in byte order, or the order of a list that
 * the user gives so that two datasets agree.
 */
#ifndef SHARD_PLAN_CLASSES_H
#define SHARD_PLAN_CLASSES_H

#include <stdbool.h>
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

void classes_free(struct classes *c);

/*
 * The classes of an image that may have several, as one token: "0,17,4", numbers of classes in the
 * order of the source, none twice; or "-", none.
 */

/* Is that such a token, with numbers below `class_count`, and at most `most` of them? */
bool class_list_is(const char *token, size_t bytes, uint64_t class_count, uint64_t most);

/* Take the next class of a token that is one.  False at its end. */
bool class_list_next(const char **at, uint32_t *class_idx);

#endif
