/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mask_map_file.h - the file of map=FILE, with the classes of a mask's colours or values
 */
#ifndef SHARD_SOURCES_MASK_MAP_FILE_H
#define SHARD_SOURCES_MASK_MAP_FILE_H

#include "tools/shardpack/images/mask_map.h"

/* Fill an empty map, of the field `field`.  Says why not, and returns the exit code. */
int mask_map_file_read(struct mask_map *m, const char *field, const char *path);

#endif
