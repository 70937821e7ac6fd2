/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load.h - numbers from little-endian bytes, wherever they lie
 */
#ifndef SHARD_COMMON_LOAD_H
#define SHARD_COMMON_LOAD_H

#include <stdint.h>

static inline uint32_t load16(const uint8_t *b)
{
	return b[0] | (uint32_t)b[1] << 8;
}

static inline uint32_t load32(const uint8_t *b)
{
	return load16(b) | load16(b + 2) << 16;
}

static inline uint64_t load64(const uint8_t *b)
{
	return load32(b) | (uint64_t)load32(b + 4) << 32;
}

#endif
