/* SPDX-License-Identifier: Apache-2.0 */
/*
 * codec.h - the table of codecs, by the id that the format stores
 *
 * A codec turns one chunk of records into fewer bytes and back.  Codecs are pure: bytes to bytes,
 * scratch given by the caller, nothing allocated, the same output for the same input whatever the
 * thread or the buffers.  Chunk sizes, hashes and places in the file belong to the callers.
 */
#ifndef SHARD_CODEC_CODEC_H
#define SHARD_CODEC_CODEC_H

#include <stddef.h>
#include <stdint.h>

/* On disk for ever: a broken codec keeps its number, its replacement gets the next. */
enum codec_id {
	CODEC_RAW = 0,
	CODEC_LZ4 = 1, /* one LZ4 block, no frame */
};

#define CODEC_DECODED_BYTES_MAX ((size_t)64 << 20) /* format/SHARD.md, Limits; also keeps every size in an int */
#define CODEC_STORE_RAW		1 /* encode returns it: the result is not smaller, so store the source */

struct codec {
	const char *name; /* as the manifest writes it */

	/*
	 * Bytes that encode wants in dst, for a source of at most CODEC_DECODED_BYTES_MAX; 0 for a
	 * larger one.
	 */
	size_t (*bound)(size_t src_bytes);

	/* Bytes of scratch that encode wants, 0 for none; aligned to 16. */
	size_t (*scratch_bytes)(void);

	/*
	 * Returns SHARD_OK and *dst_bytes < src_bytes (raw: equal), or CODEC_STORE_RAW and leaves
	 * dst undefined.  Returns SHARD_E_ARGUMENT if src_bytes is 0 or above the limit, or
	 * dst_capacity is below bound().
	 * A smaller dst is refused even when the result would fit, because LZ4's answer would then
	 * depend on it.
	 */
	int (*encode)(const void *src, size_t src_bytes, void *dst, size_t dst_capacity, size_t *dst_bytes,
		      void *scratch);

	/*
	 * SHARD_OK when src decodes to exactly dst_bytes, else SHARD_E_CORRUPT, and dst holds
	 * anything.  The source is not trusted: nothing outside src[0, src_bytes) is read and
	 * nothing outside dst[0, dst_bytes) is written.  SHARD_E_ARGUMENT if dst_bytes is 0 or
	 * above the limit.
	 */
	int (*decode)(const void *src, size_t src_bytes, void *dst, size_t dst_bytes);
};

/* NULL if this build does not know the id; callers answer SHARD_E_UNSUPPORTED and name it. */
const struct codec *codec_find(uint32_t id);

/* The rows of the table; only codec.c refers to them. */
extern const struct codec codec_raw, codec_lz4;

#endif
