/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writer.h - the writer's struct: writer.c takes records, writer_finish.c completes the file,
 * writer_publish.c publishes it
 */
#ifndef SHARD_WRITE_WRITER_H
#define SHARD_WRITE_WRITER_H

#include <stdbool.h>

#include "libshard/format/checksum.h"
#include "libshard/format/codec.h"
#include "libshard/format/pages.h"
#include "libshard/format/record.h"
#include "libshard/format/sha256.h"
#include "libshard/io/publish.h"
#include "libshard/write/drain.h"
#include "libshard/write/spool.h"
#include "shard.h"
#include "shard_pack.h"

#define WRITER_OUT_BYTES (2u << 20) /* in one write call past the page cache: devices are fastest with MiBs */

struct writer_group {
	uint8_t *unit;	 /* memory for records of a unit or chunk */
	uint8_t *place;	 /* of the unit or chunk being filled: `unit`, or in the output */
	uint8_t *packed; /* compressed groups: the chunk's stored bytes */
	void *scratch;	 /* the codec's */
	struct record_holes holes;
	uint64_t filled;    /* records in `unit` */
	uint64_t stored;    /* bytes of DATA so far */
	struct spool data;  /* DATA of every group but the first, which streams */
	struct spool leaf;  /* HASH */
	struct spool index; /* CIDX, offsets relative to the start of DATA */
};

struct writer_moments {
	struct shard_moments *channel;
	uint64_t channel_count;
};
struct writer_classes {
	uint64_t *records;
	uint64_t class_count;
};
struct writer_not_finite {
	uint64_t nan, infinite;
};

struct shard_writer {
	char *path;
	struct file_temp temp;
	struct pages pages;
	struct drain *drain; /* writes to the file; its buffer holds the next bytes; NULL: all is written */
	size_t out_used;     /* of that buffer */
	uint8_t *memory[2];  /* of WRITER_OUT_BYTES each: lent to the drain */
	uint64_t offset;     /* bytes given to the file so far, `out_used` included */
	struct sha256 sha256;
	struct writer_group group[SHARD_GROUPS_MAX];
	bool keys, read_back, failed, finished;
	struct shard_turns *turns; /* const after open; may be NULL */
	bool in_turn;		   /* of the calling thread: it has a turn, which it may give back */
	struct spool koff, kblb, miss;
	uint64_t last_ordinal;
	char *provenance;
	struct writer_moments moments[SHARD_FIELDS_MAX];
	struct writer_classes classes[SHARD_FIELDS_MAX];
	struct writer_not_finite not_finite[SHARD_FIELDS_MAX];
};

/* Append to the file; every byte of it comes through here, in order. */
int writer_put(struct shard_writer *w, const void *data, size_t bytes, struct shard_error *err);
int writer_put_zeros(struct shard_writer *w, uint64_t bytes, struct shard_error *err);
int writer_end_output(struct shard_writer *w, struct shard_error *err); /* all of it now, and nothing after it */

/* All that lies behind the records of the first group. */
int writer_lay_out(struct shard_writer *w, struct shard_error *err);

/* Say that no call but close can follow. */
int writer_refuse(struct shard_writer *w, struct shard_error *err);

/* The caller waits for the disk in between: it needs no turn meanwhile. */
void writer_begin_wait(const struct shard_writer *w);
void writer_end_wait(const struct shard_writer *w);

/* May one more record or left-out input come?  I55: both together are at most the planned count. */
bool writer_has_room(const struct shard_writer *w);

/* The unit or chunk of a group is as full as it gets. */
int writer_end_unit(struct shard_writer *w, uint32_t group, struct shard_error *err);

#endif
