/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_value.h - values of JSON: found by a key, which may be nested, and named in messages
 *
 * "objects.bbox" is the key `bbox` of the object at the key `objects`.  A key that has the dots
 * itself comes first.
 */
#ifndef SHARD_SHARDPACK_PARSE_JSON_VALUE_H
#define SHARD_SHARDPACK_PARSE_JSON_VALUE_H

#include <jansson.h>

#define JSON_VALUE_BYTES 240

/* NULL if there is none, as also if `object` is not an object. */
json_t *json_value_find(const json_t *object, const char *key);

/* What a value is: "1.5", "null", "a list of 3", "an object with the keys 'a' 'b'". */
const char *json_value_say(const json_t *value, char out[JSON_VALUE_BYTES]);

/*
 * Why nothing is at a key, for people: "no key is called x; the keys are 'a' 'b', and a.x is
 * there", or "x is null".
 */
const char *json_value_absent(const json_t *object, const char *key, char out[JSON_VALUE_BYTES]);

/* The text of an error of json_loadb(), in words that are not those of a library. */
const char *json_why(const json_error_t *error);

#endif
