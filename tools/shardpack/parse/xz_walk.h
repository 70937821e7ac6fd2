/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xz_walk.h - how much memory an xz asks for, found while its bytes pass by
 *
 * Each block of an xz says how large a dictionary its reader must have, up to 4 GiB.  The heads of
 * blocks lie behind each other, with chunks of data of known length between them.  So a caller that
 * passes all bytes here first knows how much memory the decoder will need, whatever the
 * file's index says.  No I/O, no allocation.
 */
#ifndef SHARD_FORMAT_XZ_WALK_H
#define SHARD_FORMAT_XZ_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

#endif
