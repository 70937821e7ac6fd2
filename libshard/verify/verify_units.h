/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify_units.h - the rules of a shard's units: their hashes, their chunks, their padding
 */
#ifndef SHARD_VERIFY_VERIFY_UNITS_H
#define SHARD_VERIFY_VERIFY_UNITS_H

#include "libshard/store/read/reader.h"
#include "shard_pack.h"

/* Told of one problem; the text dies with the call. */
typedef void verify_on_problem(void *context, const struct shard_error *problem);

/*
 * What is asked for when one thread checks a file that was just written: to read it from the disk,
 * and to hash the bytes that were checked.
 */
struct verify_whole {
	const char *path;	   /* of the file now, which may not be the name that the reader tells */
	struct shard_turns *turns; /* NULL, or the thread has one of them, and not while it waits for the disk */
	struct sha256 *sha;	   /* NULL, or gets all bytes of the file in order */
	uint64_t hashed;	   /* bytes that it got */
};

/* One thread's buffers for checking units: one to read into and one to decode into. */
struct verify_room {
	int fd, direct_fd;	  /* of the shard being checked; direct_fd may be -1 */
	bool cached;		  /* the shard lies in the page cache */
	uint8_t *buffer;	  /* page-aligned, of VERIFY_BUFFER_BYTES */
	struct read_ahead *ahead; /* reads into it; NULL: not needed yet */
	uint8_t *decoded;
	size_t decoded_bytes;
	struct verify_whole *whole; /* or NULL */
	/* with `whole`: the next piece, which is being read into the other half of the buffer; equal: none */
	uint64_t next_begin, next_end;
	uint32_t half; /* of the buffer, that the piece at work is in */
};
#define VERIFY_BUFFER_BYTES ((size_t)16 << 20) /* for speed; a few MiB will do */

int verify_room_init(struct verify_room *room, struct verify_whole *whole, struct shard_error *err);
void verify_room_free(struct verify_room *room);
int verify_room_enter(struct verify_room *room, const struct shard_reader *r, struct shard_error *err);

/*
 * How much of a group's DATA lies before `unit`, as if all units were equally long: ends exactly at
 * its length.
 */
uint64_t verify_bytes_before(const struct shard_reader *r, uint32_t group, uint64_t unit);

/* Bytes of the shard that are not DATA. */
uint64_t verify_table_bytes(const struct shard_reader *r);

/*
 * How many units from `unit` on make one piece of work: as many as fit a room's buffer, at least
 * one.
 */
uint64_t verify_piece(const struct shard_reader *r, const struct verify_whole *whole, uint32_t group, uint64_t unit);

/*
 * I44, I46, I47, I49 of units [unit, unit + count) of a group: read past the page cache if they are
 * not in it.  `bytes` grows by the bytes that were checked.  With on_problem, damage of a unit is
 * told there and the others are still checked.
 */
int verify_units(struct shard_reader *r, struct verify_room *room, uint32_t group, uint64_t unit, uint64_t count,
		 uint64_t *bytes, verify_on_problem *on_problem, void *context, struct shard_error *err);

/* Hash the file up to `end`, where its bytes are tables, gaps, or units that were checked in the map. */
int verify_hash_map(struct shard_reader *r, struct verify_whole *whole, uint64_t end, struct shard_error *err);

#endif
