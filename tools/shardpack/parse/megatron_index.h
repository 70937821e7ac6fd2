/* SPDX-License-Identifier: Apache-2.0 */
/*
 * megatron_index.h - the head of X.idx, which Megatron-LM writes beside the tokens in X.bin
 *
 *   "MMIDIDX\0\0", version u64 (1), type u8, sequences u64, documents + 1 u64
 *   for each sequence its length in tokens, i32
 *   for each sequence where it begins in X.bin, i64
 *   for each document the sequence that it begins with, i64; then the number of sequences
 *
 * Pure: bytes in, numbers out.
 */
#ifndef SHARD_SHARDPACK_PARSE_MEGATRON_INDEX_H
#define SHARD_SHARDPACK_PARSE_MEGATRON_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MEGATRON_INDEX_HEAD_BYTES 34

struct megatron_index {
	uint32_t dtype; /* enum shard_dtype of its tokens */
	uint64_t sequence_count, document_count;
	uint64_t lengths_at, begins_at, documents_at; /* offsets of the three arrays */
};

/* Does a file begin as an index does? */
bool megatron_index_is(const uint8_t *bytes, size_t size);

/*
 * `bytes` are the first `size` of a file of `file_bytes`, MEGATRON_INDEX_HEAD_BYTES of them or all.
 * False, and `why` says why not, if it is not an index that we read, or its arrays are not the rest
 * of the file.
 */
bool megatron_index_parse(const uint8_t *bytes, size_t size, uint64_t file_bytes, struct megatron_index *out, char *why,
			  size_t why_bytes);

#endif
