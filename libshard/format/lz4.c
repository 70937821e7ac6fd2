/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lz4.c - a chunk of records as one LZ4 block; the one place that knows liblz4
 *
 * The state of the compressor lies in the caller's scratch (LZ4_compress_default would put 16 KiB
 * on the stack or the heap).  Only LZ4_decompress_safe decodes: LZ4_decompress_fast does not know
 * where its input ends.
 */
#include "libshard/format/format.h"

#include <assert.h>
#include <limits.h>
#include <lz4.h>

/* liblz4 counts in int.  2^26 plus its bound of 1/255 more is far below 2^31. */
static_assert(SHARD_CHUNK_BYTES_MAX <= LZ4_MAX_INPUT_SIZE, "a chunk is one LZ4 block");
static_assert(LZ4_COMPRESSBOUND(SHARD_CHUNK_BYTES_MAX) < INT_MAX, "sizes fit the int of liblz4");

#define ACCELERATION 1 /* the default of liblz4; higher is faster and compresses less */

size_t lz4_bound(size_t src_bytes)
{
	return src_bytes <= SHARD_CHUNK_BYTES_MAX ? (size_t)LZ4_compressBound((int)src_bytes) : 0;
}

size_t lz4_scratch_bytes(void)
{
	return (size_t)LZ4_sizeofState();
}

int lz4_encode(const void *src, size_t src_bytes, void *dst, size_t dst_capacity, size_t *dst_bytes, void *scratch)
{
	int n;

	if (!src_bytes || src_bytes > SHARD_CHUNK_BYTES_MAX || dst_capacity < lz4_bound(src_bytes))
		return SHARD_E_ARGUMENT;
	/*
	 * Told exactly the bound and never less, liblz4 cannot fail and does not shape its output
	 * to the space.
	 */
	n = LZ4_compress_fast_extState(scratch, src, dst, (int)src_bytes, (int)lz4_bound(src_bytes), ACCELERATION);
	if (n <= 0 || (size_t)n >= src_bytes)
		return LZ4_STORE_RAW;
	*dst_bytes = (size_t)n;
	return SHARD_OK;
}

int lz4_decode(const void *src, size_t src_bytes, void *dst, size_t dst_bytes)
{
	if (!dst_bytes || dst_bytes > SHARD_CHUNK_BYTES_MAX)
		return SHARD_E_ARGUMENT;
	/* A source above the bound cannot be ours, and might not fit an int. */
	if (!src_bytes || src_bytes > lz4_bound(dst_bytes))
		return SHARD_E_CORRUPT;
	if (LZ4_decompress_safe(src, dst, (int)src_bytes, (int)dst_bytes) != (int)dst_bytes)
		return SHARD_E_CORRUPT;
	return SHARD_OK;
}
