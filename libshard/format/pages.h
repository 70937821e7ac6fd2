/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pages.h - the contents of a shard's header and footer page, as a host struct
 *
 * Pure.  After pages_decode() returned SHARD_OK, every offset and length in the struct lies within
 * the file and every count within its limit: later code does sums on them freely.
 */
#ifndef SHARD_DISK_PAGES_H
#define SHARD_DISK_PAGES_H

#include "format/shard_format.h"
#include "shard.h"

struct section {
	uint32_t type, flags, group;
	uint64_t offset, bytes, items;
	uint8_t hash[16];
};

struct pages {
	uint16_t major, minor;
	uint64_t incompat, compat;
	uint64_t planned_records, plan_shard;
	uint64_t record_count, file_bytes;
	uint32_t section_align_log2, section_count;
	uint8_t plan_digest[32];
	uint8_t header_hash[16], root[16];
	struct section section[SHARD_SECTIONS_MAX];
	struct shard_schema schema; /* last: a dataset keeps one schema for all its shards, and cuts this off */
};

/* The section of that type and group, or NULL. */
const struct section *pages_find(const struct pages *p, uint32_t type, uint32_t group);

/* Where the next section starts behind one that ends at `end`. */
uint64_t pages_section_start(uint32_t section_align_log2, uint64_t end);

#endif
