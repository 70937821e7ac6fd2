/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shard_pack.h - write shards, count their statistics, and seal them into a dataset
 *
 * For programs that make datasets.  A trainer needs shard.h only, whose first comment holds for this
 * header, too.
 *
 * In order: fill in a schema and have it laid out; write each shard; seal the folder.
 */
#ifndef SHARD_PACK_H
#define SHARD_PACK_H

#include "shard.h"
#include "shard_inspect.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- layout ----------------------------------------------------------------------------- */

/*
 * Fill in what follows from the upper parts of fields and groups: offsets, bytes, strides, units
 * and chunks, as format/SHARD.md 2.9 advises.  `align` is 0, or 4096 for records that O_DIRECT can
 * read alone.  ARGUMENT names the field and the rule.
 */
SHARD_API int shard_schema_lay_out(struct shard_schema *schema, uint32_t align, struct shard_error *err);

/*
 * Choose the group of each field whose group is SHARD_GROUP_BY_SIZE, and set group_count.  Fields
 * of at most 16 bytes, such as labels, go to group 1, others to group 0: then a reader of the small
 * ones does not read the large ones.  If no field were in group 0, all go there.  Call this before
 * shard_schema_lay_out().
 */
#define SHARD_GROUP_BY_SIZE UINT32_MAX
SHARD_API void shard_schema_group(struct shard_schema *schema);

/*
 * shardpack and libshard.Writer make the same bytes of the same inputs until this number changes.
 * Plans and provenance name it.  The version of the library is not in a dataset, so a new release
 * gives datasets the same bytes and ids.
 */
#define SHARD_BYTES_VERSION 3

/* ---- what packers do alike -------------------------------------------------------------- */

/*
 * Say what a field is by its name, for sources that cannot say it.  `label`, a scalar of an
 * integer type, becomes an i64 with semantic SHARD_LABEL.  `image`, of three axes of which the
 * last or the first has 1, 3 or 4 channels, gets semantic SHARD_IMAGE and its layout.  Other
 * fields stay as they are.  Looks at name, dtype and shape.
 */
SHARD_API void shard_field_infer(struct shard_field *field);

/*
 * How many records go into each shard but the last: `records`, or as many as fit in `bytes`.  If
 * both are 0, a shard gets an eighth of the `total` records, within 64 MiB and 1 GiB.  If `total`
 * is SHARD_COUNT_UNKNOWN, it gets 256 MiB.  The schema is laid out.  Fails with ARGUMENT if both
 * are given, or if a shard would have more than 8 TiB.
 */
#define SHARD_COUNT_UNKNOWN UINT64_MAX
SHARD_API int shard_schema_shard_records(const struct shard_schema *schema, uint64_t records, uint64_t bytes,
					 uint64_t total, uint64_t *out, struct shard_error *err);

/*
 * Places [first, first + count) of a shuffle of [0, n): idx[i] is the index at place first + i.
 * This is the one-level order of format/ORDER.md for epoch 2^64 - 1, which no loader reaches.
 */
SHARD_API int shard_pack_order(uint64_t seed, uint64_t n, uint64_t first, uint64_t count, uint64_t *idx,
			       struct shard_error *err);

/*
 * The field that holds a record's class: the first i64 scalar with semantic SHARD_LABEL.  NULL if
 * there is none.
 */
SHARD_API const struct shard_field *shard_schema_label(const struct shard_schema *schema);

/*
 * The label of a record: group[g] points to the record's bytes in group g.  Returns 1 if it is a
 * class, that is, a number from 0 to class_count - 1, and 0 if not.  *value is what the record
 * has, in either case.
 */
SHARD_API int shard_label_read(const struct shard_field *label, const void *const *group, uint64_t class_count,
			       int64_t *value);

/* ---- statistics ------------------------------------------------------------------------- */

/*
 * Exact sums over each channel of the images of a shard, and the number of values that are NaN or
 * infinite.  All are integers, so any order and any split of the records gives the same ones.  The
 * writer itself counts the records of each class: class_count in its options.
 *
 *	shard_tally_open(&tally, schema, &err);
 *	shard_writer_append(writer, group, key, key_bytes, &err);	for each record
 *	shard_tally_add(tally, group);
 *	shard_tally_write(tally, writer, &err);				before shard_writer_finish()
 *
 * A tally belongs to one thread at a time.  Where several threads make records, each has a tally of
 * its own, and the thread that has the writer merges them.
 */
struct shard_tally;
struct shard_writer;

/* The schema is laid out, and not used after this call. */
SHARD_API int shard_tally_open(struct shard_tally **out, const struct shard_schema *schema, struct shard_error *err);
SHARD_API void shard_tally_close(struct shard_tally *t);

/* Count a record: group[g] points to the record_bytes of group g. */
SHARD_API void shard_tally_add(struct shard_tally *t, const void *const *group);

/*
 * Move what `from` has counted to `t`, of the same schema, so that `from` is back at zero.  If `t` is
 * NULL, it goes nowhere.
 */
SHARD_API void shard_tally_move(struct shard_tally *t, struct shard_tally *from);

/*
 * How many values of a field are NaN, and how many are infinite; 0 if it does not hold
 * floating-point numbers.  shard_tally_write() records them; a packer should tell them, too.
 */
SHARD_API void shard_tally_not_finite(const struct shard_tally *t, uint32_t field, uint64_t *nan, uint64_t *infinite);

/*
 * Hand all of it to the writer.  If values are NaN or infinite, the provenance of the shard gets a
 * line for each field that has them (format/SHARD.md 2.8); `shardcat info` adds these up.
 */
SHARD_API int shard_tally_write(const struct shard_tally *t, struct shard_writer *w, struct shard_error *err);

/*
 * Channels of a field that a tally sums, 0 if there are none.  Such a field is a u8 tensor of
 * three axes with semantic SHARD_IMAGE and layout SHARD_HWC or SHARD_CHW.
 */
#define SHARD_TALLY_CHANNELS_MAX 4
SHARD_API uint32_t shard_field_channels(const struct shard_field *field);

/* ---- writer: one shard ------------------------------------------------------------------ */

/*
 * How a caller limits the threads that compute: a thread takes a turn, and gives it back before it
 * waits.
 */
struct shard_turns {
	void *context;
	void (*take)(void *context); /* may wait */
	void (*give)(void *context);
};

struct shard_writer_options {
	size_t size;		    /* sizeof this struct as the caller compiled it */
	uint64_t planned_records;   /* the most that will be appended; required */
	uint64_t plan_shard;	    /* number of this shard in the plan */
	const uint8_t *plan_digest; /* 32 bytes, or NULL */
	const char *provenance;	    /* UTF-8 text, or NULL */
	uint32_t keys;		    /* 1: every record has a key */
	uint32_t skip_read_back;    /* 1: publish the file without reading it back */
	/*
	 * Not 0: count the records of each class by the field of shard_schema_label(), if there is
	 * one.  Append then refuses a label that is not a class: 0 to class_count - 1.
	 */
	uint64_t class_count;
	/*
	 * NULL, or turns that outlive the writer.  Then the caller must hold one when it calls
	 * append or finish, and none when it calls close.  The writer gives it back while it waits
	 * for the disk, and its own thread takes one.
	 */
	const struct shard_turns *turns;
	const char *temp_id; /* NULL, or 16 digits of 0-9a-f: the temporary file is ".tmp.NAME.DIGITS" */
};

struct shard_written {
	uint64_t file_bytes, record_count, miss_count;
	uint8_t root[16];   /* the footer's hash; format/SHARD.md */
	uint8_t sha256[32]; /* of the whole file */
	uint32_t already;   /* 1: an identical shard was there before, and was kept */
	uint32_t reserved;
};

/*
 * Start a shard that will be published as `path`.  Nothing has that name until
 * shard_writer_finish() succeeds: bytes go to a locked temporary file beside it, which close
 * removes.  The writer holds one unit or chunk of each group in memory, and spools small groups to
 * unnamed files.
 */
SHARD_API int shard_writer_open(struct shard_writer **out, const char *path, const struct shard_schema *schema,
				const struct shard_writer_options *opt, struct shard_error *err);

/*
 * Append one record: group[g] points to the record_bytes of group g.  `key` is NULL if the shard
 * has no keys.  After an error the writer accepts close only.
 */
SHARD_API int shard_writer_append(struct shard_writer *w, const void *const *group, const char *key, size_t key_bytes,
				  struct shard_error *err);

/* Account for an input that does not become a record.  Ordinals must ascend. */
SHARD_API int shard_writer_miss(struct shard_writer *w, const struct shard_miss *miss, struct shard_error *err);

/*
 * Complete the file, make it durable, read it back and verify it, and publish it under its name.
 * That name must be free, or hold the identical shard: then `already` is 1.  EXISTS if it holds
 * anything else, which is left as it is.  `result` may be NULL.
 */
SHARD_API int shard_writer_finish(struct shard_writer *w, struct shard_written *result, struct shard_error *err);

SHARD_API void shard_writer_close(struct shard_writer *w);

/* ---- seal: shards become a dataset ------------------------------------------------------ */

struct shard_seal;

struct shard_seal_options {
	size_t size;
	const uint8_t *plan_digest;	/* 32 bytes, or NULL */
	const char *const *class_names; /* class_count texts in UTF-8, or NULL */
	uint64_t class_count;
	uint64_t seed;	  /* of the pack-time shuffle */
	uint32_t order;	  /* enum shard_pack_order */
	uint32_t replace; /* 1: replace an existing manifest */
};

/*
 * Collect the shards of folder `dir` in the order of the calls, then write dataset.manifest, durably
 * and atomically.
 *
 * Each shard_seal_add() checks the structure of a shard, and that its schema is that of the others.
 * `sha256` is 32 bytes; if it is NULL, the file is hashed.  `r` is NULL, or a reader of that very
 * file, which may be one of pages_only; with NULL, the file is opened for it.
 */
SHARD_API int shard_seal_open(struct shard_seal **out, const char *dir, const struct shard_seal_options *opt,
			      struct shard_error *err);
SHARD_API int shard_seal_add(struct shard_seal *s, const char *file, struct shard_reader *r, const uint8_t *sha256,
			     struct shard_error *err);

/* How a shard of another dataset comes into the folder. */
enum shard_reuse {
	SHARD_REUSE_LINK = 0,  /* a hard link: one file, which is in both datasets */
	SHARD_REUSE_CLONE = 1, /* a file of its own that shares its blocks, on file systems that can (reflink) */
	SHARD_REUSE_COPY = 2,  /* compared with the manifest, made durable, read back and verified */
	SHARD_REUSE_THERE = 3, /* it had that name before */
};

/*
 * Add shard `shard_idx` of the dataset `from`, without packing its records again.  The caller sees
 * to it that the records may lie in one dataset: that classes have the same numbers, and that records
 * were made alike.  Groups and fields are compared.  The shard gets the name `file`, which must be free or hold
 * this very shard.  EXISTS if it holds anything else, which is left as it is.  MISMATCH if bytes that
 * are read do not have the SHA-256 that the manifest of `from` says: of a copy, and of a shard that
 * is there.  *how is what is tried first, and becomes what was done: what cannot be linked is
 * cloned, and what cannot be cloned is copied.  Names are durable after shard_seal_finish().
 */
SHARD_API int shard_seal_reuse(struct shard_seal *s, struct shard_dataset *from, uint64_t shard_idx, const char *file,
			       uint32_t *how, struct shard_error *err);

SHARD_API int shard_seal_finish(struct shard_seal *s, struct shard_error *err);
SHARD_API void shard_seal_close(struct shard_seal *s);

/* ---- small services --------------------------------------------------------------------- */

/* Write a small file durably and atomically.  With `replace` 0: EXISTS if the name is taken. */
SHARD_API int shard_publish(const char *path, const void *data, size_t bytes, int replace, struct shard_error *err);

/* Remove temporary files of dead writers, as docs/PACKING.md says.  `count` may be NULL. */
SHARD_API int shard_remove_temps(const char *dir, uint64_t *count, struct shard_error *err);

SHARD_API void shard_sha256(const void *data, size_t bytes, uint8_t out[32]);
SHARD_API void shard_xxh128(const void *data, size_t bytes, uint8_t out[16]); /* low half first, little-endian */

#ifdef __cplusplus
}
#endif
#endif
