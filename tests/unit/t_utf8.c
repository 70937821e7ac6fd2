/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_utf8.c - what is UTF-8, which characters those are, and which of them a terminal obeys or hides
 */
#include "libshard/base/utf8.h"

#include "tests/test.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

TEST(utf8_is_what_the_standard_says)
{
	static const struct {
		const char *story, *text;
		size_t bytes, bad; /* bad == bytes: all of it is text */
	} rows[] = {
		{"nothing", "", 0, 0},
		{"ASCII", "a/b c~\x7f", 7, 7},
		{"NUL", "ab\0c", 4, 2},
		{"first and last of two bytes", "\xc2\x80\xdf\xbf", 4, 4},
		{"first and last of three bytes", "\xe0\xa0\x80\xef\xbf\xbf", 6, 6},
		{"around the surrogates", "\xed\x9f\xbf\xee\x80\x80", 6, 6},
		{"first and last of four bytes", "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf", 8, 8},
		{"continuation alone", "a\x80", 2, 1},
		{"overlong slash in two bytes", "\xc0\xaf", 2, 0},
		{"overlong in two bytes, greatest", "\xc1\xbf", 2, 0},
		{"overlong in three bytes, greatest", "\xe0\x9f\xbf", 3, 0},
		{"overlong in four bytes, greatest", "\xf0\x8f\xbf\xbf", 4, 0},
		{"first surrogate", "\xed\xa0\x80", 3, 0},
		{"last surrogate", "\xed\xbf\xbf", 3, 0},
		{"above U+10FFFF", "\xf4\x90\x80\x80", 4, 0},
		{"five byte form", "\xf8\x88\x80\x80\x80", 5, 0},
		{"cut in two bytes", "ok\xc3", 3, 2},
		{"cut in three bytes", "\xe2\x82", 2, 0},
		{"cut in four bytes", "\xf0\x9f\x90", 3, 0},
		{"second byte is no continuation", "\xe2(\xa1", 3, 0},
		{"last byte is no continuation", "\xf0\x9f\x90(", 4, 0},
		{"0xff", "x\xff", 2, 1},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		bool is_nul = rows[i].bad < rows[i].bytes && !rows[i].text[rows[i].bad];

		STORY("%s", rows[i].story);
		CHECK_EQ(utf8_bad_or_nul(rows[i].text, rows[i].bytes), rows[i].bad);
		CHECK_EQ(utf8_bad(rows[i].text, rows[i].bytes), is_nul ? rows[i].bytes : rows[i].bad);
	}
}

/*
 * The same from the table of well-formed sequences in the Unicode standard (table 3-7), for all
 * that two bytes and a few more can be.
 */
TEST(characters_of_all_beginnings)
{
	for (unsigned a = 0; a < 256; a++)
		for (unsigned b = 0; b < 256; b++) {
			const uint8_t text[4] = {(uint8_t)a, (uint8_t)b, 0x80, 0xbf};
			bool tail = b >= 0x80 && b <= 0xbf;
			size_t want = 0;
			uint32_t code_point;

			if (a < 0x80)
				want = 1;
			else if (a >= 0xc2 && a <= 0xdf && tail)
				want = 2;
			else if (a == 0xe0   ? b >= 0xa0 && b <= 0xbf
				 : a == 0xed ? b >= 0x80 && b <= 0x9f
					     : a >= 0xe1 && a <= 0xef && tail)
				want = 3;
			else if (a == 0xf0   ? b >= 0x90 && b <= 0xbf
				 : a == 0xf4 ? b >= 0x80 && b <= 0x8f
					     : a >= 0xf1 && a <= 0xf3 && tail)
				want = 4;
			STORY("%02x %02x", a, b);
			CHECK_EQ(utf8_character(text, 4, &code_point), want);
			CHECK_EQ(utf8_character(text, want ? want - 1 : 3, &code_point), 0);
		}
}

TEST(hidden_is_what_is_in_a_range)
{
	static const struct {
		uint32_t code_point;
		bool want;
	} rows[] = {{0, true},	      {0x1f, true},    {' ', false},	{'~', false},	 {0x7f, true},
		    {0x9f, true},     {0xa0, false},   {0x61c, true},	{0x200b, true},	 {0x200c, false},
		    {0x200d, false},  {0x202e, true},  {0xfeff, true},	{0xfffb, true},	 {0xfffd, false},
		    {0x1f600, false}, {0xe0000, true}, {0xe007f, true}, {0xe0080, false}};

	for (size_t i = 0; i < COUNT(rows); i++) {
		STORY("U+%04X", (unsigned)rows[i].code_point);
		CHECK(utf8_is_hidden(rows[i].code_point) == rows[i].want);
	}
	for (size_t i = 1; i < UTF8_HIDDEN_RANGES; i++)
		CHECK(utf8_hidden[i].first > utf8_hidden[i - 1].last && utf8_hidden[i].first <= utf8_hidden[i].last);
}

TEST_MAIN()
