/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decoded.h - run a decoder in a test and keep what it said
 */
#ifndef TESTS_PACK_DECODED_H
#define TESTS_PACK_DECODED_H

#include "shard.h"
#include "tests/pack/kept.h"
#include "tests/pack/prng.h"
#include "tests/test.h"
#include "tools/shardpack/images/images.h"

/*
 * A file in memory.  Its buffer is exactly as long as the file, so a sanitizer sees one byte too
 * many.
 */
struct file {
	uint8_t *bytes;
	size_t size;
};

static inline struct file file_copy(const uint8_t *bytes, size_t size)
{
	struct file f = {malloc(size ? size : 1), size};

	CHECK(f.bytes);
	memcpy(f.bytes, bytes, size);
	return f;
}

/* `f` with the bytes [from, from + cut) replaced by `with`. */
static inline struct file file_edit(struct file f, size_t from, size_t cut, const void *with, size_t with_size)
{
	struct file out = {malloc(f.size - cut + with_size), f.size - cut + with_size};

	CHECK(out.bytes && from + cut <= f.size);
	memcpy(out.bytes, f.bytes, from);
	memcpy(out.bytes + from, with, with_size);
	memcpy(out.bytes + from + with_size, f.bytes + from + cut, f.size - from - cut);
	return out;
}

/* Everything that a run says, in a form that can be compared. */
struct decoded {
	enum decode_status status;
	struct decode_verdict verdict;
	uint32_t width, height;
	uint64_t hash;
};

/* All of an image; its pixels are to be freed. */
static inline enum decode_status decode_whole(struct decoder *d, const void *bytes, size_t size, struct image *out,
					      struct decode_verdict *v)
{
	struct kept k = {.want = KEPT_WHOLE, .channels = IMAGE_CHANNELS};
	const struct image_sink sink = kept_sink(&k);
	enum decode_status status = decoder_stream(d, DECODE_RGB, NULL, bytes, size, &sink, v);

	*out = (struct image){k.pixels, k.width, k.height};
	if (status == DECODE_OK)
		CHECK_EQ(k.row_count, k.height);
	return status;
}

static inline struct decoded decode(struct decoder *d, struct file f)
{
	struct decoded r = {0};
	struct image image;

	r.status = decode_whole(d, f.bytes, f.size, &image, &r.verdict);
	if (r.status == DECODE_OK) {
		r.width = image.width;
		r.height = image.height;
		r.hash = prng_hash(image.pixels, 3 * (size_t)image.width * image.height);
	}
	free((void *)(uintptr_t)image.pixels);
	return r;
}

/* The same through a decoder that has seen nothing before. */
static inline struct decoded decode_fresh(struct file f, const struct decode_options *opt)
{
	struct decoder *d = decoder_open(opt);
	struct decoded r;

	CHECK(d);
	r = decode(d, f);
	decoder_close(d);
	return r;
}

static inline void check_same(const struct decoded *a, const struct decoded *b)
{
	CHECK_STR(a->verdict.message, b->verdict.message);
	CHECK_EQ(a->status, b->status);
	CHECK_EQ(a->verdict.reason, b->verdict.reason);
	CHECK_EQ(a->width, b->width);
	CHECK_EQ(a->height, b->height);
	CHECK_EQ(a->hash, b->hash);
}

/* Bad, for this reason, with these words in the message. */
static inline void check_bad(const struct decoded *r, int reason, const char *words)
{
	CHECK_EQ(r->status, DECODE_BAD_INPUT);
	if (!strstr(r->verdict.message, words))
		CHECK_STR(r->verdict.message, words);
	CHECK_EQ(r->verdict.reason, reason);
}

#endif
