/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field_value.h - the value of a field: from the form in its source to the bytes of a record
 *
 * Text and bytes are taken as they are, to the last one.  With pick= the texts are a list in JSON,
 * or one text in JSON.  Numbers come as a JSON array, or as an
 * array of NumPy, told by its magic.  A whole number may become any type that holds it, a float one
 * of floating point, rounded to nearest.  Boxes become XYXY, still in the pixels of their image.
 */
#ifndef SHARD_PLAN_FIELD_VALUE_H
#define SHARD_PLAN_FIELD_VALUE_H

#include <stddef.h>

#include "tools/shardpack/plan/field.h"

/* Of kind=text that finds a list: what to type. */
#define FIELD_LIST_REMEDY                                                                                             \
	"say pick=first for its first text, pick=all,count=N for all of them in one record, or, of tables and COCO, " \
	"pick=each for a record of each"

/* Room that the value of a field takes at most. */
size_t field_value_room(const struct shard_field *f);

/*
 * All bytes of a cell, member or file.  `out` has that room; what a ragged one does not fill stays.
 * False, and the verdict, if it is none.
 */
bool field_value(const struct shard_field *f, const struct field_source *s, const void *data, size_t bytes,
		 uint8_t *out, size_t *out_bytes, struct field_verdict *v);

/*
 * The same, if `data` is an object in JSON and the value is that of s->from.  *there is false, and
 * so is the result, if it has none, or null.
 */
bool field_value_of_key(const struct shard_field *f, const struct field_source *s, const void *data, size_t bytes,
			uint8_t *out, size_t *out_bytes, bool *there, struct field_verdict *v);

/*
 * A number of --columns as it is written, as the bytes of its field: whole numbers within the range
 * of an integer, decimal numbers, inf and nan for a float, 0, 1, true or false for a bool.  False
 * if it is none of these.
 */
bool field_value_of_column(const struct shard_field *f, const char *text, uint8_t out[8]);

#endif
