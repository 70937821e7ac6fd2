/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_tokens.c - words, numbers and digests of a manifest's line
 */
#include "libshard/disk/tokens.h"

#include "tests/test.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static struct tokens line(const char *text)
{
	return (struct tokens){text, text + strlen(text), TOKEN_OK, NULL};
}

TEST(a_line_is_taken_apart)
{
	struct tokens t = line("shard 17 a/b.shard end");
	struct word w;

	CHECK(tokens_peek(&t, "shard"));
	CHECK(!tokens_peek(&t, "shar"));
	CHECK(!tokens_peek(&t, "shards"));
	tokens_literal(&t, "shard");
	CHECK_EQ(tokens_number(&t, "number", 17), 17);
	w = tokens_take(&t, "file");
	CHECK_EQ(w.bytes, 9);
	CHECK_MEM(w.text, "a/b.shard", 9);
	CHECK(!tokens_peek(&t, ""));
	tokens_literal(&t, "end");
	tokens_done(&t);
	CHECK_EQ(t.fault, TOKEN_OK);
	CHECK(!tokens_peek(&t, "end"));
	tokens_take(&t, "one more");
	CHECK_EQ(t.fault, TOKEN_FORM);
	CHECK_STR(t.wanted, "one more");
}

TEST(form_is_judged_before_numbers)
{
	struct tokens t = line("a 01 rest");

	tokens_literal(&t, "a");
	tokens_number(&t, "the number", 9);
	CHECK_EQ(t.fault, TOKEN_NUMBER);
	CHECK_STR(t.wanted, "the number");
	tokens_done(&t);
	CHECK_EQ(t.fault, TOKEN_FORM); /* M6 stands before M7 */
	CHECK_STR(t.wanted, "the end of the line");
	tokens_literal(&t, "b");
	CHECK_STR(t.wanted, "the end of the line"); /* the first of its kind */
}

TEST(numbers_are_canonical)
{
	static const struct {
		const char *text;
		uint64_t limit;
		bool good;
		uint64_t value;
	} rows[] = {
		{"0", 0, true, 0},
		{"7", 7, true, 7},
		{"8", 7, false, 0},
		{"18446744073709551615", UINT64_MAX, true, UINT64_MAX},
		{"18446744073709551616", UINT64_MAX, false, 0},
		{"18446744073709551625", UINT64_MAX, false, 0},
		{"99999999999999999999", UINT64_MAX, false, 0},
		{"184467440737095516150", UINT64_MAX, false, 0},
		{"00", UINT64_MAX, false, 0},
		{"01", UINT64_MAX, false, 0},
		{"+1", UINT64_MAX, false, 0},
		{"-1", UINT64_MAX, false, 0},
		{"-", UINT64_MAX, false, 0},
		{"1.", UINT64_MAX, false, 0},
		{"0x1", UINT64_MAX, false, 0},
		{"1a", UINT64_MAX, false, 0},
		{"1/", UINT64_MAX, false, 0},
		{"1:", UINT64_MAX, false, 0},
		{"", UINT64_MAX, false, 0},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct tokens t = line(rows[i].text);
		uint64_t out = 0;

		STORY("'%s' up to %" PRIu64, rows[i].text, rows[i].limit);
		CHECK_EQ(word_number((struct word){rows[i].text, strlen(rows[i].text)}, rows[i].limit, &out), rows[i].good);
		CHECK(!rows[i].good || out == rows[i].value);
		tokens_number(&t, "n", rows[i].limit);
		CHECK_EQ(t.fault, rows[i].good ? TOKEN_OK : *rows[i].text ? TOKEN_NUMBER : TOKEN_FORM);
	}
}

TEST(numbers_of_128_bits)
{
	static const struct {
		const char *text;
		bool good;
		uint64_t low, high;
	} rows[] = {
		{"0", true, 0, 0},
		{"18446744073709551615", true, UINT64_MAX, 0},
		{"18446744073709551616", true, 0, 1},
		{"340282366920938463463374607431768211455", true, UINT64_MAX, UINT64_MAX},
		{"340282366920938463463374607431768211456", false, 0, 0},
		{"340282366920938463463374607431768211460", false, 0, 0},
		{"999999999999999999999999999999999999999", false, 0, 0},
		{"1000000000000000000000000000000000000000", false, 0, 0},
		{"01", false, 0, 0},
		{"1e3", false, 0, 0},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct tokens t = line(rows[i].text);
		uint64_t low = 0, high = 0;

		STORY("'%s'", rows[i].text);
		tokens_number128(&t, "n", &low, &high);
		CHECK_EQ(t.fault, rows[i].good ? TOKEN_OK : TOKEN_NUMBER);
		CHECK_EQ(low, rows[i].low);
		CHECK_EQ(high, rows[i].high);
	}
}

TEST(digests_have_their_full_length)
{
	static const struct {
		const char *text;
		int want;
	} rows[] = {{"00ff12ab", TOKEN_OK}, {"00FF12AB", TOKEN_NUMBER}, {"00ff12a", TOKEN_NUMBER}, {"00ff12ab0", TOKEN_NUMBER}, {"-", TOKEN_NUMBER}, {"", TOKEN_FORM}};
	static const uint8_t want[4] = {0x00, 0xff, 0x12, 0xab};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct tokens t = line(rows[i].text);
		uint8_t out[4] = {0};

		STORY("'%s'", rows[i].text);
		tokens_hex(&t, "digest", out, 4);
		CHECK_EQ(t.fault, rows[i].want);
		CHECK(rows[i].want != TOKEN_OK || !memcmp(out, want, 4));
	}
}

TEST_MAIN()
