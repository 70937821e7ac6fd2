/* SPDX-License-Identifier: Apache-2.0 */
/*
 * small_file.c - small files that packers need besides shards, published safely; and hashes
 */
#include <string.h>

#include "libshard/base/bytes.h"
#include "libshard/base/error.h"
#include "libshard/format/format.h"
#include "libshard/io/io.h"
#include "shard.h"
#include "shard_pack.h"

int shard_publish(const char *path, const void *data, size_t bytes, int replace, struct shard_error *err)
{
	const uint8_t *written = data;
	uint8_t piece[16384];
	struct file_temp t;
	struct shown s;
	int rc = file_temp_create(&t, path, err);

	if (!rc)
		rc = file_temp_write(&t, data, bytes, err);
	if (!rc)
		rc = file_temp_sync(&t, err);
	/* As for a shard: the kernel said that it has the bytes; only reading them back tells. */
	if (!rc)
		file_drop_cache(t.fd);
	for (size_t at = 0; !rc && at < bytes; at += sizeof(piece)) {
		size_t n = (size_t)min_u64(sizeof(piece), bytes - at);

		rc = file_read_at(t.fd, piece, n, at, path, err);
		if (!rc && memcmp(piece, written + at, n))
			rc = error_set(err, SHARD_E_IO, "%s: the disk returned other bytes than were written",
				       show(&s, path));
	}
	if (!rc)
		rc = file_temp_publish(&t, replace, err);
	file_temp_discard(&t);
	return rc;
}

int shard_remove_temps(const char *dir, uint64_t *count, struct shard_error *err)
{
	return file_remove_temps(dir, count, err);
}

void shard_sha256(const void *data, size_t bytes, uint8_t out[32])
{
	struct sha256 s;

	sha256_init(&s);
	sha256_update(&s, data, bytes);
	sha256_final(&s, out);
}

void shard_xxh128(const void *data, size_t bytes, uint8_t out[16])
{
	struct hash128 h = checksum128(data, bytes);

	memcpy(out, h.b, sizeof(h.b));
}
