/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fingerprints.h - find the record that a row's bytes belong to, and mark it as delivered
 *
 * Keeps the XXH3-128 of each record of a dataset: 16 bytes and one bit per record.  Records with
 * the same bytes cannot be told apart and need not be: k equal records must be delivered k times.
 */
#ifndef SHARD_PROVE_FINGERPRINTS_H
#define SHARD_PROVE_FINGERPRINTS_H

#include <stdbool.h>
#include <stdint.h>

#include "shard_select.h"
#include "tools/common/progress.h"
#include "tools/shardcat/dataset/target.h"

struct fingerprint {
	uint8_t bytes[16];
};

struct fingerprints {
	uint64_t count;		/* records of the dataset */
	uint64_t wanted_count;	/* of these that an epoch has: all, or those of a selection */
	uint64_t *outside;	/* a bit for each record, set if it is not of the selection; NULL: there is none */
	struct fingerprint *of; /* [count] */
	uint64_t *delivered;	/* a bit each */
	uint64_t *by_value;	/* [count] record indices sorted by fingerprint; made when first needed */
};

/* Of one record: field f lies at rows[f] of its group or array. */
struct fingerprint fingerprint_of(const struct shard_schema *schema, const void *const rows[SHARD_FIELDS_MAX]);

/* Reads all records.  `s` may be NULL.  Returns an exit code; free in any case. */
int fingerprints_take(struct fingerprints *f, struct target *t, const struct shard_selection *s,
		      struct progress *progress);
void fingerprints_free(struct fingerprints *f);

/* Mark all records as not delivered, and those outside as delivered: nobody waits for them. */
void fingerprints_forget(struct fingerprints *f);
bool fingerprints_is_outside(const struct fingerprints *f, uint64_t record);
bool fingerprints_was_delivered(const struct fingerprints *f, uint64_t record);

/*
 * Find the record that has these bytes.  The answer is `named` if it has them and was not delivered
 * yet; else another record with these bytes that was not delivered; else one that was.  It is
 * `count` if no record has these bytes.  False if there is no memory.
 */
bool fingerprints_identify(struct fingerprints *f, const struct fingerprint *row, uint64_t named, uint64_t *record);
void fingerprints_deliver(struct fingerprints *f, uint64_t record);

#endif
