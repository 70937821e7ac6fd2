/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recipe.h - everything that, with the source, decides the bytes of a dataset
 *
 * What does not change a byte is not in it: threads, parts, paths, how many bad inputs are allowed.
 */
#ifndef SHARD_PLAN_RECIPE_H
#define SHARD_PLAN_RECIPE_H

#include <stdbool.h>
#include <stdint.h>

#include "shard.h"
#include "tools/common/text.h"
#include "tools/shardpack/images/limits.h"
#include "tools/shardpack/plan/field.h"

/* What happens to an input whose bytes are bad.  It decides which records exist. */
enum on_error { ON_ERROR_FAIL, ON_ERROR_SKIP, ON_ERROR_QUARANTINE };

/* The orientation in EXIF: ImageFolder ignores it, PIL.ImageOps.exif_transpose() applies it. */
enum recipe_exif { EXIF_IGNORE, EXIF_APPLY };

/* What says to which class an image belongs, if anything does. */
enum recipe_label {
	LABEL_CLASS,
	LABEL_NONE,
	LABEL_LIST, /* several classes: their numbers, at most label_room of them */
	LABEL_HOT,  /* several classes: 0 or 1 for each of label_room classes */
};

/* What is packed.  Images have a line each in the plan; the others are records of files. */
enum recipe_source { SOURCE_IMAGES, SOURCE_ARRAY, SOURCE_RAW, SOURCE_TOKENS, SOURCE_CIFAR, SOURCE_MNIST, SOURCE_COUNT };

struct recipe {
	uint32_t source;		    /* enum recipe_source */
	uint32_t label;			    /* enum recipe_label, of images */
	uint32_t label_room;		    /* of LABEL_LIST and LABEL_HOT */
	struct transform_options transform; /* of images */
	uint32_t exif;			    /* enum recipe_exif */
	uint32_t accept;		    /* enum decode_accept: which damage is packed, with a field that tells */
	uint32_t formats;		    /* of images: bits of decode_formats.h, by the names of all inputs */
	struct limits limits;		    /* of images; in a plan only those that are not the default */
	/* upper parts: of fixed records all, of images those behind the label */
	struct shard_field field[SHARD_FIELDS_MAX];
	struct field_source from[SHARD_FIELDS_MAX]; /* of images: where these come from */
	uint32_t field_count;
	uint32_t codec;	   /* of the first group: enum shard_codec */
	uint32_t align;	   /* as of shard_schema_lay_out() */
	uint32_t order;	   /* enum shard_pack_order */
	uint32_t on_error; /* enum on_error */
	uint64_t seed;
	uint64_t shard_records; /* of every shard but the last; never 0 in a plan */
};

/* Names as on the command line and in plans; NULL ends the list.  The place is the value. */
extern const char *const recipe_source_names[];
extern const char *const recipe_label_names[];	/* in a plan only if it is not the first */
extern const char *const recipe_exif_names[];	/* the same */
extern const char *const recipe_accept_names[]; /* enum decode_accept; the same */
extern const char *const recipe_codec_names[];	/* enum shard_codec */
extern const char *const recipe_order_names[];	/* [0] is never used */
extern const char *const recipe_on_error_names[];

/* A copy with maps of its own.  False without memory; free it all the same. */
bool recipe_copy(const struct recipe *r, struct recipe *out);
void recipe_free(struct recipe *r);

/* The recipe, as lines of a plan. */
void recipe_write(const struct recipe *r, struct text *out);
/* A line with SHARD_BYTES_VERSION, and a line for each library that decides bytes. */
void recipe_write_versions(const struct recipe *r, struct text *out);

/* Are its inputs images, with a line each in the plan?  Else they are records of files. */
bool recipe_is_images(const struct recipe *r);

/*
 * Of images, field 0 is `image`, in group 0; whole images have `image_length` and `image_size`
 * behind it, in group 1.  Then come `label`, in group 1, unless there is none, `label_length` if it
 * is a list, and those of the recipe.  If damage is accepted the last one is `damage`, a u8 in
 * group 1: 0, or what was accepted, an enum shard_miss_reason.  Of fixed records, as the fields
 * say.  The fields that the recipe names are grouped by shard_schema_group().  ARGUMENT if such
 * records cannot be.
 */
#define RECIPE_IMAGE	 0
#define RECIPE_LENGTH	 1 /* these two of whole images only */
#define RECIPE_SIZE	 2
#define RECIPE_NAMED_MAX (SHARD_FIELDS_MAX - 1)
#define RECIPE_DAMAGE	 "damage"
uint32_t recipe_first(const struct recipe *r);		  /* of those that the recipe names; behind the label, if any */
uint32_t recipe_named_max(const struct recipe *r);	  /* how many it may name, at most RECIPE_NAMED_MAX */
uint64_t recipe_field_items(const struct shard_field *f); /* elements; UINT64_MAX / 16 if that many cannot be */
size_t recipe_column_bytes(const struct recipe *r);	  /* of the numbers of --columns of one input */
int recipe_schema(const struct recipe *r, struct shard_schema *out, struct shard_error *err);

/* Have its images a label?  False of fixed records, which say so in their fields. */
bool recipe_has_label(const struct recipe *r);
/* May images have names of classes: those of the label, or of COCO's categories? */
bool recipe_names_classes(const struct recipe *r);

/* May an image have several labels?  Then an input of the plan has a list as in classes.h. */
bool recipe_is_multi_label(const struct recipe *r);

/* The number of the field `label` of images that have one. */
uint32_t recipe_label_field(const struct recipe *r);

/* The field `damage` of the recipe's schema; NULL if there is none. */
const struct shard_field *recipe_damage(const struct recipe *r, const struct shard_schema *s);

/* What every shard carries about its making: recipe, versions, plan digest. */
void recipe_provenance(const struct recipe *r, const uint8_t plan_digest[32], struct text *out);

#endif
