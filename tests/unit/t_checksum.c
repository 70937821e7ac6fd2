/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_checksum.c - XXH3 against values that the xxHash project publishes, streams against single
 * calls
 *
 * The expected values are those of xxhsum's self-test (xxHash 0.8.3, cli/xsum_sanity_check.c) for
 * its own test bytes, seed 0.  Above 240 bytes the loops that are chosen at run time are at work;
 * each is compared with the plain one.
 */
#include "libshard/format/format.h"
#include "tests/test.h"

/*
 * The bytes of xxHash's sanity test: the top byte of a multiplicative generator that starts at a
 * 32-bit prime.
 */
static void fill_sanity(uint8_t *buf, size_t bytes)
{
	uint64_t gen = 2654435761u;

	for (size_t i = 0; i < bytes; i++) {
		buf[i] = (uint8_t)(gen >> 56);
		gen *= 11400714785074694797u;
	}
}

static const struct {
	size_t bytes;
	uint64_t want;
} published64[] = {
	{0, 0x2d06800538d394c2},    {1, 0xc44bdff4074eecdb},   {6, 0x27b56a84cd2d7325},	   {12, 0xa713daf0dfbb77e7},
	{24, 0xa3fe70bf9d3510eb},   {48, 0x397da259ecba1f11},  {80, 0xbcdefbbb2c47c90a},   {195, 0xcd94217ee362ec3a},
	{403, 0xcdeb804d65c6dea4},  {512, 0x617e49599013cb6b}, {2048, 0xdd59e2c3a5f038e0}, {2240, 0x6e73a90539cf2948},
	{2367, 0xcb37aeb9e5d361ed},
};

/* As text: the high half first. */
static const struct {
	size_t bytes;
	const char *want;
} published128[] = {
	{0, "99aa06d3014798d86001c324468d497f"},    {1, "a6cd5e9392000f6ac44bdff4074eecdb"},
	{6, "082afe0b8162d12a3e7039bdda43cfc6"},    {12, "6e3efd8fc7802b18061a192713f69ad9"},
	{24, "0ce966e4678d37611e7044d28b1b901d"},   {48, "a002ac4e5478227ef942219aed80f67b"},
	{81, "4952f58181ab00425e8bafb9f95fb803"},   {222, "337e09641b948717f1aebd597cec6b3a"},
	{403, "1b6de21e332dd73dcdeb804d65c6dea4"},  {512, "18d2d110dcc9bca1617e49599013cb6b"},
	{2048, "f736557fd47073a5dd59e2c3a5f038e0"}, {2240, "ccb134fbfa7ce49d6e73a90539cf2948"},
	{2367, "e89c0f6ff369b427cb37aeb9e5d361ed"},
};

TEST(xxh3_64_gives_the_published_values)
{
	uint8_t buf[2367];

	fill_sanity(buf, sizeof(buf));
	for (size_t i = 0; i < sizeof(published64) / sizeof(published64[0]); i++) {
		STORY("%zu bytes", published64[i].bytes);
		CHECK_EQ(checksum64(buf, published64[i].bytes), published64[i].want);
	}
}

TEST(xxh3_128_gives_the_published_values)
{
	uint8_t buf[2367];

	fill_sanity(buf, sizeof(buf));
	for (size_t i = 0; i < sizeof(published128) / sizeof(published128[0]); i++) {
		struct hash128 h = checksum128(buf, published128[i].bytes);
		char hex[33];

		STORY("%zu bytes", published128[i].bytes);
		manifest_hash_text(hex, h.b);
		CHECK_STR(hex, published128[i].want);
	}
}

TEST(nothing_may_be_null)
{
	struct checksum_stream s;
	struct hash128 a, b = checksum128(NULL, 0);

	CHECK_EQ(checksum64(NULL, 0), 0x2d06800538d394c2);
	checksum128_init(&s);
	checksum128_update(&s, NULL, 0);
	a = checksum128_final(&s);
	CHECK_MEM(a.b, b.b, 16);
}

TEST(stored_bytes_are_little_endian_low_half_first)
{
	/* Of no bytes: low 6001c324468d497f, high 99aa06d3014798d8. */
	static const uint8_t want[16] = {0x7f, 0x49, 0x8d, 0x46, 0x24, 0xc3, 0x01, 0x60,
					 0xd8, 0x98, 0x47, 0x01, 0xd3, 0x06, 0xaa, 0x99};
	struct hash128 h = checksum128("", 0);

	CHECK_MEM(h.b, want, 16);
}

TEST(pieces_give_the_hash_of_the_whole)
{
	static uint8_t buf[70000];
	uint32_t random = 1;

	fill_sanity(buf, sizeof(buf));
	for (int round = 0; round < 300; round++) {
		struct checksum_stream s;
		struct hash128 a, b;
		size_t total, done = 0;

		random = random * 1664525 + 1013904223;
		total = (random >> 8) % sizeof(buf);
		STORY("%zu bytes in pieces", total);
		checksum128_init(&s);
		while (done < total) {
			size_t n;

			random = random * 1664525 + 1013904223;
			n = (random >> 8) % (1 + (random >> 28) * 500);
			if (n > total - done)
				n = total - done;
			checksum128_update(&s, buf + done, n);
			done += n;
			a = checksum128_final(&s); /* looking does not disturb */
			b = checksum128(buf, done);
			CHECK_MEM(a.b, b.b, 16);
		}
	}
}

TEST(pieces_give_the_64_bits_of_the_whole)
{
	static uint8_t buf[70000];
	uint32_t random = 2;

	fill_sanity(buf, sizeof(buf));
	for (int round = 0; round < 300; round++) {
		struct checksum_stream s;
		size_t total, done = 0;

		random = random * 1664525 + 1013904223;
		total = (random >> 8) % (round % 2 ? sizeof(buf) : 1500);
		STORY("%zu bytes in pieces", total);
		checksum64_init(&s);
		CHECK_EQ(checksum64_final(&s), checksum64(NULL, 0));
		while (done < total) {
			size_t n;

			random = random * 1664525 + 1013904223;
			n = (random >> 8) % (1 + (random >> 28) * 500);
			if (n > total - done)
				n = total - done;
			checksum64_update(&s, buf + done, n);
			checksum64_update(&s, NULL, 0);
			done += n;
			CHECK_EQ(checksum64_final(&s), checksum64(buf, done)); /* looking does not disturb */
		}
	}
}

/* The control: pieces in another order, or one of them twice, are other bytes. */
TEST(pieces_out_of_order_give_another_hash)
{
	struct checksum_stream s;
	uint8_t buf[4096];

	fill_sanity(buf, sizeof(buf));
	checksum64_init(&s);
	checksum64_update(&s, buf + 2048, 2048);
	checksum64_update(&s, buf, 2048);
	CHECK(checksum64_final(&s) != checksum64(buf, sizeof(buf)));
	checksum64_init(&s);
	checksum64_update(&s, buf, 2048);
	checksum64_update(&s, buf, 2048);
	CHECK(checksum64_final(&s) != checksum64(buf, sizeof(buf)));
}

static void compare_with_plain(const struct xxh3 *fast, const uint8_t *data, size_t bytes, size_t piece)
{
	_Alignas(XXH3_STATE_ALIGN) uint8_t state[XXH3_STATE_BYTES];
	uint64_t want[2], got[2];

	CHECK_EQ(fast->hash64(data, bytes), xxh3_plain.hash64(data, bytes));
	xxh3_plain.hash128(data, bytes, want);
	fast->hash128(data, bytes, got);
	CHECK(got[0] == want[0] && got[1] == want[1]);

	/* A state that was begun by one is continued by the other. */
	fast->reset128(state);
	for (size_t at = 0; at < bytes; at += piece)
		(at / piece % 2 ? &xxh3_plain : fast)
			->update128(state, data + at, bytes - at < piece ? bytes - at : piece);
	fast->digest128(state, got);
	CHECK(got[0] == want[0] && got[1] == want[1]);
	fast->reset64(state);
	for (size_t at = 0; at < bytes; at += piece)
		fast->update64(state, data + at, bytes - at < piece ? bytes - at : piece);
	CHECK_EQ(fast->digest64(state), xxh3_plain.hash64(data, bytes));
}

TEST(each_kind_of_processor_gives_what_the_plain_one_does)
{
	const struct xxh3 *kinds[2] = {NULL, NULL};
	static uint8_t buf[5000];
	uint32_t compared = 0;

#if defined(__x86_64__)
	kinds[0] = __builtin_cpu_supports("avx2") ? xxh3_avx2 : NULL;
	kinds[1] = __builtin_cpu_supports("avx512f") ? xxh3_avx512 : NULL;
#endif
	fill_sanity(buf, sizeof(buf));
	for (int k = 0; k < 2; k++)
		for (size_t bytes = 0; kinds[k] && bytes + 3 <= sizeof(buf);
		     bytes += bytes < 600 ? 1 : 97, compared++) {
			STORY("%s, %zu bytes", kinds[k]->name, bytes);
			compare_with_plain(kinds[k], buf + bytes % 3, bytes, 61 + bytes % 300);
		}
	printf("%u comparisons\n", compared);
}

TEST(one_bit_changes_the_hash)
{
	uint8_t buf[64] = {0};
	struct hash128 a = checksum128(buf, sizeof(buf)), b;

	buf[63] = 1;
	b = checksum128(buf, sizeof(buf));
	CHECK(memcmp(a.b, b.b, 16));
	CHECK(checksum64(buf, 64) != checksum64(buf, 63));
}

TEST_MAIN()
