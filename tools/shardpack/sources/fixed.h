/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fixed.h - sources whose inputs are records of one size: arrays, raw records, tokens, presets
 *
 * Two names mean something, wherever the fields come from.  `label`, an integer for each record, is
 * the class: it becomes i64.  `image`, of three axes of which the last or the first has 1, 3 or 4,
 * is one, interleaved or in planes.
 *
 * Functions that return an int say why they fail, and return the exit code.
 */
#ifndef SHARD_SOURCES_FIXED_H
#define SHARD_SOURCES_FIXED_H

#include <stdbool.h>
#include <stdint.h>

struct classes;
struct npy;
struct plan;
struct raw_schema;
struct recipe;
struct request;
struct shard_field;

/* ---- fixed_source.c: the way through a source, one file after the other ---- */

/* The steps of a source, in their order. */
struct fixed_source {
	/* NULL: classes are what --classes says */
	int (*begin)(const struct request *r, void *context, struct classes *out);
	/* of SRC alone; NULL: a folder is refused */
	int (*add_folder)(const struct request *r, void *context);
	int (*add_file)(const struct request *r, void *context, const char *path);
	int (*end)(const struct request *r, void *context, struct classes *out); /* NULL: nothing */
};

/*
 * Take the steps, begin the plan and count its inputs.  All fields must have the same number of
 * records; a warning counts the files without any.
 */
int fixed_source_scan(const struct request *r, const struct fixed_source *steps, void *context);

/* Is SRC one folder? */
bool fixed_source_is_folder(const struct request *r);

/* ---- fixed_fields.c: fields, and the slices of files that hold them ---- */

/* A field over the records of one file. */
struct fixed_column {
	uint32_t file, dtype;
	bool swap;
	uint64_t offset, stride; /* of the first record; from one to the next */
	uint64_t count;
};

/*
 * The number of the field of that name, which is made if it is not there; if it is, it must be of
 * the same dtype and shape.  `where` is for the message.
 */
int fixed_fields_enter(struct recipe *r, const char *where, const char *name, uint32_t dtype, const uint64_t *shape,
		       uint32_t ndim, uint32_t *field);

/* Are dtype and shape the same? */
bool fixed_fields_same(const struct shard_field *a, const struct shard_field *b);

/* The records of a column follow those that the field has already. */
int fixed_fields_add(struct plan *p, const struct recipe *r, uint32_t field, const struct fixed_column *c);

/* ---- fixed_parts.c: files of fields, of which some hold the same records ---- */

/*
 * A field may be in several files, its parts: a/x.npy and a/label.npy.  Which part of another field
 * has the same records is not told by the order in which files were named, but by a name that both
 * have.
 */
struct fixed_part {
	char *name;	 /* what parts that belong together share, such as a folder */
	uint64_t number; /* likewise; 0: it has none */
	char *where;	 /* for messages */
	uint64_t slice;	 /* of the plan */
	uint64_t group;	 /* where its name came first, among all parts */
};

struct fixed_parts { /* start it zeroed */
	struct fixed_part *part;
	uint64_t count, capacity;
};

/* The last slice of the plan is that part, if it is no other one's. */
int fixed_parts_add(struct fixed_parts *p, const struct request *r, const char *name, uint64_t number,
		    const char *where);

/*
 * All files were added: put parts with numbers in their order, and those of other fields beside the
 * ones of the first field that has several.  A field that is one file needs no name; if another has
 * several, a warning says in which order they are taken.  `remedy` ends a refusal: what to call the
 * files.
 */
int fixed_parts_pair(struct fixed_parts *p, const struct request *r, const char *remedy);

void fixed_parts_free(struct fixed_parts *p);

/* ---- source_raw.c ---- */

/*
 * Add the records of a file, behind its first `skip` bytes.  One without a record is warned of.
 * `remedy` ends the refusal of a file that is not whole records.
 */
int raw_file_add(const struct request *r, const char *path, const struct raw_schema *schema, uint64_t skip,
		 const char *remedy);

/* ---- source_array.c ---- */

/* Bytes of a file that are an array: all of it, or a member of a .npz that is stored. */
struct array_bytes {
	uint32_t file;
	uint64_t offset, bytes;
	const char *name, *where; /* of the field; for messages */
};

/* Add an array by its head, whose first axis counts the records. */
int array_add(const struct request *r, const struct array_bytes *p, const struct npy *head);

#endif
