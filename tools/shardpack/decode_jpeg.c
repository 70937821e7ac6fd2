/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode_jpeg.c - JPEG to RGB through libjpeg-turbo's classic API
 *
 * The library's defaults throughout (accurate integer IDCT, fancy upsampling), because those
 * are Pillow's; read to the end-of-image marker, because damage in the tail counts too.
 *
 * Each image gets a decompressor of its own.  A reused one keeps the tables of the image
 * before, and a file that lacks its own would silently decode with those: its pixels would
 * depend on what the thread happened to do earlier.  Creating one costs a microsecond.
 *
 * The library reports errors by a callback that must not return, so it jumps.  Everything
 * that lives across the jump is in struct jpeg, none of it in locals.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>

#include <jerror.h>

#include "tools/shardpack/decode_private.h"

struct jpeg {
	struct jpeg_decompress_struct cinfo;
	struct jpeg_error_mgr errors;
	struct jpeg_progress_mgr progress;
	jmp_buf failed;
	struct decoder *d;
	struct image *out;
	struct decode_verdict *v;
	enum decode_status status; /* what the jump means */
	bool in_scan;		   /* the header was read; what comes now are pixels */
};

static _Noreturn void fail(struct jpeg *j, enum decode_status status)
{
	j->status = status;
	longjmp(j->failed, 1);
}

/* The library's own words for its current error or warning. */
static const char *library_text(struct jpeg *j, char text[JMSG_LENGTH_MAX])
{
	j->errors.format_message((j_common_ptr)&j->cinfo, text);
	return text;
}

static void on_error(j_common_ptr cinfo)
{
	struct jpeg *j = cinfo->client_data;
	char text[JMSG_LENGTH_MAX];

	library_text(j, text);
	switch (j->errors.msg_code) {
	case JERR_OUT_OF_MEMORY:
		fail(j, decode_no_memory(j->v));
	case JERR_NO_BACKING_STORE: /* more than max_memory_to_use */
		fail(j, decode_bad(j->v, SHARD_MISS_LIMIT,
				   "%u x %u JPEG needs more than %" PRIu64 " bytes of decoder memory",
				   j->cinfo.image_width, j->cinfo.image_height, j->d->limit.max_memory_bytes));
	case JERR_IMAGE_TOO_BIG:
	case JERR_WIDTH_OVERFLOW:
		fail(j, decode_bad(j->v, SHARD_MISS_LIMIT, "JPEG is too large: %s", text));
	case JERR_SOF_UNSUPPORTED:
	case JERR_BAD_PRECISION:
	case JERR_CONVERSION_NOTIMPL:
	case JERR_FRACT_SAMPLE_NOTIMPL:
	case JERR_CCIR601_NOTIMPL:
	case JERR_ARITH_NOTIMPL:
	case JERR_NOT_COMPILED:
	case JERR_NOTIMPL:
		fail(j, decode_bad(j->v, SHARD_MISS_UNSUPPORTED, "JPEG is of a kind that is not supported: %s", text));
	default:
		fail(j, decode_bad(j->v, SHARD_MISS_DECODE, "JPEG cannot be decoded: %s", text));
	}
}

/* Negative levels are warnings: the library goes on, with pixels that it made up. */
static void on_message(j_common_ptr cinfo, int level)
{
	struct jpeg *j = cinfo->client_data;
	char text[JMSG_LENGTH_MAX];

	if (level >= 0)
		return;
	switch (j->errors.msg_code) {
	case JWRN_ADOBE_XFORM: /* these three: odd metadata, right pixels */
	case JWRN_JFIF_MAJOR:
	case JWRN_BOGUS_ICC:
		return;
	case JWRN_EXTRANEOUS_DATA: /* junk between header segments harms nobody */
		if (!j->in_scan)
			return;
		break;
	case JWRN_JPEG_EOF:
		fail(j, decode_bad(j->v, SHARD_MISS_TRUNCATED, "JPEG data ends early: %s", library_text(j, text)));
	}
	fail(j, decode_bad(j->v, SHARD_MISS_DAMAGED, "JPEG data is damaged: %s", library_text(j, text)));
}

static void on_output(j_common_ptr cinfo)
{
	(void)cinfo; /* the library would write to stderr here */
}

/* Called all through the work; the scans of a progressive file are read before any row. */
static void on_progress(j_common_ptr cinfo)
{
	struct jpeg *j = cinfo->client_data;
	uint32_t limit = j->d->limit.max_scans;

	if (j->cinfo.input_scan_number > (int64_t)limit)
		fail(j, decode_bad(j->v, SHARD_MISS_LIMIT, "%s JPEG has more than %u scans",
				   j->cinfo.progressive_mode ? "progressive" : "sequential", limit));
}

/* Pillow's arithmetic; the samples of CMYK JPEGs are stored inverted. */
static void spread_cmyk(const uint8_t *in, uint8_t *row, uint32_t width)
{
	for (uint32_t i = 0; i < width; i++, in += 4, row += IMAGE_CHANNELS)
		for (int c = 0; c < IMAGE_CHANNELS; c++) {
			uint32_t ink = (255u - in[c]) * in[3] + 128;
			int32_t sample = in[3] - (int32_t)(((ink >> 8) + ink) >> 8);

			row[c] = (uint8_t)(sample < 0 ? 0 : sample);
		}
}

static void choose_colours(struct jpeg *j)
{
	struct jpeg_decompress_struct *cinfo = &j->cinfo;

	switch (cinfo->num_components) {
	case 1:
		cinfo->out_color_space = JCS_GRAYSCALE;
		break;
	case 3:
		cinfo->out_color_space = JCS_RGB;
		break;
	case 4:
		cinfo->out_color_space = JCS_CMYK;
		if (!scratch_reserve(&j->d->line, 4 * (size_t)cinfo->image_width))
			fail(j, decode_no_memory(j->v));
		break;
	default:
		fail(j, decode_bad(j->v, SHARD_MISS_UNSUPPORTED, "JPEG has %d components: 1, 3 and 4 are supported",
				   cinfo->num_components));
	}
}

#define ROWS_PER_CALL 4 /* the most that one call of the library yields */

static void read_rows(struct jpeg *j)
{
	struct jpeg_decompress_struct *cinfo = &j->cinfo;
	uint32_t width = cinfo->output_width, y;
	JSAMPROW rows[ROWS_PER_CALL];

	while ((y = cinfo->output_scanline) < cinfo->output_height) {
		uint32_t left = cinfo->output_height - y, count = 0;

		for (; count < ROWS_PER_CALL && count < left; count++) {
			uint8_t *row = decode_row(j->d, j->out, y + count);

			rows[count] = cinfo->num_components == 1 ? decode_narrow_row(row, width) : row;
		}
		if (cinfo->num_components == 4) {
			rows[0] = j->d->line.data;
			count = 1;
		}
		count = jpeg_read_scanlines(cinfo, rows, count);
		for (uint32_t i = 0; i < count && cinfo->num_components != 3; i++) {
			uint8_t *row = decode_row(j->d, j->out, y + i);

			if (cinfo->num_components == 1)
				decode_spread_gray(row, width);
			else
				spread_cmyk(j->d->line.data, row, width);
		}
	}
}

static void decompress(struct jpeg *j, const uint8_t *bytes, size_t size)
{
	struct jpeg_decompress_struct *cinfo = &j->cinfo;
	enum decode_status rc;

	jpeg_create_decompress(cinfo);
	cinfo->mem->max_memory_to_use = (long)j->d->limit.max_memory_bytes; /* see decoder_open */
	cinfo->progress = &j->progress;
	jpeg_mem_src(cinfo, bytes, size);
	jpeg_read_header(cinfo, TRUE);
	j->in_scan = true;
	rc = decode_begin(j->d, cinfo->image_width, cinfo->image_height, j->out, j->v);
	if (rc)
		fail(j, rc);
	choose_colours(j);
	jpeg_start_decompress(cinfo);
	read_rows(j);
	jpeg_finish_decompress(cinfo);
}

/* The frame that a jump returns to has no variables that could be stale. */
static void decompress_guarded(struct jpeg *j, const uint8_t *bytes, size_t size)
{
	if (!setjmp(j->failed))
		decompress(j, bytes, size);
}

enum decode_status jpeg_run(struct decoder *d, const uint8_t *bytes, size_t size, struct image *out,
			    struct decode_verdict *v)
{
	struct jpeg j = {.d = d, .out = out, .v = v, .status = DECODE_OK};

	j.cinfo.err = jpeg_std_error(&j.errors);
	j.cinfo.client_data = &j;
	j.errors.error_exit = on_error;
	j.errors.emit_message = on_message;
	j.errors.output_message = on_output;
	j.progress.progress_monitor = on_progress;
	decompress_guarded(&j, bytes, size);
	jpeg_destroy_decompress(&j.cinfo);
	return j.status;
}

#define TEXT(x)	   #x
#define TEXT_OF(x) TEXT(x)

const char *decoder_jpeg_version(void)
{
#ifdef LIBJPEG_TURBO_VERSION
	return "libjpeg-turbo " TEXT_OF(LIBJPEG_TURBO_VERSION);
#else
	return "libjpeg " TEXT_OF(JPEG_LIB_VERSION);
#endif
}
