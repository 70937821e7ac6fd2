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

#include "tools/common/text.h"

struct request;

struct image_item {
	uint64_t path_at, label_at; /* in text, NUL-terminated */
	uint64_t fields_at;	    /* in text, NUL-terminated: tokens of further fields, as in a plan */
	uint64_t bytes, offset;
	uint32_t file;	/* PLAN_NO_FILE: its own */
	bool by_folder; /* the label is the name of a folder */
};

/* The first label of a kind, and where it stands. */
struct image_label {
	bool there;
	uint64_t item;
	const char *table; /* below the root; NULL: it is that of the image, in no line of a table */
	uint64_t line;
};

struct image_list { /* start it zeroed */
	struct text text;
	struct image_item *item;
	uint64_t count, capacity;
	uint64_t last_label_at; /* so that a label that repeats is kept once */
	bool by_folder;		/* labels of what is added next are names of folders */
	uint64_t by_folder_count;
	const char *table; /* in which labels of what is added next stand, and in which line; or NULL */
	uint64_t line;
	struct image_label number, name; /* of labels that are not of folders: "10", and "n/a" */
	uint64_t number_count;		 /* of these labels */
	const struct request *request;
};

/*
 * Add an image: `path` below the root, of its own file or of part of a file; `fields` has the
 * tokens of further fields, nothing if there are none.  Returns the exit code.
 */
int image_list_add(struct image_list *images, const char *path, const char *label, uint64_t bytes, uint32_t file,
		   uint64_t offset, const struct text *fields);

/* Make classes of the labels and lines of the images.  A path that is there twice is an error. */
int image_list_plan(struct image_list *images);

void image_list_free(struct image_list *images);

#endif
