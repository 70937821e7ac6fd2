/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heif.h - the container of AVIF and HEIF: which of them it is, and in which order its parts are
 */
#ifndef SHARD_FORMAT_HEIF_H
#define SHARD_FORMAT_HEIF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Does it begin as such a container, with a brand of AVIF? */
bool heif_is_avif(const uint8_t *bytes, size_t size);

/*
 * Is the data that all items name, together, at most so many bytes?  libavif copies items that are
 * in pieces, each with memory of its own, and items may share their bytes.
 */
bool heif_items_fit(const uint8_t *bytes, size_t size, uint64_t most);

/*
 * libavif before 1.1 puts the parts of a grid together in the order in which the file first names
 * them, whatever the grid says.  True if there is no grid, or if each list of parts is in the order
 * of their numbers, so that both orders are one.  The rest of the container is libavif's to judge.
 */
bool heif_grids_in_order(const uint8_t *bytes, size_t size);

#endif
