/* SPDX-License-Identifier: Apache-2.0 */
/*
 * megatron_index.c - the head of X.idx, which Megatron-LM writes beside the tokens in X.bin
 */
#include "tools/shardpack/format/megatron_index.h"

#include <string.h>

#include "shard.h"
#include "tools/common/load.h"

#define MAGIC	    "MMIDIDX\0"
#define MAGIC_BYTES 9 /* with the NUL that ends it */

bool megatron_index_parse(const uint8_t *bytes, size_t size, struct megatron_index *out)
{
	/* codes 6 and 7 are floats, of which width depends on who wrote them; they are no tokens */
	static const uint8_t dtypes[] = {
		[1] = SHARD_U8, [2] = SHARD_I8, [3] = SHARD_I16, [4] = SHARD_I32, [5] = SHARD_I64, [8] = SHARD_U16};
	uint64_t bounds;

	memset(out, 0, sizeof(*out));
	if (size < MAGIC_BYTES || memcmp(bytes, MAGIC, MAGIC_BYTES))
		return false;
	if (size < MEGATRON_INDEX_HEAD_BYTES || load64(bytes + 9) != 1)
		return true;
	out->dtype = bytes[17] < sizeof(dtypes) ? dtypes[bytes[17]] : 0;
	bounds = load64(bytes + 26);
	out->document_count = bounds ? bounds - 1 : 0;
	return true;
}
