/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lz4.c - the LZ4 block codec; the one place that knows liblz4
 *
 * The state of the compressor lies in the caller's scratch (LZ4_compress_default would put 16 KiB
 * on the stack or the heap).  Only LZ4_decompress_safe decodes: LZ4_decompress_fast does not know
 * where its input ends.
 */
#include "libshard/format/format.h"

#include <assert.h>
#include <limits.h>
#include <lz4.h>
#include <string.h>

#include "shard.h"

/* liblz4 counts in int.  2^26 plus its bound of 1/255 more is far below 2^31. */
static_assert(CODEC_DECODED_BYTES_MAX <= LZ4_MAX_INPUT_SIZE, "a chunk is one LZ4 block");
static_assert(LZ4_COMPRESSBOUND(CODEC_DECODED_BYTES_MAX) < INT_MAX, "sizes fit the int of liblz4");

#define ACCELERATION 1 /* the default of liblz4; higher is faster and compresses less */

static size_t lz4_bound(size_t src_bytes)
{
	return src_bytes <= CODEC_DECODED_BYTES_MAX ? (size_t)LZ4_compressBound((int)src_bytes) : 0;
}

static size_t lz4_scratch_bytes(void)
{
	return (size_t)LZ4_sizeofState();
}

static int lz4_encode(const void *src, size_t src_bytes, void *dst, size_t dst_capacity, size_t *dst_bytes,
		      void *scratch)
{
	int n;

	if (!src_bytes || src_bytes > CODEC_DECODED_BYTES_MAX || dst_capacity < lz4_bound(src_bytes))
		return SHARD_E_ARGUMENT;
	/*
	 * Told exactly the bound and never less, liblz4 cannot fail and does not shape its output
	 * to the space.
	 */
	n = LZ4_compress_fast_extState(scratch, src, dst, (int)src_bytes, (int)lz4_bound(src_bytes), ACCELERATION);
	if (n <= 0 || (size_t)n >= src_bytes)
		return CODEC_STORE_RAW;
	*dst_bytes = (size_t)n;
	return SHARD_OK;
}

static int lz4_decode(const void *src, size_t src_bytes, void *dst, size_t dst_bytes)
{
	if (!dst_bytes || dst_bytes > CODEC_DECODED_BYTES_MAX)
		return SHARD_E_ARGUMENT;
	/* A source above the bound cannot be ours, and might not fit an int. */
	if (!src_bytes || src_bytes > lz4_bound(dst_bytes))
		return SHARD_E_CORRUPT;
	if (LZ4_decompress_safe(src, dst, (int)src_bytes, (int)dst_bytes) != (int)dst_bytes)
		return SHARD_E_CORRUPT;
	return SHARD_OK;
}

const struct codec codec_lz4 = {"lz4", lz4_bound, lz4_scratch_bytes, lz4_encode, lz4_decode};

/*
 * the codec that stores bytes as they are
 *
 * Readers of raw groups map or read the records directly; this row is for code that handles every
 * codec alike.
 */

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

/*
 * the table of codecs
 *
 * A new codec is a file with its row, a line here, and an id and a section in format/SHARD.md.
 */

static const struct codec *const codecs[] = {
	[CODEC_RAW] = &codec_raw,
	[CODEC_LZ4] = &codec_lz4,
};

const struct codec *codec_find(uint32_t id)
{
	return id < sizeof(codecs) / sizeof(codecs[0]) ? codecs[id] : NULL;
}
