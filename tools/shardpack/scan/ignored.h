/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ignored.h - files of the source that are no inputs: how many of each ending, and their names
 *
 * A user who sees ".gif 9" learns that a part of his images is missing; a number alone does not say
 * so.
 */
#ifndef SHARD_SCAN_IGNORED_H
#define SHARD_SCAN_IGNORED_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/common/text.h"

#define IGNORED_ENDING_BYTES 12 /* longer ones are names, rather than kinds of files */
#define IGNORED_ENDINGS	     64 /* files of further ones are counted together */

struct ignored_ending {
	char text[IGNORED_ENDING_BYTES + 1]; /* lower case, with its dot; empty: no ending */
	uint64_t count;
};

struct ignored {		     /* start it zeroed */
	uint64_t count, other_count; /* other: of none of these endings */
	struct ignored_ending ending[IGNORED_ENDINGS];
	uint32_t ending_count;
	bool keep_names;
	struct text names; /* if they are kept: "folder/name", a NUL behind each, in the order found */
};

/* A file or member `name`, which lies in `folder`: a path, or "" if that is part of the name. */
void ignored_add(struct ignored *g, const char *folder, const char *name);

/* The most frequent endings first, and by name where they are equally frequent. */
void ignored_sort(struct ignored *g);

/* Of the ending, with its dot: is it that of images, though not of a kind that is read? */
bool ignored_is_foreign_image(const char *ending);

/* ".txt 3, .json 1, no ending 2"; the rest of many in one number.  It was sorted. */
void ignored_list(const struct ignored *g, struct text *out);

void ignored_free(struct ignored *g);

#endif
