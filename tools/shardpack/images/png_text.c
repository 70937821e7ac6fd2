/* SPDX-License-Identifier: Apache-2.0 */
/*
 * png_text.c - a text chunk of a PNG file: its keyword and its text, inflated
 *
 * These are the rules of PIL.PngImagePlugin.PngStream, whose methods chunk_tEXt() and so on are one
 * function each.
 */
#include "tools/shardpack/images/images.h"

#include <stdlib.h>
#include <zlib.h>

#include "libshard/base/utf8.h"

/* What is not cut off yet. */
struct rest {
	const uint8_t *at;
	size_t bytes;
};

/* Cuts off what stands before the next NUL, and the NUL.  False without one. */
static bool cut(struct rest *r, struct rest *before)
{
	const uint8_t *nul = r->bytes ? memchr(r->at, 0, r->bytes) : NULL;

	if (!nul)
		return false;
	*before = (struct rest){r->at, (size_t)(nul - r->at)};
	r->bytes -= before->bytes + 1;
	r->at = nul + 1;
	return true;
}

static bool is_utf8(struct rest r)
{
	return utf8_bad(r.at, r.bytes) == r.bytes;
}

bool png_text_is(const struct png_chunk *chunk, const char *keyword)
{
	size_t bytes = strlen(keyword);

	return (png_chunk_is(chunk, "tEXt") || png_chunk_is(chunk, "zTXt") || png_chunk_is(chunk, "iTXt")) &&
	       chunk->bytes >= bytes && !memcmp(chunk->data, keyword, bytes) &&
	       (chunk->bytes == bytes || !chunk->data[bytes]);
}

enum inflated { INFLATED, INFLATED_DAMAGED, INFLATED_TOO_LONG, INFLATED_NO_MEMORY };

/* A stream that is cut short is as good as what there is of it. */
static enum inflated inflate_text(struct rest in, struct png_text *out)
{
	z_stream z = {.next_in = (Bytef *)(uintptr_t)in.at, .avail_in = (uInt)in.bytes};
	int rc;

	out->owned = malloc(PNG_TEXT_MAX_BYTES);
	if (!out->owned || inflateInit(&z) != Z_OK) {
		free(out->owned);
		out->owned = NULL;
		return INFLATED_NO_MEMORY;
	}
	z.next_out = out->owned;
	z.avail_out = PNG_TEXT_MAX_BYTES;
	rc = inflate(&z, Z_SYNC_FLUSH);
	out->bytes = out->owned;
	out->count = out->inflated_bytes = PNG_TEXT_MAX_BYTES - z.avail_out;
	inflateEnd(&z);
	if ((rc == Z_OK && !z.avail_in) || rc == Z_STREAM_END || (rc == Z_BUF_ERROR && !in.bytes))
		return INFLATED;
	free(out->owned);
	out->owned = NULL;
	return rc == Z_MEM_ERROR ? INFLATED_NO_MEMORY : rc == Z_OK ? INFLATED_TOO_LONG : INFLATED_DAMAGED;
}

/* Keyword, NUL, text; or a keyword alone. */
static enum png_text_status read_latin(struct rest r, struct png_text *out)
{
	struct rest keyword;

	if (cut(&r, &keyword)) {
		out->bytes = r.at;
		out->count = r.bytes;
	}
	return PNG_TEXT;
}

/* Keyword, NUL, method 0, compressed text; the text is empty if it cannot be inflated. */
static enum png_text_status read_compressed(struct rest r, struct png_text *out)
{
	struct rest keyword;

	if (!cut(&r, &keyword) || !r.bytes)
		return PNG_TEXT;
	if (r.at[0])
		return PNG_TEXT_NONE;
	switch (inflate_text((struct rest){r.at + 1, r.bytes - 1}, out)) {
	case INFLATED_NO_MEMORY:
		return PNG_TEXT_NO_MEMORY;
	case INFLATED_TOO_LONG:
		return PNG_TEXT_NONE;
	case INFLATED_DAMAGED:
		out->bytes = (const uint8_t *)"";
		out->count = 0;
		return PNG_TEXT;
	case INFLATED:
		break;
	}
	return PNG_TEXT;
}

/* Keyword, NUL, compressed or not, method, language, NUL, translated keyword, NUL, text. */
static enum png_text_status read_international(struct rest r, struct png_text *out)
{
	struct rest keyword, language, translated;
	const uint8_t *flags;
	enum inflated inflated;

	if (!cut(&r, &keyword) || r.bytes < 2)
		return PNG_TEXT_NONE;
	flags = r.at;
	r = (struct rest){r.at + 2, r.bytes - 2};
	if (!cut(&r, &language) || !cut(&r, &translated) || (flags[0] && flags[1]))
		return PNG_TEXT_NONE;
	out->bytes = r.at;
	out->count = r.bytes;
	inflated = flags[0] ? inflate_text(r, out) : INFLATED;
	if (inflated != INFLATED)
		return inflated == INFLATED_NO_MEMORY ? PNG_TEXT_NO_MEMORY : PNG_TEXT_NONE;
	out->is_characters = is_utf8(language) && is_utf8(translated) && is_utf8((struct rest){out->bytes, out->count});
	return PNG_TEXT;
}

enum png_text_status png_text_read(const struct png_chunk *chunk, struct png_text *out)
{
	const struct rest all = {chunk->data, chunk->bytes};

	*out = (struct png_text){.bytes = (const uint8_t *)"", .is_characters = true};
	return png_chunk_is(chunk, "tEXt")   ? read_latin(all, out)
	       : png_chunk_is(chunk, "zTXt") ? read_compressed(all, out)
					     : read_international(all, out);
}
