/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_list.h - images with labels, as found, before it is known which classes there are
 *
 * Images found in archives, tables and flat folders are added here in source order, each with its
 * label as text.  When all are there, the labels become classes, and each image a line of the plan.
 * Classes are numbers if all labels are, else their names in byte order, or as --classes says.
 * Names among numbers are refused: one "n/a" would make names of a million numbers, and class 0 of
 * "10".  Names of folders are never numbers, so that a folder and a tar of it give the same
 * classes.
 */
#ifndef SHARD_SCAN_IMAGE_LIST_H
#define SHARD_SCAN_IMAGE_LIST_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "tools/common/text.h"
#include "tools/shardpack/plan/bad_input.h"
#include "tools/shardpack/plan/plan.h"

struct classes;
struct request;

struct image_item {
	uint64_t path_at, label_at; /* in text, NUL-terminated */
	uint64_t fields_at;	    /* in text, NUL-terminated: tokens of further fields, as in a plan */
	uint64_t bytes, offset;
	uint32_t file;		 /* PLAN_NO_FILE: its own */
	uint32_t by_folder : 1;	 /* the label is the name of a folder */
	uint32_t unlabelled : 1; /* a bad input whose label is not known */
	uint32_t in_table : 1;	 /* a row of a table, which others may repeat */
	uint32_t further : 1;	 /* made of the same row or entry as the one before it: pick=each */
	uint32_t row : 28;	 /* of the rows that have this path, from 1; by image_rows_number() */
};

/* The first label of a kind, and where it stands. */
struct image_label {
	bool there;
	uint64_t item;
	const char *table; /* below the root; NULL: it is that of the image, in no line of a table */
	uint64_t line;
};

/* The labels of an image that may have several. */
struct label_list {	   /* start it zeroed */
	struct text names; /* each with its NUL */
	uint64_t count;
};

struct image_list { /* start it zeroed, with the shelf of the text, on which the items lie too */
	struct text text;
	struct image_item *item;
	uint64_t count, capacity;
	bool has_label;		/* one was added, the last of which is at last_label_at */
	uint64_t last_label_at; /* so that a label that repeats is kept once */
	bool by_folder;		/* labels of what is added next are names of folders */
	uint64_t by_folder_count, unlabelled_count;
	bool in_table;	   /* what is added next is a row of a table */
	bool further;	   /* and is made of the same row as the last one */
	const char *table; /* in which labels of what is added next stand, and in which line; or NULL */
	uint64_t line;
	struct image_label number, name; /* of labels that are not of folders: "10", and "n/a" */
	uint64_t number_count;		 /* of these labels */
	const struct classes *classes;	 /* of a source without labels that names classes all the same; or NULL */
	/*
	 * With --multi-label: the labels of what is added next, in the place of the argument
	 * `label`; and all labels, each an item of a list of its own.  Then label_at is the number
	 * of the first of an image, whose labels end where those of the next image begin.
	 */
	struct label_list next;
	struct image_list *every;
	bool is_every; /* it is such a list of labels */
	const struct request *request;
};

/*
 * Add an image: `path` below the root, of its own file or of part of a file; `fields` has the
 * tokens of further fields, nothing if there are none.  Returns the exit code.
 */
int image_list_add(struct image_list *images, const char *path, const char *label, uint64_t bytes, uint32_t file,
		   uint64_t offset, const struct text *fields);

/*
 * Add an input that is known to be bad; bad_input.h says how a function tells.  It is an input like
 * any other: counted, listed with all others, and left out with --on-error skip.  `path` names it
 * to people.  Of a row it is the file that the row names, or if it names none, image_list_row().
 * `label` is NULL if it is not known; one that is known counts among the classes.  `bytes`, `file`
 * and `offset` are those of what quarantine keeps of it: 0, PLAN_NO_FILE and 0 if there is nothing.
 */
int image_list_add_bad(struct image_list *images, const char *path, const char *label, uint64_t bytes, uint32_t file,
		       uint64_t offset, const struct bad_input *why);

/* The name of a row without a path: "list.csv#17", into `out`.  False if that is too long. */
bool image_list_row(const char *table, uint64_t line, char out[PLAN_PATH_BYTES_MAX]);

const char *image_list_path(const struct image_list *images, uint64_t i);
bool image_list_is_bad(const struct image_list *images, uint64_t i);

/* " -1", "07" or "3.0": meant as a number? */
bool image_label_is_number(const char *label);

void image_list_free(struct image_list *images);

/*
 * --multi-label: a list in JSON, or a text that --label-separator splits.  Nothing is guessed: a
 * text without that option is refused.  An empty list or text has no label.
 */

/*
 * The labels of a value in JSON, or of a text, which may be a JSON array too; with `lines` each
 * line of it is a label, or several.  They replace what `out` has.  Returns the exit code; `bad`
 * says what is wrong with the value, if anything is.
 */
int label_list_of_json(const struct request *r, const json_t *value, struct label_list *out, struct bad_input *bad);
int label_list_of_text(const struct request *r, const char *text, size_t bytes, bool lines, struct label_list *out,
		       struct bad_input *bad);

void label_list_free(struct label_list *l);

#endif
