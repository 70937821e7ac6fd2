/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sources.h - a file for each verb that packs, and the table of them
 */
#ifndef SHARD_SHARDPACK_SOURCES_SOURCES_H
#define SHARD_SHARDPACK_SOURCES_SOURCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/shardpack/plan/plan.h"

struct cli_option;
struct npy;
struct request;

/*
 * What can be packed: a row for each source, in source_NAME.c or presets.c
 *
 * A source is two verbs, `shardpack NAME` and `shardpack plan NAME`, and two functions.  settle()
 * looks at the command alone; scan() looks at the inputs and fills the plan.  There are two kinds:
 *
 *   images  each input has a line in the plan, is read whole, decoded and transformed.
 *           source_images.c looks at what was named.  class_folders.c plans a folder of classes,
 *           one class at a time.  What lies elsewhere is found by image_files.c, image_table.c,
 *           image_archive.c and coco.c; image_list.c collects it, image_plan.c makes the plan's lines.
 *   fixed   inputs are records of files, counted; the plan has slices of files for each field.
 *           fixed_source.c goes through the files and makes the slices.  presets.c has published
 *           datasets, which are files of records or arrays with known names.
 */

struct source {
	const char *name, *plan_name;			/* of the verbs; docs/man/shardpack.md has the text of both */
	const struct cli_option *positionals, *options; /* beside those of pack_options.c */

	/* Both say why they fail and return the exit code. */
	/* complete the recipe as far as options decide it; NULL: they do not */
	int (*settle)(const struct request *r);
	/* begin the plan and add all inputs; on failure it is freed all the same */
	int (*scan)(const struct request *r);
};

#define SOURCE_NAMED(NAME) .name = NAME, .plan_name = "plan " NAME

extern const struct source source_images, source_array, source_raw, source_tokens, source_cifar, source_mnist;

/* ---- sources.c ---- */

/* By enum recipe_source, which is the order of --help. */
extern const struct source *const source_table[SOURCE_COUNT];

/* Call the scan() of the recipe's source, and then scan_end().  Returns the exit code. */
int source_scan(const struct request *r);

/* ---- image_recipe.c ---- */

/* Complete the recipe.  Says why it fails and returns the exit code. */
int image_recipe_settle(const struct request *r);

/*
 * Sources whose inputs are records of one size: arrays, raw records, tokens, presets
 *
 * Two names mean something, wherever the fields come from.  `label`, an integer for each record, is
 * the class: it becomes i64.  `image`, of three axes of which the last or the first has 1, 3 or 4,
 * is one, interleaved or in planes.
 *
 * Functions that return an int say why they fail, and return the exit code.
 */

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

/* ---- the same: fields, and the slices of files that hold them ---- */

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

/* The records of a column follow the ones that the field has already. */
int fixed_fields_add(struct plan *p, const struct recipe *r, uint32_t field, const struct fixed_column *c);

/* ---- the same: files of fields, of which some hold the same records ---- */

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

/* The last slice of the plan is that part, if no other part has it. */
void fixed_parts_add(struct fixed_parts *p, const struct request *r, const char *name, uint64_t number,
		     const char *where);

/*
 * All files were added: put parts with numbers in their order, and parts of other fields beside the
 * ones of the first field that has several.  A field that is one file needs no name; if another has
 * several, a warning says in which order they are taken.  `remedy` ends a refusal: what to call the
 * files.
 */
int fixed_parts_pair(struct fixed_parts *p, const struct request *r, const char *remedy);

void fixed_parts_free(struct fixed_parts *p);

/*
 * source_raw.c
 *
 * Fields in the order of the bytes: name, dtype, and in brackets the axes, if there are any.  '>'
 * before a dtype says that the file has its bytes in big-endian order; the name '-' passes over
 * bytes.  Pure.
 */

#define RAW_RECORD_BYTES_MAX (UINT64_C(1) << 40)

struct raw_field {
	char name[SHARD_NAME_BYTES]; /* "-": passed over */
	uint32_t dtype, ndim;
	bool swap;
	uint64_t shape[SHARD_DIMS_MAX];
	uint64_t offset; /* from the start of the record */
};

struct raw_schema {
	struct raw_field field[2 * SHARD_FIELDS_MAX];
	uint32_t field_count;
	uint64_t record_bytes;
};

bool raw_schema_parse(const char *text, struct raw_schema *out, char *why, size_t why_bytes);

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
