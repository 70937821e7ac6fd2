/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token_file.c - the head of a file of tokens
 *
 * A file without a head could begin with the magic of one by chance: as u16 that would be two
 * certain tokens, then 1 and 0, which no text of a real vocabulary begins with.  So magic and
 * version together decide.
 */
#include "tools/shardpack/parse/parse.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "libshard/base/bytes.h"
#include "shard.h"

#define MAGIC_GPT2  20240520u
#define MAGIC_EVAL  20240522u /* multiple choice: not a stream */
#define MAGIC_LLAMA 20240801u

bool token_file_parse(const uint8_t *bytes, size_t size, struct token_file *out, char *why, size_t why_bytes)
{
	uint32_t magic = size >= 8 ? load32(bytes) : 0, version = size >= 8 ? load32(bytes + 4) : 0;
	uint32_t known = magic == MAGIC_GPT2 ? 1 : 7;

	memset(out, 0, sizeof(*out));
	if (magic == MAGIC_EVAL) {
		snprintf(why, why_bytes, "a file of evaluation questions (magic %u), not a stream of tokens", magic);
		return false;
	}
	if (magic != MAGIC_GPT2 && magic != MAGIC_LLAMA)
		return true;
	if (version != known) {
		snprintf(why, why_bytes, "magic %u with version %u; %u is known", magic, version, known);
		return false;
	}
	if (size < TOKEN_FILE_HEAD_BYTES) {
		snprintf(why, why_bytes, "ends at offset %zu, within its head of %d bytes", size,
			 TOKEN_FILE_HEAD_BYTES);
		return false;
	}
	out->dtype = magic == MAGIC_GPT2 ? SHARD_U16 : SHARD_U32;
	out->data_offset = TOKEN_FILE_HEAD_BYTES;
	out->token_count = load32(bytes + 8);
	if (!out->token_count) {
		snprintf(why, why_bytes, "its head says that it has no tokens");
		return false;
	}
	return true;
}

const struct token_file_other *token_file_other(const uint8_t *bytes, size_t size)
{
#define UNPACKED "so that it is unpacked"
#define AS_NPY	 "save its numbers as .npy"
	static const struct token_file_other rows[] = {
		{"\x1f\x8b\x08", 3, "a gzip file", "name it .gz, " UNPACKED},
		{"\x28\xb5\x2f\xfd", 4, "a zstd file", "name it .zst, " UNPACKED},
		{"BZh", 3, "a bzip2 file", "name it .bz2, " UNPACKED},
		{"\xfd\x37zXZ", 5, "an xz file", "name it .xz, " UNPACKED},
		{"PK\3\4", 4, "a ZIP, as .npz and .pt are", AS_NPY},
		{"\x80\2\x8a\n", 4, "a file of torch.save()", AS_NPY},
		{"\x80\4\x95", 3, "a pickle", AS_NPY},
		{"\x80\5\x95", 3, "a pickle", AS_NPY},
		{"\x89HDF", 4, "an HDF5 file", AS_NPY},
		{"PAR1", 4, "a Parquet table", AS_NPY},
		{"ARROW1", 6, "an Arrow table", AS_NPY},
		{"SQLite format 3", 15, "an SQLite database", AS_NPY},
		{"TNTIDX\0\0", 8, "an index of old Megatron-LM", "name the .bin beside it"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (size >= rows[i].bytes && !memcmp(bytes, rows[i].magic, rows[i].bytes))
			return &rows[i];
	return NULL;
}
