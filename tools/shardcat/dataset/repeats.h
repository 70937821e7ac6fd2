/* SPDX-License-Identifier: Apache-2.0 */
/*
 * repeats.h - find records with the same content, exactly and in bounded memory
 *
 * Contents are compared by their XXH3-128.  What does not fit in the given memory goes through an
 * unnamed file: 32 bytes for each record, read as often as the memory needs parts.
 */
#ifndef SHARD_COUNT_REPEATS_H
#define SHARD_COUNT_REPEATS_H

#include <stdbool.h>
#include <stdint.h>

#define REPEATS_LISTED 100

/* The XXH3-128 of a content. */
struct content_hash {
	uint8_t bytes[16];
};

struct repeat {
	uint64_t first, count; /* the first record with this content, and how many have it */
	bool labels_differ;
};

struct repeats {
	/* contents that are there more than once; records that are copies of an earlier one */
	uint64_t groups, extra;
	uint64_t label_conflicts; /* groups with more than one label */
	uint64_t listed_count;
	struct repeat listed[REPEATS_LISTED]; /* those with the lowest `first` */

	struct repeats_store *store; /* repeats.c's own */
};

/* Start *r zeroed.  Each returns an exit code, having said why; close in any case. */
int repeats_open(struct repeats *r, uint64_t record_count, uint64_t memory_bytes);
int repeats_add(struct repeats *r, const struct content_hash *content, uint64_t record, int64_t label);
int repeats_count(struct repeats *r);
void repeats_close(struct repeats *r);

#endif
