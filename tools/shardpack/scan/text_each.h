/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text_each.h - pick=each: a row whose lists of texts become an input for each text
 *
 * Several fields may be picked so: text k of each list goes to input k, and their lists must be
 * equally long.  A text that is no list counts as a list of one.  A list that is not there, or is
 * empty, may be so if its field is optional; then the field is empty in all inputs of the row.
 */
#ifndef SHARD_SCAN_TEXT_EACH_H
#define SHARD_SCAN_TEXT_EACH_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "tools/shardpack/plan/recipe.h"

struct bad_input;

#define TEXT_EACH_MOST 10000 /* inputs of a row */

/* Does any field have pick=each? */
bool text_each_asked(const struct recipe *r);

/* Of a row, or of an image of COCO. */
struct text_each {
	const struct recipe *recipe;
	size_t count;			/* inputs that it becomes; never 0 */
	json_t *list[RECIPE_NAMED_MAX]; /* NULL: its value is that of all inputs */
	char *one[RECIPE_NAMED_MAX];	/* text_each_at() */
};

/*
 * Look at value[i] of each such field: JSON, or NULL or empty if there is none.  What is no JSON is
 * left to the code that reads the value.  Returns EXIT_BAD, and `bad`, if lists differ in length or
 * are too long.  Close it in either case.
 */
int text_each_open(struct text_each *e, const struct recipe *r, const char *const *value, struct bad_input *bad);

/* value[i] becomes that of input k, until the next call.  False without memory. */
bool text_each_at(struct text_each *e, size_t k, const char **value);

void text_each_close(struct text_each *e);

#endif
