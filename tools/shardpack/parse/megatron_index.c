/* SPDX-License-Identifier: Apache-2.0 */
/*
 * megatron_index.c - the head of X.idx, which Megatron-LM writes beside the tokens in X.bin
 */
#include "tools/shardpack/parse/megatron_index.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "libshard/base/bytes.h"
#include "shard.h"

#define MAGIC	    "MMIDIDX\0"
#define MAGIC_BYTES 9 /* with the NUL that ends it */
#define COUNT_MAX   (UINT64_C(1) << 48)

bool megatron_index_is(const uint8_t *bytes, size_t size)
{
	return size >= MAGIC_BYTES && !memcmp(bytes, MAGIC, MAGIC_BYTES);
}

/* codes 6 and 7 are floats, of which width depends on who wrote them; they are no tokens */
static uint32_t dtype_of(uint8_t code)
{
	static const uint8_t dtypes[] = {
		[1] = SHARD_U8, [2] = SHARD_I8, [3] = SHARD_I16, [4] = SHARD_I32, [5] = SHARD_I64, [8] = SHARD_U16};

	return code < sizeof(dtypes) ? dtypes[code] : 0;
}

/* Sizes of arrays: none wraps, as counts stay below COUNT_MAX. */
static bool check_size(const struct megatron_index *x, uint64_t file_bytes, char *why, size_t why_bytes)
{
	uint64_t end = x->documents_at + 8 * (x->document_count + 1);

	if (file_bytes == end)
		return true;
	if (file_bytes == end + x->sequence_count)
		snprintf(why, why_bytes,
			 "an index of sequences with modes, of a multimodal dataset; these are not read");
	else
		snprintf(why, why_bytes,
			 "has %" PRIu64 " bytes, but an index of %" PRIu64 " sequences and %" PRIu64
			 " documents has %" PRIu64 "; it is %s",
			 file_bytes, x->sequence_count, x->document_count, end,
			 file_bytes < end ? "cut short" : "longer than it should be");
	return false;
}

bool megatron_index_parse(const uint8_t *bytes, size_t size, uint64_t file_bytes, struct megatron_index *out, char *why,
			  size_t why_bytes)
{
	uint64_t bounds;

	memset(out, 0, sizeof(*out));
	if (!megatron_index_is(bytes, size)) {
		snprintf(why, why_bytes, "not an index of Megatron-LM");
		return false;
	}
	if (size < MEGATRON_INDEX_HEAD_BYTES) {
		snprintf(why, why_bytes, "ends at offset %zu, within its head of %d bytes", size,
			 MEGATRON_INDEX_HEAD_BYTES);
		return false;
	}
	if (load64(bytes + 9) != 1) {
		snprintf(why, why_bytes, "an index of version %" PRIu64 "; 1 is known", load64(bytes + 9));
		return false;
	}
	out->dtype = dtype_of(bytes[17]);
	out->sequence_count = load64(bytes + 18);
	bounds = load64(bytes + 26);
	if (!out->dtype) {
		snprintf(why, why_bytes, "tokens of type %u (6 and 7 are floats); must be integers: 1 to 5, or 8",
			 bytes[17]);
		return false;
	}
	if (!bounds || bounds > COUNT_MAX || out->sequence_count > COUNT_MAX) {
		snprintf(why, why_bytes, "%" PRIu64 " sequences and %" PRIu64 " bounds of documents cannot be",
			 out->sequence_count, bounds);
		return false;
	}
	out->document_count = bounds - 1;
	out->lengths_at = MEGATRON_INDEX_HEAD_BYTES;
	out->begins_at = out->lengths_at + 4 * out->sequence_count;
	out->documents_at = out->begins_at + 8 * out->sequence_count;
	return check_size(out, file_bytes, why, why_bytes);
}
