/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest_text.h - from the contents of a manifest to its lines, and the names in it
 */
#ifndef SHARD_DISK_MANIFEST_TEXT_H
#define SHARD_DISK_MANIFEST_TEXT_H

#include "libshard/format/manifest.h"
#include "shard_pack.h"

/* M12: one or two components that cannot leave the folder. */
bool manifest_name_good(const char *name, size_t bytes);

/*
 * Lines, each with its LF and a NUL, into `out` of SHARD_MANIFEST_LINE_BYTES_MAX + 1; the length is
 * returned.
 */
size_t manifest_write_group(char *out, const struct shard_schema *s, uint32_t group);
size_t manifest_write_field(char *out, const struct shard_schema *s, uint32_t field);
size_t manifest_write_moments(char *out, uint32_t field, uint32_t channel, const struct shard_moments *m);
size_t manifest_write_shard(char *out, uint64_t idx, const struct manifest_shard *s);
/* `text` for H128: high half first. */
void manifest_hash_text(char out[33], const uint8_t hash[16]);

#endif
