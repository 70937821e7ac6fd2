/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest.h - the contents of a dataset.manifest (format/SHARD.md part 3), as host structs
 */
#ifndef SHARD_DISK_MANIFEST_H
#define SHARD_DISK_MANIFEST_H

#include <stdbool.h>

#include "format/shard_format.h"
#include "shard.h"
#include "shard_pack.h"

struct manifest_end {
	size_t end_at;	/* of the word "end": the SHA-256 covers the text before it */
	size_t hash_at; /* of the XXH3's first digit: the XXH3 covers the text before it */
	uint8_t sha256[32];
	uint8_t hash[16]; /* as H128 is stored, low half first */
};

struct manifest {
	uint64_t record_count, shard_count, class_count;
	bool has_plan_digest;
	uint8_t plan_digest[32];
	uint32_t order; /* enum shard_pack_order */
	uint64_t seed;
	struct shard_schema schema;
};

struct manifest_shard {
	const char *file; /* not NUL-terminated */
	size_t file_name_bytes;
	uint64_t file_bytes, record_count;
	uint8_t root[16], sha256[32];
};

/*
 * Any function may be NULL.  Called in the order of the lines; names are percent-encoded as they
 * stand.
 */
struct manifest_sink {
	void *context;
	void (*on_class)(void *context, uint64_t idx, const char *name, size_t bytes);
	void (*on_moments)(void *context, uint32_t field, uint32_t channel, const struct shard_moments *m);
	void (*on_class_records)(void *context, uint32_t field, uint64_t class_idx, uint64_t records);
	void (*on_shard)(void *context, uint64_t idx, const struct manifest_shard *s);
};

#endif
