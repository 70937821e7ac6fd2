/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text_end.c - the last line of a small file, "end" and the SHA-256 of all before it
 */
#include "tools/common/text_end.h"

#include <string.h>

#include "shard_pack.h"

#define END_BYTES (strlen("end ") + 64 + strlen("\n"))

void text_add_end(struct text *t)
{
	uint8_t digest[32] = {0};

	if (!text_failed(t))
		shard_sha256(t->data, t->bytes, digest);
	text_add(t, "end ", 4);
	text_hex(t, digest, sizeof(digest));
	text_add(t, "\n", 1);
}

bool text_cut_end(struct text *t)
{
	uint8_t said[32], is[32];
	const char *end;

	if (t->bytes <= END_BYTES)
		return false;
	end = t->data + t->bytes - END_BYTES;
	if (memcmp(end, "end ", 4) || !text_unhex(end + 4, 64, said, 32) || end[68] != '\n')
		return false;
	t->bytes -= END_BYTES;
	t->data[t->bytes] = '\0';
	shard_sha256(t->data, t->bytes, is);
	return !memcmp(said, is, 32);
}
