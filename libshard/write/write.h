/* SPDX-License-Identifier: Apache-2.0 */
/*
 * write.h - writes shards, and makes datasets of them
 */
#ifndef LIBSHARD_WRITE_WRITE_H
#define LIBSHARD_WRITE_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libshard/dataset/dataset.h"
#include "libshard/format/format.h"
#include "libshard/io/io.h"
#include "libshard/verify/verify.h"
#include "shard.h"
#include "shard_pack.h"

/*
 * ---- drain.c: a thread that writes one buffer to a file while its user fills another ----
 *
 * A write past the page cache returns when the disk has the bytes, and until then its thread can do
 * nothing else.
 */

/*
 * Where the bytes go, in the drain's thread and in order.  After it failed it is not called again.
 */
typedef int drain_write(void *context, const void *data, size_t bytes, struct shard_error *err);

/* Belongs to one thread at a time. */
struct drain;

/*
 * The two buffers are lent until close.  Returns NULL if there is no memory.  Without a thread,
 * drain_put() writes by itself.
 */
struct drain *drain_open(drain_write *write, void *context, uint8_t *const buffer[2]);
void drain_close(struct drain *d); /* bytes that are not written yet may be left out; NULL is fine */

/* The buffer to fill; the other one after each drain_put(). */
uint8_t *drain_buffer(struct drain *d);

/*
 * Have the first `bytes` of that buffer written.  Waits for the write before it, and fails as an
 * earlier write did.
 */
int drain_put(struct drain *d, size_t bytes, struct shard_error *err);

/* Wait until all of it is written. */
int drain_wait(struct drain *d, struct shard_error *err);

/* ---- spool.c: bytes that go into the file later, in bounded memory ---- */

struct spool {
	uint8_t *buffer;
	size_t used, room;
	int fd;		  /* -1: all of it is in memory */
	uint64_t spilled; /* bytes in the file */
};
#define SPOOL_EMPTY ((struct spool){.fd = -1})

/* `beside` is a path in the folder where a file may be made. */
int spool_add(struct spool *s, const void *data, size_t bytes, const char *beside, struct shard_error *err);
uint64_t spool_bytes(const struct spool *s);

/* Hand all bytes to on_bytes, in order, in pieces. */
int spool_play(struct spool *s,
	       int (*on_bytes)(void *context, const uint8_t *data, size_t bytes, struct shard_error *err),
	       void *context, const char *beside, struct shard_error *err);
void spool_free(struct spool *s);

/* ---- writer.c: from records to a published shard ---- */

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
	const struct shard_turns *turns; /* may be NULL; else callers of append and finish have a turn */
	struct spool koff, kblb, miss;
	uint64_t last_ordinal;
	char *provenance;
	struct writer_moments moments[SHARD_FIELDS_MAX];
	const struct shard_field *label; /* in pages; NULL: no class is counted */
	uint64_t class_count, *class_records;
	struct writer_not_finite not_finite[SHARD_FIELDS_MAX];
};

/* Say that no call but close can follow. */
int writer_refuse(struct shard_writer *w, struct shard_error *err);

/* Add to the sums of a channel of a u8 tensor.  In the end they must cover all records. */
int writer_add_moments(struct shard_writer *w, uint32_t field, uint32_t channel, const struct shard_moments *add,
		       struct shard_error *err);

/*
 * Read what has the temporary name, from the disk: it must be the shard with this root.  With
 * `whole` all of it is verified, else its pages.
 */
int writer_read_back(const struct file_temp *t, const uint8_t root[16], struct verify_whole *whole,
		     struct shard_error *err);

/*
 * The name is taken: by the shard with this root, or by something else, which is EXISTS?  Not being
 * able to tell is another error.  With `whole` all of it is verified, else its pages.
 */
int writer_compare_existing(const char *path, const uint8_t root[16], struct verify_whole *whole,
			    struct shard_error *err);

/* ---- reuse.c: a shard of another dataset, under a name of its own ---- */

/*
 * Make `path` the same shard as `from`, whose SHA-256 is in its manifest.  *how says what is tried
 * first, and becomes what was done: enum shard_reuse.  The bytes are durable then; the name of a
 * hard link, or one that was there, is so after reuse_sync().
 */
int reuse_shard(const struct shard_reader *from, const uint8_t sha256[32], const char *path, uint32_t *how,
		struct shard_error *err);

/* Make the name of a shard durable. */
int reuse_sync(const char *path, struct shard_error *err);

#endif
