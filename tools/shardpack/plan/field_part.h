/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field_part.h - where a field of one input is, as a token of the input's line in a plan
 *
 *   =68656c6c6f        its value, in hex; two characters in memory for each byte
 *   7066,masks/a.png   a file: bytes, path in the source
 *   1536,24,0          a part of a file of the plan: offset, bytes, number of the file
 *   -                  nothing, if the field is optional
 *   640x480=0000803f   a value, of an image that must have this width and height
 *   640x480@0,7,90,5   objects of a mask: the number of a file, and of each object offset, bytes
 *                      and the mask's value there; parse/coco_shape.c.  The size may be absent
 *
 * Each field has one such token.  Only the numbers of --columns share a token: it comes first, and
 * has them in the order of the columns.
 *
 * Pure.
 */
#ifndef SHARD_PLAN_FIELD_PART_H
#define SHARD_PLAN_FIELD_PART_H

#include <stdbool.h>

#include "libshard/base/words.h"
#include "tools/common/text.h"

struct field_source;
struct shard_field;

enum field_part_kind { FIELD_PART_NONE, FIELD_PART_VALUE, FIELD_PART_FILE, FIELD_PART_MEMBER, FIELD_PART_SHAPES };

struct field_part {
	enum field_part_kind kind;
	uint64_t bytes, offset, file;
	const char *text;	/* of a value the hex, of a file the encoded path, of objects all but the file */
	size_t text_bytes;	/* there is no NUL */
	uint32_t width, height; /* 0: not said */
};

struct field_shape {
	uint64_t offset, bytes;
	uint32_t value;
};

/* Add a token, with a blank before it. */
void field_part_add_none(struct text *out);
void field_part_add_value(struct text *out, const void *value, size_t bytes);
void field_part_add_file(struct text *out, uint64_t bytes, const char *path);
void field_part_add_member(struct text *out, uint64_t offset, uint64_t bytes, uint64_t file);

/* The same with the size of the image; 0 x 0: it is not known.  Objects follow one by one. */
void field_part_add_sized(struct text *out, uint32_t width, uint32_t height, const void *value, size_t bytes);
void field_part_begin_shapes(struct text *out, uint32_t width, uint32_t height, uint32_t file);
void field_part_add_shape(struct text *out, const struct field_shape *shape);

/* The objects in turn, from words_of() the text of the part.  False at the end; *wrong: the rest is none. */
bool field_part_next_shape(struct words *c, struct field_shape *out, bool *wrong);

/* Are they all sound, in a file of so many bytes, and no value larger than `most`? */
bool field_part_shapes_fit(const struct field_part *part, uint64_t file_bytes, uint64_t most);

/*
 * Has the input nothing for a field that may have nothing?  An empty text is none, and so is a mask
 * of no objects; but an empty list of boxes or numbers is a value.  A key of a .json cannot be
 * judged: the plan does not say whether it is there.
 */
bool field_part_is_none(const struct field_part *part, const struct field_source *s);

/* Read a token of `bytes` bytes.  False if it is none; what it says is not checked further. */
bool field_part_read(const char *token, size_t bytes, struct field_part *out);

/*
 * The parts of an input's fields, one call for each field in turn.  *at begins at the first token, which
 * plan_read.c or the scan saw to.  A number of --columns is a value, cut out of the token that they
 * share.  False if the field has no part, as one of lengths.
 */
bool field_part_next(const struct shard_field *f, const struct field_source *s, const char **at,
		     struct field_part *out);

#endif
