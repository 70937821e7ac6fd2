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

/* ---- parts.c ---- */

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

/* The library's message, as a failure. */
int part_fail(const struct shard_error *err);

/*
 * The provenance of a shard of the part, "" if it has none.  Says why it fails and returns the exit
 * code.
 */
int made_of_read(const struct part *p, uint64_t i, struct text *out);

struct made_line {
	const char *at; /* NULL: there is none */
	int bytes;
};

/*
 * They may if they have the same fields, were made with the same recipe, and number their classes
 * alike: each list of classes is the beginning of the longest one.  *names becomes the part that
 * has that.  Says why not, and what to do, and returns the exit code.
 */
int parts_agree(const struct part *part, uint32_t count, uint32_t *names);

/*
 * Is nothing in two of them?  Shards are compared by their SHA-256, records by their keys; within one
 * part either may be there twice.  A shelf near the path `near` holds 32 bytes for each record.  Says
 * what is there twice, and returns the exit code.
 */
int parts_unique(const struct part *part, uint32_t count, const char *near);

/* ---- assemble.c ---- */

/*
 * Make the folder OUT a dataset of the shards of these parts, one part behind the other, with the
 * classes of the part `names`.  `by` is how a shard is brought there at best, enum shard_reuse.
 *
 * The manifest is written last: until then OUT is not a dataset, and the same call continues.  If OUT
 * is that dataset already, nothing is done.  OUT with anything else in it is refused, and left as
 * it is.  Says what it did or why it failed, and returns the exit code.
 */
int assemble(const char *out, const struct part *part, uint32_t count, uint32_t names, uint32_t by);

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

/* ---- append_hint.c ---- */

/*
 * If one of these words of `shardpack append DIR SRC...` is there and is not a dataset, say so, and
 * which commands make one of it and append it, and return EXIT_USAGE.  What is not there, or cannot
 * be looked at, is left to the one that opens it.
 */
int append_check_words(const char *const *words, size_t count);

#endif
