/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.h - the recipe, the plan and its text: read, written and checked
 */
#ifndef SHARD_SHARDPACK_PLAN_PLAN_H
#define SHARD_SHARDPACK_PLAN_PLAN_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "libshard/base/words.h"
#include "shard.h"
#include "shard_inspect.h"
#include "tools/common/text.h"
#include "tools/shardpack/images/images.h"

/*
 * bad_input.c - an input that is known to be bad before its bytes are decoded
 *
 * A file that is missing, a sample without its label, a value that does not fit its field: the code
 * that lists the inputs finds it, and the plan says so.  Then the converter need not read the input to
 * give its verdict, and every machine gives the same.  Such a line has no tokens of columns and
 * fields.  In their place it ends with the name of an enum shard_miss_reason, and with a sentence,
 * both percent-encoded:
 *
 *   input 3 0 0 b/no1.jpg !missing table.csv,%20line%203:%20No%20such%20file%20or%20directory
 *   input 4 - 24117 a.tar/7.jpg 1 512 !incomplete ...     its class is not known
 *
 * Size, file and offset are those of bytes that quarantine keeps; 0 and no file if there are none.
 */

#define BAD_INPUT_MESSAGE_BYTES 320

struct bad_input {	 /* start it zeroed */
	uint32_t reason; /* enum shard_miss_reason; 0: nothing is wrong */
	char message[BAD_INPUT_MESSAGE_BYTES];
};

/*
 * Say what is wrong with an input.  Prints nothing and returns EXIT_BAD, for functions that return
 * the exit code.  Their callers see by bad_input_is() that this input alone is bad.
 */
int bad_input(struct bad_input *b, uint32_t reason, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
bool bad_input_is(const struct bad_input *b, int rc);

/* Replace what `out` has by both tokens, with a blank before each: `fields` of image_list_add(). */
void bad_input_write(const struct bad_input *b, struct text *out);

/* Do tokens of fields, or the one at `text`, begin so? */
bool bad_input_begins(const char *text);

/* Of an enum shard_miss_reason: "other" if a later release gave it. */
const char *reason_name(uint32_t reason);

/* The reason that the first token names, 0 if it names none; and the sentence of the second one. */
uint32_t bad_input_reason(const char *token, size_t bytes);
bool bad_input_message(const char *token, size_t bytes, char out[BAD_INPUT_MESSAGE_BYTES]);

/*
 * classes.c - the names of the classes, and which number each has
 *
 * The number is the place in the list: folders in byte order, or the order of a list that
 * the user gives so that two datasets agree.
 */

#define CLASSES_MAX	     (UINT32_C(1) << 24) /* format/SHARD.md M8 */
#define CLASS_NAME_BYTES_MAX 1024

struct classes { /* start it zeroed */
	char **name;
	uint64_t count, capacity;
	uint32_t *by_name; /* numbers, ordered by name; made by classes_index() */
};

/*
 * Add a name, in the order of the numbers.  `where` is for the message if it is not fit to
 * be a class name: not UTF-8, empty, too long.  Returns the exit code.
 */
int classes_add(struct classes *c, const char *name, size_t name_bytes, const char *where);

/* Add the names "0" to "count - 1". */
int classes_add_numbers(struct classes *c, uint64_t count);

/* Byte order of the names becomes the order of the numbers. */
void classes_sort(struct classes *c);

/* Call once all are there.  A name that occurs twice is an error of `where`. */
int classes_index(struct classes *c, const char *where);

/* Number of a name, or -1.  Needs classes_index(). */
int64_t classes_find(const struct classes *c, const char *name);

void classes_free(struct classes *c);

/*
 * The classes of an image that may have several, as one token: "0,17,4", numbers of classes in the
 * order of the source, none twice; or "-", none.
 */

/* Is that such a token, with numbers below `class_count`, and at most `most` of them? */
bool class_list_is(const char *token, size_t bytes, uint64_t class_count, uint64_t most);

/* Take the next class of a token that is one.  False at its end. */
bool class_list_next(const char **at, uint32_t *class_idx);

/*
 * Add all names of a list, and index them.  `path` is a dataset's folder; or JSON, if its name ends
 * so, which is an array of names or an object from name to number; or a file with one name on each
 * line.  Numbers of an object must be 0 to count - 1, each once.  Says why it fails, and returns
 * the exit code.
 */
int classes_from_list(struct classes *c, const char *path);

/*
 * Add a name for each line of a text; messages call it `file`.  Says why it fails, and returns the
 * exit code.
 */
int classes_add_lines(struct classes *c, FILE *in, const char *file, bool skip_empty);

/*
 * field.c
 *
 * The shape of such a field follows from its kind and its options.  Pure.
 */

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
	PICK_EACH, /* an input for each of them: the plan has one text, text_each.c */
	PICK_ALL,  /* ragged u8 [count, max]: a row for each, with zeros behind its text */
};

/* Names as on the command line and in plans; NULL ends the list.  The first one has none there. */
extern const char *const field_kind_names[];

/* What --help says of the keys of --field; the second by enum field_key, with their names. */
extern const struct cli_key field_kind_help[], field_key_help[];

extern const char *const field_turn_names[]; /* in a plan only if it was said */

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

/* Are the pixels of a mask looked up, or wider than a byte?  Then they are codes; mask.c */
bool field_is_coded(const struct shard_field *f, const struct field_source *s);

/* Why a value cannot be that of a field. */
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

/* The field of its lengths, if it has some, which are those of axis 0. */
bool field_set_length(struct shard_field *length, const struct shard_field *f);

/* The field of the height and width of whole images: shard_image_size_field(). */
void field_set_size(struct shard_field *size, const struct shard_field *image);

/* NULL in `from`, or what stands behind "json:", or "coco:", which a plan alone says. */
const char *field_json_key(const struct field_source *s);
const char *field_coco_key(const struct field_source *s);

/*
 * The same: a field as a user asks for it, and as a plan names it
 *
 * Both are read by the same function, so that a plan can say all that a user can.  Pure.
 */

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
	uint64_t value[FIELD_KEYS]; /* of the ones that are numbers, or names of a list */
	uint64_t shape[SHARD_DIMS_MAX];
	uint32_t ndim;				 /* of shape, or of max */
	char map_path[FIELD_FROM_BYTES_MAX + 1]; /* the file of a map, of which somebody fills this: */
	struct mask_map map;			 /* a plan has it itself; field_option_free() */
	char from[FIELD_FROM_BYTES_MAX + 1], mean[FIELD_CHANNELS_BYTES], std[FIELD_CHANNELS_BYTES];
	bool column; /* the short form, of --columns; `empty` as in struct field_source */
	char empty[FIELD_EMPTY_BYTES + 1];
};

/*
 * False, and `why` says why not, if the text is not of that form, or an option is one of another
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

/* The options of a field, all of them, in their one order: what a plan says. */
void field_option_write(const struct shard_field *f, const struct field_source *s, struct text *out);

/*
 * field_part.c - where a field of one input is, as a token of the input's line in a plan
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

/* The objects in turn, from words_of() the text of the part.  False at the end; *wrong: the rest is not one. */
bool field_part_next_shape(struct words *c, struct field_shape *out, bool *wrong);

/* Are they all sound, in a file of `file_bytes`, and no value larger than `most`? */
bool field_part_shapes_fit(const struct field_part *part, uint64_t file_bytes, uint64_t most);

/*
 * Has the input nothing for a field that may have nothing?  An empty text is nothing, and so is a mask
 * of no objects; but an empty list of boxes or numbers is a value.  A key of a .json cannot be
 * judged: the plan does not say whether it is there.
 */
bool field_part_is_none(const struct field_part *part, const struct field_source *s);

/* Read a token of `bytes` bytes.  False if it is not one; what it says is not checked further. */
bool field_part_read(const char *token, size_t bytes, struct field_part *out);

/*
 * The parts of an input's fields, one call for each field in turn.  *at begins at the first token, which
 * plan_text.c or the scan saw to.  A number of --columns is a value, cut out of the token that they
 * share.  False if the field has no part, as one of lengths.
 */
bool field_part_next(const struct shard_field *f, const struct field_source *s, const char **at,
		     struct field_part *out);

/*
 * field_value.c
 *
 * Text and bytes are taken as they are, to the last one.  With pick= the texts are a list in JSON,
 * or one text in JSON.  Numbers come as a JSON array, or as an
 * array of NumPy, told by its magic.  A whole number may become any type that holds it, a float one
 * of floating point, rounded to nearest.  Boxes become XYXY, still in the pixels of their image.
 */

/* Of kind=text that finds a list: what to type. */
#define FIELD_LIST_REMEDY                                                                                             \
	"say pick=first for its first text, pick=all,count=N for all of them in one record, or, of tables and COCO, " \
	"pick=each for a record of each"

/* Room that the value of a field takes at most. */
size_t field_value_room(const struct shard_field *f);

/*
 * All bytes of a cell, member or file.  `out` has that room; what a ragged one does not fill stays.
 * False, and the verdict, if it is not a value.
 */
bool field_value(const struct shard_field *f, const struct field_source *s, const void *data, size_t bytes,
		 uint8_t *out, size_t *out_bytes, struct field_verdict *v);

/*
 * The same, if `data` is an object in JSON and the value is that of s->from.  *there is false, and
 * so is the result, if it has none, or null.
 */
bool field_value_of_key(const struct shard_field *f, const struct field_source *s, const void *data, size_t bytes,
			uint8_t *out, size_t *out_bytes, bool *there, struct field_verdict *v);

/*
 * A number of --columns as it is written, as the bytes of its field: whole numbers within the range
 * of an integer, decimal numbers, inf and nan for a float, 0, 1, true or false for a bool.  False
 * if it is none of these.
 */
bool field_value_of_column(const struct shard_field *f, const char *text, uint8_t out[8]);

/*
 * The same: lists of texts, of which one, each or all are packed
 *
 * A record has all texts of pick=all as rows of one length, with zeros behind each.  No text has a
 * zero in it.  A plan has them shorter: each text with one zero behind it, all in hex.
 *
 * Pure.
 */

/* All texts of a record, of which `bytes` are rows, as a token of a plan with a blank before it. */
void field_texts_add(const struct shard_field *f, const uint8_t *rows, size_t bytes, struct text *out);

/*
 * May the field have the value of this token of a plan, which is known to be hex?  Of a list that
 * is as many texts as fit, none of them too long; of other fields as many bytes.
 */
bool field_texts_fit(const struct shard_field *f, const struct field_source *s, const struct field_part *part);

/* From such a token to rows; `out` is zero.  Returns the bytes of the rows. */
size_t field_texts_put(const struct shard_field *f, const struct field_part *part, uint8_t *out);

/*
 * recipe.c
 *
 * What does not change a byte is not in it: threads, parts, paths, how many bad inputs are allowed.
 */

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
	uint32_t formats;		    /* of images: of image_format_bit(), by the names of all inputs */
	struct limits limits;		    /* of images; in a plan only the ones that are not the default */
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

void recipe_free(struct recipe *r); /* what the sources of its fields hold */

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
uint32_t recipe_first(const struct recipe *r);	   /* of the ones that the recipe names; behind the label, if any */
uint32_t recipe_named_max(const struct recipe *r); /* how many it may name, at most RECIPE_NAMED_MAX */
uint64_t recipe_field_items(const struct shard_field *f); /* elements; UINT64_MAX / 16 if that many cannot be */
int recipe_schema(const struct recipe *r, struct shard_schema *out, struct shard_error *err);

/* Have its images a label?  False of fixed records, which say so in their fields. */
bool recipe_has_label(const struct recipe *r);
/* Does any field have a token of its own in each input's line of a plan? */
bool recipe_has_parts(const struct recipe *r);

/* May images have names of classes: those of the label, or of COCO's categories? */
bool recipe_names_classes(const struct recipe *r);

/* May an image have several labels?  Then an input of the plan has a list as in classes.c. */
bool recipe_is_multi_label(const struct recipe *r);

/* The number of the field `label` of images that have one. */
uint32_t recipe_label_field(const struct recipe *r);

/* The field `damage` of the recipe's schema; NULL if there is none. */
const struct shard_field *recipe_damage(const struct recipe *r, const struct shard_schema *s);

/* What every shard carries about its making: recipe, versions, plan digest. */
void recipe_provenance(const struct recipe *r, const uint8_t plan_digest[32], struct text *out);

/*
 * Read what recipe_write() wrote from the front of `in`.  Returns how many bytes that was;
 * 0, with the offset of the line that is wrong in *wrong, if it is not a recipe.
 */
size_t recipe_read(struct recipe *r, const char *in, size_t in_bytes, size_t *wrong);

/* Tokens that lie one behind the other in a file, and what ends their documents. */
struct token_stream {
	uint64_t offset, count; /* of its first token in the file; tokens */
	uint64_t before;	/* tokens of the streams before it */
	uint32_t file;
	uint32_t index_file; /* Megatron-LM's index, which names its documents; PLAN_NO_FILE: a token ends them */
	uint8_t dtype, swap; /* as in a slice */
};

/*
 * token_pack.c: windows
 *
 * The longest piece comes first.  Each goes into the fullest window that has room for it, or into a
 * new one.  Pieces of one length are alike, and so are windows with equal room.  So whole groups
 * are moved at once, and memory follows the number of different lengths, not of pieces.  A window
 * with as many pieces as it may have is full, whatever room is left.
 *
 * A piece is known by its place: its number when pieces are sorted by length, longest first, and
 * within a length by where they lie.  Pure.
 */

/* `times` pieces of one length went into each of some windows, of which `window` is the first. */
struct window_step {
	uint64_t window, place; /* of the first piece in it; the next `times` are those of the next window */
	uint32_t length, times;
	uint32_t before; /* the step that came before in these windows; WINDOW_STEP_NONE */
};

/* Windows [first, first + count) that were filled by the same steps. */
struct window_range {
	uint64_t first, count;
	uint32_t step; /* the last one */
	uint32_t pieces;
	uint32_t next; /* while packing: another range with the same room */
};

#define WINDOW_STEP_NONE UINT32_MAX

struct window_pack { /* start it zeroed */
	struct window_step *step;
	struct window_range *range; /* at the end by window, without holes */
	uint64_t step_count, range_count, step_capacity, range_capacity;
	uint64_t window_count;
	uint32_t piece_max; /* most pieces in a window */
};

struct window_piece {
	uint64_t place;
	uint32_t length;
};

/*
 * count[length], for lengths 1 to `room`, are how many pieces there are.  A window has at most
 * `most_pieces`, 1 or more.  False: they are too many to number.
 */
bool window_pack_make(struct window_pack *p, const uint64_t *count, uint32_t room, uint32_t most_pieces);
void window_pack_free(struct window_pack *p);

/* The pieces of a window, longest first, into out[piece_max].  Returns how many. */
uint32_t window_pack_pieces(const struct window_pack *p, uint64_t window, struct window_piece *out);

/*
 * The same: documents
 *
 * A window has `room` tokens, one more than a model sees.  A document of more tokens is cut into
 * pieces of `room`, each of which begins with the last token of the piece before, so that every
 * token but the document's first is predicted once.  What is left is a piece too.  A document, or a
 * piece, of one token has nothing to predict, and is in no window.
 *
 * A plan has the streams and a digest of all lengths.  Which piece lies where follows from these:
 * input/documents.c computes it once per process.
 *
 * Fields of a record:
 *   tokens        [room]: the pieces one behind the other, longest first, then zeros
 *   doc_lengths   i32 ragged [width]: how many tokens each piece has; doc_count of them
 *   doc_count     u32: its length field
 *   position_ids  by option, i32 [room]: from 0 in each piece; 0 behind the last
 */

#define TOKEN_PACK_ROOM_MAX (UINT32_C(1) << 22) /* tables by length: 2 x 32 MiB */

/* Numbers of the fields. */
enum { TOKEN_PACK_TOKENS, TOKEN_PACK_LENGTHS, TOKEN_PACK_COUNT, TOKEN_PACK_POSITIONS };

struct token_pack { /* start it zeroed */
	struct token_stream *stream;
	uint64_t stream_count, stream_capacity;
	uint64_t token_count; /* of all streams */
	bool by_token;
	uint64_t end_of_text; /* by_token: ends a document */
	uint64_t document_count, piece_count, window_count;
	uint32_t piece_max; /* in a window */
	uint32_t width;	    /* of doc_lengths, and most pieces that a window may have; 0: piece_max */
	uint8_t digest[32]; /* of the lengths of all documents */

	/* Not in the plan's text; made by input/documents.c. */
	struct window_pack windows;
	const uint64_t *begin; /* [place of a piece] its first token, counted over all streams; mapped */
	size_t begin_bytes;
	uint64_t packed_count;		  /* tokens in windows; the ones that two pieces share count twice */
	uint64_t lone_count, empty_count; /* documents of one token, and of none */
	uint64_t cut_count;		  /* documents that are more than one piece */
};

void token_pack_add(struct token_pack *p, const struct token_stream *stream);

/* Of the places for tokens in all records, which have `room` each.  Not without packed_count. */
struct token_padding {
	uint64_t places, padding;
	double percent;
};
struct token_padding token_pack_padding(const struct token_pack *p, uint64_t room);

void token_pack_free(struct token_pack *p); /* and the struct; NULL is nothing */

/* The stream that has this token, counted over all streams. */
const struct token_stream *token_pack_find(const struct token_pack *p, uint64_t token);

/* How many pieces a document of `count` tokens has; and how long the last one of them is. */
uint64_t token_pack_pieces(uint64_t count, uint32_t room, uint32_t *last);

struct plan;

/* What a record has; tokens are of dtype u8, u16 or u32. */
void token_pack_fields(const struct token_pack *p, struct recipe *r, uint32_t dtype, uint32_t room, bool positions);

/*
 * Lines of a plan, and what is behind "stream" in one.  False if a line is not one that
 * token_pack_write() writes.
 */
void token_pack_write(const struct token_pack *p, struct text *out);
bool token_pack_read_stream(struct token_pack *p, struct words *l, const struct plan *plan);
bool token_pack_read(struct token_pack *p, struct words *l, const struct recipe *r);

/*
 * plan.c - what will be packed, in which order, into which shards: decided before any work
 *
 * A plan is canonical text.  Its SHA-256 names the dataset-to-be: shards carry it, and any
 * process that holds the same plan makes the same shards, in any order.
 *
 *   shardpack-plan 1
 *   source images ... shard-records 5000      the recipe, recipe.c
 *   bytes-version 3                           SHARD_BYTES_VERSION of shard_pack.h
 *   version libjpeg-turbo 2.1.5 ...           what decides pixels beside the recipe
 *   file 0 81920 00000.tar                    files that hold many inputs: number, bytes, path
 *   unpack 1 81920 0 gzip                     one made of another: number, bytes, of which, how;
 *                                             input.h
 *   files 2                                   (no such lines if there are none)
 *   class 0 astronaut                         percent-encoded
 *   classes 1
 *   input 0 0 24117 astronaut/001.jpg         number, class, bytes, path in the source
 *   input 1 0 24117 00000.tar/b.jpg 1 512     ... and of a part of a file, file and offset;
 *   input 2 0 24117 c.jpg =0000803f           ... and of --columns, the bytes of all their numbers;
 *   input 2 0 24117 c.jpg 812,c.png =68656c   ... and of more fields, a token each; field_part.c
 *   input 2 - 24117 c.jpg                     ... and of images without a label;
 *   input 2 0,4 24117 c.jpg                   ... and of images that may have several; classes.c
 *   input 3 0 24117 c.jpg#2                   ... and of the same file again, in another row, or
 *   input 3 0 900 a.bin/0#2 1 0               of the same part of a file;
 *   input 4 - 0 d.jpg !missing No%20such...   ... and of a bad one, whose class may be unknown;
 *                                             bad_input.c
 *   inputs 3
 *   shard 0 0 1                               number, first ordinal, how many
 *   shards 1
 *   end 66e2...                               SHA-256 of all before: the plan's digest
 *
 * Inputs that are fixed records have no lines of their own, but their fields have slices:
 *
 *   slice 0 0 10000 0 1 3073 30720001 u8      field, first input, how many; file, offset, stride,
 *   slices 1                                  bytes; dtype there
 *
 * Windows of packed documents have no slices, but streams of tokens and a line that says how they
 * are packed; token_pack.c:
 *
 *   stream 0 0 10000 u16 1                    file, offset, tokens, dtype; index file or -
 *   streams 1
 *   pack - 812 815 97 31 66e2...              token that ends documents or -, documents, pieces,
 *                                             windows, most pieces in one, digest of the lengths
 *
 * The field of input first + i begins at offset + i x stride.  It ends where the field is full, or
 * at offset + bytes if that comes first: then the end of a ragged field is missing.  With '>'
 * before its dtype, a slice has big-endian numbers.
 *
 * Inputs stand in source order.  Their place in pack order is their ordinal; the order is
 * the identity or shard_pack_order(seed, inputs).  The text is also what the plan lives in: beside it
 * there are 16 bytes per input, 8 per class and 48 per slice.  Text, inputs and slices are on the
 * shelf of the text, if it has one, so that a large plan lies in files and not in memory.
 */

#define PLAN_INPUTS_MAX	    (UINT64_C(1) << 40) /* as records of a shard; far more than fit in memory */
#define PLAN_BYTES_MAX	    (UINT64_C(1) << 60) /* of a file or an input; sums of a few stay below 2^64 */
#define PLAN_PATH_BYTES_MAX 4096		/* the system's own limit, with the NUL */

#define PLAN_ROWS_MAX  ((UINT32_C(1) << 28) - 1) /* that have the same file */
#define PLAN_NO_FILE   UINT32_MAX
#define PLAN_NO_CLASS  UINT32_MAX
#define PLAN_FILES_MAX (UINT32_C(1) << 24)
#define PLAN_ORDER_MAX (UINT64_C(1) << 24) /* more fixed records than that are shuffled by arithmetic, not in memory */

/* A file that holds inputs. */
struct plan_file {
	uint64_t bytes;
	uint32_t of; /* the file that it is made of, a smaller number; PLAN_NO_FILE: it lies in the source */
	char *path;  /* in the source; of what is made, that of the other one */
	char *how;   /* NULL if it lies there */
};

struct plan_slice {
	uint64_t first, count; /* inputs */
	uint64_t offset, stride, bytes;
	uint32_t file;
	uint16_t field;
	uint8_t dtype; /* in the file: that of the field, or a narrower integer */
	uint8_t swap;  /* 1: the other byte order */
};

struct plan {
	struct recipe recipe;
	struct text text; /* its shelf is the plan's own */
	uint8_t digest[32];
	uint64_t class_count, input_count, shard_count;
	uint64_t source_bytes;		    /* of all inputs */
	uint64_t bad_count;		    /* of inputs that are known to be bad; bad_input.c */
	size_t versions_at, versions_bytes; /* the lines of recipe_write_versions() in the text */
	uint64_t *class_at;		    /* where in the text the name begins */
	struct plan_file *file;
	uint64_t file_count, file_capacity;
	struct token_pack *pack;  /* NULL: no windows of packed documents */
	struct plan_slice *slice; /* by field, then ascending */
	uint64_t slice_count, slice_capacity;
	uint64_t field_slice[SHARD_FIELDS_MAX + 1]; /* where the slices of a field begin */
	uint64_t *input_at;			    /* where in the text the line begins; NULL of fixed records */
	uint64_t input_capacity;
	uint64_t *order; /* [ordinal] the input that stands there; NULL: the same number */
	char *decoders;	 /* what image_formats_write() said where it was made; NULL: that is not known */
};

/* An input as the plan names it. */
struct plan_input {
	uint64_t input_idx;
	uint32_t class_idx; /* PLAN_NO_CLASS: it has none, or may have several */
	uint32_t file;	    /* PLAN_NO_FILE: it is a file of its own */
	uint64_t offset, source_bytes;
	uint64_t row;	     /* of the rows that have this path, from 1 */
	const char *classes; /* of images that may have several labels, else NULL; classes.c */
	/* In the plan's text; fixed records have neither. */
	const char *encoded_path;
	const char *parts;   /* the tokens of its fields, with blanks between, to the end of the line; field_part.c */
	uint32_t bad_reason; /* enum shard_miss_reason; 0: nothing is known, and `parts` has tokens of fields */
};

/* All functions that may fail say why and return the exit code. */

/* EXIT_DONE if the libraries that decide pixels are those of the plan; else EXIT_MISMATCH. */
int plan_check_versions(const struct plan *p, const char *name);

void plan_free(struct plan *p);

/* The input with the number `input_idx` in source order. */
void plan_input(const struct plan *p, uint64_t input_idx, struct plan_input *out);

/*
 * Its name, which is the key of its record: its path in the source, decoded, and "#2" behind it if
 * it is the second row of a table that has this path.  Of a fixed record it is the path of its file
 * and its number there, as "train.bin#17"; of a window of packed documents "window#17".  Returns
 * the length.
 */
size_t plan_input_path(const struct plan *p, const struct plan_input *in, char out[PLAN_PATH_BYTES_MAX]);

/* The path alone, of an input that the plan names. */
size_t plan_input_file(const struct plan_input *in, char out[PLAN_PATH_BYTES_MAX]);

/* The sentence of an input that has a bad_reason, into `out` of BAD_INPUT_MESSAGE_BYTES. */
void plan_bad_message(const struct plan_input *in, char *out);

/* How many inputs each class has: count[class_count], of a plan that has classes. */
void plan_count_classes(const struct plan *p, uint64_t *count);

/*
 * The names of its classes, decoded, with a comma between them, into `out` of
 * PLAN_CLASS_NAMES_BYTES; a long list ends in "...".  False if it has none.
 */
#define PLAN_CLASS_NAMES_BYTES (2 * (size_t)SHARD_KEY_BYTES_MAX)
bool plan_class_names(const struct plan *p, const struct plan_input *in, char *out);

/* The number of the input that stands at an ordinal. */
uint64_t plan_input_at(const struct plan *p, uint64_t ordinal);

/* The numbers that stand at ordinals [first, first + count).  Returns the exit code. */
int plan_inputs_at(const struct plan *p, uint64_t first, uint64_t count, uint64_t *input_idx);

/* The slice that has this input's field. */
const struct plan_slice *plan_find_slice(const struct plan *p, uint32_t field, uint64_t input_idx);

/* Do inputs have a key in the plan?  And a class? */
bool plan_names_inputs(const struct plan *p);
bool plan_has_labels(const struct plan *p);

/* Ordinals [*first, *first + *count) make up the shard. */
void plan_shard(const struct plan *p, uint64_t shard_idx, uint64_t *first, uint64_t *count);

/* Class name, decoded, into `out` of SHARD_KEY_BYTES_MAX + 1. */
void plan_class_name(const struct plan *p, uint64_t class_idx, char *out);

/*
 * plan_text.c - a plan as text: begin, add every input in source order, finish
 *
 * Files and slices may be added before plan_begin(), which keeps them.  recipe.shard_records may
 * be settled until plan_finish().  All functions say why they fail and return the exit code.
 */

/* Add a file, or a slice of one.  `path` and `how` are copied. */
int plan_add_file(struct plan *p, uint64_t bytes, const char *path, uint32_t of, const char *how);
int plan_add_slice(struct plan *p, const struct plan_slice *slice);

int plan_begin(struct plan *p, const struct recipe *recipe, const struct classes *classes);

/*
 * An input that is a file of its own, or a part of a file.  Of `in` its number, parts and reason are
 * not looked at; `row` may be 0.  `fields` has the tokens of further fields, each with a blank before
 * it.  Of an input that is known to be bad it has those of bad_input.c instead.
 */
int plan_add_input(struct plan *p, const struct plan_input *in, const char *path, const char *fields);

int plan_finish(struct plan *p);

/*
 * Take over `text`, which says it is a plan; `name` is for messages.  Everything is checked:
 * numbers, classes, and that paths stay below the source.  Says why it fails and returns the exit
 * code; the plan is to be freed all the same.
 */
int plan_parse(struct plan *p, struct text *text, const char *name);

/* A dtype as in a file, '>' before it for the other byte order.  False if the next word is not one. */
bool plan_take_dtype(struct words *l, uint8_t *out, uint8_t *swap);

#endif
