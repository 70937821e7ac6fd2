/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recipe_read.h - the text of a recipe, read back
 */
#ifndef SHARD_PLAN_RECIPE_READ_H
#define SHARD_PLAN_RECIPE_READ_H

#include <stddef.h>

struct recipe;

/*
 * Read what recipe_write() wrote from the front of `in`.  Returns how many bytes that was;
 * 0, with the offset of the line that is wrong in *wrong, if it is not a recipe.
 */
size_t recipe_read(struct recipe *r, const char *in, size_t in_bytes, size_t *wrong);

#endif
