/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exif.c - which way up an image file says it is
 *
 * Walks the file's segments as far as its bytes go and believes no length.  Whether the rest of the
 * file is any good is the decoder's to say.
 */
#include "tools/shardpack/format/exif.h"

#include <stdbool.h>
#include <string.h>

#include "tools/shardpack/format/png_chunk.h"

#define TAG_ORIENTATION 0x0112
#define TYPE_SHORT	3
#define TYPE_LONG	4

struct bytes {
	const uint8_t *at;
	size_t count;
};

static bool starts_with(struct bytes b, const char *what, size_t bytes)
{
	return b.count >= bytes && !memcmp(b.at, what, bytes);
}

static uint32_t load(const uint8_t *at, unsigned bytes, bool big)
{
	uint32_t value = 0;

	for (unsigned i = 0; i < bytes; i++)
		value |= (uint32_t)at[i] << 8 * (big ? bytes - 1 - i : i);
	return value;
}

/* `count` bytes from `offset` on, or none if they are not all there. */
static struct bytes part(struct bytes b, uint64_t offset, uint64_t count)
{
	if (offset > b.count || count > b.count - offset)
		return (struct bytes){NULL, 0};
	return (struct bytes){b.at + offset, (size_t)count};
}

/*
 * The first value of an entry of 12 bytes; false if it has none, or not of a type for an
 * orientation.
 */
static bool entry_value(struct bytes tiff, const uint8_t *entry, bool big, uint32_t *value)
{
	uint32_t type = load(entry + 2, 2, big), count = load(entry + 4, 4, big);
	unsigned bytes = type == TYPE_SHORT ? 2 : 4;
	const uint8_t *at = entry + 8;

	if (!count || (type != TYPE_SHORT && type != TYPE_LONG))
		return false;
	if ((uint64_t)count * bytes > 4) /* they stand elsewhere */
		at = part(tiff, load(entry + 8, 4, big), (uint64_t)count * bytes).at;
	if (at)
		*value = load(at, bytes, big);
	return at;
}

/* The first directory of a TIFF structure.  Of two entries the last one counts, as in Pillow. */
static uint32_t tiff_orientation(struct bytes tiff)
{
	uint32_t orientation = 0, offset, count;
	bool big;

	if (starts_with(tiff, "Exif\0\0", 6))
		tiff = part(tiff, 6, tiff.count - 6);
	big = starts_with(tiff, "MM", 2);
	if (tiff.count < 8 || (!big && !starts_with(tiff, "II", 2)) ||
	    (load(tiff.at + 2, 2, big) != 42 && load(tiff.at + 2, 2, !big) != 42))
		return 0;
	offset = load(tiff.at + 4, 4, big);
	if (!part(tiff, offset, 2).at)
		return 0;
	count = load(tiff.at + offset, 2, big);
	for (uint32_t i = 0; i < count; i++) {
		const uint8_t *entry = part(tiff, (uint64_t)offset + 2 + 12 * (uint64_t)i, 12).at;

		if (!entry)
			break;
		if (load(entry, 2, big) == TAG_ORIENTATION)
			entry_value(tiff, entry, big, &orientation);
	}
	return orientation <= 8 ? orientation : 0;
}

/* Segments up to the scan.  What stands between them is passed over, as the decoder does. */
static struct bytes find_in_jpeg(struct bytes file)
{
	size_t at = 2;

	while (file.count - at >= 4) {
		uint32_t marker = file.at[at + 1], length;

		if (file.at[at] != 0xff || marker == 0xff || marker == 0x00 || marker == 0x01 ||
		    (marker >= 0xd0 && marker <= 0xd8)) { /* junk, padding, or a marker without a length */
			at++;
			continue;
		}
		if (marker == 0xda || marker == 0xd9)
			break;
		length = load(file.at + at + 2, 2, true);
		if (length < 2 || length > file.count - at - 2)
			break;
		if (marker == 0xe1 && length >= 2 + 6 && !memcmp(file.at + at + 4, "Exif\0", 5))
			return part(file, at + 4, length - 2);
		at += 2 + (size_t)length;
	}
	return (struct bytes){NULL, 0};
}

/* Anywhere in the file; the last one counts, as in Pillow. */
static struct bytes find_in_png(struct bytes file)
{
	struct bytes found = {NULL, 0};
	size_t at = PNG_MAGIC_BYTES;
	struct png_chunk chunk;

	while (png_chunk_next(file.at, file.count, &at, &chunk) && !png_chunk_is(&chunk, "IEND"))
		if (png_chunk_is(&chunk, "eXIf"))
			found = (struct bytes){chunk.data, chunk.bytes};
	return found;
}

/* Only an extended file has one, and says so. */
static struct bytes find_in_webp(struct bytes file)
{
	size_t at = 12;

	if (!starts_with(part(file, 12, 18), "VP8X", 4) || !(file.at[20] & 0x08))
		return (struct bytes){NULL, 0};
	while (file.count - at >= 8) {
		uint64_t length = load(file.at + at + 4, 4, false);
		struct bytes chunk = part(file, at + 8, length);

		if (!chunk.at || !memcmp(file.at + at, "EXIF", 4))
			return chunk;
		if (length % 2 && !part(file, at + 8 + length, 1).at)
			break;
		at += 8 + (size_t)length + length % 2;
	}
	return (struct bytes){NULL, 0};
}

uint32_t exif_stated(const uint8_t *bytes, size_t size)
{
	struct bytes file = {bytes, size};

	if (starts_with(file, "\xff\xd8\xff", 3))
		return tiff_orientation(find_in_jpeg(file));
	if (starts_with(file, "\x89PNG\r\n\x1a\n", 8))
		return tiff_orientation(find_in_png(file));
	if (size >= 12 && starts_with(file, "RIFF", 4) && !memcmp(bytes + 8, "WEBP", 4))
		return tiff_orientation(find_in_webp(file));
	return 0;
}

uint32_t exif_orientation(const uint8_t *bytes, size_t size)
{
	uint32_t stated = exif_stated(bytes, size);

	return stated ? stated : 1;
}
