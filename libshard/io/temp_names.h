/* SPDX-License-Identifier: Apache-2.0 */
/*
 * temp_names.h - what the digits behind a temporary name say: who may remove a file that was left
 *
 * A file that has no final name yet is locked by its owner.  But a lock says that the owner lives
 * only where both see it.  On network file systems it may hold on its own machine alone, or even on
 * its own mount, and nobody can ask.  There the first digits say where the file was made.  Others
 * leave it alone until the shard that it was for is there.
 */
#ifndef SHARD_IO_TEMP_NAMES_H
#define SHARD_IO_TEMP_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "shard.h"

#define FILE_TEMP_PREFIX    ".tmp."
#define FILE_TEMP_ID	    16 /* digits at the end of the name */
#define TEMP_PLACE_DIGITS   8  /* of FILE_TEMP_ID */
#define TEMP_NAME_BYTES_MAX (255 - (sizeof(FILE_TEMP_PREFIX) - 1) - 1 - FILE_TEMP_ID) /* of a final name */

/* Where a lock on a file of a folder is seen, and the digits that say so in names. */
struct temp_place {
	bool everywhere;
	char digits[TEMP_PLACE_DIGITS + 1]; /* of this boot of this kernel and this mount; empty: unknown */
};

void temp_place_find(struct temp_place *p, const char *dir, int dir_fd);

bool temp_is_id(const char *id); /* so many digits of 0-9a-f */

/* Digits for a new name.  Returns an errno. */
int temp_draw(char hex[FILE_TEMP_ID + 1], const struct temp_place *p);

/*
 * Remove the files that file_temp_create() made in `dir` and that no process holds any more; and on
 * network file systems those of shards that are there.
 */
int file_remove_temps(const char *dir, uint64_t *count, struct shard_error *err);

#endif
