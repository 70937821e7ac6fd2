/* SPDX-License-Identifier: Apache-2.0 */
/*
 * extra.h - further columns of a table that become fields beside image and label: --columns age:f32,site:u16
 *
 * Each is one number.  In a plan the numbers of an input are bytes, as the record will have them, in the order of the
 * columns; as text they are hex.
 */
#ifndef SHARDPACK_EXTRA_H
#define SHARDPACK_EXTRA_H

#include "tools/shardpack/plan/recipe.h"

#define EXTRA_BYTES_MAX (8 * RECIPE_NAMED_MAX)

/* Enter the columns into the recipe.  False, and `why` says why not, if `text` is no such list. */
bool extra_settle(struct recipe *r, const char *text, char *why, size_t why_bytes);

/* Bytes of all columns of an input. */
size_t extra_bytes(const struct recipe *r);

/*
 * A number as it is written, as the bytes of a column: whole numbers within the range of an integer, anything that
 * strtod() reads all of for a float, 0, 1, true or false for a bool.  False if it is none.
 */
bool extra_value(const struct shard_field *column, const char *text, uint8_t out[8]);

#endif /* SHARDPACK_EXTRA_H */
