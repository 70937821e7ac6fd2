/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_escape.c - names from elsewhere, shown on a terminal
 *
 * A table of what must come out; then, over every code point and every pair of bytes, what
 * must hold whatever comes out: valid UTF-8 without a control in it, the same from both
 * writers, and (exact) the very bytes again when it is turned back by a decoder of this file.
 */
#include "libshard/base/utf8.h"
#include "tests/test.h"
#include "tools/common/human.h"

TEST(what_comes_out)
{
	static const struct {
		const char *story, *in;
		size_t in_bytes;
		const char *talk, *exact;
	} rows[] = {
		{"plain", "cat 17.jpg", 10, "cat 17.jpg", "cat 17.jpg"},
		{"empty", "", 0, "", ""},
		{"controls with names", "\a\b\t\n\v\f\r", 7, "\\a\\b\\t\\n\\v\\f\\r", "\\a\\b\\t\\n\\v\\f\\r"},
		{"ESC before a digit", "\0331", 2, "\\0331", "\\0331"},
		{"NUL and DEL", "a\0b\177", 4, "a\\000b\\177", "a\\000b\\177"},
		{"backslash", "a\\n", 3, "a\\n", "a\\\\n"},
		{"umlaut, kanji, emoji", "\xc3\xbc\xe7\x8c\xab\xf0\x9f\x90\xb1", 9,
		 "\xc3\xbc\xe7\x8c\xab\xf0\x9f\x90\xb1", "\xc3\xbc\xe7\x8c\xab\xf0\x9f\x90\xb1"},
		{"C1 control", "\xc2\x9b[2J", 5, "\\u009b[2J", "\\u009b[2J"},
		{"right-to-left override", "a\xe2\x80\xaegpj", 7, "a\\u202egpj", "a\\u202egpj"},
		{"isolate", "\xe2\x81\xa6", 3, "\\u2066", "\\u2066"},
		{"line separator", "\xe2\x80\xa8", 3, "\\u2028", "\\u2028"},
		{"byte order mark", "\xef\xbb\xbf", 3, "\\ufeff", "\\ufeff"},
		{"joiner of an emoji stays", "\xe2\x80\x8d", 3, "\xe2\x80\x8d", "\xe2\x80\x8d"},
		{"tag", "\xf3\xa0\x80\x81", 4, "\\U000e0001", "\\U000e0001"},
		{"Latin-1 byte", "caf\xe9.jpg", 8, "caf\\351.jpg", "caf\\351.jpg"},
		{"cut sequence", "\xe7\x8c", 2, "\\347\\214", "\\347\\214"},
		{"overlong slash", "\xc0\xaf", 2, "\\300\\257", "\\300\\257"},
		{"overlong in three", "\xe0\x80\xaf", 3, "\\340\\200\\257", "\\340\\200\\257"},
		{"surrogate", "\xed\xa0\x80", 3, "\\355\\240\\200", "\\355\\240\\200"},
		{"past the last code point", "\xf4\x90\x80\x80", 4, "\\364\\220\\200\\200", "\\364\\220\\200\\200"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char out[64];

		STORY("%s", rows[i].story);
		CHECK_EQ(escape_text(out, sizeof(out), rows[i].in, rows[i].in_bytes, ESCAPE_TALK),
			 strlen(rows[i].talk));
		CHECK_STR(out, rows[i].talk);
		CHECK_EQ(escape_text(out, sizeof(out), rows[i].in, rows[i].in_bytes, ESCAPE_EXACT),
			 strlen(rows[i].exact));
		CHECK_STR(out, rows[i].exact);
		escape_text(out, sizeof(out), rows[i].talk, strlen(rows[i].talk), ESCAPE_TALK);
		CHECK_STR(out, rows[i].talk); /* escaping talk twice changes nothing */
	}
}

TEST(small_buffers_end_at_a_whole_piece)
{
	static const char text[] = "ab\n\xc3\xbc\xff";
	static const char *const want[] = {"",
					   "",
					   "a",
					   "ab",
					   "ab",
					   "ab\\n",
					   "ab\\n",
					   "ab\\n\xc3\xbc",
					   "ab\\n\xc3\xbc",
					   "ab\\n\xc3\xbc",
					   "ab\\n\xc3\xbc",
					   "ab\\n\xc3\xbc\\377"};

	for (size_t room = 0; room < sizeof(want) / sizeof(want[0]); room++) {
		char *out = malloc(room + 1); /* exactly as much as is said: a sanitizer sees one more */

		CHECK(out);
		out = realloc(out, room ? room : 1);
		CHECK(out);
		out[0] = 0;
		STORY("%zu bytes of room", room);
		CHECK_EQ(escape_text(out, room, text, 6, ESCAPE_TALK), 10);
		CHECK_STR(out, want[room]);
		free(out);
	}
}

/* The bytes that an exact text stands for. */
static size_t turn_back(const char *text, unsigned char *out)
{
	static const char named[] = "abtnvfr";
	size_t length = 0;

	while (*text) {
		unsigned value = 0;
		int used = 0;

		if (*text != '\\') {
			out[length++] = (unsigned char)*text++;
			continue;
		}
		text++;
		if (*text == '\\') {
			out[length++] = (unsigned char)*text++;
		} else if (*text >= '0' && *text <= '7') {
			CHECK(sscanf(text, "%3o%n", &value, &used) == 1 && used == 3);
			out[length++] = (unsigned char)value;
			text += 3;
		} else if (*text == 'u' || *text == 'U') {
			CHECK(sscanf(text + 1, *text == 'u' ? "%4x%n" : "%8x%n", &value, &used) == 1);
			CHECK_EQ(used, *text == 'u' ? 4 : 8);
			text += 1 + used;
			if (value < 0x800) {
				out[length++] = (unsigned char)(0xc0 | value >> 6);
			} else if (value < 0x10000) {
				out[length++] = (unsigned char)(0xe0 | value >> 12);
				out[length++] = (unsigned char)(0x80 | (value >> 6 & 0x3f));
			} else {
				out[length++] = (unsigned char)(0xf0 | value >> 18);
				out[length++] = (unsigned char)(0x80 | (value >> 12 & 0x3f));
				out[length++] = (unsigned char)(0x80 | (value >> 6 & 0x3f));
			}
			out[length++] = (unsigned char)(0x80 | (value & 0x3f));
		} else {
			const char *at = strchr(named, *text);

			CHECK(*text && at);
			out[length++] = (unsigned char)(7 + (at - named));
			text++;
		}
	}
	return length;
}

static void check_any(const char *text, size_t text_bytes)
{
	char exact[128], talk[128], streamed[128];
	unsigned char back[128];
	FILE *out = fmemopen(streamed, sizeof(streamed), "w");

	CHECK(out);
	CHECK(escape_text(exact, sizeof(exact), text, text_bytes, ESCAPE_EXACT) < sizeof(exact));
	CHECK(escape_text(talk, sizeof(talk), text, text_bytes, ESCAPE_TALK) < sizeof(talk));
	escape_write(out, text, text_bytes, ESCAPE_EXACT);
	fclose(out);
	CHECK_STR(streamed, exact);
	for (const char *p = talk; *p;) {
		uint32_t code_point;
		size_t length = utf8_character(p, strlen(p), &code_point);

		CHECK(length);
		CHECK(code_point >= 0x20 && !(code_point >= 0x7f && code_point < 0xa0));
		p += length;
	}
	CHECK_EQ(turn_back(exact, back), text_bytes);
	CHECK_MEM(back, text, text_bytes);
}

TEST(any_code_point)
{
	for (uint32_t c = 0x80; c <= 0x10ffff; c += c < 0x10000 ? 1 : 97) {
		char text[4];
		size_t length;
		uint32_t found;

		if (c >= 0xd800 && c <= 0xdfff)
			continue;
		if (c < 0x800) {
			text[0] = (char)(0xc0 | c >> 6), length = 2;
		} else if (c < 0x10000) {
			text[0] = (char)(0xe0 | c >> 12), length = 3;
			text[1] = (char)(0x80 | (c >> 6 & 0x3f));
		} else {
			text[0] = (char)(0xf0 | c >> 18), length = 4;
			text[1] = (char)(0x80 | (c >> 12 & 0x3f));
			text[2] = (char)(0x80 | (c >> 6 & 0x3f));
		}
		text[length - 1] = (char)(0x80 | (c & 0x3f));
		STORY("U+%04X", (unsigned)c);
		CHECK_EQ(utf8_character(text, length, &found), length);
		CHECK_EQ(found, c);
		CHECK_EQ(utf8_character(text, length - 1, &found), 0);
		check_any(text, length);
	}
}

TEST(any_two_bytes)
{
	for (unsigned pair = 0; pair < 65536; pair++) {
		char text[3] = {(char)(pair >> 8), (char)pair, 'x'};

		STORY("bytes %02x %02x", pair >> 8, pair & 0xff);
		check_any(text, 3);
	}
}

TEST_MAIN()
