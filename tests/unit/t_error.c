/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_error.c - messages stay one line, in bounds, and readable at both ends
 */
#include <errno.h>

#include "libshard/base/error.h"
#include "libshard/base/utf8.h"
#include "tests/test.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* One line of printable characters and UTF-8, which ends with a NUL inside the struct. */
static void check_safe(const char *text, size_t room)
{
	size_t bytes = strnlen(text, room);

	CHECK(bytes < room);
	CHECK_EQ(utf8_bad_or_nul(text, bytes), bytes);
	for (size_t i = 0; i < bytes; i++)
		CHECK((uint8_t)text[i] >= 0x20 && text[i] != 0x7f);
}

TEST(a_message_and_its_status)
{
	struct shard_error err;

	CHECK_EQ(sizeof(err.message), 1024);
	CHECK_EQ(error_set(&err, SHARD_E_CORRUPT, "unit %d is damaged", 7), SHARD_E_CORRUPT);
	CHECK_EQ(err.status, SHARD_E_CORRUPT);
	CHECK_EQ(err.os_code, 0);
	CHECK_STR(err.message, "unit 7 is damaged");
	error_prefix(&err, "a.shard");
	CHECK_STR(err.message, "a.shard: unit 7 is damaged");
	CHECK_EQ(error_os(&err, ENOSPC, "%s: writing", "x"), SHARD_E_IO);
	CHECK_EQ(err.status, SHARD_E_IO);
	CHECK_EQ(err.os_code, ENOSPC);
	CHECK_STR(err.message, "x: writing: No space left on device");
	error_os(&err, 99999, "x");
	CHECK_STR(err.message, "x: Unknown error 99999");
}

/* glibc 2.32 has functions for both.  Ours need no newer glibc than the wheel is for. */
TEST(what_the_system_says_has_the_words_of_glibc)
{
	struct shard_error err;
	char want[128];
	int known = 0;

	for (int code = 1; code < 5000; code++) {
		const char *name = strerrorname_np(code), *ours = error_os_name(code);

		CHECK(name ? ours && !strcmp(ours, name) : !ours);
		if (!name)
			continue;
		known++;
		error_os(&err, code, "x");
		snprintf(want, sizeof(want), "x: %s", strerrordesc_np(code));
		CHECK_STR(err.message, want);
	}
	CHECK(known > 100);
	CHECK(!error_os_name(-1));
}

TEST(without_a_place_for_it_only_the_status_is_returned)
{
	CHECK_EQ(error_set(NULL, SHARD_E_EXISTS, "x"), SHARD_E_EXISTS);
	CHECK_EQ(error_os(NULL, ENOENT, "x"), SHARD_E_IO);
	error_prefix(NULL, "x");
}

TEST(names_are_escaped)
{
	static const struct {
		const char *story, *name;
		size_t bytes;
		const char *want;
	} rows[] = {
		{"plain", "a/b c.shard", 11, "a/b c.shard"},
		{"empty", "", 0, ""},
		{"a line break", "a\nb", 3, "a\\x0ab"},
		{"escape sequence", "\x1b[31mred", 8, "\\x1b[31mred"},
		{"delete and NUL", "\x7f\0x", 3, "\\x7f\\x00x"},
		{"the escape character itself", "a\\x0a", 5, "a\\\\x0a"},
		{"UTF-8 stays", "zw\xc3\xb6lf \xe9\x9b\xaa \xf0\x9f\x90\x8d", 15,
		 "zw\xc3\xb6lf \xe9\x9b\xaa \xf0\x9f\x90\x8d"},
		{"bad UTF-8 goes byte by byte", "\xc3(\xff", 3, "\\xc3(\\xff"},
		{"a C1 control",
		 "\xc2\x9b"
		 "31m",
		 5, "\\xc2\\x9b31m"},
		{"first character that is no C1 control", "\xc2\xa0", 2, "\xc2\xa0"},
		{"right-to-left override",
		 "a\xe2\x80\xae"
		 "b",
		 5, "a\\xe2\\x80\\xaeb"},
		{"left-to-right mark", "\xe2\x80\x8e", 3, "\\xe2\\x80\\x8e"},
		{"direction isolate", "\xe2\x81\xa6", 3, "\\xe2\\x81\\xa6"},
		{"line separator", "\xe2\x80\xa8", 3, "\\xe2\\x80\\xa8"},
		{"paragraph separator", "\xe2\x80\xa9", 3, "\\xe2\\x80\\xa9"},
		{"a zero-width space", "\xe2\x80\x8b", 3, "\\xe2\\x80\\x8b"},
		{"a word joiner", "\xe2\x81\xa0", 3, "\\xe2\\x81\\xa0"},
		{"a byte order mark", "\xef\xbb\xbf", 3, "\\xef\\xbb\\xbf"},
		{"a tag", "\xf3\xa0\x81\x81", 4, "\\xf3\\xa0\\x81\\x81"},
		{"a joiner that emoji need", "\xe2\x80\x8d", 3, "\xe2\x80\x8d"},
		{"an em dash is none of those", "\xe2\x80\x94", 3, "\xe2\x80\x94"},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct shown s;

		STORY("%s", rows[i].story);
		CHECK_STR(show_bytes(&s, rows[i].name, rows[i].bytes), rows[i].want);
	}
}

/* Also of texts that nobody escaped; those that somebody did are not escaped twice. */
TEST(no_message_drives_a_terminal)
{
	struct shard_error err;
	struct shown s;

	error_set(&err, SHARD_E_CORRUPT, "class '%s' of %s", "\x1b]0;owned\a\n\xe2\x80\xae", show(&s, "a\\\x1b"));
	CHECK_STR(err.message, "class '\\x1b]0;owned\\x07\\x0a\\xe2\\x80\\xae' of a\\\\\\x1b");
	error_prefix(&err, "\rds");
	CHECK(!strncmp(err.message, "\\x0dds: class '\\x1b]0;", 22));
}

TEST(long_names_lose_their_middle)
{
	char path[4001];
	struct shown s;

	for (size_t bytes = 1; bytes < sizeof(path); bytes += bytes < 700 ? 1 : 113) {
		STORY("%zu bytes", bytes);
		memset(path, 'm', bytes);
		path[0] = '/';
		path[bytes - 1] = 'z';
		path[bytes] = 0;
		show(&s, path);
		check_safe(s.text, sizeof(s.text));
		CHECK(bytes == 1 || (s.text[0] == '/' && s.text[strlen(s.text) - 1] == 'z'));
		if (bytes < sizeof(s.text))
			CHECK_STR(s.text, path);
		else
			CHECK(strstr(s.text, "mm...mm") && strlen(s.text) > 100);
	}
}

TEST(long_names_of_any_bytes_stay_safe)
{
	static const char *const pieces[] = {"\n",   "\xff", "\xc3\xb6", "\xe9\x9b\xaa", "\xf0\x9f\x90\x8d",
					     "\x80", "\\"};

	for (size_t i = 0; i < COUNT(pieces); i++)
		for (size_t lead = 0; lead < 5; lead++) {
			char path[2000];
			size_t n = strlen(pieces[i]), used = lead;
			struct shown s;

			memset(path, 'a', lead);
			for (; used + n < sizeof(path); used += n)
				memcpy(path + used, pieces[i], n);
			STORY("piece %zu behind %zu bytes", i, lead);
			show_bytes(&s, path, used);
			check_safe(s.text, sizeof(s.text));
			CHECK(strstr(s.text, "..."));
		}
}

TEST(long_messages_keep_both_ends)
{
	for (size_t n = 900; n < 2600; n += 7) {
		struct shard_error err;
		char middle[2600];

		STORY("%zu bytes", n);
		memset(middle, 'm', n);
		middle[n] = 0;
		error_set(&err, SHARD_E_IO, "front %s", middle);
		check_safe(err.message, sizeof(err.message));
		CHECK(!strncmp(err.message, "front mmm", 9));
		CHECK(strlen(err.message) == (n + 6 < 1024 ? n + 6 : 1023));
		error_set(&err, SHARD_E_IO, "%.*s, at most 7", (int)(n > 2000 ? 2000 : n), middle);
		CHECK(strstr(err.message, "m, at most 7"));
		error_prefix(&err, "train/00017.shard");
		check_safe(err.message, sizeof(err.message));
		CHECK(!strncmp(err.message, "train/00017.shard: mmm", 22));
		CHECK(strstr(err.message, "m, at most 7"));
	}
}

/* A cut in the middle of a character would leave bytes that are no UTF-8. */
TEST(long_messages_are_not_cut_within_a_character)
{
	for (size_t lead = 0; lead < 16; lead++) {
		struct shard_error err;
		char text[1500];
		size_t used = lead % 4, trail = lead / 4;

		memset(text, 'a', used);
		for (; used + 4 + trail < sizeof(text); used += 4)
			memcpy(text + used, "\xf0\x9f\x90\x8d", 4);
		memset(text + used, 'z', trail);
		text[used + trail] = 0;
		STORY("%zu bytes before, %zu behind", lead % 4, trail);
		error_set(&err, SHARD_E_IO, "%s", text);
		check_safe(err.message, sizeof(err.message));
		error_prefix(&err, "x");
		check_safe(err.message, sizeof(err.message));
	}
}

TEST(three_long_names_fit_one_message)
{
	char path[4000];
	struct shard_error err;
	struct shown a, b;

	memset(path, 'p', sizeof(path) - 1);
	path[sizeof(path) - 1] = 0;
	error_set(&err, SHARD_E_EXISTS, "%s: cannot become %s: taken", show(&a, path), show(&b, path));
	error_prefix(&err, path);
	check_safe(err.message, sizeof(err.message));
	CHECK(strstr(err.message, ": cannot become p"));
	CHECK(strstr(err.message, "p: taken"));
}

TEST(every_status_has_a_name_and_no_other_crashes)
{
	static const struct {
		int status;
		const char *want;
	} rows[] = {{SHARD_OK, "ok"},
		    {SHARD_END, "end"},
		    {SHARD_E_CORRUPT, "corrupt"},
		    {SHARD_E_CANCELLED, "cancelled"},
		    {SHARD_E_TIMEOUT, "timed out"},
		    {2, "unknown status"},
		    {-11, "unknown status"},
		    {INT32_MIN, "unknown status"}};

	for (size_t i = 0; i < COUNT(rows); i++)
		CHECK_STR(shard_status_name(rows[i].status), rows[i].want);
	for (int a = SHARD_E_TIMEOUT; a <= SHARD_END; a++)
		for (int b = a + 1; b <= SHARD_END; b++)
			CHECK(strcmp(shard_status_name(a), shard_status_name(b)));
}

TEST_MAIN()
