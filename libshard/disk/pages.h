/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pages.h - header and footer page <-> struct pages
 *
 * Pure.  After pages_decode() said SHARD_OK, every offset and length in the struct lies within the file and every
 * count within its limit: later code does sums on them freely.
 */
#ifndef LIBSHARD_DISK_PAGES_H
#define LIBSHARD_DISK_PAGES_H

#include <stdbool.h>

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
	struct shard_schema schema; /* last: who has many shards of one schema keeps it once */
};

/* I1: may a shard have this size? */
int pages_check_size(uint64_t file_bytes, struct shard_error *err);

/*
 * I2 to I42 but for I11.  `header_hash` and `footer_hash` are H128 of all but the last 16 bytes of each page, as the caller
 * computed them: this layer knows no hash function.
 */
int pages_decode(struct pages *out, const struct disk_header *header, const uint8_t header_hash[16],
		 const struct disk_footer *footer, const uint8_t footer_hash[16], uint64_t file_bytes, struct shard_error *err);

/* I11, for verify. */
int pages_check_compat(const struct pages *p, struct shard_error *err);

/* The section of that type and group, or NULL. */
const struct section *pages_find(const struct pages *p, uint32_t type, uint32_t group);

/* Where the next section starts behind one that ends at `end`. */
uint64_t pages_section_start(uint32_t section_align_log2, uint64_t end);

/* Pages from the struct; the hash fields are left zero for the caller, who puts the header's hash into the struct in between. */
void pages_encode_header(struct disk_header *out, const struct pages *p);
void pages_encode_footer(struct disk_footer *out, const struct pages *p);

#endif
