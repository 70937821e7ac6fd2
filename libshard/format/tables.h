/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tables.h - the rules of a shard's tables: chunks, keys, statistics, misses, provenance
 */
#ifndef SHARD_DISK_TABLES_H
#define SHARD_DISK_TABLES_H

#include "libshard/format/pages.h"

/* A chunk, checked (I45, but for the hash): where it is and how it decodes. */
struct chunk {
	uint64_t offset, stored_hash;
	uint32_t stored_bytes, padded_bytes;
	uint32_t decoded_bytes;
	uint32_t is_lz4;
};
/*
 * Chunk `idx` of group `group`; `schema` is the shard's, which `p` need not hold.  `entry` is its
 * row of CIDX; `previous` the row before it, NULL for the first.  The last chunk must end where
 * DATA ends.
 */
int chunk_decode(const struct pages *p, const struct shard_schema *schema, uint32_t group, uint64_t idx,
		 const struct disk_chunk *entry, const struct disk_chunk *previous, struct chunk *out,
		 struct shard_error *err);

/*
 * I51 for the whole table: `koff` has record_count + 1 items, `kblb_bytes` is the length of KBLB.
 */
int keys_check_offsets(const uint8_t *koff, uint64_t record_count, uint64_t kblb_bytes, struct shard_error *err);
/*
 * One key, re-checked because nothing may be read out of bounds even if nobody verified the table.
 */
int key_find(const uint8_t *koff, uint64_t idx, uint64_t kblb_bytes, uint64_t *offset, uint32_t *bytes,
	     struct shard_error *err);
/* I52. */
int keys_check_text(const uint8_t *koff, const uint8_t *kblb, uint64_t kblb_bytes, uint64_t record_count,
		    struct shard_error *err);

/* I53, I54. */
int stat_check(const struct shard_schema *s, const uint8_t *stat, uint64_t bytes, uint64_t blocks, uint64_t records,
	       struct shard_error *err);
/* The items of a block in a checked STAT, or NULL; `items` says how many. */
const uint8_t *stat_find(const uint8_t *stat, uint64_t bytes, uint32_t kind, uint32_t field, uint64_t *items);

/* I55, I56. */
int miss_check(const uint8_t *miss, uint64_t items, uint64_t record_count, uint64_t planned_records,
	       struct shard_error *err);
int provenance_check(const uint8_t *text, uint64_t bytes, struct shard_error *err);

#endif
