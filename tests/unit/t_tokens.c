/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_tokens.c - words, numbers and digests of a manifest's line
 */
#include "libshard/format/format.h"

#include "tests/test.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static struct tokens line(const char *text)
{
	return (struct tokens){text, text + strlen(text), TOKEN_OK, NULL};
}

/* ---- M5 ---- */

/* The rule, a byte at a time. */
static bool line_good_slowly(const char *text, size_t bytes)
{
	char before = ' ';

	for (size_t i = 0; i < bytes; i++) {
		if (text[i] < 0x20 || text[i] > 0x7e || (text[i] == ' ' && before == ' '))
			return false;
		before = text[i];
	}
	return before != ' ';
}

static unsigned lines_good, lines_bad;

/*
 * In memory of just its size, so that a sanitizer sees a look beyond it, and at each of 16
 * addresses.
 */
static void compare(const char *text, size_t bytes)
{
	static char around[160];
	char *exact = malloc(bytes ? bytes : 1);
	bool want = line_good_slowly(text, bytes);

	CHECK(exact);
	memcpy(exact, text, bytes);
	CHECK_EQ(tokens_line_good(exact, bytes), want);
	free(exact);
	for (size_t at = 1; at <= 16; at++) {
		memset(around, at & 1 ? ' ' : '\n', sizeof(around)); /* what stands beside it does not count */
		memcpy(around + at, text, bytes);
		CHECK_EQ(tokens_line_good(around + at, bytes), want);
	}
	*(want ? &lines_good : &lines_bad) += 1;
}

TEST(each_byte_at_each_place_of_a_line)
{
	char text[64];

	lines_good = lines_bad = 0;
	for (size_t bytes = 0; bytes <= 40; bytes++)
		for (size_t at = 0; at < bytes || !at; at++)
			for (unsigned c = 0; c < 256; c++) {
				STORY("byte 0x%02x at %zu of %zu", c, at, bytes);
				memset(text, 'x', sizeof(text));
				text[at] = (char)c;
				compare(text, bytes);
			}
	CHECK(!tokens_line_good("", 0));
	CHECK_EQ(lines_good + lines_bad, 256 * (1 + 40 * 41 / 2));
	CHECK_EQ(lines_good, 40 * 41 / 2 * 94 + 38 * 39 / 2); /* a space is good but at the two ends */
}

TEST(spaces_at_any_two_places_of_a_line)
{
	char text[64];

	lines_good = lines_bad = 0;
	for (size_t bytes = 2; bytes <= 40; bytes++)
		for (size_t a = 0; a < bytes; a++)
			for (size_t b = a; b < bytes; b++) {
				STORY("spaces at %zu and %zu of %zu", a, b, bytes);
				memset(text, '~', sizeof(text));
				text[a] = text[b] = ' ';
				compare(text, bytes);
			}
	CHECK(lines_good > 5000 && lines_bad > 1000);
}

/* ---- words ---- */

TEST(words_of_any_length_at_any_place)
{
	char text[80];

	for (size_t before = 1; before <= 17; before++)
		for (size_t bytes = 1; bytes <= 33; bytes++)
			for (unsigned c = 0; c < 256; c++) {
				struct tokens t = {text, text + before + bytes + 2, TOKEN_OK, NULL};
				bool ends = c <= ' ' || c > 0x7f; /* DEL is M5's alone to refuse */
				struct word w;

				STORY("%zu bytes behind %zu, then 0x%02x", bytes, before, c);
				memset(text, '!', sizeof(text));
				text[before - 1] = ' ';
				text[before + bytes] = (char)c;
				if (before > 1)
					tokens_take(&t, "the one before");
				else
					t.at++;
				w = tokens_take(&t, "this one");
				CHECK_EQ(w.text - text, before);
				CHECK_EQ(w.bytes, ends ? bytes : bytes + 2);
				CHECK_EQ(t.end - t.at, ends ? 1 : 0);
				CHECK_EQ(t.fault, TOKEN_OK);
			}
}

/*
 * tokens_literal() has a short way for the usual case; the word taken and compared is the long one.
 */
TEST(a_literal_is_that_word_and_no_other)
{
	static const char *const texts[] = {
		"",	   " ",	       "shard",	    "shar",	   "shard ",	"shards",     "shards 1",
		"shard 1", "shard  1", "shard \t1", "shard\t1",	   "shard\t",	"shard\2001", "Shard 1",
		"sharD 1", "s",	       "1 shard",   "shard shard", "shard x y",
	};

	for (size_t i = 0; i < COUNT(texts); i++) {
		struct tokens t = line(texts[i]), slow = t, peeked = t;
		struct word w = tokens_take(&slow, "shard");
		bool same = w.bytes == 5 && !memcmp(w.text, "shard", 5);

		STORY("'%s'", texts[i]);
		CHECK_EQ(tokens_peek(&peeked, "shard"), same);
		tokens_literal(&t, "shard");
		CHECK(t.at == slow.at);
		CHECK_EQ(t.fault, same ? TOKEN_OK : TOKEN_FORM);
		CHECK_STR(t.wanted, same ? NULL : "shard");
	}
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
		CHECK_EQ(word_number((struct word){rows[i].text, strlen(rows[i].text)}, rows[i].limit, &out),
			 rows[i].good);
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
	} rows[] = {{"00ff12ab", TOKEN_OK},
		    {"00ff12ab next", TOKEN_OK},
		    {"00ff12a next", TOKEN_NUMBER},
		    {"00ff12ab0 next", TOKEN_NUMBER},
		    {"00ff 12ab", TOKEN_NUMBER},
		    {"00FF12AB", TOKEN_NUMBER},
		    {"00ff12a", TOKEN_NUMBER},
		    {"00ff12ab0", TOKEN_NUMBER},
		    {"-", TOKEN_NUMBER},
		    {"", TOKEN_FORM}};
	static const uint8_t want[4] = {0x00, 0xff, 0x12, 0xab};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct tokens t = line(rows[i].text), slow;
		uint8_t out[4] = {0};

		STORY("'%s'", rows[i].text);
		tokens_hex(&t, "digest", out, 4);
		CHECK_EQ(t.fault, rows[i].want);
		CHECK(rows[i].want != TOKEN_OK || !memcmp(out, want, 4));
		slow = line(rows[i].text);
		tokens_take(&slow, "digest");
		CHECK(t.at == slow.at); /* right or wrong, it is the whole word that is taken */
	}
}

TEST(hashes_are_written_high_half_first)
{
	static const uint8_t want[16] = {15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0};
	struct tokens t = line("000102030405060708090a0b0c0d0e0f 00");
	uint8_t hash[16], again[16];

	tokens_hash(&t, "root", hash);
	CHECK_EQ(t.fault, TOKEN_OK);
	CHECK_MEM(hash, want, 16);
	tokens_hash(&t, "root", hash);
	CHECK_EQ(t.fault, TOKEN_NUMBER);
	hash_turn(hash, want);
	hash_turn(again, hash);
	CHECK_MEM(again, want, 16);
}

TEST_MAIN()
