/* SPDX-License-Identifier: Apache-2.0 */
/*
 * convert_private.h - what the convert_*.c files share
 */
#ifndef SHARDPACK_CONVERT_PRIVATE_H
#define SHARDPACK_CONVERT_PRIVATE_H

#include "tools/shardpack/build/convert.h"
#include "tools/shardpack/image/decode.h"
#include "tools/shardpack/plan/field_part.h"
#include "tools/shardpack/image/mask.h"
#include "tools/shardpack/image/turn.h"

struct converter {
	const struct plan *plan;
	struct shard_schema schema;
	int source_fd;
	const struct stored *stored;
	const struct quarantine *quarantine;
	struct budget *budget;
	uint64_t claimed_bytes; /* of the budget, for the input at hand */
	struct decoder *decoder;
	struct transform *transform;
	struct transform *of_field[SHARD_FIELDS_MAX]; /* of further images, by their numbers in the recipe */
	struct mask *mask[SHARD_FIELDS_MAX]; /* of masks, likewise */
	struct turn turn;
	uint32_t orientation; /* of the image at hand */
	bool turning;	     /* the image at hand is held whole to be turned, beside what its decoder needs */
	struct scratch file; /* the bytes of the input */
	struct scratch part; /* of one of its fields */
	char path[3 * PLAN_PATH_BYTES_MAX]; /* of that */
};

/* Bytes that are a file of their own, or part of a file of the plan. */
struct input_bytes {
	const char *path; /* of a file of its own */
	uint32_t file;	  /* or PLAN_NO_FILE */
	uint64_t offset, bytes;
};

/* convert.c: what became of the input, if it is no record */
void convert_set(struct result *r, enum outcome outcome, uint32_t reason, const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* convert.c: a file of so many bytes is to be held.  What its pixels need cannot be told yet, so a large one has all there is. */
void convert_claim(struct converter *c, uint64_t bytes);

/*
 * convert.c: the pixels of the picture before are done with, and what they had of the budget is given back, so that this one
 * may take what it needs; unless the input's own file is large, and is still held.
 */
void convert_next_picture(struct converter *c);

/* convert.c: an RGB image with this orientation, from these bytes to `dst`.  False if the result says why not. */
bool convert_image(struct converter *c, struct result *r, struct transform *t, const struct scratch *from, uint64_t bytes,
		   uint32_t orientation, uint8_t *dst);

/* convert.c: the orientation that the recipe asks for: what the file states, or 1 */
uint32_t convert_orientation(const struct converter *c, const uint8_t *data, uint64_t bytes);

/* convert.c: a verdict of the decoder, or what else its status is, into the result; true if that was OK, damage accepted or not */
bool convert_status(struct result *r, enum decode_status status, const struct decode_verdict *v);

/* convert_read.c: all of these bytes into `to`.  False if the result says why not. */
bool convert_read(struct converter *c, struct result *r, const struct input_bytes *in, struct scratch *to);

/* convert_fields.c: all but the image into the record.  False if the result says why not. */
bool convert_fields(struct converter *c, struct result *r);

/* convert_fields.c: keep what the fields of a bad input are made of.  False if the result says why not. */
bool convert_keep_fields(struct converter *c, struct result *r);

#endif /* SHARDPACK_CONVERT_PRIVATE_H */
