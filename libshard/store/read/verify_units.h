/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify_units.h - the rules of a shard's units: their hashes, their chunks, their padding
 */
#ifndef SHARD_READ_VERIFY_UNITS_H
#define SHARD_READ_VERIFY_UNITS_H

#include "libshard/store/read/reader.h"
#include "shard_pack.h"

/* Told of one problem; the text dies with the call. */
typedef void verify_on_problem(void *context, const struct shard_error *problem);

/* One thread's buffers for checking units: one to read into and one to decode into. */
struct verify_room {
	int fd, direct_fd; /* of the shard being checked; direct_fd may be -1 */
	bool cached;	   /* the shard lies in the page cache */
	bool lent;	   /* `buffer` is not the room's to free */
	uint8_t *buffer;   /* page-aligned */
	size_t buffer_bytes;
	/* the part of the file that verify_units() found right and left in it; equal: none */
	uint64_t held_begin, held_end;
	struct read_ahead *ahead; /* reads into it; NULL: not needed yet */
	/* the part of the file that `ahead` was told to read by verify_ahead(); equal: none */
	uint64_t ahead_begin, ahead_end;
	uint8_t *decoded;
	size_t decoded_bytes;
};
#define VERIFY_ROOM_NONE    ((struct verify_room){.fd = -1, .direct_fd = -1})
#define VERIFY_BUFFER_BYTES ((size_t)16 << 20) /* for speed; a few MiB will do */

int verify_room_init(struct verify_room *room, size_t buffer_bytes, struct shard_error *err);
void verify_room_free(struct verify_room *room);
int verify_room_enter(struct verify_room *room, const struct shard_reader *r, const char *path,
		      struct shard_error *err);

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
uint64_t verify_piece(const struct shard_reader *r, uint32_t group, uint64_t unit, size_t buffer_bytes);

/*
 * I44, I46, I47, I49 of units [unit, unit + count) of a group: read past the page cache if they are
 * not in it.  `bytes` grows by the bytes that were checked.  With on_problem, damage of a unit is
 * told there and the others are still checked.
 */
int verify_units(struct shard_reader *r, struct verify_room *room, uint32_t group, uint64_t unit, uint64_t count,
		 uint64_t *bytes, verify_on_problem *on_problem, void *context, struct shard_error *err);

/*
 * Begin to read the units that the next verify_units() in the same room will check.  A matter of
 * speed alone.
 */
void verify_ahead(struct shard_reader *r, struct verify_room *room, uint32_t group, uint64_t unit, uint64_t count);

/* Wait until all is read that verify_ahead() began to read.  verify_units() says how that went. */
void verify_await(const struct shard_reader *r, struct verify_room *room);

#endif
