/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge.c - around statements that judge a number of a file
 *
 * CFLAGS: -I. -Iinclude
 */
#include <inttypes.h>

#include "libshard/base/error.h"

int judge(uint64_t count, uint32_t stride_bytes, uint64_t used_bytes, uint64_t limit_bytes, struct shard_error *err);

int judge(uint64_t count, uint32_t stride_bytes, uint64_t used_bytes, uint64_t limit_bytes, struct shard_error *err)
{
#include "block.c"
	return SHARD_OK;
}
