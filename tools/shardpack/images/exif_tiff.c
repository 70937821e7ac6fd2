/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exif_tiff.c - the orientation in EXIF data, by the rules of Pillow
 *
 * These are the rules of PIL.TiffImagePlugin.ImageFileDirectory_v2.load() and of the dictionary in
 * which PIL.ImageOps.exif_transpose() looks the value up: there 6, 6.0 and 12/2 are one key, and
 * the byte 6 or the text "6" are none.
 */
#include "tools/shardpack/images/images.h"

#include <math.h>
#include <string.h>

#define TAG_ORIENTATION 0x0112
#define TAG_XMP		0x02bc
#define ENTRY_BYTES	12
#define PREFIX		"Exif\0\0"
#define PREFIX_BYTES	6

enum type {
	TYPE_BYTE = 1,
	TYPE_SHORT = 3,
	TYPE_LONG = 4,
	TYPE_RATIONAL = 5,
	TYPE_SIGNED_BYTE = 6,
	TYPE_UNDEFINED = 7,
	TYPE_SIGNED_SHORT = 8,
	TYPE_SIGNED_LONG = 9,
	TYPE_SIGNED_RATIONAL = 10,
	TYPE_FLOAT = 11,
	TYPE_DOUBLE = 12,
	TYPE_IFD = 13,
	TYPE_LONG8 = 16
};

/* Of one value, by type; 0: Pillow does not read it. */
static const uint8_t value_bytes[] = {0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4, 0, 0, 8};

struct tiff {
	const uint8_t *at;
	size_t bytes;
	bool big, first;
	uint64_t held_bytes;	 /* of the values that stand outside of their entries */
	uint8_t seen[65536 / 8]; /* tags, where the first entry of each counts */
};

static uint64_t load(const uint8_t *at, unsigned bytes, bool big)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < bytes; i++)
		value |= (uint64_t)at[i] << 8 * (big ? bytes - 1 - i : i);
	return value;
}

static int64_t load_signed(const uint8_t *at, unsigned bytes, bool big)
{
	uint64_t value = load(at, bytes, big), sign = UINT64_C(1) << (8 * bytes - 1);

	return (int64_t)(value ^ sign) - (int64_t)sign;
}

static uint32_t whole(double value)
{
	return value >= 1 && value <= 8 && value == floor(value) ? (uint32_t)value : 0;
}

static double load_float(const uint8_t *at, unsigned bytes, bool big)
{
	uint64_t bits = load(at, bytes, big);
	uint32_t bits32 = (uint32_t)bits;
	double value;
	float value32;

	if (bytes == sizeof(value)) {
		memcpy(&value, &bits, sizeof(value));
		return value;
	}
	memcpy(&value32, &bits32, sizeof(value32));
	return (double)value32;
}

/* Quotients of whole numbers below 2^32 are whole in double only if they are. */
static uint32_t quotient(double numerator, double denominator)
{
	return denominator != 0 ? whole(numerator / denominator) : 0;
}

/* The first value at `at`, of this type. */
static uint32_t orientation_of(const uint8_t *at, uint32_t type, bool big)
{
	unsigned bytes = value_bytes[type];

	switch ((enum type)type) {
	case TYPE_BYTE:
	case TYPE_UNDEFINED:
		return 0;
	case TYPE_SHORT:
	case TYPE_LONG:
	case TYPE_IFD:
	case TYPE_LONG8:
		return load(at, bytes, big) <= 8 ? (uint32_t)load(at, bytes, big) : 0;
	case TYPE_SIGNED_BYTE:
	case TYPE_SIGNED_SHORT:
	case TYPE_SIGNED_LONG:
		return whole((double)load_signed(at, bytes, big));
	case TYPE_FLOAT:
	case TYPE_DOUBLE:
		return whole(load_float(at, bytes, big));
	case TYPE_RATIONAL:
		return quotient((double)load(at, 4, big), (double)load(at + 4, 4, big));
	case TYPE_SIGNED_RATIONAL:
		return quotient((double)load_signed(at, 4, big), (double)load_signed(at + 4, 4, big));
	}
	return 0; /* text */
}

/* Where the values of an entry stand; NULL if it is passed over, and *end if Pillow stops there. */
static const uint8_t *find_values(struct tiff *t, const uint8_t *entry, bool *end)
{
	uint32_t type = (uint32_t)load(entry + 2, 2, t->big), offset = (uint32_t)load(entry + 8, 4, t->big);
	uint64_t bytes;

	if (type >= sizeof(value_bytes) || !value_bytes[type])
		return NULL;
	bytes = load(entry + 4, 4, t->big) * value_bytes[type];
	if (bytes <= 4)
		return bytes ? entry + 8 : NULL;
	t->held_bytes += bytes;
	if (t->first && t->held_bytes > t->bytes) /* Pillow 13 guards its memory */
		return NULL;
	*end = offset > t->bytes || bytes > t->bytes - offset;
	return *end ? NULL : t->at + offset;
}

static struct exif_tiff read_directory(struct tiff *t)
{
	uint64_t at = load(t->at + 4, 4, t->big), count;
	struct exif_tiff out = {.said = EXIF_SAYS_NOTHING};
	bool end = false;

	if (at > t->bytes || t->bytes - at < 2)
		return out;
	count = load(t->at + at, 2, t->big);
	at += 2;
	for (; count && !end && t->bytes - at >= ENTRY_BYTES; count--, at += ENTRY_BYTES) {
		const uint8_t *entry = t->at + at, *values;
		uint32_t tag = (uint32_t)load(entry, 2, t->big), type = (uint32_t)load(entry + 2, 2, t->big);

		if (t->first && t->seen[tag / 8] & 1 << tag % 8)
			continue;
		values = find_values(t, entry, &end);
		if (!values)
			continue;
		t->seen[tag / 8] |= (uint8_t)(1 << tag % 8);
		if (tag == TAG_ORIENTATION) {
			out.said = EXIF_SAYS;
			out.orientation = orientation_of(values, type, t->big);
		}
		if (tag == TAG_XMP && (type == TYPE_BYTE || type == TYPE_UNDEFINED)) {
			out.xmp = values;
			out.xmp_bytes = (size_t)load(entry + 4, 4, t->big);
		}
	}
	return out;
}

struct exif_tiff exif_tiff(const uint8_t *bytes, size_t size, unsigned prefixes, bool first)
{
	struct tiff t;

	for (; prefixes && size >= PREFIX_BYTES && !memcmp(bytes, PREFIX, PREFIX_BYTES); prefixes--) {
		bytes += PREFIX_BYTES;
		size -= PREFIX_BYTES;
	}
	if (!size)
		return (struct exif_tiff){.said = EXIF_SAYS_NOTHING};
	t = (struct tiff){.at = bytes, .bytes = size, .first = first};
	if (size < 8 || (memcmp(bytes, "II", 2) && memcmp(bytes, "MM", 2)) ||
	    (memcmp(bytes + 2, "\0*", 2) && memcmp(bytes + 2, "*\0", 2))) /* Pillow takes both of either order */
		return (struct exif_tiff){.said = EXIF_UNREADABLE};
	t.big = bytes[0] == 'M';
	return read_directory(&t);
}
