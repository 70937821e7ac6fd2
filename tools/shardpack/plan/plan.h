/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.h - what will be packed, in which order, into which shards: decided before any work
 *
 * A plan is canonical text.  Its SHA-256 names the dataset-to-be: shards carry it, and any
 * process that holds the same plan makes the same shards, in any order.
 *
 *   shardpack-plan 1
 *   source images ... shard-records 5000      the recipe, recipe.h
 *   bytes-version 3                           SHARD_BYTES_VERSION of shard_pack.h
 *   version libjpeg-turbo 2.1.5 ...           what decides pixels beside the recipe
 *   file 0 81920 00000.tar                    files that hold many inputs: number, bytes, path
 *   unpack 1 81920 0 gzip                     one made of another: number, bytes, of which, how;
 *                                             stored.h
 *   files 2                                   (no such lines if there are none)
 *   class 0 astronaut                         percent-encoded
 *   classes 1
 *   input 0 0 24117 astronaut/001.jpg         number, class, bytes, path in the source
 *   input 1 0 24117 00000.tar/b.jpg 1 512     ... and of a part of a file, file and offset;
 *   input 2 0 24117 c.jpg =0000803f           ... and of --columns, the bytes of all their numbers;
 *   input 2 0 24117 c.jpg 812,c.png =68656c   ... and of more fields, a token each; field_part.h
 *   input 2 - 24117 c.jpg                     ... and of images without a label;
 *   input 2 0,4 24117 c.jpg                   ... and of images that may have several; classes.h
 *   input 3 0 24117 c.jpg#2                   ... and of the same file again, in another row;
 *   input 4 - 0 d.jpg !missing No%20such...   ... and of a bad one, whose class may be unknown;
 *                                             bad_input.h
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
 * are packed; token_pack.h:
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
 * the identity or shard_shuffle(seed, inputs).  The text is also what the plan lives in: beside it
 * there are 16 bytes per input, 8 per class and 48 per slice.  Text, inputs and slices are on the
 * shelf of the text, if it has one, so that a large plan lies in files and not in memory.
 */
#ifndef SHARD_PLAN_PLAN_H
#define SHARD_PLAN_PLAN_H

#include "shard_pack.h"
#include "tools/common/text.h"
#include "tools/shardpack/plan/recipe.h"

struct token_pack;

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
	uint64_t bad_count;		    /* of inputs that are known to be bad; bad_input.h */
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
	char *decoders;	 /* what decode_formats_write() said where it was made; NULL: that is not known */
};

/* An input as the plan names it. */
struct plan_input {
	uint64_t input_idx;
	uint32_t class_idx; /* PLAN_NO_CLASS: it has none, or may have several */
	uint32_t file;	    /* PLAN_NO_FILE: it is a file of its own */
	uint64_t offset, source_bytes;
	uint64_t row;	     /* of those that have this file, from 1 */
	const char *classes; /* of images that may have several labels, else NULL; classes.h */
	/* In the plan's text; fixed records have neither. */
	const char *encoded_path;
	const char *parts;   /* the tokens of its fields, with blanks between, to the end of the line; field_part.h */
	uint32_t bad_reason; /* enum shard_miss_reason; 0: nothing is known, and `parts` has tokens of fields */
};

/* All functions that may fail say why and return the exit code. */

/* Add a file, or a slice of one.  `path` and `how` are copied. */
int plan_add_file(struct plan *p, uint64_t bytes, const char *path, uint32_t of, const char *how);
int plan_add_slice(struct plan *p, const struct plan_slice *slice);

/* Room for the line of one more input.  False if there is none; the shelf knows why. */
bool plan_grow_inputs(struct plan *p);

/* EXIT_DONE if the libraries that decide pixels are those of the plan; else EXIT_MISMATCH. */
int plan_check_versions(const struct plan *p, const char *name);

/* The last step of making and of reading a plan: the order in which its inputs are packed. */
int plan_settle_order(struct plan *p);

/* Its slices are in order: find where those of each field begin, and what all files have. */
void plan_settle_slices(struct plan *p);

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

#endif
