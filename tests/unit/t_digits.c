/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_digits.c - hexadecimal and percent-encoding, both ways; t_tokens.c has the decimal numbers
 */
#include "libshard/base/words.h"

#include <stdlib.h>
#include <string.h>

#include "tests/test.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

TEST(hex_both_ways)
{
	static const uint8_t bytes[4] = {0x00, 0x9f, 0xa0, 0xff};
	uint8_t back[4];
	char text[9];

	hex_from_bytes(text, bytes, 4);
	CHECK_STR(text, "009fa0ff");
	CHECK(hex_to_bytes(back, "009fa0ffzz", 4)); /* looks no further than it was told */
	CHECK_MEM(back, bytes, 4);
	CHECK(!hex_to_bytes(back, "009FA0FF", 4)); /* canonical is lower case */
	CHECK(!hex_to_bytes(back, "009fa0f", 4));
	CHECK(!hex_to_bytes(back, "g09fa0ff", 4));
	CHECK(!hex_to_bytes(back, "0/9fa0ff", 4));
	CHECK(!hex_to_bytes(back, "0:9fa0ff", 4));
	CHECK(!hex_to_bytes(back, "`a9fa0ff", 4));
}

/*
 * Eight bytes and more go another way than fewer: both against strchr(), with each byte at each
 * place.
 */
TEST(hex_of_any_length_knows_every_wrong_digit)
{
	static const char digits[] = "0123456789abcdef";
	unsigned good = 0;

	for (size_t bytes = 0; bytes <= 25; bytes++)
		for (size_t at = 0; at < 2 * bytes; at++)
			for (unsigned c = 0; c < 256; c++) {
				char *text = malloc(2 * bytes); /* so that a sanitizer sees a look beyond either */
				uint8_t *back = malloc(bytes);
				bool want = c && strchr(digits, (int)c);

				STORY("byte 0x%02x at %zu of %zu", c, at, 2 * bytes);
				CHECK(text && back);
				for (size_t i = 0; i < 2 * bytes; i++)
					text[i] = digits[(5 * i + bytes) % 16];
				text[at] = (char)c;
				CHECK_EQ(hex_to_bytes(back, text, bytes), want);
				for (size_t i = 0; want && i < bytes; i++)
					CHECK_EQ(back[i], 16 * (strchr(digits, text[2 * i]) - digits) +
								  (strchr(digits, text[2 * i + 1]) - digits));
				good += want;
				free(text);
				free(back);
			}
	CHECK_EQ(good, 16 * 25 * 26);
	CHECK(hex_to_bytes(NULL, NULL, 0));
}

TEST(percent_encoding)
{
	static const struct {
		const char *name, *encoded;
		bool slash;
	} names[] = {{"", "", false},
		     {"azAZ09._~-", "azAZ09._~-", false},
		     {" !/:@[`{\x7f", "%20%21%2F%3A%40%5B%60%7B%7F", false},
		     {"a b/c", "a%20b/c", true},
		     {"50% of \xc3\xa9", "50%25%20of%20%C3%A9", false},
		     {"\x01\xff", "%01%FF", false}};
	static const struct {
		const char *story, *text;
	} odd[] = {{"no digits", "%"},
		   {"one digit", "%2"},
		   {"no such digits", "%zz"},
		   {"one such digit", "%2g"},
		   {"lower case", "a%2f"},
		   {"two signs", "%%41"},
		   {"a plain letter", "%41"},
		   {"a NUL", "a%00"},
		   {"a byte that is not plain", "a b"},
		   {"a slash without leave", "a/b"},
		   {"cut short", "abc%4"}};
	char out[64], back[64];

	for (size_t i = 0; i < COUNT(names); i++) {
		size_t bytes = strlen(names[i].name);

		STORY("'%s'", names[i].encoded);
		CHECK_EQ(percent_encode(out, names[i].name, bytes, names[i].slash), strlen(names[i].encoded));
		CHECK_STR(out, names[i].encoded);
		CHECK_EQ(text_decode(out, strlen(out), names[i].slash, back), bytes);
		CHECK_STR(back, names[i].name);
	}
	for (size_t i = 0; i < COUNT(odd); i++) {
		STORY("%s", odd[i].story);
		CHECK_EQ(text_decode(odd[i].text, strlen(odd[i].text), false, back), -1);
	}
	CHECK_EQ(text_decode("a%2Fb", 5, true, back), -1); /* where a slash stands for itself */
}

TEST_MAIN()
