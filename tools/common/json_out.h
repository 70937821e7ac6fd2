/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_out.h - write one JSON document to a stream
 *
 *   struct json_out j;
 *
 *   json_out_start(&j, stdout);
 *   json_out_object(&j, NULL);
 *   json_out_u64(&j, "record_count", count);
 *   json_out_array_line(&j, "shape");
 *   json_out_u64(&j, NULL, 224);
 *   json_out_end(&j);
 *   json_out_end(&j);
 *   json_out_finish(&j);
 *
 * `key` is NULL in an array and for the document itself, and never NULL in an object; a
 * wrong one, and an end too many or too few, is a mistake in the program and asserts.
 * Containers are indented by two spaces; a ..._line container stands on one line with all
 * that is in it.  Nothing is allocated, so a document may have any length.  After an error of
 * writing nothing more is written; the error stays in the stream, see ferror().
 */
#ifndef SHARD_COMMON_JSON_OUT_H
#define SHARD_COMMON_JSON_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define JSON_DEPTH_MAX 16

struct json_level {
	bool is_object, is_line, has_item;
};

struct json_out {
	FILE *out;
	unsigned depth; /* containers open */
	bool has_value; /* the document's value was begun */
	struct json_level levels[JSON_DEPTH_MAX];
};

void json_out_start(struct json_out *j, FILE *out);

void json_out_object(struct json_out *j, const char *key);
void json_out_object_line(struct json_out *j, const char *key);
void json_out_array(struct json_out *j, const char *key);
void json_out_array_line(struct json_out *j, const char *key);
void json_out_end(struct json_out *j); /* of the innermost container */

/* A byte that is not valid UTF-8 becomes U+FFFD: the text may come from a file. */
void json_out_string(struct json_out *j, const char *key, const char *text);
void json_out_string_bytes(struct json_out *j, const char *key, const char *text, size_t text_bytes);
void json_out_u64(struct json_out *j, const char *key, uint64_t value);
void json_out_i64(struct json_out *j, const char *key, int64_t value);
void json_out_double(struct json_out *j, const char *key, double value); /* exact; null if not finite */
void json_out_bool(struct json_out *j, const char *key, bool value);
void json_out_null(struct json_out *j, const char *key);

/* End the last line and flush.  The stream stays open. */
void json_out_finish(struct json_out *j);

#endif
