/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_words.c - lines, words and numbers of a text: each is taken whole, or nothing is
 */
#include "libshard/base/words.h"

#include <stdio.h>
#include <string.h>

#include "tests/test.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* The words of a text with brackets around them, as "[a][]". */
static void split(const char *text, char separator, char out[64])
{
	struct words c = words_of(text, strlen(text));
	struct word w;
	int used = 0;

	out[0] = 0;
	while (words_take(&c, separator, &w))
		used += snprintf(out + used, 64 - (size_t)used, "[%.*s]", (int)w.bytes, w.text);
	CHECK(words_done(&c) && !words_rest(&c).bytes);
}

TEST(a_text_is_its_words_and_what_is_between)
{
	static const struct {
		const char *text;
		char separator;
		const char *want;
	} rows[] = {{"a b", ' ', "[a][b]"},	{"", ' ', "[]"},	   {" ", ' ', "[][]"},
		    {"a ", ' ', "[a][]"},	{" a", ' ', "[][a]"},	   {"a  b", ' ', "[a][][b]"},
		    {"a,b c", ',', "[a][b c]"}, {"a,b c", ' ', "[a,b][c]"}};
	char got[64];

	for (size_t i = 0; i < COUNT(rows); i++) {
		STORY("'%s' at '%c'", rows[i].text, rows[i].separator);
		split(rows[i].text, rows[i].separator, got);
		CHECK_STR(got, rows[i].want);
	}
}

TEST(what_is_not_there_is_not_taken)
{
	static const struct {
		const char *story, *text;
		bool is_key, is_number, is_hex; /* does it begin with "key", with a number up to 99, with two bytes? */
	} rows[] = {
		{"the word", "key 1", true, false, false},
		{"the word alone", "key", true, false, false},
		{"the beginning of a word", "keys", false, false, false},
		{"less than the word", "ke", false, false, false},
		{"a number", "99 x", false, true, false},
		{"a number beyond the limit", "100", false, false, false},
		{"a number and more", "9x", false, false, false},
		{"a leading zero", "01", false, false, false},
		{"an empty word", " 1", false, false, false},
		{"nothing", "", false, false, false},
		{"two bytes", "00fa z", false, false, true},
		{"three digits", "00f", false, false, false},
		{"five digits", "00fab", false, false, false},
		{"upper case", "00FA", false, false, false},
	};
	uint8_t bytes[2];

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct words start = words_of(rows[i].text, strlen(rows[i].text)), c[3] = {start, start, start};
		bool got[3];
		uint64_t number = 7;

		STORY("%s", rows[i].story);
		got[0] = words_is(&c[0], ' ', "key");
		got[1] = words_u64(&c[1], ' ', 99, &number);
		got[2] = words_hex(&c[2], ' ', bytes, 2);
		CHECK(got[0] == rows[i].is_key && got[1] == rows[i].is_number && got[2] == rows[i].is_hex);
		CHECK_EQ(number, rows[i].is_number ? 99 : 7);
		CHECK(!got[2] || (bytes[0] == 0 && bytes[1] == 0xfa));
		for (unsigned k = 0; k < 3; k++)
			CHECK(got[k] == (c[k].at != start.at));
	}
}

TEST(a_line_ends_in_LF)
{
	static const char text[] = "one\n\nlast";
	struct words c = words_of(text, strlen(text)), line;

	CHECK(words_line(&c, &line) && word_is(words_rest(&line), "one"));
	CHECK(words_line(&c, &line) && word_is(words_rest(&line), ""));
	CHECK(!words_line(&c, &line) && word_is(words_rest(&c), "last"));
	CHECK(words_is(&c, '\n', "last") && !words_line(&c, &line) && !words_take(&c, '\n', &(struct word){0}));
}

TEST_MAIN()
