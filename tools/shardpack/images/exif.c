/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exif.c - which way up an image file says it is
 *
 * Walks the file's segments as far as its bytes go and believes no length.  Whether the rest of the
 * file is any good is the decoder's to say.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "libshard/base/bytes.h"
#include "libshard/base/utf8.h"
#include "tools/shardpack/images/images.h"
#include "tools/shardpack/parse/parse.h"

/* ---- XMP ---- */

/*
 * The rule is the regular expression tiff:Orientation(="|>)([0-9]) of PIL.Image.Image.getexif().
 */

#define NAME	   "tiff:Orientation"
#define NAME_BYTES 16

struct xmp {
	bool is_empty;	      /* no bytes at all */
	uint32_t orientation; /* 1 to 8, or 0: none, or another digit */
};

static struct xmp xmp_read(const uint8_t *bytes, size_t size)
{
	struct xmp out = {.is_empty = !size};
	const uint8_t *at = bytes;

	while (size && (at = memmem(at, size - (size_t)(at - bytes), NAME, NAME_BYTES))) {
		size_t left, between;

		at += NAME_BYTES;
		left = size - (size_t)(at - bytes);
		between = left > 1 && !memcmp(at, "=\"", 2) ? 2 : left && at[0] == '>' ? 1 : left;
		if (between < left && at[between] >= '0' && at[between] <= '9') {
			out.orientation = at[between] <= '8' ? (uint32_t)(at[between] - '0') : 0;
			break;
		}
	}
	return out;
}

/* ---- EXIF data ---- */

/*
 * These are the rules of PIL.TiffImagePlugin.ImageFileDirectory_v2.load() and of the dictionary in
 * which PIL.ImageOps.exif_transpose() looks the value up: there 6, 6.0 and 12/2 are one key, and
 * the byte 6 or the text "6" are not.
 */

#define TAG_ORIENTATION	  0x0112
#define TAG_XMP		  0x02bc
#define ENTRY_BYTES	  12
#define EXIF_PREFIX	  "Exif\0\0"
#define EXIF_PREFIX_BYTES 6

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

struct directory {
	const uint8_t *at;
	size_t bytes;
	bool big, first;
	uint64_t held_bytes;	 /* of the values that stand outside of their entries */
	uint8_t seen[65536 / 8]; /* tags, where the first entry of each counts */
};

static uint64_t load(const uint8_t *at, unsigned bytes, bool big)
{
	return (uint64_t)integer_load(at, bytes, false, big);
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
		return whole((double)integer_load(at, bytes, true, big));
	case TYPE_FLOAT:
	case TYPE_DOUBLE:
		return whole(load_float(at, bytes, big));
	case TYPE_RATIONAL:
		return quotient((double)load(at, 4, big), (double)load(at + 4, 4, big));
	case TYPE_SIGNED_RATIONAL:
		return quotient((double)integer_load(at, 4, true, big), (double)integer_load(at + 4, 4, true, big));
	}
	return 0; /* text */
}

/* Where the values of an entry stand; NULL if it is passed over, and *end if Pillow stops there. */
static const uint8_t *find_values(struct directory *t, const uint8_t *entry, bool *end)
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

enum exif_said {
	EXIF_SAYS_NOTHING, /* no entry for an orientation */
	EXIF_SAYS,	   /* an entry, whatever its value */
	EXIF_UNREADABLE	   /* no TIFF structure: Pillow raises, or takes the image as it lies */
};

struct exif_tiff {
	enum exif_said said;
	uint32_t orientation; /* EXIF_SAYS: 1 to 8, or 0 for any other value */
	const uint8_t *xmp;   /* the values of its entry, which only an image file has; or NULL */
	size_t xmp_bytes;
};

/*
 * `prefixes`: how many times "Exif\0\0" may stand before the structure.  `first`: of two entries the
 * first one counts, as from Pillow 13 on, not the last one.
 */
static struct exif_tiff exif_tiff(const uint8_t *bytes, size_t size, unsigned prefixes, bool first)
{
	struct exif_tiff out = {.said = EXIF_SAYS_NOTHING};
	uint64_t at, count;
	struct directory t;
	bool end = false;

	for (; prefixes && size >= EXIF_PREFIX_BYTES && !memcmp(bytes, EXIF_PREFIX, EXIF_PREFIX_BYTES); prefixes--) {
		bytes += EXIF_PREFIX_BYTES;
		size -= EXIF_PREFIX_BYTES;
	}
	if (!size)
		return out;
	if (size < 8 || (memcmp(bytes, "II", 2) && memcmp(bytes, "MM", 2)) ||
	    (memcmp(bytes + 2, "\0*", 2) && memcmp(bytes + 2, "*\0", 2))) /* Pillow takes both of either order */
		return (struct exif_tiff){.said = EXIF_UNREADABLE};
	t = (struct directory){.at = bytes, .bytes = size, .first = first, .big = bytes[0] == 'M'};
	at = load(bytes + 4, 4, t.big);
	if (at > size || size - at < 2)
		return out;
	count = load(bytes + at, 2, t.big);
	at += 2;
	for (; count && !end && size - at >= ENTRY_BYTES; count--, at += ENTRY_BYTES) {
		const uint8_t *entry = bytes + at, *values;
		uint32_t tag = (uint32_t)load(entry, 2, t.big), type = (uint32_t)load(entry + 2, 2, t.big);

		if (first && t.seen[tag / 8] & 1 << tag % 8)
			continue;
		values = find_values(&t, entry, &end);
		if (!values)
			continue;
		t.seen[tag / 8] |= (uint8_t)(1 << tag % 8);
		if (tag == TAG_ORIENTATION) {
			out.said = EXIF_SAYS;
			out.orientation = orientation_of(values, type, t.big);
		}
		if (tag == TAG_XMP && (type == TYPE_BYTE || type == TYPE_UNDEFINED)) {
			out.xmp = values;
			out.xmp_bytes = (size_t)load(entry + 4, 4, t.big);
		}
	}
	return out;
}

/* ---- the texts of a PNG: keyword and text, inflated ---- */

/*
 * These are the rules of PIL.PngImagePlugin.PngStream, whose methods chunk_tEXt() and so on are one
 * function each.
 */

/* Cuts off what stands before the next NUL, and the NUL.  False without one. */
static bool cut_at_nul(struct byte_span *r, struct byte_span *before)
{
	const uint8_t *nul = r->count ? memchr(r->at, 0, r->count) : NULL;

	if (!nul)
		return false;
	*before = (struct byte_span){r->at, (size_t)(nul - r->at)};
	r->count -= before->count + 1;
	r->at = nul + 1;
	return true;
}

static bool is_utf8(struct byte_span r)
{
	return utf8_bad(r.at, r.count) == r.count;
}

/* Is this a chunk with text of the keyword? */
static bool png_text_is(const struct png_chunk *chunk, const char *keyword)
{
	size_t bytes = strlen(keyword);

	return (png_chunk_is(chunk, "tEXt") || png_chunk_is(chunk, "zTXt") || png_chunk_is(chunk, "iTXt")) &&
	       chunk->bytes >= bytes && !memcmp(chunk->data, keyword, bytes) &&
	       (chunk->bytes == bytes || !chunk->data[bytes]);
}

enum inflated { INFLATED, INFLATED_DAMAGED, INFLATED_TOO_LONG, INFLATED_NO_MEMORY };

/* Pillow refuses a file in which a compressed text has more; here that chunk is passed over. */
#define PNG_TEXT_MAX_BYTES (UINT32_C(1) << 20)
/* The same for all of them together: behind that, no other one is inflated. */
#define PNG_TEXT_ALL_BYTES (64 * (uint64_t)PNG_TEXT_MAX_BYTES)

struct png_text {
	const uint8_t *bytes; /* borrowed from the file, or `owned` */
	size_t count;
	bool is_characters; /* not an iTXt that is not UTF-8, which Pillow takes for XMP alone */
	uint8_t *owned;
	uint32_t inflated_bytes; /* whatever became of them */
};

/* A stream that is cut short is as good as what there is of it. */
static enum inflated inflate_text(struct byte_span in, struct png_text *out)
{
	z_stream z = {.next_in = (Bytef *)(uintptr_t)in.at, .avail_in = (uInt)in.count};
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
	if ((rc == Z_OK && !z.avail_in) || rc == Z_STREAM_END || (rc == Z_BUF_ERROR && !in.count))
		return INFLATED;
	free(out->owned);
	out->owned = NULL;
	return rc == Z_MEM_ERROR ? INFLATED_NO_MEMORY : rc == Z_OK ? INFLATED_TOO_LONG : INFLATED_DAMAGED;
}

enum png_text_status { PNG_TEXT, PNG_TEXT_NONE, PNG_TEXT_NO_MEMORY };

/* Keyword, NUL, method 0, compressed text; the text is empty if it cannot be inflated. */
static enum png_text_status read_compressed(struct byte_span r, struct png_text *out)
{
	struct byte_span keyword;

	if (!cut_at_nul(&r, &keyword) || !r.count)
		return PNG_TEXT;
	if (r.at[0])
		return PNG_TEXT_NONE;
	switch (inflate_text((struct byte_span){r.at + 1, r.count - 1}, out)) {
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
static enum png_text_status read_international(struct byte_span r, struct png_text *out)
{
	struct byte_span keyword, language, translated;
	const uint8_t *flags;
	enum inflated inflated;

	if (!cut_at_nul(&r, &keyword) || r.count < 2)
		return PNG_TEXT_NONE;
	flags = r.at;
	r = (struct byte_span){r.at + 2, r.count - 2};
	if (!cut_at_nul(&r, &language) || !cut_at_nul(&r, &translated) || (flags[0] && flags[1]))
		return PNG_TEXT_NONE;
	out->bytes = r.at;
	out->count = r.count;
	inflated = flags[0] ? inflate_text(r, out) : INFLATED;
	if (inflated != INFLATED)
		return inflated == INFLATED_NO_MEMORY ? PNG_TEXT_NO_MEMORY : PNG_TEXT_NONE;
	out->is_characters =
		is_utf8(language) && is_utf8(translated) && is_utf8((struct byte_span){out->bytes, out->count});
	return PNG_TEXT;
}

/*
 * Its text.  PNG_TEXT_NONE: Pillow does not see the chunk, or refuses the file for it.  If it is
 * PNG_TEXT, free `owned`.
 */
static enum png_text_status png_text_read(const struct png_chunk *chunk, struct png_text *out)
{
	struct byte_span all = {chunk->data, chunk->bytes}, keyword;

	*out = (struct png_text){.bytes = (const uint8_t *)"", .is_characters = true};
	if (png_chunk_is(chunk, "zTXt"))
		return read_compressed(all, out);
	if (png_chunk_is(chunk, "iTXt"))
		return read_international(all, out);
	if (cut_at_nul(&all, &keyword)) { /* keyword, NUL, text; or a keyword alone */
		out->bytes = all.at;
		out->count = all.count;
	}
	return PNG_TEXT;
}

/* ---- what each format states ---- */

#define JPEG_XMP     "http://ns.adobe.com/xap/1.0/" /* its NUL is a part of it */
#define PNG_XMP	     "XML:com.adobe.xmp"
#define PNG_RAW_EXIF "Raw profile type exif"
#define PNG_EXIF     "exif" /* a text that Pillow takes for EXIF data */

/* What a file says in either place; XMP counts if EXIF data has no entry. */
static uint32_t orientation_in(const struct exif_tiff *exif, const struct xmp *xmp)
{
	return exif->said == EXIF_SAYS_NOTHING ? xmp->orientation : exif->orientation;
}

static bool starts_with(struct byte_span b, const char *what, size_t bytes)
{
	return b.count >= bytes && !memcmp(b.at, what, bytes);
}

/* `count` bytes from `offset` on, or none if they are not all there. */
static struct byte_span stretch(struct byte_span b, uint64_t offset, uint64_t count)
{
	if (offset > b.count || count > b.count - offset)
		return (struct byte_span){NULL, 0};
	return (struct byte_span){b.at + offset, (size_t)count};
}

/* As many prefixes as Pillow takes off; up to 12 it takes off all. */
static struct exif_tiff read_exif(struct byte_span b, unsigned prefixes, enum exif_rules rules)
{
	bool is_13 = rules == EXIF_RULES_PILLOW_13;

	return exif_tiff(b.at, b.count, is_13 ? prefixes : UINT32_MAX, is_13);
}

/* The next segment of type APP1, before the scan. */
static bool next_app1(struct byte_span file, size_t *at, struct byte_span *out)
{
	struct jpeg_segment segment;

	do {
		if (!jpeg_segment_next(file.at, file.count, at, &segment))
			return false;
	} while (segment.marker != JPEG_APP1);
	*out = (struct byte_span){segment.data, segment.bytes};
	return true;
}

/* EXIF data that goes on in further segments, without their prefixes. */
static bool join_exif(struct byte_span file, size_t size, enum exif_rules rules, struct exif_tiff *out)
{
	uint8_t *joined = malloc(size);
	struct byte_span segment;
	size_t at = JPEG_SEGMENTS_AT, used = 0;

	if (!joined)
		return false;
	while (next_app1(file, &at, &segment))
		if (starts_with(segment, EXIF_PREFIX, EXIF_PREFIX_BYTES)) {
			size_t skip = used ? EXIF_PREFIX_BYTES : 0;

			memcpy(joined + used, segment.at + skip, segment.count - skip);
			used += segment.count - skip;
		}
	*out = read_exif((struct byte_span){joined, used}, 2, rules);
	free(joined);
	return true;
}

bool jpeg_stated(const uint8_t *bytes, size_t size, enum exif_rules rules, uint32_t *stated)
{
	struct byte_span file = {bytes, size}, segment, exif = {NULL, 0};
	size_t at = JPEG_SEGMENTS_AT, exif_bytes = 0;
	struct xmp xmp = {.is_empty = true};
	struct exif_tiff said;

	while (next_app1(file, &at, &segment)) {
		if (starts_with(segment, EXIF_PREFIX, EXIF_PREFIX_BYTES)) {
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
	return read_exif((struct byte_span){out, used}, 2, rules);
}

/* What the chunks of a PNG have said so far. */
struct png_said {
	struct exif_tiff exif, raw; /* in a chunk of its own, or as text */
	bool has_exif;
	struct xmp characters, xmp; /* XMP in any text, and in iTXt also what is not UTF-8 */
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
			said.exif = read_exif((struct byte_span){chunk.data, chunk.bytes}, 1, rules);
			said.has_exif = true;
		} else if (png_chunk_is(&chunk, "tEXt") && png_text_is(&chunk, PNG_EXIF)) {
			size_t skip = chunk.bytes < sizeof(PNG_EXIF) ? chunk.bytes : sizeof(PNG_EXIF);

			said.exif = read_exif((struct byte_span){chunk.data + skip, chunk.bytes - skip}, 2, rules);
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
static struct byte_span find_in_webp(struct byte_span file, const char *name)
{
	size_t at = 12;

	while (file.count - at >= 8) {
		const uint8_t *head = file.at + at;
		uint64_t length = load32(head + 4);
		struct byte_span chunk = stretch(file, at + 8, length);

		if (!chunk.at || !memcmp(head, name, 4))
			return chunk;
		if (length % 2 && !stretch(file, at + 8 + length, 1).at)
			break;
		at += 8 + (size_t)length + length % 2;
	}
	return (struct byte_span){NULL, 0};
}

/* Only an extended file has them, and says so. */
bool webp_stated(const uint8_t *bytes, size_t size, enum exif_rules rules, uint32_t *stated)
{
	struct exif_tiff exif = {.said = EXIF_SAYS_NOTHING};
	struct xmp xmp = {.is_empty = true};
	struct byte_span file = {bytes, size};
	uint64_t riff_bytes = 8 + (uint64_t)load32(bytes + 4);
	struct byte_span found;

	if (riff_bytes < file.count) /* what follows is not the image's */
		file.count = (size_t)riff_bytes;
	*stated = 0;
	if (!starts_with(stretch(file, 12, 18), "VP8X", 4))
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
	struct exif_tiff said = read_exif((struct byte_span){exif, exif_bytes}, 2, rules);

	if (boxes != 1)
		return boxes;
	if (said.said == EXIF_UNREADABLE)
		return 0;
	return said.said == EXIF_SAYS ? 1 : xmp_read(xmp, xmp_bytes).orientation;
}
