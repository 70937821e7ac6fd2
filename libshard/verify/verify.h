/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify.h - all that checks whole files
 */
#ifndef LIBSHARD_VERIFY_VERIFY_H
#define LIBSHARD_VERIFY_VERIFY_H

#include "libshard/dataset/dataset.h"
#include "shard_pack.h"

struct sha256;

/* ---- verify_run.c: all of it, with threads ---- */

/* Told of one problem; the text dies with the call. */
typedef void verify_on_problem(void *context, const struct shard_error *problem);

/*
 * What is asked for when one thread checks a file that was just written: to read it from the disk,
 * and to hash the bytes that were checked.
 */
struct verify_whole {
	const char *path;		 /* of the file now, which may not be the name that the reader tells */
	const struct shard_turns *turns; /* NULL, or the thread has one of them, and not while it waits for the disk */
	struct sha256 *sha;		 /* NULL, or gets all bytes of the file in order */
	uint64_t hashed;		 /* bytes that it got */
};

/*
 * All of one shard, read from the disk in the calling thread: as the writer does before it publishes
 * a file.  Nothing is read twice, so the bytes that are hashed are the ones that were checked.
 */
int verify_whole(struct shard_reader *r, struct verify_whole *whole, struct shard_error *err);

/* ---- verify_rules.c: the rules of tables, gaps, ragged fields, and the manifest ---- */

/* I11, I43, I48, I51 to I56, and I45 of every chunk: all tables and gaps, no record. */
int verify_tables(struct shard_reader *r, struct shard_error *err);

/*
 * Have the tables and gaps in the page cache before verify_tables() looks at them: a matter of
 * speed alone.
 */
void verify_fetch_tables(const struct shard_reader *r, const char *path);

/*
 * I57 to I59 of records [first, first + count): ragged fields, whose lengths may lie in another
 * group.  With on_problem, each bad record is told there and the others are still checked.  A piece
 * is as many records as one thread checks at once.
 */
bool verify_has_ragged(const struct shard_schema *s);
uint64_t verify_ragged_piece(const struct shard_reader *r, uint64_t first);
int verify_ragged(struct shard_reader *r, uint64_t first, uint64_t count, verify_on_problem *on_problem, void *context,
		  struct shard_error *err);

/* M15 to M17 and D7. */
int dataset_verify_manifest(const struct shard_dataset *ds, struct shard_error *err);
/* The SHA-256 of a whole file. */
int verify_hash_file(const char *path, uint8_t out[32], struct shard_error *err);
/* D6 */
int dataset_check_sha256(const char *path, const uint8_t got[32], const uint8_t want[32], struct shard_error *err);

/* ---- verify_units.c: the rules of units: their hashes, their chunks, their padding ---- */

struct read_ahead;

/* A shard that a thread has pieces of. */
struct verify_file {
	uint64_t shard;	   /* its number; UINT64_MAX: none */
	int fd, direct_fd; /* -1: not open, or not yet */
	bool cached;	   /* it lies in the page cache */
};

#define VERIFY_BUFFER_BYTES ((size_t)16 << 20)
#define VERIFY_HALF_BYTES   (VERIFY_BUFFER_BYTES / 2)
#define VERIFY_NO_HALF	    2u

/* What a piece of work has of a room. */
struct verify_place {
	unsigned file;	     /* its shard */
	unsigned half;	     /* of the buffer, which its bytes are being read into; VERIFY_NO_HALF: nothing was begun */
	bool needs_both;     /* halves, when its turn comes: nothing may be begun behind it */
	uint64_t begin, end; /* those bytes, in the file */
};

/*
 * One thread's buffers for checking units: one to read into and one to decode into.  The bytes of
 * two pieces can be under way at once, one in each half.
 */
struct verify_room {
	struct verify_file file[2]; /* pieces that a thread has belong to two shards at most */
	unsigned last;		    /* file of the piece that was begun last */
	struct verify_place place;  /* of the piece at work */
	bool is_taken[2];	    /* each half of the buffer */
	uint8_t *buffer;	    /* page-aligned, of VERIFY_BUFFER_BYTES */
	struct read_ahead *ahead;   /* reads into it; NULL: not needed yet, or it cannot be had */
	uint8_t *decoded;
	size_t decoded_bytes;
	struct verify_whole *whole;	 /* or NULL */
	const struct shard_turns *turns; /* of `whole`: given back while this thread waits for the disk */
};

int verify_room_init(struct verify_room *room, struct verify_whole *whole, struct shard_error *err);
void verify_room_free(struct verify_room *room);

/*
 * How many units from `unit` on make one piece of work: as many as fit half of a room's buffer, at
 * least one.  In a room for one file they fit a quarter, since the kernel has to clear what is used.
 */
uint64_t verify_piece(const struct shard_reader *r, const struct verify_whole *whole, uint32_t group, uint64_t unit);

/*
 * A thread has begun a piece, and calls this in the order in which it claims them.  If these are
 * units (count is not 0) that are to be read, reading begins, as a matter of speed alone.
 */
void verify_begin(struct verify_room *room, struct shard_reader *r, uint64_t shard, uint32_t group, uint64_t unit,
		  uint64_t count, struct verify_place *out);
/* Now it is the piece at work. */
int verify_enter(struct verify_room *room, const struct verify_place *place, const struct shard_reader *r,
		 struct shard_error *err);
/* It is done, or dropped.  Before its shard is closed. */
void verify_end(struct verify_room *room, struct verify_place *place);

/*
 * I44, I46, I47, I49 of units [unit, unit + count) of a group, of the piece at work: read past the
 * page cache if they are not in it.  `bytes` grows by the bytes that were checked.  With on_problem,
 * damage of a unit is told there and the others are still checked.
 */
int verify_units(struct shard_reader *r, struct verify_room *room, uint32_t group, uint64_t unit, uint64_t count,
		 uint64_t *bytes, verify_on_problem *on_problem, void *context, struct shard_error *err);

/* Hash the file up to `end`, where its bytes are tables, gaps, or units that were checked in the map. */
int verify_hash_map(struct shard_reader *r, struct verify_whole *whole, uint64_t end, struct shard_error *err);

/*
 * ---- read_ahead.c: parts of a file are read into a buffer while bytes that are there are used ----
 *
 * Reading past the page cache leaves the CPU idle, and hashing leaves the disk idle: one after the
 * other they take the sum of both times, side by side the longer one.  A second part follows, so
 * that the disk has work when the first one is there.
 */

#define READ_AHEAD_JOBS	      2u
#define READ_AHEAD_STEP_BYTES ((size_t)1 << 20) /* the buffer becomes usable in steps of this size */
#define READ_AHEAD_STEPS_MOST (VERIFY_BUFFER_BYTES / READ_AHEAD_STEP_BYTES) /* of a job */

struct read_ahead_job {
	int fd, direct_fd; /* direct_fd may be -1; whatever it refuses is read through fd */
	uint8_t *buffer;   /* page-aligned */
	uint64_t offset;   /* in the file; page-aligned */
	size_t bytes;
	const char *path; /* for messages; must outlive the job */
};

/* Read it all, now, in this thread. */
int read_ahead_now(const struct read_ahead_job *job, struct shard_error *err);

/*
 * NULL if there is no memory or no thread: do without, with read_ahead_now().  Belongs to the
 * thread that opens it.  With `direct`, io_uring reads if it can: for jobs that mostly have a
 * direct_fd.
 */
struct read_ahead *read_ahead_open(bool direct);
void read_ahead_close(struct read_ahead *f);

/* Begin a job, behind the other one; which is 0 or 1. */
void read_ahead_start(struct read_ahead *f, unsigned which, const struct read_ahead_job *job);

/* Wait until the first `bytes` of the job are there.  Fails as reading did. */
int read_ahead_wait(struct read_ahead *f, unsigned which, size_t bytes, struct shard_error *err);

/* Have the job ended, complete or not: buffer and files are the caller's again.  NULL is fine. */
void read_ahead_end(struct read_ahead *f, unsigned which);

#endif
