/* SPDX-License-Identifier: Apache-2.0 */
/*
 * raw.c - the codec that stores bytes as they are
 *
 * Readers of raw groups map or read the records directly; this row is for code that handles every
 * codec alike.
 */
#include "libshard/format/codec.h"

#include <string.h>

#include "shard.h"

static size_t raw_bound(size_t src_bytes)
{
	return src_bytes <= CODEC_DECODED_BYTES_MAX ? src_bytes : 0;
}

static size_t raw_scratch_bytes(void)
{
	return 0;
}

static int raw_encode(const void *src, size_t src_bytes, void *dst, size_t dst_capacity, size_t *dst_bytes,
		      void *scratch)
{
	(void)scratch;
	if (!src_bytes || src_bytes > CODEC_DECODED_BYTES_MAX || dst_capacity < src_bytes)
		return SHARD_E_ARGUMENT;
	memcpy(dst, src, src_bytes);
	*dst_bytes = src_bytes;
	return SHARD_OK;
}

static int raw_decode(const void *src, size_t src_bytes, void *dst, size_t dst_bytes)
{
	if (!dst_bytes || dst_bytes > CODEC_DECODED_BYTES_MAX)
		return SHARD_E_ARGUMENT;
	if (src_bytes != dst_bytes)
		return SHARD_E_CORRUPT;
	memcpy(dst, src, dst_bytes);
	return SHARD_OK;
}

const struct codec codec_raw = {"raw", raw_bound, raw_scratch_bytes, raw_encode, raw_decode};
