/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mpf.h - how many pictures a JPEG file holds, by CIPA DC-007 (Multi-Picture Format)
 *
 * Cameras and phones put a second view, or a map of brightness, behind the picture, and an index
 * of them into a segment of the first one.
 */
#ifndef SHARD_FORMAT_MPF_H
#define SHARD_FORMAT_MPF_H

#include <stddef.h>
#include <stdint.h>

/*
 * Counts the picture that the file begins with and those in its index that are in the file.
 * Smaller copies of it, which the index calls thumbnails, do not count.  1 if there is no index.
 */
uint64_t mpf_pictures(const uint8_t *bytes, size_t size);

#endif
