/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field.h - fields of a record of images beside image and label, and their sources
 *
 * The shape of such a field follows from its kind and its options.  Pure.
 */
#ifndef SHARD_PLAN_FIELD_H
#define SHARD_PLAN_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shard.h"
#include "tools/shardpack/images/mask_map.h"
#include "tools/shardpack/images/transform_image.h"

#define FIELD_FROM_BYTES_MAX 255
#define FIELD_EMPTY_BYTES    40 /* a number */
#define FIELD_LENGTH_SUFFIX  "_length"
#define FIELD_SIZE_SUFFIX    "_size"

enum field_kind {
	FIELD_LENGTH, /* of the field before it; has no source */
	FIELD_TENSOR, /* numbers of one shape; no axis: a single one */
	FIELD_RAGGED, /* numbers, of which axis 0 varies */
	FIELD_TEXT,   /* UTF-8 */
	FIELD_BYTES,  /* any */
	FIELD_BOXES,  /* of the image; they move with it */
	FIELD_IMAGE,  /* another RGB image, with a transform of its own */
	FIELD_MASK,   /* numbers of classes for each pixel; moves with the image */
};

/*
 * The pixels that a mask, boxes or a further image belong to; it is said with --exif apply only.
 * TURN_UNSAID is TURN_OWN if the file has EXIF data that is read.  It is refused if there is none
 * and the image is turned, as a TIFF always is: then either of the others could be meant, and one
 * would put the mask beside its object.
 */
enum field_turn {
	TURN_UNSAID,
	TURN_IMAGE, /* those of the image's file, as stored; turned with it */
	TURN_OWN,   /* those of its own file; turned by its own EXIF data */
	TURN_NONE,  /* those of the image set upright; not turned */
};

/* Of kind=text, which texts of a list are packed.  Without a word of it a list is refused. */
enum field_pick {
	PICK_UNSAID,
	PICK_FIRST,
	PICK_EACH, /* an input for each of them: the plan has one text, text_each.h */
	PICK_ALL,  /* ragged u8 [count, max]: a row for each, with zeros behind its text */
};

/* Names as on the command line and in plans; NULL ends the list.  The first one has none there. */
extern const char *const field_kind_names[];

extern const char *const field_turn_names[]; /* in a plan only if it was said */
extern const char *const field_pick_names[]; /* the same */

extern const char *const field_boxes_names[]; /* enum boxes_format; the same */

extern const char *const field_scale_names[]; /* false, true: is it a part of the image? */

struct field_source {
	uint32_t kind;	   /* enum field_kind */
	bool optional;	   /* a sample may have none */
	bool all_may_lack; /* and so may all of them; no plan says it; also of a column with a default */
	/*
	 * a single number, said with --columns: its cells are in decimal.  A plan does not name its
	 * source, and has the numbers of all such fields in one token: field_part_next()
	 */
	bool column;
	char empty[FIELD_EMPTY_BYTES + 1];   /* of a column: what an empty cell counts as; in no plan */
	uint32_t fill;			     /* of a mask: where there is no image, and no mask */
	struct mask_map map;		     /* of a mask: empty if its values are stored; recipe_free() */
	uint32_t boxes;			     /* enum boxes_format: how they are written; of numbers only BOXES_YOLO */
	bool unit;			     /* of boxes: as parts of the image */
	uint32_t turn;			     /* enum field_turn, of a mask, boxes or an image */
	uint32_t pick;			     /* enum field_pick, of text */
	char from[FIELD_FROM_BYTES_MAX + 1]; /* column; suffix of a member, or json:KEY; DIR/{}.EXT */
	struct transform_options transform;  /* of an image */
};

/* The largest value of a mask of that dtype; 0 is u8. */
uint64_t field_mask_most(uint64_t dtype);

/* Are the pixels of a mask looked up, or wider than a byte?  Then they are codes; mask_codes.h */
bool field_is_coded(const struct shard_field *f, const struct field_source *s);

/* Why a value is none of a field. */
struct field_verdict {
	int reason;	   /* enum shard_miss_reason, or FIELD_NO_MEMORY */
	char message[240]; /* one line, without the names of field and file */
};
#define FIELD_NO_MEMORY 0 /* says nothing of the value */

/* Returns false, for functions that say so when there is no value. */
bool field_verdict_bad(struct field_verdict *v, int reason, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* May a field have this name? */
bool field_is_name(const char *name, size_t bytes);

/* Does the field have a token of its own in each input's line of a plan? */
bool field_has_part(const struct field_source *s);

/* Is its source a file or member, never a value? */
bool field_is_picture(uint32_t kind);

/* What of a field follows from a transform: dtype, layout, semantic, shape.  The name stays. */
void field_set_image(struct shard_field *f, const struct transform_options *t);

/*
 * The same from the kind.  Of numbers, text and bytes the dtype and shape are there already;
 * `image` is the transform of the field `image`.
 */
void field_set(struct shard_field *f, const struct field_source *s, const struct transform_options *image);

/* The field of its lengths, if it has some, which are those of axis 0. */
bool field_set_length(struct shard_field *length, const struct shard_field *f);

/* The field of the height and width of whole images: shard_image_size_field(). */
void field_set_size(struct shard_field *size, const struct shard_field *image);

/* NULL in `from`, or what stands behind "json:", or "coco:", which a plan alone says. */
const char *field_json_key(const struct field_source *s);
const char *field_coco_key(const struct field_source *s);

#endif
