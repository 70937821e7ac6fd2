/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest.h - the text of dataset.manifest, both ways (format/SHARD.md part 3)
 *
 * Pure: nothing is allocated here.  What the lines say goes to a sink as they are read, in order; the caller keeps it or not.
 */
#ifndef LIBSHARD_DISK_MANIFEST_H
#define LIBSHARD_DISK_MANIFEST_H

#include <stdbool.h>

#include "format/shard_format.h"
#include "shard.h"

struct manifest_end {
	size_t end_at;  /* of the word "end": what the SHA-256 covers */
	size_t hash_at; /* of the XXH3's first digit: what the XXH3 covers */
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

/* Any function may be NULL.  Called in the order of the lines; names are percent-encoded as they stand. */
struct manifest_sink {
	void *context;
	void (*on_class)(void *context, uint64_t idx, const char *name, size_t bytes);
	void (*on_moments)(void *context, uint32_t field, uint32_t channel, const struct shard_moments *m);
	void (*on_class_records)(void *context, uint32_t field, uint64_t class_idx, uint64_t records);
	void (*on_shard)(void *context, uint64_t idx, const struct manifest_shard *s);
};

/* M1, M2. */
int manifest_find_end(const char *text, size_t bytes, struct manifest_end *out, struct shard_error *err);
/* M3: `hash` is H128 of the text up to hash_at. */
int manifest_check_hash(const struct manifest_end *end, const uint8_t hash[16], struct shard_error *err);
/* M4 to M14, on the text up to end_at. */
int manifest_parse(const char *text, size_t end_at, struct manifest *out, const struct manifest_sink *sink,
		   struct shard_error *err);

/* M12: one or two components that cannot leave the folder. */
bool manifest_name_good(const char *name, size_t bytes);

/*
 * Percent-encoding of class names.  Encode needs 3 bytes for each and a NUL.  Decode takes any spelling and never writes more
 * than it reads, and a NUL; a spelling is canonical if encoding the result gives it back.
 */
size_t manifest_encode_name(char *out, const char *name, size_t bytes);
size_t manifest_decode_name(char *out, const char *text, size_t bytes);

/* Lines, each with its LF and a NUL, into `out` of SHARD_MANIFEST_LINE_BYTES_MAX + 1; the length is returned. */
size_t manifest_write_group(char *out, const struct shard_schema *s, uint32_t group);
size_t manifest_write_field(char *out, const struct shard_schema *s, uint32_t field);
size_t manifest_write_moments(char *out, uint32_t field, uint32_t channel, const struct shard_moments *m);
size_t manifest_write_shard(char *out, uint64_t idx, const struct manifest_shard *s);
/* `text` for H128: high half first. */
void manifest_hash_text(char out[33], const uint8_t hash[16]);

#endif
