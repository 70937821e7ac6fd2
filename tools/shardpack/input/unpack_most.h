/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack_most.h - how much a file may unpack to
 */
#ifndef SHARD_INPUT_UNPACK_MOST_H
#define SHARD_INPUT_UNPACK_MOST_H

#include <stdint.h>

/* How much may be written, and what to say and return if that is not enough. */
struct unpack_most {
	uint64_t bytes;
	int code;
	const char *remedy;
};

#endif
