/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pictures.h - pictures from bytes to records, within a share of the memory for large ones
 *
 * One thread has these: a decoder, what turns an image upright, where its pixels go, and what it
 * has taken of the budget that all threads share.  With a sandbox, a process has these things in
 * the thread's place; this side believes no more than it has looked at.
 */
#ifndef SHARD_CONVERT_PICTURES_H
#define SHARD_CONVERT_PICTURES_H

#include "shard_pack.h"
#include "tools/shardpack/images/exif.h"
#include "tools/shardpack/images/turn.h"

struct budget;
struct mask;
struct recipe;
struct sandbox;
struct sandbox_worker;
struct transform;
struct verdict;

struct pictures { /* stays where it is while it is open */
	struct decoder *decoder;
	struct turn turn;
	const struct recipe *recipe; /* const after open, and so are the next four */
	struct shard_schema schema;
	struct transform *image;		       /* of the image of a record */
	struct transform *transform[SHARD_FIELDS_MAX]; /* of further images, by their numbers in the recipe */
	struct mask *mask[SHARD_FIELDS_MAX];	       /* of masks, likewise */
	bool turning;	   /* the image at hand is held whole to be turned, beside what its decoder needs */
	bool applies_exif; /* const after open, and so are the rules */
	enum exif_rules rules;
	struct budget *budget;
	uint64_t claimed_bytes;	       /* of the budget, for the picture at hand */
	struct sandbox_worker *worker; /* or NULL: no sandbox */
	bool is_inside;		       /* this is the one in the process of a sandbox */
};

#define PICTURES_IMAGE UINT32_MAX /* stands for the number of a field: the image of the record */

/* What was made. */
struct picture {
	uint32_t width, height; /* before the resize, upright */
	uint32_t orientation;	/* of the file */
	uint32_t stated;	/* by the file, and not applied; 0 if there is nothing to apply */
};

/* The sandbox that all pictures of this recipe need.  Prints why not and returns the exit code. */
int pictures_sandbox(struct sandbox **out, const struct recipe *r);

/*
 * A thread that is alone needs no budget: NULL.  `sandbox` may be NULL.  False without memory;
 * close it all the same.
 */
bool pictures_open(struct pictures *p, const struct recipe *r, struct budget *budget, struct sandbox *sandbox);
void pictures_close(struct pictures *p);

/*
 * A file of so many bytes is to be held.  What its pixels need cannot be told yet, so a large one
 * takes the whole budget.
 */
void pictures_claim_file(struct pictures *p, uint64_t bytes);

/* The picture at hand is done: give back what it took, for the next one to take. */
void pictures_give_back(struct pictures *p);

/*
 * The picture that belongs to `field`, from these bytes to `dst`.  The image of a record is turned
 * as the recipe says and its file states; `of` is its orientation, which others may follow.  False
 * if `v` says why not; one reason is that nothing says how a picture beside a turned image lies.
 */
bool pictures_make(struct pictures *p, uint32_t field, uint32_t of, const uint8_t *data, uint64_t bytes, uint8_t *dst,
		   struct picture *made, struct verdict *v);

/*
 * Could the file of an image state an orientation that the recipe does not apply?  In a sandbox the
 * answer is yes, since this process must not parse it.
 */
bool pictures_may_state(const struct pictures *p, const uint8_t *data, uint64_t bytes);

/*
 * How something lies that has no file to state it, as a mask that is drawn; `turn` is an enum
 * field_turn.  False, as above, if nothing says it.
 */
bool pictures_orientation_of(const struct pictures *p, uint32_t turn, uint32_t of, uint32_t *orientation,
			     struct verdict *v);

#endif
