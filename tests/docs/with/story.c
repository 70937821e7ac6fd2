/* SPDX-License-Identifier: Apache-2.0 */
/*
 * story.c - around a test of keys_fit(), which is here
 *
 * CFLAGS: -I. -Iinclude -D_GNU_SOURCE -pthread
 */
#include <shard.h>

#include "tests/test.h"

static int keys_fit(uint64_t count, uint32_t stride, uint64_t limit_bytes)
{
	return count > limit_bytes / stride ? SHARD_E_CORRUPT : SHARD_OK;
}

#include "block.c"

TEST_MAIN()
