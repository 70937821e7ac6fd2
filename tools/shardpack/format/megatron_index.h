/* SPDX-License-Identifier: Apache-2.0 */
/*
 * megatron_index.h - the head of X.idx, which Megatron-LM writes beside the tokens in X.bin
 *
 *   "MMIDIDX\0\0", version u64 (1), dtype u8, sequences u64, documents + 1 u64, then the lengths of
 *   sequences, where they begin, and which of them begin a document
 *
 * Pure: bytes in, numbers out.
 */
#ifndef SHARD_FORMAT_MEGATRON_INDEX_H
#define SHARD_FORMAT_MEGATRON_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MEGATRON_INDEX_HEAD_BYTES 34

struct megatron_index {
	uint32_t dtype; /* enum shard_dtype of its tokens; 0: unknown */
	uint64_t document_count;
};

/* False if the file begins otherwise. */
bool megatron_index_parse(const uint8_t *bytes, size_t size, struct megatron_index *out);

#endif
