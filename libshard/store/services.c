/* SPDX-License-Identifier: Apache-2.0 */
/*
 * services.c - what packers need besides shards: small files published safely, and hashes
 */
#include <string.h>

#include "libshard/codec/checksum.h"
#include "libshard/codec/sha256.h"
#include "libshard/io/file.h"
#include "shard.h"

int shard_publish(const char *path, const void *data, size_t bytes, int replace, struct shard_error *err)
{
	struct file_temp t;
	int rc = file_temp_create(&t, path, err);

	if (!rc)
		rc = file_temp_write(&t, data, bytes, err);
	if (!rc)
		rc = file_temp_sync(&t, err);
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
