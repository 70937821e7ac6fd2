/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.c - see options.h
 */
#include "libshard/base/options.h"

#include "libshard/base/bytes.h"
#include "libshard/base/error.h"

int options_take(void *ours, size_t our_bytes, const void *theirs, struct shard_error *err)
{
	const uint8_t *src = theirs;
	size_t their_bytes;

	memset(ours, 0, our_bytes);
	if (!src)
		return SHARD_OK;
	memcpy(&their_bytes, src, sizeof(their_bytes));
	if (their_bytes < sizeof(their_bytes) || their_bytes > 4096)
		return error_set(err, SHARD_E_ARGUMENT, "options: .size is %zu; set it to sizeof the struct",
				 their_bytes);
	for (size_t i = our_bytes; i < their_bytes; i++)
		if (src[i])
			return error_set(err, SHARD_E_UNSUPPORTED,
					 "options: byte %zu is set, which needs a newer libshard than %d.%d.%d", i,
					 SHARD_VERSION_MAJOR, SHARD_VERSION_MINOR, SHARD_VERSION_PATCH);
	memcpy(ours, src, their_bytes < our_bytes ? their_bytes : our_bytes);
	return SHARD_OK;
}
