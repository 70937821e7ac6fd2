/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode_avif.c - the first frame of an AVIF to RGB, through libavif and dav1d
 *
 * The standard fixes each bit of what dav1d decodes, but not the conversion to RGB: each release of
 * libavif and libyuv may convert in another way.  So a pattern is converted first, and its digest
 * is compared with that of Pillow's libavif.  If they differ, no AVIF is read.
 *
 * Pillow's libavif takes the upper 8 bits of most samples of 10 and 12 bits.  Older ones do not, so
 * that is done here.
 *
 * One thread decodes an image, since other threads have other images.
 */
#include "tools/shardpack/images/images.h"

#include <ctype.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <avif/avif.h>

#include "shard_inspect.h"

#define RGBA_CHANNELS 4

struct avif {
	avifDecoder *file;
	struct decoder *d;
	struct decode_verdict *v;
	uint32_t width, height; /* as the file says */
};

/* ---- what libavif says ---- */

/* The image, its planes twice, and RGBA. */
static uint64_t bytes_needed(const struct avif *a)
{
	uint64_t sample_bytes = a->file->image->depth > 8 ? 2 : 1;

	return (IMAGE_CHANNELS + RGBA_CHANNELS + 2 * RGBA_CHANNELS * sample_bytes) * a->width * a->height;
}

static enum decode_status refuse(const struct avif *a, avifResult result)
{
	const char *why = avifResultToString(result);
	char detail[AVIF_DIAGNOSTICS_ERROR_BUFFER_SIZE];
	/* of dav1d libavif only says that it failed, and that may be for want of memory */
	bool is_of_decoder = result == AVIF_RESULT_DECODE_COLOR_FAILED || result == AVIF_RESULT_DECODE_ALPHA_FAILED;

	if (result == AVIF_RESULT_OUT_OF_MEMORY || (is_of_decoder && !decode_has_memory(bytes_needed(a))))
		return decode_no_memory(a->v);
	if (result == AVIF_RESULT_TRUNCATED_DATA || result == AVIF_RESULT_IO_ERROR)
		return decode_bad(a->v, SHARD_MISS_TRUNCATED, "AVIF data ends early");
	snprintf(detail, sizeof(detail), "%s", a->file->diag.error);
	for (char *c = detail; *c; c++)
		if (!isprint((unsigned char)*c))
			*c = '?';
	return decode_bad(a->v, SHARD_MISS_DECODE, "AVIF cannot be decoded: %s%s%s", why, *detail ? ": " : "", detail);
}

/* Items of a file share few bytes, if any. */
#define ITEMS_TIMES 4

/* As strict as Pillow: a `pixi` may be missing, and a `clap`, which is not used, may be wrong. */
static avifResult open_file(const uint8_t *bytes, size_t size, bool metadata, avifDecoder **out)
{
	avifDecoder *file = avifDecoderCreate();
	avifResult result;

	*out = file;
	if (!file)
		return AVIF_RESULT_OUT_OF_MEMORY;
	file->maxThreads = 1;
	file->codecChoice = AVIF_CODEC_CHOICE_DAV1D;
	file->strictFlags &= ~(avifStrictFlags)(AVIF_STRICT_CLAP_VALID | AVIF_STRICT_PIXI_REQUIRED);
	file->ignoreExif = file->ignoreXMP = !metadata;
	file->imageDimensionLimit = 0; /* decode_check_size() has limits of its own */
	result = avifDecoderSetIOMemory(file, bytes, size);
	return result == AVIF_RESULT_OK ? avifDecoderParse(file) : result;
}

/* ---- colours ---- */

/* Does libyuv have the numbers of this matrix?  Others are computed by libavif itself. */
static bool is_of_libyuv(const avifImage *image)
{
	uint32_t of = image->matrixCoefficients;

	if (of == AVIF_MATRIX_COEFFICIENTS_CHROMA_DERIVED_NCL)
		of = image->colorPrimaries;
	return of == AVIF_MATRIX_COEFFICIENTS_BT709 || of == AVIF_MATRIX_COEFFICIENTS_UNSPECIFIED ||
	       of == AVIF_MATRIX_COEFFICIENTS_BT470BG || of == AVIF_MATRIX_COEFFICIENTS_BT601 ||
	       of == AVIF_MATRIX_COEFFICIENTS_BT2020_NCL;
}

/*
 * Where libyuv has no function for samples of 10 or 12 bits, Pillow's libavif shifts them.  Gray
 * without alpha is converted without libyuv.
 */
static bool takes_upper_bits(const avifImage *image, bool alpha)
{
	if (image->depth == 8 || !is_of_libyuv(image))
		return false;
	if (!alpha)
		return image->yuvFormat != AVIF_PIXEL_FORMAT_YUV400;
	return image->yuvFormat == AVIF_PIXEL_FORMAT_YUV400 ||
	       (image->depth == 12 && image->yuvFormat != AVIF_PIXEL_FORMAT_YUV420);
}

static void shift_plane(const avifImage *from, avifImage *to, int plane, uint32_t width, uint32_t height)
{
	for (uint32_t y = 0; y < height; y++) {
		const uint8_t *row = from->yuvPlanes[plane] + (size_t)y * from->yuvRowBytes[plane];
		uint8_t *out = to->yuvPlanes[plane] + (size_t)y * to->yuvRowBytes[plane];

		for (uint32_t x = 0; x < width; x++) {
			uint16_t sample;

			memcpy(&sample, row + 2 * (size_t)x, sizeof(sample));
			out[x] = (uint8_t)(sample >> (from->depth - 8));
		}
	}
}

/* The same picture in 8 bits, without alpha; NULL without memory. */
static avifImage *upper_bits(const avifImage *image)
{
	avifImage *out = avifImageCreate(image->width, image->height, 8, image->yuvFormat);
	avifPixelFormatInfo info;

	if (!out)
		return NULL;
	out->yuvRange = image->yuvRange;
	out->colorPrimaries = image->colorPrimaries;
	out->matrixCoefficients = image->matrixCoefficients;
	if (avifImageAllocatePlanes(out, AVIF_PLANES_YUV) != AVIF_RESULT_OK) {
		avifImageDestroy(out);
		return NULL;
	}
	avifGetPixelFormatInfo(image->yuvFormat, &info);
	shift_plane(image, out, AVIF_CHAN_Y, image->width, image->height);
	for (int plane = AVIF_CHAN_U; !info.monochrome && plane <= AVIF_CHAN_V; plane++)
		shift_plane(image, out, plane, (image->width + (uint32_t)info.chromaShiftX) >> info.chromaShiftX,
			    (image->height + (uint32_t)info.chromaShiftY) >> info.chromaShiftY);
	return out;
}

/* To RGBA if there is alpha, since that is what Pillow asks for; else to RGB. */
static avifResult convert(const avifImage *image, bool alpha, uint8_t *to)
{
	avifImage *narrow = takes_upper_bits(image, alpha) ? upper_bits(image) : NULL;
	avifRGBImage rgb;
	avifResult result;

	if (!narrow && takes_upper_bits(image, alpha))
		return AVIF_RESULT_OUT_OF_MEMORY;
	avifRGBImageSetDefaults(&rgb, image);
	rgb.depth = 8;
	rgb.format = alpha ? AVIF_RGB_FORMAT_RGBA : AVIF_RGB_FORMAT_RGB;
	rgb.pixels = to;
	rgb.rowBytes = image->width * (alpha ? RGBA_CHANNELS : IMAGE_CHANNELS);
	result = avifImageYUVToRGB(narrow ? narrow : image, &rgb);
	if (narrow)
		avifImageDestroy(narrow);
	return result;
}

/* ---- is this libavif like Pillow's? ---- */

#define PATTERN_WIDTH  37
#define PATTERN_HEIGHT 6
#define PATTERN_DIGEST UINT64_C(0x08dda09975a5c4df)

/* Any samples, but always the same; and opaque. */
static void draw_plane(uint8_t *at, uint32_t row_bytes, uint32_t rows, uint32_t plane, uint32_t depth)
{
	uint32_t most = (1u << depth) - 1, columns = row_bytes / (depth > 8 ? 2 : 1);

	for (uint32_t y = 0; y < rows; y++)
		for (uint32_t x = 0; x < columns; x++) {
			uint32_t mixed = (plane * 977 + y * 131 + x) * UINT32_C(2654435761);
			uint16_t sample = (uint16_t)(plane == RGBA_CHANNELS - 1 ? most : mixed >> 16 & most);

			if (depth > 8)
				memcpy(at + (size_t)y * row_bytes + 2 * (size_t)x, &sample, sizeof(sample));
			else
				at[(size_t)y * row_bytes + x] = (uint8_t)sample;
		}
}

static void draw_pattern(avifImage *image)
{
	uint32_t half = image->yuvFormat == AVIF_PIXEL_FORMAT_YUV420 ? PATTERN_HEIGHT / 2 : PATTERN_HEIGHT;

	for (uint32_t plane = 0; plane < AVIF_PLANE_COUNT_YUV; plane++)
		if (image->yuvPlanes[plane])
			draw_plane(image->yuvPlanes[plane], image->yuvRowBytes[plane],
				   plane == AVIF_CHAN_Y ? PATTERN_HEIGHT : half, plane, image->depth);
	if (image->alphaPlane)
		draw_plane(image->alphaPlane, image->alphaRowBytes, PATTERN_HEIGHT, RGBA_CHANNELS - 1, image->depth);
}

/* Adds what a picture becomes to a digest (FNV-1a). */
static bool digest_pattern(uint32_t depth, avifPixelFormat format, bool alpha, uint64_t *digest)
{
	static const avifMatrixCoefficients matrices[] = {1, 6, 7, 9};
	avifImage *image = avifImageCreate(PATTERN_WIDTH, PATTERN_HEIGHT, depth, format);
	uint8_t pixels[PATTERN_HEIGHT * PATTERN_WIDTH * RGBA_CHANNELS] = {0};
	bool ok = image && avifImageAllocatePlanes(image, alpha ? AVIF_PLANES_ALL : AVIF_PLANES_YUV) == AVIF_RESULT_OK;

	if (ok)
		draw_pattern(image);
	for (size_t i = 0; ok && i < 2 * sizeof(matrices) / sizeof(matrices[0]); i++) {
		image->yuvRange = i % 2 ? AVIF_RANGE_FULL : AVIF_RANGE_LIMITED;
		image->matrixCoefficients = matrices[i / 2];
		ok = convert(image, alpha, pixels) == AVIF_RESULT_OK;
		for (size_t k = 0; ok && k < sizeof(pixels); k++)
			*digest = (*digest ^ pixels[k]) * UINT64_C(1099511628211);
	}
	if (image)
		avifImageDestroy(image);
	return ok;
}

static bool is_like_pillow; /* set once */

static void try_colours(void)
{
	static const avifPixelFormat formats[] = {AVIF_PIXEL_FORMAT_YUV444, AVIF_PIXEL_FORMAT_YUV422,
						  AVIF_PIXEL_FORMAT_YUV420, AVIF_PIXEL_FORMAT_YUV400};
	uint64_t digest = UINT64_C(14695981039346656037);
	bool ok = true;

	for (uint32_t depth = 8; depth <= 12; depth += 2)
		for (size_t i = 0; i < 8; i++)
			ok = ok && digest_pattern(depth, formats[i / 2], i % 2, &digest);
	is_like_pillow = ok && digest == PATTERN_DIGEST;
}

/* ---- a file ---- */

/* The frames behind the first one must be there, too. */
static enum decode_status check_there(const struct avif *a, size_t size)
{
	uint32_t last = (uint32_t)a->file->imageCount - 1;
	avifExtent extent = {0, 0};
	avifResult result = avifDecoderNthImageMaxExtent(a->file, last, &extent);

	if (result != AVIF_RESULT_OK)
		return refuse(a, result);
	if (extent.offset > size || extent.size > size - extent.offset)
		return decode_bad(a->v, SHARD_MISS_TRUNCATED, "AVIF data ends early: frame %" PRIu32 " is not there",
				  last + 1);
	return DECODE_OK;
}

/* Only the first decode_claim() counts, so it has all. */
static enum decode_status check_declared(struct avif *a, const uint8_t *bytes, size_t size)
{
	const avifImage *image = a->file->image;
	uint64_t limit = a->d->limit.max_pixels;
	enum decode_status rc;

	a->width = image->width;
	a->height = image->height;
	if (!a->width || !a->height || a->file->imageCount < 1)
		return decode_bad(a->v, SHARD_MISS_DECODE, "AVIF has no pixels");
	rc = decode_first_of(a->d, (uint64_t)a->file->imageCount, "AVIF", "frames", a->v);
	if (rc == DECODE_OK)
		rc = decode_check_size(a->d, a->width, a->height, a->v);
	if (rc == DECODE_OK)
		rc = check_there(a, size);
	if (rc == DECODE_OK && !heif_grids_in_order(bytes, size))
		rc = decode_bad(a->v, SHARD_MISS_UNSUPPORTED,
				"AVIF is a grid whose parts are not in the order of their numbers; " AVIF_AS_PNG);
	if (rc != DECODE_OK)
		return rc;
	decode_claim(a->d, bytes_needed(a));
	/* What is inside may say another size: that, too, is held against the limit. */
	if (limit < a->file->imageSizeLimit) {
		a->file->imageSizeLimit = (uint32_t)limit;
		return avifDecoderReset(a->file) == AVIF_RESULT_OK ? DECODE_OK : refuse(a, AVIF_RESULT_UNKNOWN_ERROR);
	}
	return DECODE_OK;
}

/* Colours are numbers of H.273: unspecified, or those of sRGB and BT.601 to BT.709. */
static void note_dropped(const struct avif *a)
{
	const avifImage *image = a->file->image;
	unsigned primaries = image->colorPrimaries, transfer = image->transferCharacteristics;
	bool is_like_srgb = (primaries == 1 || primaries == 2 || (primaries >= 5 && primaries <= 7)) &&
			    (transfer == 1 || transfer == 2 || transfer == 6 || transfer == 13);

	if (image->icc.size) /* then the numbers say nothing */
		is_like_srgb = icc_is_like_srgb(image->icc.data, image->icc.size);
	if (a->file->alphaPresent)
		decode_drop(a->v, DROPPED_ALPHA);
	if (image->depth > 8)
		decode_drop(a->v, DROPPED_BITS);
	if (!is_like_srgb)
		decode_drop(a->v, DROPPED_PROFILE);
}

static enum decode_status read_frame(struct avif *a)
{
	bool alpha = a->file->alphaPresent;
	size_t count = (size_t)a->width * a->height;
	avifResult result = avifDecoderNthImage(a->file, 0);
	const avifImage *image = a->file->image;
	enum decode_status rc;
	uint8_t *to;

	if (result != AVIF_RESULT_OK)
		return refuse(a, result);
	if (image->width != a->width || image->height != a->height)
		return decode_bad(a->v, SHARD_MISS_DECODE,
				  "AVIF data is damaged: its frame is %" PRIu32 " x %" PRIu32
				  " pixels, and not %" PRIu32 " x %" PRIu32,
				  image->width, image->height, a->width, a->height);
	if (alpha && image->alphaPremultiplied)
		return decode_bad(a->v, SHARD_MISS_UNSUPPORTED,
				  "AVIF has premultiplied alpha: its pixels depend on the library and the "
				  "processor; " AVIF_AS_PNG);
	rc = decode_begin(a->d, a->width, a->height, a->v);
	if (rc != DECODE_OK)
		return rc;
	note_dropped(a);
	if (alpha && !scratch_reserve(&a->d->line, RGBA_CHANNELS * count))
		return decode_no_memory(a->v);
	result = convert(image, alpha, alpha ? a->d->line.data : a->d->pixels.data);
	if (result == AVIF_RESULT_REFORMAT_FAILED || result == AVIF_RESULT_NOT_IMPLEMENTED)
		return decode_bad(a->v, SHARD_MISS_UNSUPPORTED,
				  "AVIF has colours that libavif does not convert: matrix %d with %s", /* as of H.273 */
				  (int)image->matrixCoefficients, avifPixelFormatToString(image->yuvFormat));
	if (result != AVIF_RESULT_OK)
		return refuse(a, result);
	to = a->d->pixels.data;
	for (size_t i = 0; alpha && i < count; i++)
		memcpy(to + IMAGE_CHANNELS * i, a->d->line.data + RGBA_CHANNELS * i, IMAGE_CHANNELS);
	return DECODE_OK;
}

enum decode_status avif_run(struct decoder *d, const uint8_t *bytes, size_t size, struct decode_verdict *v)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct avif a = {.d = d, .v = v};
	avifResult result;
	enum decode_status rc;

	if (!avifCodecName(AVIF_CODEC_CHOICE_DAV1D, AVIF_CODEC_FLAG_CAN_DECODE))
		return decode_bad(v, SHARD_MISS_UNSUPPORTED,
				  "is an AVIF, and this libavif was built without dav1d; " AVIF_AS_PNG);
	pthread_once(&once, try_colours);
	if (!is_like_pillow)
		return decode_bad(v, SHARD_MISS_UNSUPPORTED,
				  "is an AVIF, and %s gives other colours than Pillow; " AVIF_AS_PNG,
				  decoder_avif_version());
	if (!heif_items_fit(bytes, size, ITEMS_TIMES * (uint64_t)size))
		return decode_bad(
			v, SHARD_MISS_DECODE,
			"AVIF cannot be decoded: its items are together more than %d times as long as the file",
			ITEMS_TIMES);
	result = open_file(bytes, size, false, &a.file);
	rc = result == AVIF_RESULT_OK ? check_declared(&a, bytes, size)
	     : a.file		      ? refuse(&a, result)
				      : decode_no_memory(v);
	if (rc == DECODE_OK)
		rc = read_frame(&a);
	if (a.file)
		avifDecoderDestroy(a.file);
	return rc;
}

/* ---- which way up ---- */

/*
 * As an orientation of EXIF: turned against the clock by quarters, then mirrored.  The member of
 * imir has had two names.
 */
static uint32_t orientation_of(const avifImage *image)
{
	static const uint8_t turned[4] = {1, 8, 3, 6}, mirrored[2][4] = {{4, 5, 2, 7}, {2, 7, 4, 5}};
	unsigned angle = image->transformFlags & AVIF_TRANSFORM_IROT ? image->irot.angle & 3 : 0;
	uint8_t axis;

	_Static_assert(sizeof(image->imir) == sizeof(axis), "imir is one byte");
	memcpy(&axis, &image->imir, sizeof(axis));
	return image->transformFlags & AVIF_TRANSFORM_IMIR ? mirrored[axis & 1][angle] : turned[angle];
}

bool avif_stated(const uint8_t *bytes, size_t size, enum exif_rules rules, uint32_t *stated)
{
	avifDecoder *file;
	avifResult result;
	const avifImage *image;

	*stated = 0;
	if (!heif_items_fit(bytes, size, ITEMS_TIMES * (uint64_t)size)) /* avif_run() refuses it */
		return true;
	result = open_file(bytes, size, true, &file);
	image = result == AVIF_RESULT_OK ? file->image : NULL;

	if (image)
		*stated = exif_stated_beside(orientation_of(image), image->exif.data, image->exif.size, image->xmp.data,
					     image->xmp.size, rules);
	if (file)
		avifDecoderDestroy(file);
	return result != AVIF_RESULT_OUT_OF_MEMORY;
}

/* ---- versions ---- */

static char version[80]; /* set once */

/* Out of "dav1d [dec]:1.0.0, libgav1 [dec]:0.18.0". */
static void set_version(void)
{
	unsigned yuv = avifLibYUVVersion();
	char codecs[256] = "", no_yuv[24] = "no libyuv";
	const char *at;

	avifCodecVersions(codecs);
	at = strstr(codecs, "dav1d");
	at = at ? strchr(at, ':') : NULL;
	at = at ? at + 1 : "none";
	if (yuv)
		snprintf(no_yuv, sizeof(no_yuv), "libyuv %u", yuv);
	snprintf(version, sizeof(version), "libavif %.15s with dav1d %.*s and %s", avifVersion(),
		 (int)(strcspn(at, ",") < 15 ? strcspn(at, ",") : 15), at, no_yuv);
}

const char *decoder_avif_version(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, set_version);
	return version;
}
