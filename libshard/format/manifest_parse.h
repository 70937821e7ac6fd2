/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest_parse.h - from the text of a manifest to its contents
 *
 * Pure: nothing is allocated here.  The contents of the lines go to a sink as they are read, in
 * order.
 */
#ifndef SHARD_DISK_MANIFEST_PARSE_H
#define SHARD_DISK_MANIFEST_PARSE_H

#include "libshard/format/manifest.h"

/* M1, M2. */
int manifest_find_end(const char *text, size_t bytes, struct manifest_end *out, struct shard_error *err);
/* M3: `hash` is H128 of the text up to hash_at. */
int manifest_check_hash(const struct manifest_end *end, const uint8_t hash[16], struct shard_error *err);
/* M4 to M14, on the text up to end_at. */
int manifest_parse(const char *text, size_t end_at, struct manifest *out, const struct manifest_sink *sink,
		   struct shard_error *err);

#endif
