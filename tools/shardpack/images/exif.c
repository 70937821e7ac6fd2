/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exif.c - which way up an image file says it is
 *
 * Walks the file's segments as far as its bytes go and believes no length.  Whether the rest of the
 * file is any good is the decoder's to say.
 */
#include "tools/shardpack/images/images.h"

#include <stdlib.h>
#include <string.h>

#define JPEG_EXIF	"Exif\0\0"
#define JPEG_EXIF_BYTES 6
#define JPEG_XMP	"http://ns.adobe.com/xap/1.0/" /* its NUL is a part of it */
#define PNG_XMP		"XML:com.adobe.xmp"
#define PNG_RAW_EXIF	"Raw profile type exif"
#define PNG_EXIF	"exif" /* a text that Pillow takes for EXIF data */

struct bytes {
	const uint8_t *at;
	size_t count;
};

/* What a file says in either place; XMP counts if EXIF data has no entry. */
static uint32_t orientation_in(const struct exif_tiff *exif, const struct xmp *xmp)
{
	return exif->said == EXIF_SAYS_NOTHING ? xmp->orientation : exif->orientation;
}

static bool starts_with(struct bytes b, const char *what, size_t bytes)
{
	return b.count >= bytes && !memcmp(b.at, what, bytes);
}

/* `count` bytes from `offset` on, or none if they are not all there. */
static struct bytes part(struct bytes b, uint64_t offset, uint64_t count)
{
	if (offset > b.count || count > b.count - offset)
		return (struct bytes){NULL, 0};
	return (struct bytes){b.at + offset, (size_t)count};
}

/* So many prefixes as Pillow takes off; up to 12 it takes off all. */
static struct exif_tiff read_exif(struct bytes b, unsigned prefixes, enum exif_rules rules)
{
	bool is_13 = rules == EXIF_RULES_PILLOW_13;

	return exif_tiff(b.at, b.count, is_13 ? prefixes : UINT32_MAX, is_13);
}

/* The next segment of type APP1, before the scan. */
static bool next_app1(struct bytes file, size_t *at, struct bytes *out)
{
	struct jpeg_segment segment;

	do {
		if (!jpeg_segment_next(file.at, file.count, at, &segment))
			return false;
	} while (segment.marker != JPEG_APP1);
	*out = (struct bytes){segment.data, segment.bytes};
	return true;
}

/* EXIF data that goes on in further segments, without their prefixes. */
static bool join_exif(struct bytes file, size_t size, enum exif_rules rules, struct exif_tiff *out)
{
	uint8_t *joined = malloc(size);
	struct bytes segment;
	size_t at = JPEG_SEGMENTS_AT, used = 0;

	if (!joined)
		return false;
	while (next_app1(file, &at, &segment))
		if (starts_with(segment, JPEG_EXIF, JPEG_EXIF_BYTES)) {
			size_t skip = used ? JPEG_EXIF_BYTES : 0;

			memcpy(joined + used, segment.at + skip, segment.count - skip);
			used += segment.count - skip;
		}
	*out = read_exif((struct bytes){joined, used}, 2, rules);
	free(joined);
	return true;
}

bool jpeg_stated(const uint8_t *bytes, size_t size, enum exif_rules rules, uint32_t *stated)
{
	struct bytes file = {bytes, size}, segment, exif = {NULL, 0};
	size_t at = JPEG_SEGMENTS_AT, exif_bytes = 0;
	struct xmp xmp = {.is_empty = true};
	struct exif_tiff said;

	while (next_app1(file, &at, &segment)) {
		if (starts_with(segment, JPEG_EXIF, JPEG_EXIF_BYTES)) {
			exif_bytes += segment.count;
			exif = segment;
		} else if (starts_with(segment, JPEG_XMP, sizeof(JPEG_XMP))) {
			xmp = xmp_read(segment.at + sizeof(JPEG_XMP), segment.count - sizeof(JPEG_XMP));
		}
	}
	if (exif_bytes <= exif.count)
		said = read_exif(exif, 2, rules);
	else if (!join_exif(file, exif_bytes, rules, &said))
		return false;
	*stated = orientation_in(&said, &xmp);
	return true;
}

/* A profile as ImageMagick writes it: three lines, then the data in hexadecimal digits. */
static struct exif_tiff read_raw_exif(const struct png_text *text, uint8_t *out, enum exif_rules rules)
{
	static const char digits[] = "0123456789abcdef";
	size_t at = 0, used = 0;
	int high = -1;

	for (int lines = 0; lines < 3; lines++) {
		const uint8_t *end = at < text->count ? memchr(text->bytes + at, '\n', text->count - at) : NULL;

		at = end ? (size_t)(end - text->bytes) + 1 : text->count;
	}
	for (; at < text->count; at++) {
		int c = text->bytes[at], lower = c >= 'A' && c <= 'F' ? c - 'A' + 'a' : c;
		const char *digit = c ? strchr(digits, lower) : NULL;

		if (c == '\n' || (high < 0 && c && strchr(" \t\r\v\f", c)))
			continue;
		if (!digit)
			return (struct exif_tiff){.said = EXIF_UNREADABLE};
		if (high >= 0)
			out[used++] = (uint8_t)(high << 4 | (int)(digit - digits));
		high = high < 0 ? (int)(digit - digits) : -1;
	}
	if (high >= 0)
		return (struct exif_tiff){.said = EXIF_UNREADABLE};
	return read_exif((struct bytes){out, used}, 2, rules);
}

/* What the chunks of a PNG have said so far. */
struct png_said {
	struct exif_tiff exif, raw; /* in a chunk of its own, or as text */
	bool has_exif;
	struct xmp characters, xmp; /* XMP in any text, and in iTXt also what is no UTF-8 */
	uint64_t inflated_bytes;
};

static bool read_png_text(const struct png_chunk *chunk, enum exif_rules rules, struct png_said *said)
{
	bool is_xmp = png_text_is(chunk, PNG_XMP), ok = true;
	struct png_text text;
	enum png_text_status status;
	uint8_t *raw;

	if (said->inflated_bytes > PNG_TEXT_ALL_BYTES)
		return true;
	status = png_text_read(chunk, &text);
	said->inflated_bytes += text.inflated_bytes;
	switch (status) {
	case PNG_TEXT_NO_MEMORY:
		return false;
	case PNG_TEXT_NONE:
		return true;
	case PNG_TEXT:
		break;
	}
	if (is_xmp && png_chunk_is(chunk, "iTXt"))
		said->xmp = xmp_read(text.bytes, text.count);
	if (is_xmp && text.is_characters)
		said->characters = xmp_read(text.bytes, text.count);
	if (!is_xmp && text.is_characters) {
		raw = malloc(text.count / 2 + 1);
		if (raw)
			said->raw = read_raw_exif(&text, raw, rules);
		ok = raw;
		free(raw);
	}
	free(text.owned);
	return ok;
}

/* Anywhere in the file; the last of each kind counts. */
bool png_stated(const uint8_t *bytes, size_t size, enum exif_rules rules, uint32_t *stated)
{
	struct png_said said = {.characters = {.is_empty = true}, .xmp = {.is_empty = true}};
	size_t at = PNG_MAGIC_BYTES;
	struct png_chunk chunk;

	while (png_chunk_next(bytes, size, &at, &chunk) && !png_chunk_is(&chunk, "IEND"))
		if (png_chunk_is(&chunk, "eXIf")) {
			said.exif = read_exif((struct bytes){chunk.data, chunk.bytes}, 1, rules);
			said.has_exif = true;
		} else if (png_chunk_is(&chunk, "tEXt") && png_text_is(&chunk, PNG_EXIF)) {
			size_t skip = chunk.bytes < sizeof(PNG_EXIF) ? chunk.bytes : sizeof(PNG_EXIF);

			said.exif = read_exif((struct bytes){chunk.data + skip, chunk.bytes - skip}, 2, rules);
			said.has_exif = true;
		} else if (png_text_is(&chunk, PNG_XMP) || png_text_is(&chunk, PNG_RAW_EXIF)) {
			if (!read_png_text(&chunk, rules, &said))
				return false;
		}
	*stated = orientation_in(said.has_exif ? &said.exif : &said.raw,
				 said.characters.is_empty ? &said.xmp : &said.characters);
	return true;
}

/* The first chunk of that name counts. */
static struct bytes find_in_webp(struct bytes file, const char *name)
{
	size_t at = 12;

	while (file.count - at >= 8) {
		const uint8_t *head = file.at + at;
		uint64_t length = head[4] | head[5] << 8 | head[6] << 16 | (uint64_t)head[7] << 24;
		struct bytes chunk = part(file, at + 8, length);

		if (!chunk.at || !memcmp(head, name, 4))
			return chunk;
		if (length % 2 && !part(file, at + 8 + length, 1).at)
			break;
		at += 8 + (size_t)length + length % 2;
	}
	return (struct bytes){NULL, 0};
}

/* Only an extended file has them, and says so. */
bool webp_stated(const uint8_t *bytes, size_t size, enum exif_rules rules, uint32_t *stated)
{
	struct exif_tiff exif = {.said = EXIF_SAYS_NOTHING};
	struct xmp xmp = {.is_empty = true};
	struct bytes file = {bytes, size};
	const uint8_t *head = bytes + 4;
	uint64_t riff_bytes = 8 + (uint64_t)(head[0] | head[1] << 8 | head[2] << 16 | (uint64_t)head[3] << 24);
	struct bytes found;

	if (riff_bytes < file.count) /* what follows is not the image's */
		file.count = (size_t)riff_bytes;
	*stated = 0;
	if (!starts_with(part(file, 12, 18), "VP8X", 4))
		return true;
	if (file.at[20] & 0x08) {
		found = find_in_webp(file, "EXIF");
		exif = read_exif(found, 2, rules);
	}
	if (file.at[20] & 0x04) {
		found = find_in_webp(file, "XMP ");
		xmp = xmp_read(found.at, found.count);
	}
	*stated = orientation_in(&exif, &xmp);
	return true;
}

/* The file is a structure like that of EXIF data. */
bool tiff_stated(const uint8_t *bytes, size_t size, enum exif_rules rules, uint32_t *stated)
{
	struct exif_tiff exif = exif_tiff(bytes, size, 0, rules == EXIF_RULES_PILLOW_13);
	struct xmp xmp = {.is_empty = true};

	if (exif.xmp)
		xmp = xmp_read(exif.xmp, exif.xmp_bytes);
	*stated = orientation_in(&exif, &xmp);
	return true;
}

uint32_t exif_stated_beside(uint32_t boxes, const uint8_t *exif, size_t exif_bytes, const uint8_t *xmp,
			    size_t xmp_bytes, enum exif_rules rules)
{
	struct exif_tiff said = read_exif((struct bytes){exif, exif_bytes}, 2, rules);

	if (boxes != 1)
		return boxes;
	if (said.said == EXIF_UNREADABLE)
		return 0;
	return said.said == EXIF_SAYS ? 1 : xmp_read(xmp, xmp_bytes).orientation;
}
