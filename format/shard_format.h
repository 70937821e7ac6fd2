/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shard_format.h - SHARD.md in C: the bytes of a shard, their sizes pinned
 *
 * Numbers on disk are bytes in a struct, so they cannot be mistaken for numbers in memory: no
 * padding, no alignment, no byte order, and forgetting to convert does not compile.  Needs nothing
 * else of this tree.
 */
#ifndef SHARD_FORMAT_H
#define SHARD_FORMAT_H

#include <assert.h>
#include <stdint.h>

typedef struct {
	uint8_t b[2];
} le16;
typedef struct {
	uint8_t b[4];
} le32;
typedef struct {
	uint8_t b[8];
} le64;

#define SHARD_PAGE_BYTES     4096u
#define SHARD_HEADER_MAGIC   "\x89SHR\r\n\x1a\n"
#define SHARD_FOOTER_MAGIC   "\x89SHF\r\n\x1a\n"
#define SHARD_ENDIAN_TAG     UINT64_C(0x0102030405060708)
#define SHARD_FORMAT_MAJOR   1
#define SHARD_FORMAT_MINOR   0
#define SHARD_KNOWN_INCOMPAT UINT64_C(0)
#define SHARD_KNOWN_COMPAT   UINT64_C(0)
#define SHARD_HASH_XXH3	     1 /* leaf hash: XXH3-64, table hash: XXH3-128 */

/* Limits, SHARD.md part 1 */
#define SHARD_FILE_BYTES_MAX	      (UINT64_C(1) << 44)
#define SHARD_RECORDS_MAX	      (UINT64_C(1) << 40)
#define SHARD_STRIDE_MAX	      (UINT64_C(1) << 30)
#define SHARD_SECTIONS_MAX	      32u
#define SHARD_UNIT_RECORDS_MAX	      (1u << 20)
#define SHARD_CHUNK_BYTES_MAX	      (UINT64_C(1) << 26)
#define SHARD_PROVENANCE_BYTES_MAX    (UINT64_C(1) << 20)
#define SHARD_CLASSES_MAX	      (UINT64_C(1) << 24)
#define SHARD_CLASS_NAME_BYTES_MAX    1024u
#define SHARD_MANIFEST_LINE_BYTES_MAX 4096u
#define SHARD_DATASET_SHARDS_MAX      (UINT64_C(1) << 32)
#define SHARD_DATASET_RECORDS_MAX     (UINT64_C(1) << 62)
#define SHARD_LZ4_EXPANSION_MAX	      255u
#define SHARD_CHUNK_ALIGN	      64u

enum shard_section_type {
	SHARD_SECTION_DATA = 1,
	SHARD_SECTION_HASH = 2,
	SHARD_SECTION_CIDX = 3,
	SHARD_SECTION_KOFF = 4,
	SHARD_SECTION_KBLB = 5,
	SHARD_SECTION_STAT = 6,
	SHARD_SECTION_MISS = 7,
	SHARD_SECTION_PROV = 8, /* 9 PARI, 10 HSEG, 11 CTRE are set aside */
};
#define SHARD_SECTION_CRITICAL 1u

enum shard_stat_kind { SHARD_STAT_MOMENTS = 1, SHARD_STAT_CLASSES = 2 };

struct disk_group {
	le64 stride;
	le64 record_bytes;
	le32 align_log2;
	le32 codec;
	le32 unit_records;
	le32 chunk_records;
	uint8_t reserved[32];
};
static_assert(sizeof(struct disk_group) == 64, "SHARD.md 2.1, group");

struct disk_field {
	uint8_t name[48];
	le16 dtype;
	uint8_t ndim;
	uint8_t kind;
	le16 group;
	le16 layout;
	le32 shape[8];
	le64 offset;
	le64 bytes;
	uint8_t ragged_axes;
	uint8_t length_field;
	le16 semantic;
	uint8_t reserved[20];
};
static_assert(sizeof(struct disk_field) == 128, "SHARD.md 2.1, field");

struct disk_header {
	uint8_t magic[8];
	le64 endian_tag;
	le16 major, minor;
	le32 page_bytes;
	le64 incompat;
	le64 compat;
	le64 planned_records;
	le64 plan_shard;
	le32 group_count;
	le32 field_count;
	le32 section_align_log2;
	le16 leaf_hash, table_hash;
	uint8_t reserved0[8];
	uint8_t plan_digest[32];
	uint8_t reserved1[144];
	struct disk_group group[8];
	struct disk_field field[24];
	uint8_t reserved2[240];
	uint8_t hash[16];
};
static_assert(sizeof(struct disk_header) == SHARD_PAGE_BYTES, "SHARD.md 2.1");

struct disk_section_entry {
	le32 type;
	le32 flags;
	le32 group;
	uint8_t reserved0[4];
	le64 offset;
	le64 bytes;
	le64 items;
	uint8_t reserved1[8];
	uint8_t hash[16];
};
static_assert(sizeof(struct disk_section_entry) == 64, "SHARD.md 2.2, section entry");

struct disk_footer {
	uint8_t magic[8];
	le16 major, minor;
	le32 page_bytes;
	le64 file_bytes;
	le64 record_count;
	le32 section_count;
	uint8_t reserved0[4];
	uint8_t header_hash[16];
	uint8_t reserved1[968];
	struct disk_section_entry section[32];
	uint8_t reserved2[1008];
	uint8_t hash[16]; /* the shard root */
};
static_assert(sizeof(struct disk_footer) == SHARD_PAGE_BYTES, "SHARD.md 2.2");

struct disk_chunk {
	le64 offset;
	le32 stored_bytes;
	le32 flags; /* 0 raw, 1 LZ4 */
	le64 stored_hash;
	uint8_t reserved[8];
};
static_assert(sizeof(struct disk_chunk) == 32, "SHARD.md 2.4, chunk");

struct disk_miss {
	le64 ordinal;
	le32 reason;
	le32 how;
};
static_assert(sizeof(struct disk_miss) == 16, "SHARD.md 2.7");

struct disk_stat_block {
	le32 kind;
	le32 field;
	le64 items;
};
static_assert(sizeof(struct disk_stat_block) == 16, "SHARD.md 2.6");

struct disk_moments {
	le64 count;
	le64 sum;
	le64 sum_squares;
};
static_assert(sizeof(struct disk_moments) == 24, "SHARD.md 2.6, moments");

#endif
