/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fixed_fields.h - fields of fixed records, and where in files they lie, entered into recipe and plan
 *
 * Two names mean something, wherever the fields come from.  `label`, an integer for each record, is the class: it becomes
 * i64.  `image`, of three axes of which the last or the first has 1, 3 or 4, is one, interleaved or in planes.
 */
#ifndef SHARDPACK_COLUMNS_H
#define SHARDPACK_COLUMNS_H

#include <stdbool.h>
#include <stdint.h>

struct classes;
struct plan;
struct recipe;
struct request;

/* A field over the records of one file. */
struct column {
	uint32_t file, dtype;
	bool swap;
	uint64_t offset, stride; /* of the first record; from one to the next */
	uint64_t count;
};

/*
 * The number of the field of that name, which is made if it is not there; if it is, it must be of the same dtype and
 * shape.  `where` is for the message.  Returns the exit code.
 */
int columns_field(struct recipe *r, const char *where, const char *name, uint32_t dtype, const uint64_t *shape, uint32_t ndim,
		  uint32_t *field);

/* The records of a column follow those that the field has already.  Returns the exit code. */
int columns_add(struct plan *p, const struct recipe *r, uint32_t field, const struct column *c);

/*
 * Every field has its columns: begin the plan, count its inputs.  `classes` may have none.  A field with fewer records
 * than another is an error; files without any are told of.
 */
int columns_finish(const struct request *r, const struct classes *classes);

/* Classes as --classes says, none without it.  Returns the exit code. */
int columns_classes(const struct request *r, struct classes *out);

/* Classes "0" to "count - 1". */
int columns_numbered(struct classes *out, uint64_t count);

/*
 * Is it one folder that was named, or files?  Anything else fails.
 */
int columns_paths(const struct request *r, bool *is_folder);

/* Add a file; one whose name ends with .gz, .tgz or .zst is unpacked.  *file is what can be read by offset. */
int columns_open(const struct request *r, const char *path, uint32_t *file);

#endif /* SHARDPACK_COLUMNS_H */
