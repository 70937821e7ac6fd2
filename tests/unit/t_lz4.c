/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_lz4.c - LZ4: there and back, exact sizes, hostile input, and blocks made by hand from the LZ4
 * description
 *
 * Buffers are allocated at exactly their size, so that the address sanitizer sees one byte too far.
 */
#include "libshard/format/format.h"
#include "shard.h"
#include "tests/test.h"

static uint32_t random_state = 7;

static uint32_t random32(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 17;
	random_state ^= random_state << 5;
	return random_state;
}

static void *take(size_t bytes)
{
	void *p = malloc(bytes ? bytes : 1);

	if (!p)
		abort();
	return p;
}

/* One of: noise, a ramp, few values, one value.  Only noise does not compress. */
static void fill(uint8_t *p, size_t bytes, int kind)
{
	for (size_t i = 0; i < bytes; i++)
		p[i] = (uint8_t)(kind == 0 ? random32() : kind == 1 ? i / 7 : kind == 2 ? random32() % 3 : 42);
}

static void there_and_back(size_t bytes, int kind)
{
	size_t bound = lz4_bound(bytes), n = 0, m = 0;
	uint8_t *src = take(bytes), *dst = take(bound), *again = take(bound), *back = take(bytes);
	void *scratch = take(lz4_scratch_bytes());
	int rc;

	fill(src, bytes, kind);
	rc = lz4_encode(src, bytes, dst, bound, &n, scratch);
	memset(scratch, 0xa5, lz4_scratch_bytes()); /* what was in the scratch must not matter */
	CHECK_EQ(lz4_encode(src, bytes, again, bound, &m, scratch), rc);
	if (rc == SHARD_OK) {
		CHECK(n < bytes);
		CHECK_EQ(n, m);
		CHECK_MEM(dst, again, n);
		uint8_t *exact = take(n);

		memcpy(exact, dst, n);
		CHECK_EQ(lz4_decode(exact, n, back, bytes), SHARD_OK);
		CHECK_MEM(back, src, bytes);
		/* Neither more nor less than what the source holds. */
		CHECK_EQ(lz4_decode(exact, n, back, bytes - 1), bytes > 1 ? SHARD_E_CORRUPT : SHARD_E_ARGUMENT);
		free(back);
		back = take(bytes + 1);
		CHECK_EQ(lz4_decode(exact, n, back, bytes + 1), SHARD_E_CORRUPT);
		CHECK_EQ(lz4_decode(exact, n - 1, back, bytes), SHARD_E_CORRUPT);
		free(exact);
	} else {
		CHECK_EQ(rc, LZ4_STORE_RAW);
		CHECK_EQ(n, 0); /* not touched */
	}
	free(src);
	free(dst);
	free(again);
	free(back);
	free(scratch);
}

TEST(there_and_back_at_many_sizes)
{
	static const size_t sizes[] = {1,    2,	    11,	   12,	  13,	 64,	 100,	  4095,
				       4096, 65535, 65536, 65547, 65548, 150528, 1 << 20, 1000003};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (int kind = 0; kind < 4; kind++) {
			STORY("%zu bytes, kind %d", sizes[i], kind);
			there_and_back(sizes[i], kind);
		}
}

TEST(noise_is_stored_raw_and_runs_shrink)
{
	uint8_t src[4096], dst[8192];
	size_t n = 0;
	void *scratch = take(lz4_scratch_bytes());

	fill(src, sizeof(src), 0);
	CHECK_EQ(lz4_encode(src, sizeof(src), dst, sizeof(dst), &n, scratch), LZ4_STORE_RAW);
	fill(src, sizeof(src), 3);
	CHECK_EQ(lz4_encode(src, sizeof(src), dst, sizeof(dst), &n, scratch), SHARD_OK);
	CHECK(n < 64);
	free(scratch);
}

TEST(result_does_not_depend_on_capacity)
{
	uint8_t src[3000], dst[2][8192];
	size_t n[2] = {0, 0}, bound = lz4_bound(sizeof(src));
	void *scratch = take(lz4_scratch_bytes());

	fill(src, sizeof(src), 2);
	CHECK_EQ(lz4_encode(src, sizeof(src), dst[0], bound, &n[0], scratch), SHARD_OK);
	CHECK_EQ(lz4_encode(src, sizeof(src), dst[1], sizeof(dst[1]), &n[1], scratch), SHARD_OK);
	CHECK_EQ(n[0], n[1]);
	CHECK_MEM(dst[0], dst[1], n[0]);
	CHECK_EQ(lz4_encode(src, sizeof(src), dst[0], bound - 1, &n[0], scratch), SHARD_E_ARGUMENT);
	free(scratch);
}

TEST(limits)
{
	uint8_t byte = 0;
	size_t n, over = SHARD_CHUNK_BYTES_MAX + 1;

	CHECK(lz4_bound(SHARD_CHUNK_BYTES_MAX) >= SHARD_CHUNK_BYTES_MAX);
	CHECK_EQ(lz4_bound(over), 0);
	CHECK_EQ(lz4_bound(SIZE_MAX), 0);
	CHECK_EQ(lz4_encode(&byte, 0, &byte, 1, &n, NULL), SHARD_E_ARGUMENT);
	CHECK_EQ(lz4_encode(&byte, over, &byte, SIZE_MAX, &n, NULL), SHARD_E_ARGUMENT);
	CHECK_EQ(lz4_decode(&byte, 1, &byte, 0), SHARD_E_ARGUMENT);
	CHECK_EQ(lz4_decode(&byte, 1, &byte, over), SHARD_E_ARGUMENT);
	CHECK_EQ(lz4_decode(&byte, 0, &byte, 1), SHARD_E_CORRUPT);
}

TEST(sizes_that_would_narrow_to_good_ones)
{
	/* As an int, 2^32 + n is n, and SIZE_MAX is -1. */
	uint8_t src[1000], dst[2000], back[1000];
	size_t n = 0;
	void *scratch = take(lz4_scratch_bytes());

	fill(src, sizeof(src), 1);
	CHECK_EQ(lz4_encode(src, sizeof(src), dst, SIZE_MAX, &n, scratch), SHARD_OK);
	CHECK_EQ(lz4_decode(dst, n, back, sizeof(back)), SHARD_OK);
	CHECK_EQ(lz4_decode(dst, n + ((size_t)1 << 32), back, sizeof(back)), SHARD_E_CORRUPT);
	CHECK_EQ(lz4_decode(dst, n, back, sizeof(back) + ((size_t)1 << 32)), SHARD_E_ARGUMENT);
	free(scratch);
}

TEST(largest_chunk)
{
	size_t bytes = SHARD_CHUNK_BYTES_MAX, bound = lz4_bound(bytes), n = 0;
	uint8_t *src = take(bytes), *dst = take(bound), *back = take(bytes);
	void *scratch = take(lz4_scratch_bytes());

	fill(src, bytes, 1);
	CHECK_EQ(lz4_encode(src, bytes, dst, bound, &n, scratch), SHARD_OK);
	CHECK_EQ(lz4_decode(dst, n, back, bytes), SHARD_OK);
	CHECK_MEM(back, src, bytes);
	free(src);
	free(dst);
	free(back);
	free(scratch);
}

/*
 * Written from the description of the LZ4 block format, so the decoder is not only compared with
 * its own encoder.
 */
TEST(blocks_made_by_hand)
{
	static const struct {
		const char *story;
		uint8_t src[32];
		size_t src_bytes;
		const char *want;
		int rc;
	} rows[] = {
		{"5 literals", {0x50, 'h', 'e', 'l', 'l', 'o'}, 6, "hello", SHARD_OK},
		{"2 literals, a match of 7 two back, 5 literals",
		 {0x23, 'a', 'b', 2, 0, 0x50, 'h', 'e', 'l', 'l', 'o'},
		 11,
		 "ababababa"
		 "hello",
		 SHARD_OK},
		{"literals pass the end of the source", {0x60, 'h', 'e', 'l', 'l', 'o'}, 6, "hello?", SHARD_E_CORRUPT},
		{"match begins before the output",
		 {0x23, 'a', 'b', 3, 0, 0x50, 'h', 'e', 'l', 'l', 'o'},
		 11,
		 "ababababa"
		 "hello",
		 SHARD_E_CORRUPT},
		{"length without end", {0xf0, 255, 255, 255, 255}, 5, "hello", SHARD_E_CORRUPT},
		{"a byte after the last literals", {0x50, 'h', 'e', 'l', 'l', 'o', 0}, 7, "hello", SHARD_E_CORRUPT},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t want_bytes = strlen(rows[i].want);
		uint8_t *src = take(rows[i].src_bytes), *dst = take(want_bytes);

		STORY("%s", rows[i].story);
		memcpy(src, rows[i].src, rows[i].src_bytes);
		CHECK_EQ(lz4_decode(src, rows[i].src_bytes, dst, want_bytes), rows[i].rc);
		if (rows[i].rc == SHARD_OK)
			CHECK_MEM(dst, rows[i].want, want_bytes);
		free(src);
		free(dst);
	}
}

TEST(damaged_blocks_stay_inside_their_buffers)
{
	enum { BYTES = 3000 };
	size_t bound = lz4_bound(BYTES), n = 0;
	uint8_t *src = take(BYTES), *dst = take(bound), *back = take(BYTES);
	void *scratch = take(lz4_scratch_bytes());
	unsigned refused = 0;

	fill(src, BYTES, 2);
	CHECK_EQ(lz4_encode(src, BYTES, dst, bound, &n, scratch), SHARD_OK);
	for (int round = 0; round < 20000; round++) {
		uint8_t *bad = take(n);
		int rc;

		memcpy(bad, dst, n);
		for (uint32_t flips = 1 + random32() % 4; flips; flips--)
			bad[random32() % n] ^= (uint8_t)(1u << random32() % 8);
		rc = lz4_decode(bad, n, back, BYTES);
		CHECK(rc == SHARD_OK || rc == SHARD_E_CORRUPT);
		refused += rc != SHARD_OK;
		free(bad);
	}
	CHECK(refused > 1000); /* the rest changes bytes only, which is what hashes are for */
	free(src);
	free(dst);
	free(back);
	free(scratch);
}

TEST_MAIN()
