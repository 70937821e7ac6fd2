/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reuse.h - datasets made of shards that are there: merge, split and append
 */
#ifndef SHARD_SHARDPACK_REUSE_REUSE_H
#define SHARD_SHARDPACK_REUSE_REUSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shard_pack.h"
#include "tools/common/text.h"

/* ---- part.c ---- */

struct part {
	const char *dir; /* as the user named it */
	struct shard_dataset *ds;
	struct shard_dataset_info info;
	uint64_t first, count; /* shards */
};

/* Open a dataset: a part with all its shards.  Says why it fails and returns the exit code. */
int part_open(struct part *p, const char *dir);
void part_close(struct part *p);

/* What the manifest says of shard `i` of the part, which is less than its count. */
int part_entry(const struct part *p, uint64_t i, struct shard_entry *out);

/* A view of a reader's, copied with a NUL behind it: a disk may fail under a map. */
int part_copy(const struct shard_reader *r, const struct shard_view *view, char *out);

/* The key of a record of the dataset, with a NUL behind it, and its length; 0 if it has none. */
int part_key(const struct part *p, uint64_t record, char out[SHARD_KEY_BYTES_MAX + 1], size_t *bytes);

/* The library's message, as a failure. */
int part_fail(const struct shard_error *err);

/* ---- agree.c ---- */

/*
 * They may if they have the same fields, were made with the same recipe, and number their classes
 * alike: each list of classes is the beginning of the longest one.  *names becomes the part that
 * has that.  Says why not, and what to do, and returns the exit code.
 */
int parts_agree(const struct part *part, uint32_t count, uint32_t *names);

/* ---- append.c ---- */

/*
 * Nobody else may append to the folder while *lock is open.  Where locks are not to be had it is
 * -1.  Says why it fails and returns the exit code.
 */
int append_lock(const char *dir, int *lock);

/*
 * Does part 0 end with the shards of all others, in this order?  With `appended` only if it was
 * append_parts() that put just these there.
 */
bool append_is_done(const struct part *part, uint32_t count, bool appended);

/*
 * Bring the shards of parts 1 and on into a folder of their own in that of part 0, keep the
 * manifest as dataset.manifest.ID, and replace it.  Classes and `by` are as of assemble().  Readers
 * see the old dataset or the new one, also after a kill; the same call then continues.
 */
int append_parts(const struct part *part, uint32_t count, uint32_t names, uint32_t by);

/* ---- assemble.c ---- */

/*
 * Make the folder OUT a dataset of the shards of these parts, one part behind the other, with the
 * classes of the part `names`.  `by` is how a shard is brought there at best, enum shard_reuse.
 *
 * The manifest is written last: until then OUT is no dataset, and the same call continues.  If OUT
 * is that dataset already, nothing is done.  OUT with anything else in it is refused, and left as
 * it is.  Says what it did or why it failed, and returns the exit code.
 */
int assemble(const char *out, const struct part *part, uint32_t count, uint32_t names, uint32_t by);

/* Names of the classes of a dataset, for a seal: to be freed, not what they point to.  Or NULL. */
const char **class_names_of(const struct part *p);

/* "3 hard links, 1 copy": what was done how often, by enum shard_reuse. */
#define REUSED_BYTES 160
void reused_text(char out[REUSED_BYTES], const uint64_t done[SHARD_REUSE_THERE + 1]);

/* ---- made_of.c ---- */

/*
 * The provenance of a shard of the part, "" if it has none.  Says why it fails and returns the exit
 * code.
 */
int made_of_read(const struct part *p, uint64_t i, struct text *out);

/*
 * Are records alike that were made so?  Lines that decide only which inputs there are, in which
 * order and in which shards, do not count; nor do versions of decoders, and counts of NaN and infinite
 * values.  If not, *a and *b are the first lines that differ; one of them may be NULL, for a line that
 * is missing.
 */
struct made_line {
	const char *at; /* NULL: there is none */
	int bytes;
};
bool made_of_same(const struct text *one, const struct text *two, struct made_line *a, struct made_line *b);

/* Were both made with the same decoders, as far as they name the same?  If not, the two lines. */
bool made_of_same_decoders(const struct text *one, const struct text *two, struct made_line *a, struct made_line *b);

/* ---- no_dataset.c ---- */

/*
 * If one of these words of `shardpack append DIR SRC...` is there and is no dataset, say so, and
 * which commands make one of it and append it, and return EXIT_USAGE.  What is not there, or cannot
 * be looked at, is left to the one that opens it.
 */
int no_dataset_check(const char *const *words, size_t count);

/* ---- twice.c ---- */

struct shelf;

/*
 * A shard that is in two parts, by its SHA-256; within one of them it may be there twice.  Says so
 * and returns the exit code.
 */
int twice_shards(const struct part *part, uint32_t count);

/*
 * Keys of the records of all parts, of which none may be in two.  The shelf is for what is large:
 * 32 bytes a record.
 */
struct twice {
	struct shelf *shelf;
	struct twice_key *key;
	uint64_t count, capacity;
};

int twice_add_part(struct twice *t, const struct part *p, uint32_t source);

/*
 * Is a key in two sources?  Within one of them it may be there twice.  *found is their number; the
 * first one is in sources[0] and sources[1], as the numbers that were given.
 */
struct twice_place {
	uint32_t source;
	uint64_t number;
};
int twice_look(struct twice *t, uint64_t *found, struct twice_place first[2]);
void twice_free(struct twice *t); /* closes the shelf, too */

#endif
