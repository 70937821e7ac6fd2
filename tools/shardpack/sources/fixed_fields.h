/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fixed_fields.h - fields of fixed records, and the slices of files that hold them
 *
 * Two names mean something, wherever the fields come from.  `label`, an integer for each record, is
 * the class: it becomes i64.  `image`, of three axes of which the last or the first has 1, 3 or 4,
 * is one, interleaved or in planes.
 */
#ifndef SHARD_SOURCES_FIXED_FIELDS_H
#define SHARD_SOURCES_FIXED_FIELDS_H

#include <stdbool.h>
#include <stdint.h>

struct plan;
struct recipe;
struct shard_field;

/* A field over the records of one file. */
struct fixed_column {
	uint32_t file, dtype;
	bool swap;
	uint64_t offset, stride; /* of the first record; from one to the next */
	uint64_t count;
};

/*
 * The number of the field of that name, which is made if it is not there; if it is, it must be of
 * the same dtype and shape.  `where` is for the message.  Returns the exit code.
 */
int fixed_fields_enter(struct recipe *r, const char *where, const char *name, uint32_t dtype, const uint64_t *shape,
		       uint32_t ndim, uint32_t *field);

/* Are dtype and shape the same? */
bool fixed_fields_same(const struct shard_field *a, const struct shard_field *b);

/* The records of a column follow those that the field has already.  Returns the exit code. */
int fixed_fields_add(struct plan *p, const struct recipe *r, uint32_t field, const struct fixed_column *c);

#endif
