/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mask_map.h - which class each colour, or each value, of a mask is
 *
 * Lines of a file, in any order: "R G B CLASS" of a map of colours, or "VALUE CLASS" of a map of
 * values, and "* CLASS" for all that no line names.  A file has one of both kinds.  In a plan a map
 * is one word, with its lines in the order of their keys: "0.0.0-0/128.64.128-1/else-255".  Pure.
 */
#ifndef SHARD_SHARDPACK_IMAGES_MASK_MAP_H
#define SHARD_SHARDPACK_IMAGES_MASK_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/common/text.h"

struct mask_map { /* start it zeroed */
	struct mask_map_line *line;
	uint64_t count, capacity;
	bool of_colours; /* once there is a line with a key */
	bool has_others; /* a line "*" */
	uint32_t others;
};

#define MASK_MAP_LINES_MAX     4096  /* each shard carries them, in its provenance, */
#define MASK_MAP_ALL_LINES_MAX 16384 /* so these are of all maps: less than half of a MiB */

/*
 * Add a line of a file, which may be empty or a comment behind '#'.  False, and `why` says why not,
 * if it is none, or its key was there before.
 */
bool mask_map_add(struct mask_map *m, const char *text, size_t bytes, char *why, size_t why_bytes);

/* The word of a plan, to be read back into an empty map.  False if it is not the one form. */
void mask_map_write(const struct mask_map *m, struct text *out);
bool mask_map_read(struct mask_map *m, const char *word, size_t bytes);

/* The largest class of all lines. */
uint32_t mask_map_most(const struct mask_map *m);

/* False without memory; then the copy is empty. */
bool mask_map_copy(const struct mask_map *m, struct mask_map *out);

void mask_map_free(struct mask_map *m);

#endif
