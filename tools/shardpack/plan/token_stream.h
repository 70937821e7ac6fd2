/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token_stream.h - tokens that lie one behind the other in a file, and what ends their documents
 */
#ifndef SHARD_TOKEN_PACK_TOKEN_STREAM_H
#define SHARD_TOKEN_PACK_TOKEN_STREAM_H

#include <stdint.h>

struct token_stream {
	uint64_t offset, count; /* of its first token in the file; tokens */
	uint64_t before;	/* tokens of the streams before it */
	uint32_t file;
	uint32_t index_file; /* Megatron-LM's index, which names its documents; PLAN_NO_FILE: a token ends them */
	uint8_t dtype, swap; /* as in a slice */
};

#endif
