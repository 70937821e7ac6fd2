/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pictures.h - pictures from bytes to records, within a share of the memory for large ones
 *
 * One thread has these: a decoder, what turns an image upright, and what it has taken of the budget
 * that all threads share.
 */
#ifndef SHARD_CONVERT_PICTURES_H
#define SHARD_CONVERT_PICTURES_H

#include "tools/shardpack/format/exif.h"
#include "tools/shardpack/image/turn.h"

struct budget;
struct mask;
struct recipe;
struct transform;
struct verdict;

struct pictures { /* stays where it is while it is open */
	struct decoder *decoder;
	struct turn turn;
	bool turning;	   /* the image at hand is held whole to be turned, beside what its decoder needs */
	bool applies_exif; /* const after open, and so are the rules */
	enum exif_rules rules;
	struct budget *budget;
	uint64_t claimed_bytes; /* of the budget, for the picture at hand */
};

/* A thread that is alone needs no budget: NULL.  False without memory; close it all the same. */
bool pictures_open(struct pictures *p, const struct recipe *r, struct budget *budget);
void pictures_close(struct pictures *p);

/*
 * A file of so many bytes is to be held.  What its pixels need cannot be told yet, so a large one
 * takes the whole budget.
 */
void pictures_claim_file(struct pictures *p, uint64_t bytes);

/* The picture at hand is done: give back what it took, for the next one to take. */
void pictures_give_back(struct pictures *p);

/*
 * The orientation that the recipe asks for: what the file states, or 1.  False if `v` says why not.
 */
bool pictures_orientation(const struct pictures *p, const uint8_t *data, uint64_t bytes, uint32_t *orientation,
			  struct verdict *v);

/*
 * The same for what belongs to an image of orientation `of`; `turn` is an enum field_turn.  False
 * also if nothing says it: the image is turned, and the file states no orientation.
 */
bool pictures_orientation_of(const struct pictures *p, uint32_t turn, uint32_t of, const uint8_t *data, uint64_t bytes,
			     uint32_t *orientation, struct verdict *v);

/* An RGB image with this orientation, from these bytes to `dst`.  False if `v` says why not. */
bool pictures_image(struct pictures *p, struct transform *t, const uint8_t *data, uint64_t bytes, uint32_t orientation,
		    uint8_t *dst, struct verdict *v);

/* The same of a mask. */
bool pictures_mask(struct pictures *p, struct mask *m, const uint8_t *data, uint64_t bytes, uint32_t orientation,
		   uint8_t *dst, struct verdict *v);

#endif
