/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field_option.h - a field as a user asks for it, and as a plan names it
 *
 * Both are read by the same function, so that a plan can say whatever a user can.  Pure.
 */
#ifndef SHARD_PLAN_FIELD_OPTION_H
#define SHARD_PLAN_FIELD_OPTION_H

#include "tools/common/text.h"
#include "tools/shardpack/images/image_options.h"
#include "tools/shardpack/plan/field.h"

enum field_key {
	FIELD_KEY_KIND,
	FIELD_KEY_FROM,
	FIELD_KEY_OPTIONAL,
	FIELD_KEY_FILL,
	FIELD_KEY_FORMAT,
	FIELD_KEY_TURN,
	FIELD_KEY_PICK,
	FIELD_KEY_COUNT,
	FIELD_KEY_DTYPE,
	FIELD_KEY_SHAPE,
	FIELD_KEY_MAX,
	FIELD_KEY_RESIZE,
	FIELD_KEY_FIT,
	FIELD_KEY_CROP,
	FIELD_KEY_FILTER,
	FIELD_KEY_LAYOUT,
	FIELD_KEY_MEAN,
	FIELD_KEY_STD,
	FIELD_KEY_SCALE,
	FIELD_KEY_UNIT,
	FIELD_KEY_MAP,
	FIELD_KEY_BITS,
	FIELD_KEYS,
};

#define FIELD_CHANNELS_BYTES 128 /* of a text of three numbers */

struct field_option {
	char name[SHARD_NAME_BYTES];
	uint32_t given;		    /* bit i: enum field_key */
	uint64_t value[FIELD_KEYS]; /* of those that are numbers, or names of a list */
	uint64_t shape[SHARD_DIMS_MAX];
	uint32_t ndim;				 /* of shape, or of max */
	char map_path[FIELD_FROM_BYTES_MAX + 1]; /* the file of a map, of which somebody fills this: */
	struct mask_map map;			 /* a plan has it itself; field_option_free() */
	char from[FIELD_FROM_BYTES_MAX + 1], mean[FIELD_CHANNELS_BYTES], std[FIELD_CHANNELS_BYTES];
	bool column; /* the short form, of --columns; `empty` as in struct field_source */
	char empty[FIELD_EMPTY_BYTES + 1];
};

/*
 * False, and `why` says why not, if the text is none of that form, or an option is one of another
 * kind.  Free it in either case.  `encoded`: it is a plan's, in which from= is percent-encoded.
 */
bool field_option_parse(const char *text, bool encoded, struct field_option *out, char *why, size_t why_bytes);

void field_option_free(struct field_option *o);

/* What was asked of an image; other members of `out` stay as they are.  It borrows the texts. */
void field_option_image(const struct field_option *o, struct image_wish *out);

/*
 * The field and its source; `image` is the transform of the field `image`, of which other images
 * inherit what is not said.  The map goes to the source.  False, and `why`, if there can be none.
 */
bool field_option_settle(struct field_option *o, const struct transform_options *image, struct shard_field *f,
			 struct field_source *s, char *why, size_t why_bytes);

/* Three numbers: "0.485/0.456/0.406". */
void field_channels_text(const double *value, char out[FIELD_CHANNELS_BYTES]);

/* The options of a field, all of them, in their one order: what a plan says. */
void field_option_write(const struct shard_field *f, const struct field_source *s, struct text *out);

#endif
