/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field_part.h - where a field of one input is, as a token of the input's line in a plan
 *
 *   =68656c6c6f        its value, in hex; two characters in memory for each byte
 *   7066,masks/a.png   a file: bytes, path in the source
 *   1536,24,0          a part of a file of the plan: offset, bytes, number of the file
 *   -                  nothing, if the field is optional
 *
 * Each field has one such token.  Only the numbers of --columns share a token: it comes first, and
 * has them in the order of the columns.
 *
 * Pure.
 */
#ifndef SHARD_PLAN_FIELD_PART_H
#define SHARD_PLAN_FIELD_PART_H

#include "tools/common/text.h"

enum field_part_kind { FIELD_PART_NONE, FIELD_PART_VALUE, FIELD_PART_FILE, FIELD_PART_MEMBER };

struct field_part {
	enum field_part_kind kind;
	uint64_t bytes, offset, file;
	const char *text; /* of a value the hex, of a file the encoded path; not NUL-terminated */
	size_t text_bytes;
};

/* Add a token, with a blank before it. */
void field_part_add_none(struct text *out);
void field_part_add_value(struct text *out, const void *value, size_t bytes);
void field_part_add_file(struct text *out, uint64_t bytes, const char *path);
void field_part_add_member(struct text *out, uint64_t offset, uint64_t bytes, uint64_t file);

/* Read a token of `bytes` bytes.  False if it is none; what it says is not checked further. */
bool field_part_read(const char *token, size_t bytes, struct field_part *out);

#endif
