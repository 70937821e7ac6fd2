/* SPDX-License-Identifier: Apache-2.0 */
/*
 * formats.c - the one table of image formats, and what follows from it
 */
#include "tools/shardpack/images/images.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define MAGIC(text) text, sizeof(text) - 1

/* A build without a library has NULL for the functions of the decoder that needs it. */
#ifdef WITHOUT_GIF
#define gif_run		    NULL
#define decoder_gif_version NULL
#endif
#ifdef WITHOUT_TIFF
#define tiff_run	     NULL
#define decoder_tiff_version NULL
#endif
#ifdef WITHOUT_AVIF
#define avif_run	     NULL
#define avif_stated	     NULL
#define decoder_avif_version NULL
#endif

/*
 * The order of the rows is that of lists in messages and plans.  The first row whose magic fits a
 * file is its format.
 */
const struct image_format image_formats[] = {
	/* Every build reads these. */
	{
		.name = "JPEG",
		.magic = {{MAGIC("\xff\xd8\xff"), NULL}},
		.endings = {".jpg", ".jpeg", ".jfif", ".jpe"},
		.library = "libjpeg-turbo",
		.version = decoder_jpeg_version,
		.run = jpeg_run,
		.holds = HOLDS_IMAGES,
		.bits = "8 bits a sample",
		.no_mask = "JPEG is lossy and keeps no values: save the mask as PNG",
		.stated = jpeg_stated,
	},
	{
		.name = "PNG",
		.magic = {{MAGIC("\x89PNG\r\n\x1a\n"), NULL}},
		.endings = {".png"},
		.library = "libpng",
		.version = decoder_png_version,
		.run = png_run,
		.holds = HOLDS_IMAGES | HOLDS_MASKS,
		.stated = png_stated,
	},
	{
		.name = "WebP",
		.magic = {{MAGIC("RIFF????WEBP"), NULL}},
		.endings = {".webp"},
		.library = "libwebp",
		.version = decoder_webp_version,
		.run = webp_run,
		.holds = HOLDS_IMAGES,
		.bits = "8 bits a sample",
		.no_mask = "WebP has colours and no values: save the mask as PNG",
		.stated = webp_stated,
	},
	/* A build may lack these. */
	{
		.name = "GIF",
		.magic = {{MAGIC("GIF8"), "GIF8"}},
		.endings = {".gif"},
		.plan_name = "gif",
		.library = "giflib",
		.instead = "convert it to PNG",
		.version = decoder_gif_version,
		.run = gif_run,
		.holds = HOLDS_IMAGES,
		.bits = "8 bits a sample",
		.no_mask = NO_MASK,
	},
	{
		.name = "TIFF",
		.magic = {{MAGIC("II*\0"), "II"}, {MAGIC("MM\0*"), "MM"}},
		.endings = {".tif", ".tiff"},
		.plan_name = "tiff",
		.library = "libtiff",
		.instead = "convert it to PNG",
		.version = decoder_tiff_version,
		.run = tiff_run,
		.holds = HOLDS_IMAGES,
		.no_mask = NO_MASK,
		.stated = tiff_stated,
		.is_always_turned = true,
		.is_always_input = true,
	},
	{
		.name = "AVIF",
		.magic = {{MAGIC("????ftyp"), "ftyp"}},
		.is = heif_is_avif,
		.endings = {".avif"},
		.plan_name = "avif",
		.library = "libavif",
		.instead = AVIF_AS_PNG,
		.version = decoder_avif_version,
		.run = avif_run,
		.holds = HOLDS_IMAGES,
		.bits = "at most 12 bits a sample",
		.no_mask = NO_MASK,
		.stated = avif_stated,
	},
	/* These need no library. */
	{
		.name = "BMP",
		.magic = {{MAGIC("BM????\0\0\0\0"), NULL}},
		.endings = {".bmp"},
		.run = bmp_run,
		.holds = HOLDS_IMAGES | HOLDS_MASKS,
		.bits = "8 bits a sample",
	},
	{
		.name = "PGM",
		.magic = {{MAGIC("P5\n"), NULL}, {MAGIC("P5 "), NULL}},
		.endings = {".pgm"},
		.run = ppm_run,
		.holds = HOLDS_MASKS,
		.bits = "samples that are read as 8 bits",
	},
	{
		.name = "PPM",
		.magic = {{MAGIC("P6\n"), NULL}, {MAGIC("P6 "), NULL}},
		.endings = {".ppm"},
		.run = ppm_run,
		.holds = HOLDS_IMAGES,
		.bits = "samples that are read as 8 bits",
	},
	/* People have these, and they are not read: a message calls them by their names. */
	{.name = "PBM", .magic = {{MAGIC("P1\n"), "P1"}, {MAGIC("P4\n"), "P4"}}},
	{.name = "PGM", .magic = {{MAGIC("P2\n"), "P2"}}},
	{.name = "PPM", .magic = {{MAGIC("P3\n"), "P3"}}},
	{.name = "PAM", .magic = {{MAGIC("P7\n"), "P7"}}},
	{.name = "BigTIFF", .magic = {{MAGIC("II+\0"), "II"}, {MAGIC("MM\0+"), "MM"}}},
	{.name = "HEIF",
	 .magic = {{MAGIC("????ftyphei"), NULL}, {MAGIC("????ftypmif1"), NULL}},
	 .endings = {".heic", ".heif"}},
	{.name = "JPEG XL",
	 .magic = {{MAGIC("\xff\x0a"), NULL}, {MAGIC("\0\0\0\x0cJXL \r\n\x87\n"), NULL}},
	 .endings = {".jxl"}},
	{.name = "JPEG 2000", .magic = {{MAGIC("\0\0\0\x0cjP  \r\n\x87\n"), NULL}}, .endings = {".jp2", ".j2k"}},
	/* The same, and known by their endings only.  Most camera raws begin as a TIFF. */
	{.name = "camera raw", .endings = {".dng", ".cr2", ".nef", ".arw"}},
	{.name = "PSD", .endings = {".psd"}},
	{.name = "TGA", .endings = {".tga"}},
	{.name = "OpenEXR", .endings = {".exr"}},
	{.name = "Radiance HDR", .endings = {".hdr"}},
	{.name = "DICOM", .endings = {".dcm"}},
	{.name = "ICO", .endings = {".ico"}},
	{.name = NULL},
};

/* ---- by the content ---- */

static bool starts_with(const uint8_t *bytes, size_t size, const struct image_magic *m)
{
	if (size < m->length)
		return false;
	for (size_t i = 0; i < m->length; i++)
		if (m->pattern[i] != '?' && (uint8_t)m->pattern[i] != bytes[i])
			return false;
	return true;
}

const struct image_format *image_format_in(const uint8_t *bytes, size_t size, const struct image_magic **magic)
{
	for (const struct image_format *f = image_formats; f->name; f++)
		for (const struct image_magic *m = f->magic; m->pattern; m++)
			if (starts_with(bytes, size, m) && (!f->is || f->is(bytes, size))) {
				if (magic)
					*magic = m;
				return f;
			}
	return NULL;
}

bool image_stated(const uint8_t *bytes, size_t size, enum exif_rules rules, uint32_t *stated)
{
	const struct image_format *f = image_format_in(bytes, size, NULL);

	*stated = 0;
	return !f || !f->stated || f->stated(bytes, size, rules, stated);
}

bool image_is_always_turned(const uint8_t *bytes, size_t size)
{
	const struct image_format *f = image_format_in(bytes, size, NULL);

	return f && f->is_always_turned;
}

/* ---- by the name ---- */

static const char *const archive_extensions[] = {".tar", ".tar.gz", ".tgz", ".tar.zst", ".tar.bz2", ".tbz2",
						 ".tbz", ".tar.xz", ".txz", ".zip",	NULL};
static const char *const coco_extensions[] = {".json", ".json.gz", ".json.zst", ".json.bz2", ".json.xz", NULL};

const struct image_format *image_format_of_name(const char *name, size_t bytes)
{
	for (const struct image_format *f = image_formats; f->name; f++)
		for (const char *const *e = f->endings; *e; e++) {
			size_t n = strlen(*e);

			if (bytes >= n && !strncasecmp(name + bytes - n, *e, n))
				return f;
		}
	return NULL;
}

const struct image_format *image_format_of_suffix(const char *suffix)
{
	for (const struct image_format *f = image_formats; f->name; f++)
		for (const char *const *e = f->endings; *e; e++)
			if (!strcasecmp(suffix, *e + 1))
				return f;
	return NULL;
}

bool image_format_is_input(const struct image_format *f)
{
	return f->run || f->is_always_input;
}

bool file_name_has_extension(const char *name, const char *extension)
{
	size_t name_bytes = strlen(name), bytes = strlen(extension);

	return name_bytes > bytes && !strcasecmp(name + name_bytes - bytes, extension);
}

bool file_name_is_image(const char *name)
{
	const struct image_format *f = image_format_of_name(name, strlen(name));

	return f && image_format_is_input(f);
}

bool file_name_is_image_suffix(const char *suffix)
{
	const struct image_format *f = image_format_of_suffix(suffix);

	return f && image_format_is_input(f);
}

bool file_name_is_coco(const char *name)
{
	for (const char *const *e = coco_extensions; *e; e++)
		if (file_name_has_extension(name, *e))
			return true;
	return false;
}

bool file_name_is_table(const char *name)
{
	return file_name_has_extension(name, ".csv") || file_name_has_extension(name, ".tsv") ||
	       file_name_has_extension(name, ".jsonl") || file_name_has_extension(name, ".ndjson");
}

bool file_name_is_archive(const char *name)
{
	for (const char *const *e = archive_extensions; *e; e++)
		if (file_name_has_extension(name, *e))
			return true;
	return false;
}

/* ---- in messages and plans ---- */

const char *image_format_list(unsigned holds, char out[IMAGE_LIST_CHARS])
{
	size_t at = 0;

	out[0] = '\0';
	for (const struct image_format *f = image_formats; f->name; f++)
		if (f->holds & holds && at < IMAGE_LIST_CHARS)
			at += (size_t)snprintf(out + at, IMAGE_LIST_CHARS - at, "%s%s", at ? ", " : "", f->name);
	return out;
}

const char *image_format_article(const struct image_format *f)
{
	return f->name[0] == 'A' ? "an" : "a";
}

uint32_t image_format_bit(const struct image_format *f)
{
	return f && f->plan_name ? UINT32_C(1) << (f - image_formats) : 0;
}

static const char *library_of(const struct image_format *f)
{
	return f->version ? f->version() : "none";
}

void image_formats_write(struct text *out)
{
	for (const struct image_format *f = image_formats; f->name; f++)
		if (f->plan_name)
			text_format(out, "%s %s\n", f->plan_name, library_of(f));
}

bool image_format_is_same(const struct image_format *f, const char *text, char there[IMAGE_LIBRARY_CHARS],
			  char here[IMAGE_LIBRARY_CHARS])
{
	size_t n = strlen(f->plan_name);

	while (*text && (strncmp(text, f->plan_name, n) != 0 || text[n] != ' '))
		text += strcspn(text, "\n") + (text[strcspn(text, "\n")] == '\n');
	text += *text ? n + 1 : 0;
	snprintf(there, IMAGE_LIBRARY_CHARS, "%.*s", (int)strcspn(text, "\n"), text);
	snprintf(here, IMAGE_LIBRARY_CHARS, "%s", library_of(f));
	return !strcmp(there, here);
}
