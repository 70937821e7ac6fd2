/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token_file.h - the head of a file of tokens
 *
 *   llm.c     256 x i32: 20240520, 1, tokens, then u16; or 20240801, 7, tokens, then u32
 *   nanoGPT   no head at all: u16 from the first byte on
 *
 * Pure: bytes in, numbers out.
 */
#ifndef SHARD_FORMAT_TOKEN_FILE_H
#define SHARD_FORMAT_TOKEN_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TOKEN_FILE_HEAD_BYTES 1024

struct token_file {
	uint32_t dtype; /* enum shard_dtype; 0: there is no head, so the user must name it */
	uint64_t data_offset;
	uint64_t token_count; /* from the head; 0 without one */
};

/* `size` is all of the file, or TOKEN_FILE_HEAD_BYTES.  False, and `why` says why not. */
bool token_file_parse(const uint8_t *bytes, size_t size, struct token_file *out, char *why, size_t why_bytes);

/*
 * Does a file without a head begin as one of another kind does?  NULL, or what it is, and what to
 * do with it.  Tokens begin so by chance in one of 2^24 files.
 */
struct token_file_other {
	const char *magic;
	size_t bytes;
	const char *what, *remedy;
};
const struct token_file_other *token_file_other(const uint8_t *bytes, size_t size);

#endif
