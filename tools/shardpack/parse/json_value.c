/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_value.c - values of JSON: found by a key, which may be nested, and named in messages
 */
#include "tools/shardpack/parse/json_value.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* Is the last part of the key one of an object below?  "objects", of which it is a key. */
static const char *find_below(const json_t *object, const char *key, const char **last)
{
	const char *name, *dot = strrchr(key, '.');
	json_t *value;

	*last = dot ? dot + 1 : key;
	json_object_foreach((json_t *)(uintptr_t)object, name, value)
	{
		if (json_object_get(value, *last))
			return name;
	}
	return NULL;
}

const char *json_value_absent(const json_t *object, const char *key, char out[JSON_VALUE_BYTES])
{
	const char *last, *below = find_below(object, key, &last);
	char keys[SHOWN_BYTES];

	if (json_value_find(object, key)) {
		snprintf(out, JSON_VALUE_BYTES, "%.60s is null", key);
		return out;
	}
	for (const char *dot = strchr(key, '.'); dot && dot - key < PART_BYTES; dot = strchr(dot + 1, '.')) {
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
	say_keys(object, keys, sizeof(keys));
	snprintf(out, JSON_VALUE_BYTES, "no key is called %.60s; %s%s%s%.30s%s%.30s%s", key,
		 keys[0] ? "the keys are " : "there are none", keys, below ? ", and " : "", below ? below : "",
		 below ? "." : "", below ? last : "", below ? " is there" : "");
	return out;
}
