/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest_file.h - a manifest read from its file, with no more memory than its lines deserve
 */
#ifndef SHARD_READ_MANIFEST_FILE_H
#define SHARD_READ_MANIFEST_FILE_H

#include "libshard/format/manifest.h"

#define MANIFEST_FILE_BYTES_MAX (UINT64_C(1) << 36)

struct manifest_file {
	char *text; /* with a NUL behind it; to free with mem_free() */
	size_t bytes;
	struct manifest_end end;
};

/*
 * M1 to M3.  The first and the last line are looked at before anything is read or allocated.  Then
 * the text is read as it grows, up to a line that is longer than M5 allows: `text` ends in that
 * line then, where manifest_parse() finds it, and the rest is hashed but not kept.
 */
int manifest_file_read(struct manifest_file *out, const char *path, struct shard_error *err);

/* M15, and the id: `got` is the SHA-256 of the text, computed from its bytes. */
int manifest_file_check_id(const char *text, const struct manifest_end *end, uint8_t got[32], struct shard_error *err);

#endif
