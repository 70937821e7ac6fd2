/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.c - JSON: read value by value, looked up by keys, and named in messages
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/shardpack/parse/json_value.h"
#include "tools/shardpack/parse/parse.h"

/* ---- value by value, of a document that need not fit in memory ---- */

#define WINDOW_BYTES ((size_t)1 << 20)
#define DEPTH_MAX    256

static bool bad(struct json_scan *s, const char *what)
{
	if (!s->failed)
		snprintf(s->why, sizeof(s->why), "byte %" PRIu64 ": %s", s->base + s->at, what);
	s->failed = true;
	return false;
}

void json_scan_start(struct json_scan *s, uint64_t bytes,
		     bool (*read)(void *context, uint64_t offset, void *out, size_t bytes), void *context)
{
	*s = (struct json_scan){.bytes = bytes, .read = read, .context = context, .keep = SIZE_MAX};
}

void json_scan_text(struct json_scan *s, const char *text, size_t bytes)
{
	*s = (struct json_scan){.bytes = bytes, .window = (char *)(uintptr_t)text, .have = bytes, .keep = SIZE_MAX};
}

void json_scan_free(struct json_scan *s)
{
	if (s->capacity)
		free(s->window);
	s->window = NULL;
	s->capacity = 0;
}

/* More of the document; what is no longer wanted makes room.  False at its end. */
static bool refill(struct json_scan *s)
{
	size_t from = s->keep < s->at ? s->keep : s->at, kept = s->have - from, want;
	uint64_t left = s->bytes - (s->base + s->have);
	char *larger;

	if (s->failed || !left || !s->read)
		return false;
	if (kept > JSON_SCAN_VALUE_BYTES)
		return bad(s, "a value of more than 64 MiB");
	if (s->capacity < kept + WINDOW_BYTES) {
		larger = realloc(s->window, 2 * kept + WINDOW_BYTES);
		if (!larger) {
			s->no_memory = true;
			return bad(s, "out of memory for a value");
		}
		s->window = larger;
		s->capacity = 2 * kept + WINDOW_BYTES;
	}
	memmove(s->window, s->window + from, kept);
	s->base += from;
	s->at -= from;
	s->have = kept;
	if (s->keep != SIZE_MAX)
		s->keep -= from;
	want = s->capacity - kept < left ? s->capacity - kept : (size_t)left;
	if (!s->read(s->context, s->base + kept, s->window + kept, want)) {
		s->failed = true; /* who reads has said why */
		return false;
	}
	s->have += want;
	return true;
}

/* -1 at the end. */
static int next_byte(struct json_scan *s)
{
	if (s->at == s->have && !refill(s))
		return -1;
	return (unsigned char)s->window[s->at];
}

char json_scan_peek(struct json_scan *s)
{
	int c = s->failed ? -1 : next_byte(s);

	while (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
		s->at++;
		c = next_byte(s);
	}
	return c > 0 ? (char)c : 0;
}

/* ---- grammar ---- */

static bool skip_string(struct json_scan *s)
{
	int c;

	s->at++; /* the quote */
	while ((c = next_byte(s)) != '"') {
		if (c < 0)
			return bad(s, "the document ends within a string");
		if (c < 0x20)
			return bad(s, "a control character in a string");
		s->at++;
		if (c != '\\')
			continue;
		c = next_byte(s);
		if (c < 0 || !memchr("\"\\/bfnrtu", c, 9))
			return bad(s, "not an escape of JSON");
		s->at++;
		for (int i = 0; c == 'u' && i < 4; i++, s->at++) {
			int digit = next_byte(s);

			if (digit <= 0 || !strchr("0123456789abcdefABCDEF", digit))
				return bad(s, "not an escape of JSON");
		}
	}
	s->at++;
	return true;
}

static bool skip_digits(struct json_scan *s)
{
	int c = next_byte(s);

	if (c < '0' || c > '9')
		return bad(s, "not a number of JSON");
	while ((c = next_byte(s)) >= '0' && c <= '9')
		s->at++;
	return true;
}

static bool skip_number(struct json_scan *s)
{
	int c;

	if (next_byte(s) == '-')
		s->at++;
	if (next_byte(s) == '0') {
		s->at++;
		c = next_byte(s);
		if (c >= '0' && c <= '9')
			return bad(s, "a number with a leading zero");
	} else if (!skip_digits(s)) {
		return false;
	}
	if (next_byte(s) == '.') {
		s->at++;
		if (!skip_digits(s))
			return false;
	}
	c = next_byte(s);
	if (c != 'e' && c != 'E')
		return true;
	s->at++;
	c = next_byte(s);
	s->at += c == '+' || c == '-';
	return skip_digits(s);
}

static bool skip_word(struct json_scan *s, const char *word)
{
	for (; *word; word++, s->at++)
		if (next_byte(s) != *word)
			return bad(s, "not a value of JSON");
	return true;
}

static bool skip_value(struct json_scan *s, unsigned depth);

static bool skip_items(struct json_scan *s, bool object, unsigned depth)
{
	enum json_step step;
	struct json_range key;
	bool first = true;

	if (depth > DEPTH_MAX)
		return bad(s, "more than 256 levels of arrays and objects");
	while ((step = object ? json_scan_member(s, &first, &key) : json_scan_element(s, &first)) == JSON_ITEM)
		if (!skip_value(s, depth + 1))
			return false;
	return step == JSON_END;
}

static bool skip_value(struct json_scan *s, unsigned depth)
{
	switch (json_scan_peek(s)) {
	case '{':
		return skip_items(s, true, depth);
	case '[':
		return skip_items(s, false, depth);
	case '"':
		return skip_string(s);
	case 't':
		return skip_word(s, "true");
	case 'f':
		return skip_word(s, "false");
	case 'n':
		return skip_word(s, "null");
	case 0:
		return bad(s, "the document ends where a value must be");
	default:
		return skip_number(s);
	}
}

/* ---- items ---- */

static enum json_step stop(struct json_scan *s, const char *what)
{
	bad(s, what);
	return JSON_BAD;
}

/* The opening bracket, the comma, or the closing one. */
static enum json_step next_item(struct json_scan *s, bool *first, char open, char close)
{
	char c = json_scan_peek(s);

	if (*first) {
		if (c != open)
			return stop(s, open == '{' ? "must be an object" : "must be an array");
		s->at++;
		c = json_scan_peek(s);
	}
	if (c == close) {
		s->at++;
		return JSON_END;
	}
	if (!*first) {
		if (c != ',')
			return stop(s, c ? "must be a comma, or the end of the array or object"
					 : "the document ends within an array or object");
		s->at++;
		json_scan_peek(s);
	}
	*first = false;
	return s->failed ? JSON_BAD : JSON_ITEM;
}

enum json_step json_scan_element(struct json_scan *s, bool *first)
{
	return next_item(s, first, '[', ']');
}

/* Inside of a value that is taken, its beginning must stay in memory, too. */
enum json_step json_scan_member(struct json_scan *s, bool *first, struct json_range *key)
{
	enum json_step step = next_item(s, first, '{', '}');
	size_t outer = s->keep, begin;

	if (step != JSON_ITEM)
		return step;
	if (json_scan_peek(s) != '"')
		return stop(s, "must be a key, which is a string");
	if (outer == SIZE_MAX)
		s->keep = s->at;
	begin = s->at - s->keep;
	if (!skip_string(s))
		return JSON_BAD;
	if (json_scan_peek(s) != ':')
		return stop(s, "must be a colon, behind the key");
	key->text = s->window + s->keep + begin;
	key->offset = s->base + s->keep + begin;
	key->bytes = s->at - s->keep - begin;
	while (key->text[key->bytes - 1] != '"')
		key->bytes--;
	if (outer == SIZE_MAX)
		s->keep = SIZE_MAX;
	s->at++;
	return JSON_ITEM;
}

bool json_scan_skip(struct json_scan *s)
{
	return !s->failed && skip_value(s, 0);
}

bool json_scan_take(struct json_scan *s, struct json_range *out)
{
	bool ok;

	json_scan_peek(s);
	s->keep = s->at;
	ok = json_scan_skip(s);
	*out = (struct json_range){.text = s->window + s->keep, .bytes = s->at - s->keep, .offset = s->base + s->keep};
	s->keep = SIZE_MAX;
	return ok;
}

bool json_scan_ends(struct json_scan *s)
{
	json_scan_peek(s);
	if (s->failed)
		return false;
	return s->base + s->at == s->bytes || bad(s, "something follows the end of the document");
}

/* ---- ranges ---- */

static int hex_of(const char *at)
{
	int value = 0;

	for (int i = 0; i < 4; i++) {
		int c = at[i];

		value = 16 * value + (c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
	}
	return value;
}

static char *put_utf8(char *out, uint32_t c)
{
	if (c < 0x80) {
		*out++ = (char)c;
	} else if (c < 0x800) {
		*out++ = (char)(0xc0 | c >> 6);
		*out++ = (char)(0x80 | (c & 0x3f));
	} else if (c < 0x10000) {
		*out++ = (char)(0xe0 | c >> 12);
		*out++ = (char)(0x80 | (c >> 6 & 0x3f));
		*out++ = (char)(0x80 | (c & 0x3f));
	} else {
		*out++ = (char)(0xf0 | c >> 18);
		*out++ = (char)(0x80 | (c >> 12 & 0x3f));
		*out++ = (char)(0x80 | (c >> 6 & 0x3f));
		*out++ = (char)(0x80 | (c & 0x3f));
	}
	return out;
}

/* At the `u` of an escape; *at ends behind it, and behind the second half of a pair. */
static bool read_unicode(const char **at, const char *end, uint32_t *c)
{
	int half;

	*c = (uint32_t)hex_of(*at + 1);
	*at += 5;
	if (*c >= 0xdc00 && *c < 0xe000)
		return false;
	if (*c < 0xd800 || *c >= 0xe000)
		return true;
	if (end - *at < 6 || (*at)[0] != '\\' || (*at)[1] != 'u')
		return false;
	half = hex_of(*at + 2);
	*at += 6;
	*c = 0x10000 + ((*c - 0xd800) << 10) + (uint32_t)(half - 0xdc00);
	return half >= 0xdc00 && half < 0xe000;
}

bool json_range_string(const struct json_range *r, char *out, size_t *out_bytes)
{
	static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
	const char *at = r->text + 1, *end = r->text + r->bytes - 1;
	char *begin = out;
	uint32_t c;

	if (r->bytes < 2 || r->text[0] != '"')
		return false;
	while (at < end) {
		if (*at != '\\') {
			*out++ = *at++;
		} else if (*++at != 'u') {
			*out++ = values[strchr(names, *at++) - names];
		} else {
			if (!read_unicode(&at, end, &c))
				return false;
			out = put_utf8(out, c);
		}
	}
	*out = '\0';
	*out_bytes = (size_t)(out - begin);
	return true;
}

bool json_range_is(const struct json_range *r, const char *word)
{
	char text[64];
	size_t bytes = 0;

	if (!memchr(r->text, '\\', r->bytes))
		return r->bytes == strlen(word) + 2 && !memcmp(r->text + 1, word, r->bytes - 2);
	return r->bytes <= 6 * strlen(word) + 2 && r->bytes <= sizeof(text) && json_range_string(r, text, &bytes) &&
	       bytes == strlen(word) && !memcmp(text, word, bytes);
}

bool json_range_whole(const struct json_range *r, int64_t *out)
{
	bool minus = r->bytes && r->text[0] == '-';
	uint64_t value = 0;

	if (r->bytes == minus || r->bytes - minus > 18)
		return false;
	for (size_t i = minus; i < r->bytes; i++) {
		if (r->text[i] < '0' || r->text[i] > '9')
			return false;
		value = 10 * value + (uint64_t)(r->text[i] - '0');
	}
	*out = minus ? -(int64_t)value : (int64_t)value;
	return true;
}

/* ---- values found by a key, which may be nested ---- */

#define PART_BYTES  256 /* of a part of a nested key: from= has at most 255 */
#define SHOWN_BYTES 100 /* of a text, or of the names of keys */

json_t *json_value_find(const json_t *object, const char *key)
{
	json_t *value = json_object_get(object, key);

	for (const char *dot = strchr(key, '.'); !value && dot; dot = strchr(dot + 1, '.')) {
		char folder[PART_BYTES];

		if (dot - key >= PART_BYTES)
			break;
		memcpy(folder, key, (size_t)(dot - key));
		folder[dot - key] = '\0';
		value = json_value_find(json_object_get(object, folder), dot + 1);
	}
	return value;
}

/* "'a' 'b'", into `room` bytes. */
static void say_keys(const json_t *object, char *out, size_t room)
{
	const char *key;
	json_t *value;
	size_t at = 0;

	out[0] = '\0';
	json_object_foreach((json_t *)(uintptr_t)object, key, value)
	{
		if (at < room)
			at += (size_t)snprintf(out + at, room - at, "%s'%s'", at ? " " : "", key);
	}
	if (at >= room)
		memcpy(out + room - 4, "...", 4);
}

const char *json_value_say(const json_t *value, char out[JSON_VALUE_BYTES])
{
	char keys[SHOWN_BYTES], *text;

	switch (value ? json_typeof(value) : JSON_NULL) {
	case JSON_ARRAY:
		snprintf(out, JSON_VALUE_BYTES, "a list of %zu", json_array_size(value));
		break;
	case JSON_OBJECT:
		say_keys(value, keys, sizeof(keys));
		snprintf(out, JSON_VALUE_BYTES, "an object with the key%s %s", json_object_size(value) == 1 ? "" : "s",
			 keys);
		break;
	default:
		text = value ? json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(15)) : NULL;
		snprintf(out, JSON_VALUE_BYTES, "%.*s%s", SHOWN_BYTES, text ? text : "null",
			 text && strlen(text) > SHOWN_BYTES ? "..." : "");
		free(text);
	}
	return out;
}

const char *json_value_absent(const json_t *object, const char *key, char out[JSON_VALUE_BYTES])
{
	const char *name, *dot = strrchr(key, '.'), *last = dot ? dot + 1 : key, *below = NULL;
	char keys[SHOWN_BYTES];
	json_t *inner;

	if (json_value_find(object, key)) {
		snprintf(out, JSON_VALUE_BYTES, "%.60s is null", key);
		return out;
	}
	for (dot = strchr(key, '.'); dot && dot - key < PART_BYTES; dot = strchr(dot + 1, '.')) {
		char part[PART_BYTES], what[JSON_VALUE_BYTES];
		const json_t *value;

		snprintf(part, sizeof(part), "%.*s", (int)(dot - key), key);
		value = json_value_find(object, part);
		if (value && !json_is_object(value)) {
			snprintf(out, JSON_VALUE_BYTES, "no key is called %.60s, because %.60s is %.80s", key, part,
				 json_value_say(value, what));
			return out;
		}
	}
	/* Perhaps an object below has it: "objects" has a key of that name. */
	json_object_foreach((json_t *)(uintptr_t)object, name, inner)
	{
		if (!below && json_object_get(inner, last))
			below = name;
	}
	say_keys(object, keys, sizeof(keys));
	snprintf(out, JSON_VALUE_BYTES, "no key is called %.60s; %s%s%s%.30s%s%.30s%s", key,
		 keys[0] ? "the keys are " : "there are none", keys, below ? ", and " : "", below ? below : "",
		 below ? "." : "", below ? last : "", below ? " is there" : "");
	return out;
}

/* ---- what is wrong, in words that are not those of a library ---- */

const char *json_why(const json_error_t *error)
{
	return json_error_code(error) == json_error_null_character
		       ? "a text has a NUL character (\\u0000); texts and names must have none"
		       : error->text;
}
