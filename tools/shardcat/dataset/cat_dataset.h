/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cat_dataset.h - the dataset or shard that a verb is about: opened, described, counted and drawn
 */
#ifndef SHARD_SHARDCAT_DATASET_CAT_DATASET_H
#define SHARD_SHARDCAT_DATASET_CAT_DATASET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "shard.h"
#include "shard_inspect.h"
#include "tools/common/cli.h"
#include "tools/common/json_out.h"
#include "tools/common/png_out.h"

/* ---- input.c: the input of a verb, which is a dataset or one shard on its own ---- */

/*
 * Both are records with an index, so that most verbs need not know which it is.  Maps are guarded:
 * a file that shrinks or cannot be read is an error, never a SIGBUS.  Functions that return an exit
 * code have printed why if it is not EXIT_DONE.
 */

struct input {
	const char *path;
	struct shard_dataset *dataset; /* this, */
	struct shard_reader *reader;   /* or this */
	const struct shard_schema *schema;
	uint64_t record_count;
	char key[SHARD_KEY_BYTES_MAX]; /* the last one of the dataset's */
};

/* One record, decoded: group by group; NULL for groups that were not asked for. */
struct record {
	void *group[SHARD_GROUPS_MAX];
	uint64_t idx;
};

int input_open(struct input *in, const char *path);
/* The same; a dataset must have this id, 64 hex digits, or any if it is NULL. */
int input_open_id(struct input *in, const char *path, const char *id);
/* The same for a verb that needs a manifest: a shard file is refused. */
int input_open_dataset(struct input *in, const char *path);
void input_close(struct input *in);

/* The shard, or a dataset's first one, borrowed; NULL if it has none. */
int input_first_reader(struct input *in, struct shard_reader **out);

/* The provenance of a shard, "" if it has none; to be freed.  A status of the library, which says nothing. */
int input_provenance(struct shard_reader *reader, char **out, struct shard_error *err);

int input_check_index(const struct input *in, uint64_t idx);

/* Read `count` neighbouring records of one group, count x stride bytes. */
int input_read(struct input *in, uint32_t group, uint64_t first, uint64_t count, void *dst);

/* All groups that `field` (or, if it is NULL, any field) needs. */
int record_read(struct input *in, uint64_t idx, const struct shard_field *field, struct record *out);
void record_free(struct record *record);

/* Zero bytes if there are no keys.  The bytes live until the next call. */
int input_key(struct input *in, uint64_t idx, struct shard_view *out);

/* SHARD_OK or SHARD_END, from the manifest or from the shard's own statistics. */
int input_moments(struct input *in, uint32_t field, uint32_t channel, struct shard_moments *out,
		  struct shard_error *err);
int input_class_records(struct input *in, uint32_t field, uint64_t class_idx, uint64_t *out, struct shard_error *err);

/* NULL if there is no such class or, in a shard on its own, no names. */
const char *input_class_name(const struct input *in, uint64_t class_idx);
/* The class of this name, of `bytes` bytes.  Returns false if there is none. */
bool input_find_class(const struct input *in, const char *name, size_t bytes, int64_t *out);

/* The selection in a file; *out becomes NULL if `path` is.  Returns an exit code. */
int input_selection(const struct input *in, const char *path, struct shard_selection **out);

/* The first field that holds the index of a class, or NULL.  It is a scalar integer. */
const struct shard_field *input_label_field(const struct input *in);

/* ---- tensor.c: the value of one field of one record ---- */

/* One element of any dtype as a number.  `data` may have any alignment.  Pure. */

bool dtype_is_integer(uint32_t dtype); /* bool is not one */
bool dtype_is_float(uint32_t dtype);

#define NUMBER_CHARS 32

/* Integers in full, floating point to the digits that its dtype has, bool as true or false. */
const char *number_text(char out[NUMBER_CHARS], uint32_t dtype, const void *data);

/* Of an integer dtype: the value, or, of u64, its bits. */
int64_t number_integer(uint32_t dtype, const void *data);

/* The nearest double: exact but for integers past 2^53. */
double number_double(uint32_t dtype, const void *data);

/*
 * A ragged field is stored at its greatest shape; here it has its true one, and its elements
 * stand next to each other.  A whole image has height, width and channels.  Its forms as text, .npy
 * and PNG are here too, each in memory: a record is small.
 */

struct tensor {
	const struct shard_field *field;
	uint32_t ndim;
	uint32_t shape[SHARD_DIMS_MAX];
	uint64_t element_count;
	size_t element_bytes;
	uint8_t *data; /* element_count x element_bytes, row-major */
};

/*
 * Take a field out of a record.  Prints and returns an exit code on failure; free it in any case.
 */
int tensor_take(const struct input *in, const struct record *record, const struct shard_field *field,
		struct tensor *out);
void tensor_free(struct tensor *tensor);

/* One line for people, without a line end: all elements if they are few, else their range. */
void tensor_print(const struct tensor *tensor, FILE *out);

/* "[224,224,3]"; nothing for a scalar. */
#define SHAPE_CHARS 96
const char *shape_text(char out[SHAPE_CHARS], const uint32_t *shape, uint32_t ndim);

/*
 * The header of a .npy file, version 1.0, for this tensor.  Returns its length, a multiple of 64.
 */
#define NPY_HEADER_BYTES 256
size_t npy_header(const struct tensor *tensor, char out[NPY_HEADER_BYTES]);

/*
 * shardpack images --dtype writes into each shard how it made numbers of samples; undone, that
 * gives the samples back, or the upper bits of longer ones.  Where nothing is written, each image
 * is scaled by itself: its least number becomes black, its greatest white.
 */

struct picture_scale {
	bool known; /* mean and std are written: value * std + mean is 0 to 1 */
	double mean[3], std[3];
};

/* Of an image field; for others it says nothing.  Prints and returns an exit code on failure. */
int picture_scale(struct input *in, const struct shard_field *field, struct picture_scale *out);

/*
 * Describe the tensor as an image that png_write() takes: hwc or chw with 1 or 3 channels, or a
 * plane without layout.  Of f16, bf16 and f32 it makes u8 samples first, which become the tensor's.
 * Of u16 all bits are in the picture with `wide`, else the upper 8: so numbers that are not an
 * image, of which these would be black, are refused.  EXIT_DONE, or prints why it is not an image.
 */
int picture_image(const struct picture_scale *scale, bool wide, struct tensor *tensor, struct png_image *out);

/* ---- canvas.c: an RGB picture to draw on.  Dots outside of it are not drawn ---- */

struct colour {
	uint8_t r, g, b;
};

struct canvas {
	uint32_t width, height;
	uint8_t *pixels; /* packed RGB */
};

void canvas_init(struct canvas *c, uint32_t width, uint32_t height, struct colour background);
void canvas_free(struct canvas *c);

#define FONT_HEIGHT 18 /* of a line, descenders included */

void canvas_fill(struct canvas *c, uint32_t x, uint32_t y, uint32_t width, uint32_t height, struct colour colour);

/* One line of UTF-8 whose top left corner is (x, y), cut with "..." where it passes `width`. */
void canvas_text(struct canvas *c, uint32_t x, uint32_t y, uint32_t width, const char *text, size_t text_bytes,
		 struct colour colour, bool bold);

/*
 * Draw an image centred in a square: large ones shrunk by averaging, small ones as whole multiples.
 */
void canvas_thumbnail(struct canvas *c, uint32_t x, uint32_t y, uint32_t side, const struct png_image *image);

/* ---- repeats.c: find records with the same content, exactly and in bounded memory ---- */

/*
 * Contents are compared by their XXH3-128.  What does not fit in the given memory goes through an
 * unnamed file: 32 bytes for each record, read as often as the memory needs parts.
 */

#define REPEATS_LISTED 100

struct content_hash {
	uint8_t bytes[16];
};

/* Of one record, without the field `left_out`, which may be NULL.  Field f lies at rows[f]. */
struct content_hash content_hash(const struct shard_schema *schema, const void *const rows[SHARD_FIELDS_MAX],
				 const struct shard_field *left_out);

struct repeat {
	uint64_t first, count; /* the first record with this content, and how many have it */
	bool labels_differ;
};

struct repeats {
	/* contents that are there more than once; records that are copies of an earlier one */
	uint64_t groups, extra;
	uint64_t label_conflicts; /* groups with more than one label */
	uint64_t listed_count;
	struct repeat listed[REPEATS_LISTED]; /* those with the lowest `first` */

	struct repeats_store *store; /* repeats.c's own */
};

/* Start *r zeroed.  Each returns an exit code, having said why; close in any case. */
int repeats_open(struct repeats *r, uint64_t record_count, uint64_t memory_bytes);
int repeats_add(struct repeats *r, const struct content_hash *content, uint64_t record, int64_t label);
int repeats_count(struct repeats *r);
void repeats_close(struct repeats *r);

/* ---- census.c: sums of every field, records of every class, and copies ---- */

/*
 * Integers are added as integers of 128 bits, so that the order does not matter and nothing is
 * rounded; where they do not suffice (sums of squares of large 64-bit values) it is said, never
 * wrapped.  Floating point is summed in two passes per record.  NaN and infinities are counted and
 * left out.  Pure.
 */

typedef __int128 int128;
typedef unsigned __int128 wide_unsigned;

struct sums {			       /* start it zeroed */
	uint64_t count, nan, infinite; /* count: the values that are in the sums */
	bool is_float, overflowed;     /* overflowed: the squares do not fit */

	/* Integers: */
	int128 sum, min, max;
	wide_unsigned squares;

	/* Floating point: */
	long double mean, deviations; /* deviations: sum of squared distances from the mean */
	double float_min, float_max;

	/* Of each record's own mean and standard deviation: */
	uint64_t record_count;
	long double record_means, record_stds;
};

#define SUMS_CHANNELS_MAX 16

/* Of the whole population; NaN if there is none, or if the squares overflowed. */
double sums_mean(const struct sums *s);
double sums_std(const struct sums *s);

#define INT128_CHARS 48
const char *int128_text(char out[INT128_CHARS], int128 value);
const char *wide_unsigned_text(char out[INT128_CHARS], wide_unsigned value);

struct census_field {
	uint32_t channels; /* 0: this field has no statistics */
	bool recorded;	   /* the dataset has its sums */
	struct sums sums[SUMS_CHANNELS_MAX];
};

struct census { /* start it zeroed; large, so on the heap */
	struct input *input;
	bool has_read; /* the records were read, not only the recorded sums */
	struct census_field field[SHARD_FIELDS_MAX];

	const struct shard_field *label; /* NULL: records have none */
	bool classes_recorded;
	uint64_t class_count, *class_records; /* of labels from 0; class_count is 0 if nothing is known */
	uint64_t other_labels;		      /* records whose label is negative or beyond */

	bool has_content; /* there are fields beside the label, so that records can be copies */
	struct repeats repeats;
};

/*
 * The recorded sums, without reading any record.  Returns an exit code, having said why; close in
 * any case.
 */
int census_open(struct census *c, struct input *in);

/* Read all records.  Returns EXIT_BAD if the recorded sums differ from the sums of the records. */
int census_read(struct census *c, uint64_t memory_bytes);

void census_close(struct census *c);

/* ---- describe.c: schema and statistics, as text and as JSON ---- */

/*
 * `info` and `manifest --json` share it, so that both call a thing by one name.
 */

/* "3f9a…": 2 x bytes digits. */
#define HEX_CHARS 65
const char *hex_text(char out[HEX_CHARS], const uint8_t *data, size_t bytes);

/* A digest as `root` is written: the high half first, as xxh128sum prints it. */
const char *root_text(char out[HEX_CHARS], const uint8_t root[16]);

/* The order in which the records were packed: "source", "shuffle" or "unknown". */
const char *describe_order(uint32_t order);

/* "groups": [...], "fields": [...] */
void describe_schema_json(struct json_out *j, const struct shard_schema *schema);

/* "statistics": [...]: moments of each field that has them.  Returns an exit code. */
int describe_moments_json(struct json_out *j, struct input *in);

/* Two tables, each line indented by two. */
void describe_schema(FILE *out, const struct shard_schema *schema);

/*
 * A line per field with moments: mean and std of its channels, scaled to 0..1.  Returns an exit
 * code.
 */
int describe_moments(FILE *out, struct input *in);

#endif
