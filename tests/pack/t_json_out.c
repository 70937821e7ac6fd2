/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_json_out.c - the JSON writer
 *
 * Exact text for what is small; for strings of all bytes and numbers of all sizes, jansson
 * reads the document back.  Writing into a full disk must be noticed.
 */
#include <errno.h>
#include <float.h>
#include <jansson.h>
#include <math.h>

#include "tests/test.h"
#include "tools/common/json_out.h"

static char text[1 << 17];

static FILE *open_text(void)
{
	FILE *out = fmemopen(text, sizeof(text), "w");

	CHECK(out);
	return out;
}

TEST(shape)
{
	FILE *out = open_text();
	struct json_out j;

	json_out_start(&j, out);
	json_out_object(&j, NULL);
	json_out_u64(&j, "count", UINT64_MAX);
	json_out_object(&j, "empty");
	json_out_end(&j);
	json_out_array(&j, "none");
	json_out_end(&j);
	json_out_array_line(&j, "shape");
	json_out_u64(&j, NULL, 224);
	json_out_u64(&j, NULL, 3);
	json_out_end(&j);
	json_out_array(&j, "records");
	for (int i = 0; i < 2; i++) {
		json_out_object_line(&j, NULL);
		json_out_i64(&j, "index", -i);
		json_out_array(&j, "inner"); /* in a line, everything is */
		json_out_null(&j, NULL);
		json_out_bool(&j, NULL, i == 1);
		json_out_end(&j);
		json_out_end(&j);
	}
	json_out_end(&j);
	json_out_object(&j, "nested");
	json_out_string(&j, "a \"key\"", "x");
	json_out_end(&j);
	json_out_end(&j);
	json_out_finish(&j);
	CHECK(!ferror(out));
	fclose(out);
	CHECK_STR(text, "{\n"
			"  \"count\": 18446744073709551615,\n"
			"  \"empty\": {},\n"
			"  \"none\": [],\n"
			"  \"shape\": [224, 3],\n"
			"  \"records\": [\n"
			"    {\"index\": 0, \"inner\": [null, false]},\n"
			"    {\"index\": -1, \"inner\": [null, true]}\n"
			"  ],\n"
			"  \"nested\": {\n"
			"    \"a \\\"key\\\"\": \"x\"\n"
			"  }\n"
			"}\n");
}

TEST(a_document_may_be_one_value)
{
	FILE *out = open_text();
	struct json_out j;

	json_out_start(&j, out);
	json_out_double(&j, NULL, 0.1);
	json_out_finish(&j);
	CHECK(!ferror(out));
	fclose(out);
	CHECK_STR(text, "0.10000000000000001\n");
}

static const char *string_of(const char *in, size_t in_bytes)
{
	FILE *out = open_text();
	struct json_out j;

	json_out_start(&j, out);
	json_out_string_bytes(&j, NULL, in, in_bytes);
	json_out_finish(&j);
	CHECK(!ferror(out));
	fclose(out);
	text[strlen(text) - 1] = 0;
	return text;
}

TEST(strings)
{
	CHECK_STR(string_of("a\"\\/b", 5), "\"a\\\"\\\\/b\"");
	CHECK_STR(string_of("\n\t\0", 3), "\"\\u000a\\u0009\\u0000\"");
	CHECK_STR(string_of("\177\xc2\x9b", 3), "\"\\u007f\\u009b\"");
	/* what turns a line around, or is not seen; a tag needs two in UTF-16 */
	CHECK_STR(string_of("\xe2\x80\xae\xd8\x9c\xe2\x81\xa6\xef\xbb\xbf", 11), "\"\\u202e\\u061c\\u2066\\ufeff\"");
	CHECK_STR(string_of("\xf3\xa0\x81\x81", 4), "\"\\udb40\\udc41\"");
	CHECK_STR(string_of("\xe2\x80\x8d", 3), "\"\xe2\x80\x8d\""); /* the joiner of an emoji stays */
	CHECK_STR(string_of("\xc3\xbc\xf0\x9f\x90\xb1", 6), "\"\xc3\xbc\xf0\x9f\x90\xb1\"");
	CHECK_STR(string_of("a\xff\xfe"
			    "b",
			    4),
		  "\"a\xef\xbf\xbd\xef\xbf\xbd"
		  "b\"");
	CHECK_STR(string_of("\xe7\x8c", 2), "\"\xef\xbf\xbd\xef\xbf\xbd\"");		     /* cut */
	CHECK_STR(string_of("\xed\xa0\x80", 3), "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""); /* surrogate */
}

TEST(another_reader_gets_the_strings)
{
	for (unsigned pair = 0; pair < 65536; pair++) {
		char in[4] = {'<', (char)(pair >> 8), (char)pair, '>'};
		const char *json = string_of(in, 4);
		json_t *value = json_loads(json, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);

		STORY("bytes %02x %02x", pair >> 8, pair & 0xff);
		CHECK(value && json_is_string(value));
		if (in[1] >= 0 && in[2] >= 0) { /* ASCII comes back as it was */
			CHECK_EQ(json_string_length(value), 4);
			CHECK_MEM(json_string_value(value), in, 4);
		}
		json_decref(value);
	}
}

TEST(numbers_come_back)
{
	static const double values[] = {
		0.0, -0.0, 1.0 / 3, 1e300, DBL_MIN, DBL_TRUE_MIN, DBL_MAX, -2.5, 123456789.123456789};

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		FILE *out = open_text();
		struct json_out j;

		json_out_start(&j, out);
		json_out_double(&j, NULL, values[i]);
		json_out_finish(&j);
		CHECK(!ferror(out));
		fclose(out);
		STORY("%a", values[i]);
		double back = strtod(text, NULL);
		CHECK_MEM(&back, &values[i], sizeof(back));
	}
}

TEST(what_json_has_no_number_for_is_null)
{
	static const double values[] = {INFINITY, -INFINITY, NAN};
	FILE *out = open_text();
	struct json_out j;

	json_out_start(&j, out);
	json_out_array_line(&j, NULL);
	for (int i = 0; i < 3; i++)
		json_out_double(&j, NULL, values[i]);
	json_out_i64(&j, NULL, INT64_MIN);
	json_out_end(&j);
	json_out_finish(&j);
	CHECK(!ferror(out));
	fclose(out);
	CHECK_STR(text, "[null, null, null, -9223372036854775808]\n");
}

TEST(a_full_disk_is_noticed)
{
	for (int items = 0; items < 20000; items = items * 3 + 1) { /* in the buffer, at its end, past it */
		FILE *out = fopen("/dev/full", "w");
		struct json_out j;

		CHECK(out);
		json_out_start(&j, out);
		json_out_array(&j, NULL);
		for (int i = 0; i < items; i++)
			json_out_u64(&j, NULL, (uint64_t)i);
		json_out_end(&j);
		STORY("%d items", items);
		json_out_finish(&j);
		CHECK(ferror(out));
		fclose(out);
	}
}

TEST_MAIN()
