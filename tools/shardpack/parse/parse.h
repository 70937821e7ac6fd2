/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parse.h - foreign bytes taken apart: tar, ZIP, CSV, JSON, NPY, IDX and others; no I/O
 */
#ifndef SHARD_SHARDPACK_PARSE_PARSE_H
#define SHARD_SHARDPACK_PARSE_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "shard.h"

/* ---- integers of 1, 2, 4 or 8 bytes: from the bytes of a file, and to those of a field ---- */

static inline bool integer_is_signed(uint32_t dtype)
{
	return dtype == SHARD_I8 || dtype == SHARD_I16 || dtype == SHARD_I32 || dtype == SHARD_I64;
}

/* Read an integer; with `swap` it is big-endian.  A u64 above 2^63 - 1 comes out negative. */
static inline int64_t integer_load(const uint8_t *in, size_t bytes, bool is_signed, bool swap)
{
	uint64_t value = 0;

	for (size_t k = 0; k < bytes; k++)
		value |= (uint64_t)in[swap ? bytes - 1 - k : k] << (8 * k);
	if (is_signed && bytes < 8 && value >> (8 * bytes - 1))
		value |= ~UINT64_C(0) << (8 * bytes);
	return (int64_t)value;
}

/* Write the low bytes of a value.  Each size is a constant, so that no copy is a call. */
static inline void integer_store(void *out, size_t bytes, uint64_t value)
{
	switch (bytes) {
	case 1:
		memcpy(out, &value, 1);
		break;
	case 2:
		memcpy(out, &value, 2);
		break;
	case 4:
		memcpy(out, &value, 4);
		break;
	default:
		memcpy(out, &value, 8);
	}
}

/*
 * coco_shape.c: runs of pixels
 *
 * Runs go down the columns, from left to right; the first run, which may be empty, lies outside of
 * the object, the next one inside, and so on.  An outline becomes those runs that pycocotools makes
 * of it: maskApi.c, rleFrPoly().  No I/O.
 */

struct rle { /* start it zeroed; rle_clear() keeps its memory */
	uint32_t *run;
	uint64_t count, capacity;
	uint64_t steps; /* of the outlines that were drawn */
};

/* A picture to draw on, whose rows lie one behind the other. */
struct rle_picture {
	void *data;
	uint32_t width, height;
	uint32_t sample_bytes; /* of a pixel: 1, 2 or 4 */
};

/*
 * coco_shape.c: the objects of an image
 *
 *   [[x1,y1,x2,y2,x3,y3,...],...]            outlines, whose union the object is
 *   {"counts":[...] or "text","size":[height,width]}     runs
 *
 * Where objects overlap, the smaller one is on top: the one with fewer pixels, the sum over its
 * outlines.  Of two of one size it is the later one.  No I/O.
 */

#define COCO_SHAPE_WHY_BYTES 240

struct coco_shape {
	uint64_t first, end; /* pieces */
	uint64_t area, number;
	uint32_t value;
};

struct coco_shapes { /* start it zeroed; coco_shapes_clear() keeps its memory */
	struct rle rle;
	uint64_t *piece_end; /* of each outline: where its runs end */
	uint64_t piece_count, piece_capacity;
	struct coco_shape *shape;
	uint64_t count, capacity;
	uint64_t painted; /* pixels of all objects */
	double *xy;	  /* of the outline at hand */
	uint64_t xy_capacity;
	char why[COCO_SHAPE_WHY_BYTES];
};

void coco_shapes_clear(struct coco_shapes *s);
void coco_shapes_free(struct coco_shapes *s);

/*
 * Add an object of a picture of that size, which paint() gives that value.  False, and s->why, if
 * the text is not one of both, or does not fit the picture; or if it would take too long to paint all.
 */
bool coco_shapes_add(struct coco_shapes *s, const char *text, size_t bytes, uint32_t width, uint32_t height,
		     uint32_t value);

/* All of them, over what is there, in a picture of that size. */
void coco_shapes_paint(struct coco_shapes *s, const struct rle_picture *out);

/*
 * csv.c - rows of a CSV or TSV
 *
 * Strict: a quote that is not closed, or that stands within a field, and a NUL byte are errors,
 * with their lines.  Lines end with LF or CRLF; empty ones are passed over.  Pure; fields are
 * decoded where they lie.
 */

#define CSV_FIELDS_MAX 256

struct csv {
	char *at, *end; /* the rest; *end must be writable */
	char separator; /* a tab: nothing quotes */
	uint64_t line;	/* of the next row, from 1 */
};

struct csv_row {
	uint64_t line; /* where it begins */
	uint32_t count;
	char *field[CSV_FIELDS_MAX]; /* NUL-terminated */
};

enum csv_status { CSV_ROW, CSV_END, CSV_BAD };

/*
 * Start with a text of `bytes` bytes and one more that may be written; a byte order mark is passed
 * over.
 */
void csv_start(struct csv *c, char *text, size_t bytes, char separator);

/*
 * What separates the fields of a CSV: ';' if the first row has one and no ',', both outside of
 * quotes, as where Excel writes numbers with a comma; else ','.
 */
char csv_separator(const char *text, size_t bytes);

enum csv_status csv_next(struct csv *c, struct csv_row *row, char *why, size_t why_bytes);

/*
 * npy.c - the head of a NumPy array file
 *
 * Versions 1 to 3.  Pure: bytes in, numbers out.
 */

#define NPY_DIMS_MAX	   32
#define NPY_HEAD_BYTES_MAX 65536
#define NPY_MAGIC_BYTES	   6
#define NPY_MAGIC	   "\x93NUMPY"

struct npy {
	uint32_t dtype; /* enum shard_dtype */
	bool swap;	/* big-endian */
	/*
	 * Two bytes that NumPy has no name for: '<V2', as which ml_dtypes saves bfloat16.  The
	 * dtype is SHARD_BF16, but the file does not say so.
	 */
	bool unnamed;
	bool fortran; /* the first axis changes fastest */
	uint32_t ndim;
	uint64_t shape[NPY_DIMS_MAX];
	uint64_t data_offset, data_bytes; /* no sum or product of them passes 2^62 */
};

/*
 * Read the front of a file; `size` is all of it, or NPY_HEAD_BYTES_MAX.  False, and `why` says why
 * not.
 */
bool npy_parse(const uint8_t *bytes, size_t size, struct npy *out, char *why, size_t why_bytes);

/*
 * npy.c: the head of an IDX file
 *
 * Two zeros, the type, the number of axes, and each axis as a big-endian u32.  Pure: bytes in,
 * numbers out.
 */

#define IDX_DIMS_MAX	   8
#define IDX_HEAD_BYTES_MAX (4 + 4 * IDX_DIMS_MAX)

/*
 * An array as NumPy's are: big-endian, of 1 to IDX_DIMS_MAX axes.  `size` is all of the file, or
 * IDX_HEAD_BYTES_MAX.  False, and `why` says why not.
 */
bool idx_parse(const uint8_t *bytes, size_t size, struct npy *out, char *why, size_t why_bytes);

/*
 * json.c: JSON value by value
 *
 * A cursor over the text.  Members of objects and elements of arrays come one by one; a value is
 * taken as a range of the text, or passed over, and its grammar is checked in both cases.  Only the
 * value at hand is in memory.  No I/O: the caller gives a function that reads.
 */

#define JSON_SCAN_WHY_BYTES   160
#define JSON_SCAN_VALUE_BYTES (UINT64_C(1) << 26) /* the limit of one value that is taken */

struct json_range {
	const char *text; /* until the next call; not NUL-terminated */
	size_t bytes;
	uint64_t offset; /* in the document */
};

struct json_scan {
	uint64_t bytes; /* of the document */
	bool (*read)(void *context, uint64_t offset, void *out, size_t bytes);
	void *context;
	char why[JSON_SCAN_WHY_BYTES]; /* the fault, with its place; empty if reading failed */

	char *window; /* a part of the document, which begins at `base` */
	uint64_t base;
	size_t have, capacity, at;
	size_t keep; /* what is being taken begins here; SIZE_MAX: nothing is */
	bool failed;
	bool no_memory; /* that is why it failed: it says nothing of the document */
};

enum json_step { JSON_ITEM, JSON_END, JSON_BAD };

/* `read` gives exactly as many bytes, all within the document, or says why not. */
void json_scan_start(struct json_scan *s, uint64_t bytes,
		     bool (*read)(void *context, uint64_t offset, void *out, size_t bytes), void *context);
/* Of a text in memory, which must outlive it. */
void json_scan_text(struct json_scan *s, const char *text, size_t bytes);
void json_scan_free(struct json_scan *s);

/* The next byte that is not a blank: '{' of an object, '[' of an array; 0 at the end or a fault. */
char json_scan_peek(struct json_scan *s);

/*
 * The next member of the object, or element of the array, that begins here; *first is true at the
 * first call.  Its value is next, and must be taken, passed over, or gone into.
 */
enum json_step json_scan_member(struct json_scan *s, bool *first, struct json_range *key);
enum json_step json_scan_element(struct json_scan *s, bool *first);

/* The value that is next.  False after a fault. */
bool json_scan_take(struct json_scan *s, struct json_range *out);
bool json_scan_skip(struct json_scan *s);

/* Nothing but blanks may follow. */
bool json_scan_ends(struct json_scan *s);

/* ---- json.c: ranges ---- */

/* A key or string, with its quotes: is it this word? */
bool json_range_is(const struct json_range *r, const char *word);

/*
 * A string without its quotes and escapes, into `out` of r->bytes, with a NUL.  *out_bytes is its
 * length.  False if it is none, or has half of a surrogate pair.
 */
bool json_range_string(const struct json_range *r, char *out, size_t *out_bytes);

/* A whole number, as "12" or "-1"; any other form of a number is none. */
bool json_range_whole(const struct json_range *r, int64_t *out);

/*
 * tar.c - the members of a tar archive, and their places
 *
 * Reads v7, ustar, GNU (long names, sizes in base 256) and pax (path, size).  Strict: a wrong
 * checksum, a size that leads out of the archive, a name that leads out of a folder, an end that is
 * missing and anything behind it are errors, with their offsets.  No I/O: the caller gives a
 * function that reads.
 */

#define TAR_BLOCK_BYTES	   512
#define TAR_NAME_BYTES_MAX 4095
#define TAR_WHY_BYTES	   320

enum tar_kind { TAR_FILE, TAR_FOLDER, TAR_LINK, TAR_OTHER };

struct tar_member {
	enum tar_kind kind;
	uint64_t header_offset; /* of the member's own header */
	uint64_t offset, bytes; /* of its data: within the archive */
	size_t name_bytes;
	char name[TAR_NAME_BYTES_MAX + 1]; /* no component is empty, "." or ".." */
};

struct tar {		/* set the first four, zero the rest */
	uint64_t bytes; /* of the archive */
	/* exactly `bytes`, all within the archive */
	bool (*read)(void *context, uint64_t offset, void *out, size_t bytes);
	void *context;
	char *why; /* TAR_WHY_BYTES: the fault; empty if reading failed */

	uint64_t at;
	bool has_name, has_bytes; /* from a header that describes the next one */
	uint64_t next_bytes;
	char next_name[TAR_NAME_BYTES_MAX + 1];
};

enum tar_status { TAR_MEMBER, TAR_END, TAR_BAD };

/* Does a member begin like this?  Its checksum is right. */
bool tar_is_header(const uint8_t block[TAR_BLOCK_BYTES]);

/* The next member.  After BAD there is none. */
enum tar_status tar_next(struct tar *t, struct tar_member *out);

/*
 * token_file.c: heads
 *
 *   llm.c     256 x i32: 20240520, 1, tokens, then u16; or 20240801, 7, tokens, then u32
 *   nanoGPT   no head at all: u16 from the first byte on
 *
 * Pure: bytes in, numbers out.
 */

#define TOKEN_FILE_HEAD_BYTES 1024

struct token_file {
	uint32_t dtype; /* enum shard_dtype; 0: there is no head, so the user must name it */
	uint64_t data_offset;
	uint64_t token_count; /* from the head; 0 without one */
};

/* `size` is all of the file, or TOKEN_FILE_HEAD_BYTES.  False, and `why` says why not. */
bool token_file_parse(const uint8_t *bytes, size_t size, struct token_file *out, char *why, size_t why_bytes);

/*
 * Does a file without a head begin as one of another kind does?  NULL, or what it is, and what to
 * do with it.  Tokens begin so by chance in one of 2^24 files.
 */
struct token_file_other {
	const char *magic;
	size_t bytes;
	const char *what, *remedy;
};
const struct token_file_other *token_file_other(const uint8_t *bytes, size_t size);

/*
 * token_file.c: what the numbers of a file without a head look like: tokens of how many bits, in
 * which byte order, or something else
 *
 * A token of 32 bits is two numbers of 16: the first may be any, the second is 0 for the first
 * 65,536 words of a vocabulary, and below 16 for the first million.  Of tokens of 8 bits the bytes
 * in even and odd places are alike.  Of big-endian ones the numbers become smaller if their bytes
 * are swapped.  A text of 16-bit tokens has no such pattern.  Pure.
 */

#define TOKEN_WIDTH_PLACES 4 /* in 64 bits */
#define TOKEN_WIDTH_LEAST  8 /* numbers in every second place, or nothing is said: it could be chance */

enum token_width {
	TOKEN_WIDTH_ANY,      /* nothing speaks against 16 bits, nor for it: too few numbers, or all alike */
	TOKEN_WIDTH_16,	      /* numbers in both places are large and differ */
	TOKEN_WIDTH_32,	      /* in every second place they are below 16 */
	TOKEN_WIDTH_REPEAT,   /* in every second place 95 % of them are equal: 32 bits, or padding */
	TOKEN_WIDTH_64,	      /* in three of four places they are */
	TOKEN_WIDTH_TEXT,     /* nearly all bytes are letters and signs */
	TOKEN_WIDTH_8,	      /* bytes in even and odd places are alike, and not just any */
	TOKEN_WIDTH_16_BE,    /* big-endian: numbers with swapped bytes are far smaller */
	TOKEN_WIDTH_32_BE,    /* ... what speaks for 32 bits is true of numbers with swapped bytes */
	TOKEN_WIDTH_64_BE,    /* ... and for 64 bits */
	TOKEN_WIDTH_FLOATS,   /* exponents of floats near 1 */
	TOKEN_WIDTH_NOISE,    /* all numbers are as frequent, as in what is compressed */
	TOKEN_WIDTH_NEGATIVE, /* -1 or -100, with which labels are padded */
};

struct token_look {
	enum token_width width;
	unsigned percent, number;    /* of REPEAT, 64 and NEGATIVE: how many in these places are which number */
	unsigned most, most_swapped; /* of 16_BE: 99 % of the numbers are at most this; and swapped */
	unsigned bits;		     /* of FLOATS */
	bool alike;		     /* bytes in even and odd places are, so 16 bits are not certain */
	bool negative32;	     /* as numbers of 32 bits some would be negative, if they were signed */
};

/* Start it zeroed; 1 MiB. */
struct token_census {
	uint32_t seen[TOKEN_WIDTH_PLACES][UINT16_MAX + 1]; /* how often, by place and number */
	uint64_t count[TOKEN_WIDTH_PLACES];
};

/* Count the numbers in a piece that begins at a multiple of 8 bytes of the file. */
void token_census_add(struct token_census *c, const uint8_t *bytes, size_t size);

/* False: no memory. */
bool token_census_judge(const struct token_census *c, struct token_look *out);

/*
 * token_file.c - the head of X.idx, which Megatron-LM writes beside the tokens in X.bin
 *
 *   "MMIDIDX\0\0", version u64 (1), type u8, sequences u64, documents + 1 u64
 *   for each sequence its length in tokens, i32
 *   for each sequence where it begins in X.bin, i64
 *   for each document the sequence that it begins with, i64; then the number of sequences
 *
 * Pure: bytes in, numbers out.
 */

#define MEGATRON_INDEX_HEAD_BYTES 34

struct megatron_index {
	uint32_t dtype; /* enum shard_dtype of its tokens */
	uint64_t sequence_count, document_count;
	uint64_t lengths_at, begins_at, documents_at; /* offsets of the three arrays */
};

/* Does a file begin as an index does? */
bool megatron_index_is(const uint8_t *bytes, size_t size);

/*
 * `bytes` are the first `size` of a file of `file_bytes`, MEGATRON_INDEX_HEAD_BYTES of them or all.
 * False, and `why` says why not, if it is not an index that we read, or its arrays are not the rest
 * of the file.
 */
bool megatron_index_parse(const uint8_t *bytes, size_t size, uint64_t file_bytes, struct megatron_index *out, char *why,
			  size_t why_bytes);

/*
 * xz_walk.c - how large a dictionary the blocks of an xz ask for
 *
 * Each block of an xz says how large a dictionary its reader must have, up to 4 GiB.  The heads of
 * blocks lie behind each other, with chunks of data of known length between them.  So a caller that
 * passes all bytes here first knows how much memory the decoder will need, whatever the
 * file's index says.  No I/O, no allocation.
 */

struct xz_walk {		   /* start it with xz_walk_start() */
	uint64_t dictionary_bytes; /* the largest so far */
	bool began;		   /* there was the head of a stream */
	unsigned part;		   /* of the file, which `head` is of */
	uint64_t skip;		   /* bytes before the next part */
	size_t have, need;	   /* bytes of `head` */
	uint8_t head[1024];
	uint8_t control;       /* of the chunk at hand */
	unsigned check_bytes;  /* behind each block */
	uint64_t part_bytes;   /* of the data of a block, or of an index, so far: what is padded */
	uint64_t number, left; /* of an index: the one at hand, and how many follow; UINT64_MAX: it is the count */
	unsigned shift;	       /* of `number` */
};

void xz_walk_start(struct xz_walk *w);

/* The next bytes of the file.  False if they are none of an xz. */
bool xz_walk(struct xz_walk *w, const uint8_t *data, size_t bytes);

/* A number of an xz: 7 bits in each byte, the lowest first.  False at its end. */
bool xz_number(const uint8_t **at, const uint8_t *end, uint64_t *out);

/*
 * yolo.c - lines of boxes
 *
 *   0 0.5 0.25 0.1 0.2     class; middle x and y, width, height, as parts of the image
 *
 * One line for each box; a file without lines is an image without boxes.  No I/O.
 */

#define YOLO_WHY_BYTES 200

struct yolo { /* set the first two, zero the rest */
	const char *at, *end;
	uint64_t line; /* of the last box, from 1 */
};

struct yolo_box {
	int64_t class_idx; /* 0 or more */
	float number[4];
};

enum yolo_status { YOLO_BOX, YOLO_END, YOLO_BAD };

/* The next box.  After BAD, with `why` of YOLO_WHY_BYTES, there is none. */
enum yolo_status yolo_next(struct yolo *y, struct yolo_box *out, char *why);

/*
 * zip.c - the members of a ZIP archive, and their places
 *
 * By its central directory, ZIP64 too; each member's own header must say the same.  Strict, as
 * tar.c, and as there the caller gives a function that reads.
 */

#define ZIP_NAME_BYTES_MAX 4095
#define ZIP_WHY_BYTES	   320
#define ZIP_STORED	   0
#define ZIP_DEFLATED	   8

struct zip_member {
	uint16_t method;		      /* ZIP_STORED or ZIP_DEFLATED */
	uint32_t crc;			      /* of the bytes when unpacked */
	uint64_t offset, packed_bytes, bytes; /* of the data in the archive; unpacked */
	size_t name_bytes;
	bool is_link; /* the data is the path of another file or folder */
	char name[ZIP_NAME_BYTES_MAX + 1];
};

struct zip {		/* set the first four, zero the rest */
	uint64_t bytes; /* of the archive */
	/* exactly `bytes`, all within the archive */
	bool (*read)(void *context, uint64_t offset, void *out, size_t bytes);
	void *context;
	char *why; /* ZIP_WHY_BYTES: the fault; empty if reading failed */

	bool begun;
	uint64_t at, end; /* of the central directory: the next entry, and its end */
	uint64_t left;	  /* entries */
	uint64_t begin;	  /* of the central directory */
};

enum zip_status { ZIP_MEMBER, ZIP_END, ZIP_BAD };

/* The next member, in the order of the directory.  After BAD there is none. */
enum zip_status zip_next(struct zip *z, struct zip_member *out);

#endif
