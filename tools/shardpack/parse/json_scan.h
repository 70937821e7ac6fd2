/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_scan.h - JSON value by value, of a document that need not fit in memory
 *
 * A cursor over the text.  Members of objects and elements of arrays come one by one; a value is
 * taken as a range of the text, or passed over, and its grammar is checked in both cases.  Only the
 * value at hand is in memory.  No I/O: the caller gives a function that reads.
 */
#ifndef SHARD_FORMAT_JSON_SCAN_H
#define SHARD_FORMAT_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JSON_SCAN_WHY_BYTES   160
#define JSON_SCAN_VALUE_BYTES (UINT64_C(1) << 26) /* the limit of one value that is taken */

struct json_range {
	const char *text; /* until the next call; not NUL-terminated */
	size_t bytes;
	uint64_t offset; /* in the document */
};

struct json_scan {
	uint64_t bytes; /* of the document */
	bool (*read)(void *context, uint64_t offset, void *out, size_t bytes);
	void *context;
	char why[JSON_SCAN_WHY_BYTES]; /* the fault, with its place; empty if reading failed */

	char *window; /* a part of the document, which begins at `base` */
	uint64_t base;
	size_t have, capacity, at;
	size_t keep; /* what is being taken begins here; SIZE_MAX: nothing is */
	bool failed;
	bool no_memory; /* that is why it failed: it says nothing of the document */
};

enum json_step { JSON_ITEM, JSON_END, JSON_BAD };

/* `read` gives exactly so many bytes, all within the document, or says why not. */
void json_scan_start(struct json_scan *s, uint64_t bytes,
		     bool (*read)(void *context, uint64_t offset, void *out, size_t bytes), void *context);
/* Of a text in memory, which must outlive it. */
void json_scan_text(struct json_scan *s, const char *text, size_t bytes);
void json_scan_free(struct json_scan *s);

/* The next byte that is no blank: '{' of an object, '[' of an array; 0 at the end or a fault. */
char json_scan_peek(struct json_scan *s);

/*
 * The next member of the object, or element of the array, that begins here; *first is true at the
 * first call.  Its value is next, and must be taken, passed over, or gone into.
 */
enum json_step json_scan_member(struct json_scan *s, bool *first, struct json_range *key);
enum json_step json_scan_element(struct json_scan *s, bool *first);

/* The value that is next.  False after a fault. */
bool json_scan_take(struct json_scan *s, struct json_range *out);
bool json_scan_skip(struct json_scan *s);

/* Nothing but blanks may follow. */
bool json_scan_ends(struct json_scan *s);

/* ---- ranges ---- */

/* A key or string, with its quotes: is it this word? */
bool json_range_is(const struct json_range *r, const char *word);

/*
 * A string without its quotes and escapes, into `out` of r->bytes, with a NUL.  *out_bytes is its
 * length.  False if it is none, or has half of a surrogate pair.
 */
bool json_range_string(const struct json_range *r, char *out, size_t *out_bytes);

/* A whole number, as "12" or "-1"; any other form of a number is none. */
bool json_range_whole(const struct json_range *r, int64_t *out);

#endif
