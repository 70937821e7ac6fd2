/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coco_list.h - what a JSON file of COCO lists: images, annotations, categories
 *
 * It may be larger than memory: of an annotation only its place and its image are kept.
 */
#ifndef SHARD_COCO_COCO_LIST_H
#define SHARD_COCO_COCO_LIST_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/common/text.h"

struct json_range;
struct classes;
struct request;

struct coco_image {
	int64_t id;
	uint64_t name_at;	/* of its file, in `names`; NUL-terminated */
	uint32_t width, height; /* 0: not said */
	uint64_t first, end;	/* of its annotations */
};

struct coco_annotation {
	int64_t image; /* its id; then its number */
	uint64_t offset;
	uint32_t bytes;
};

struct coco_category {
	int64_t id;
	uint64_t name_at;
};

struct coco_list { /* start it zeroed */
	const struct request *request;
	char *where;	   /* the file, for messages */
	uint32_t file;	   /* its number in the plan */
	struct text names; /* on the shelf of the plan, as all lists here are */
	struct coco_image *image;
	uint64_t image_count, image_capacity;
	struct coco_annotation *annotation; /* by image, then as in the file */
	uint64_t annotation_count, annotation_capacity;
	int64_t *id; /* of annotations that say one */
	uint64_t id_count, id_capacity;
	struct coco_category *category; /* by id */
	uint64_t category_count, category_capacity;
	uint32_t lists; /* bit i: a list of that name was there */
};

enum { COCO_IMAGES, COCO_ANNOTATIONS, COCO_CATEGORIES };

/* All of `path` below the root.  Says why it fails, returns the exit code; free it all the same. */
int coco_list_read(struct coco_list *l, const struct request *r, const char *path);
void coco_list_free(struct coco_list *l);

/* The number of a category, which is its class; -1 if there is none of that id. */
int64_t coco_list_class(const struct coco_list *l, int64_t id);

/* The names of all categories, in that order.  Returns the exit code. */
int coco_list_name_classes(const struct coco_list *l, struct classes *out);

#endif
