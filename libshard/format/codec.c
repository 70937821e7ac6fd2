/* SPDX-License-Identifier: Apache-2.0 */
/*
 * codec.c - the table of codecs
 *
 * A new codec is a file with its row, a line here, and an id and a section in format/SHARD.md.
 */
#include "libshard/format/codec.h"

static const struct codec *const codecs[] = {
	[CODEC_RAW] = &codec_raw,
	[CODEC_LZ4] = &codec_lz4,
};

const struct codec *codec_find(uint32_t id)
{
	return id < sizeof(codecs) / sizeof(codecs[0]) ? codecs[id] : NULL;
}
