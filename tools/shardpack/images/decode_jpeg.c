/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode_jpeg.c - JPEG to RGB through libjpeg-turbo's classic API
 *
 * The library's defaults throughout (accurate integer IDCT, fancy upsampling), because those
 * are Pillow's; read to the end-of-image marker, because damage in the tail counts too.  Of
 * an image that is wanted in part, the rest is parsed but not made into pixels.
 *
 * Each image gets a decompressor of its own.  A reused one keeps the tables of the image
 * before, and a file that lacks its own would silently decode with them: its pixels would
 * depend on what the thread happened to do earlier.  Creating one costs a microsecond.
 *
 * A warning is a verdict, unless it was to be accepted: then it is noted, and what it means is told
 * at the end.  The library reports errors by a callback that must not return, so it jumps.
 * Everything that lives across the jump is in struct jpeg, none of it in locals.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>

#include <jerror.h>

#include "shard_inspect.h"
#include "tools/shardpack/images/images.h"
#include "tools/shardpack/parse/parse.h"

/* ---- how many pictures a file holds, by CIPA DC-007 (Multi-Picture Format) ---- */

/*
 * The index is a TIFF of tags.  Its offsets count from its own head.
 */

#define MPF	     "MPF\0"
#define TAG_COUNT    0xb001
#define TAG_ENTRIES  0xb002
#define HEAD_BYTES   8
#define TAG_BYTES    12
#define ENTRY_BYTES  16
#define KIND(attr)   ((attr) >> 16 & 0xff) /* of an entry: 1 thumbnail, 2 several views, 3 the main one, 0 other */
#define IS_THUMBNAIL 1

struct mpf_index {
	const uint8_t *at; /* its head */
	size_t bytes;
	bool big;
};

static uint32_t read32(const struct mpf_index *x, size_t at)
{
	return (uint32_t)integer_load(x->at + at, 4, false, x->big);
}

static uint32_t read16(const struct mpf_index *x, size_t at)
{
	return (uint32_t)integer_load(x->at + at, 2, false, x->big);
}

/*
 * Counts the picture that the file begins with and the ones in its index that are in the file.
 * Smaller copies of it, which the index calls thumbnails, do not count.  1 if there is no index, or
 * if its entries are not all in it.
 */
static uint64_t mpf_pictures(const uint8_t *bytes, size_t size)
{
	struct jpeg_segment segment;
	size_t at = JPEG_SEGMENTS_AT, entry = 0, tags;
	uint64_t count = 0, pictures = 1;
	struct mpf_index x;

	do {
		if (!jpeg_segment_next(bytes, size, &at, &segment))
			return 1;
	} while (!jpeg_segment_is(&segment, JPEG_APP2, MPF));
	x = (struct mpf_index){.at = segment.data + sizeof(MPF) - 1, .bytes = segment.bytes - (sizeof(MPF) - 1)};
	if (x.bytes < HEAD_BYTES)
		return 1;
	x.big = x.at[0] == 'M';
	at = read32(&x, 4);
	if (at > x.bytes - 2)
		return 1;
	for (tags = read16(&x, at), at += 2; tags && x.bytes - at >= TAG_BYTES; tags--, at += TAG_BYTES) {
		if (read16(&x, at) == TAG_COUNT)
			count = read32(&x, at + 8);
		if (read16(&x, at) == TAG_ENTRIES)
			entry = read32(&x, at + 8);
	}
	if (!entry || entry > x.bytes || (x.bytes - entry) / ENTRY_BYTES < count)
		return 1;
	for (; count; count--, entry += ENTRY_BYTES) {
		size_t left = size - (size_t)(x.at - bytes), offset = read32(&x, entry + 8);

		/* the first one has offset 0: it is the picture that the file begins with */
		pictures += offset && offset < left && left - offset >= 2 && x.at[offset] == 0xff &&
			    x.at[offset + 1] == 0xd8 && KIND(read32(&x, entry)) != IS_THUMBNAIL;
	}
	return pictures;
}

/* ---- decoding ---- */

#define ICC	       "ICC_PROFILE\0"
#define ICC_HEAD_BYTES 14 /* then which one of how many parts it is, from 1 on */

struct jpeg {
	struct jpeg_decompress_struct cinfo;
	struct jpeg_error_mgr errors;
	struct jpeg_progress_mgr progress;
	jmp_buf failed;
	struct decoder *d;
	struct decode_verdict *v;
	enum decode_status status; /* what the jump means */
	bool in_scan;		   /* the header was read; what comes now are pixels */
	bool ends_early;	   /* accepted so far: the file ended before the image */
	bool all_rows;		   /* every pixel has been made */
};

static _Noreturn void give_up(struct jpeg *j, enum decode_status status)
{
	j->status = status;
	longjmp(j->failed, 1);
}

/* Go on, and tell of it in the end.  Of several the first counts. */
static void accept(struct jpeg *j, const char *what, const char *text)
{
	if (!j->v->reason)
		decode_bad(j->v, SHARD_MISS_DAMAGED, "%s: %s", what, text);
}

static void on_error(j_common_ptr cinfo)
{
	struct jpeg *j = cinfo->client_data;
	char text[JMSG_LENGTH_MAX];

	j->errors.format_message(cinfo, text); /* the library's own words */
	if (j->all_rows && j->d->limit.accept == ACCEPT_WARNINGS && j->errors.msg_code != JERR_OUT_OF_MEMORY) {
		accept(j, "JPEG cannot be read to its end", text);
		give_up(j, DECODE_OK);
	}
	switch (j->errors.msg_code) {
	case JERR_OUT_OF_MEMORY:
		give_up(j, decode_no_memory(j->v));
	case JERR_NO_BACKING_STORE: /* more than max_memory_to_use */
		give_up(j, decode_bad(j->v, SHARD_MISS_LIMIT,
				      "%u x %u JPEG needs more than %" PRIu64
				      " bytes of decoder memory; --limit memory=N allows more",
				      j->cinfo.image_width, j->cinfo.image_height, j->d->limit.max_memory_bytes));
	case JERR_IMAGE_TOO_BIG:
	case JERR_WIDTH_OVERFLOW:
		give_up(j, decode_bad(j->v, SHARD_MISS_LIMIT, "JPEG is too large: %s", text));
	case JERR_SOF_UNSUPPORTED:
	case JERR_BAD_PRECISION:
	case JERR_CONVERSION_NOTIMPL:
	case JERR_FRACT_SAMPLE_NOTIMPL:
	case JERR_CCIR601_NOTIMPL:
	case JERR_ARITH_NOTIMPL:
	case JERR_NOT_COMPILED:
	case JERR_NOTIMPL:
		give_up(j,
			decode_bad(j->v, SHARD_MISS_UNSUPPORTED, "JPEG is of a kind that is not supported: %s", text));
	default:
		give_up(j, decode_bad(j->v, SHARD_MISS_DECODE, "JPEG cannot be decoded: %s", text));
	}
}

/* Negative levels are warnings: the library goes on, with pixels that it made up. */
static void on_message(j_common_ptr cinfo, int level)
{
	struct jpeg *j = cinfo->client_data;
	char text[JMSG_LENGTH_MAX];

	if (level >= 0)
		return;
	j->errors.format_message(cinfo, text);
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
		if (!j->in_scan || j->d->limit.accept == ACCEPT_NONE)
			give_up(j, decode_bad(j->v, SHARD_MISS_TRUNCATED, "JPEG data ends early: %s", text));
		j->ends_early = true;
		return;
	}
	if (j->d->limit.accept != ACCEPT_WARNINGS)
		give_up(j, decode_bad(j->v, j->ends_early ? SHARD_MISS_TRUNCATED : SHARD_MISS_DAMAGED,
				      j->ends_early ? "JPEG data ends early: %s" : "JPEG data is damaged: %s", text));
	accept(j, j->ends_early ? "JPEG data ends early" : "JPEG data is damaged", text);
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
		give_up(j, decode_bad(j->v, SHARD_MISS_LIMIT,
				      "%s JPEG has more than %u scans; --limit scans=N allows more",
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
		decode_drop(j->v, DROPPED_CMYK);
		cinfo->out_color_space = JCS_CMYK;
		if (!scratch_reserve(&j->d->line, 4 * (size_t)cinfo->image_width))
			give_up(j, decode_no_memory(j->v));
		break;
	default:
		give_up(j, decode_bad(j->v, SHARD_MISS_UNSUPPORTED, "JPEG has %d components: 1, 3 and 4 are supported",
				      cinfo->num_components));
	}
}

/* At which scale, if the sink wants the pixels smaller. */
static void choose_scale(struct jpeg *j)
{
	const struct image_sink *sink = j->d->sink;
	struct jpeg_decompress_struct *cinfo = &j->cinfo;
	struct image_scaling s = {.scale = 1};

	if (sink->scaling && !sink->scaling(sink->context, cinfo->image_width, cinfo->image_height, &s))
		give_up(j,
			decode_bad(
				j->v, SHARD_MISS_UNSUPPORTED,
				"is %u x %u pixels: decode-scale=%u leaves %.7g x %.7g, less than the %u x %u that it "
				"is resized to; "
				"decode-scale=auto takes it",
				cinfo->image_width, cinfo->image_height, s.scale, (double)cinfo->image_width / s.scale,
				(double)cinfo->image_height / s.scale, s.width, s.height));
	cinfo->scale_num = 1;
	cinfo->scale_denom = s.scale;
}

#define ROWS_PER_CALL 4 /* the most that one call of the library yields */

/* Decode rows to `to` and on, `left` at most; returns how many. */
static uint32_t read_scanlines(struct jpeg *j, uint8_t *to, uint32_t left)
{
	struct jpeg_decompress_struct *cinfo = &j->cinfo;
	uint32_t width = cinfo->output_width, count = 0;
	size_t stride_bytes = IMAGE_CHANNELS * (size_t)width;
	JSAMPROW rows[ROWS_PER_CALL];

	for (; count < ROWS_PER_CALL && count < left; count++)
		rows[count] = cinfo->num_components == 1 ? decode_narrow_row(to + count * stride_bytes, width)
							 : to + count * stride_bytes;
	if (cinfo->num_components == 4) {
		rows[0] = j->d->line.data;
		count = 1;
	}
	count = jpeg_read_scanlines(cinfo, rows, count);
	for (uint32_t i = 0; i < count && cinfo->num_components != 3; i++) {
		if (cinfo->num_components == 1)
			decode_spread_gray(to + i * stride_bytes, width);
		else
			spread_cmyk(j->d->line.data, to + i * stride_bytes, width);
	}
	return count;
}

#define MARGIN_PIXELS 2 /* the last pixel beside a cut lacks a neighbour to be interpolated with */

/* Restrict what is decoded to the columns of `part`, or a few more.  Returns the first one. */
static uint32_t crop_columns(struct jpeg *j, const struct image_window *part)
{
	struct jpeg_decompress_struct *cinfo = &j->cinfo;
	JDIMENSION first = part->x < MARGIN_PIXELS ? 0 : part->x - MARGIN_PIXELS, count = part->x + part->width - first;

	count = cinfo->output_width - first - count < MARGIN_PIXELS ? cinfo->output_width - first
								    : count + MARGIN_PIXELS;
	if (count == cinfo->output_width)
		return 0;
	jpeg_crop_scanline(cinfo, &first, &count);
	return first;
}

/*
 * Rows that nobody wants: decoded only as far as it takes to see damage.  The image's last row is
 * read all the same: asked to skip to the end, the library would leave the rest of the file unread.
 */
static void skip_rows(struct jpeg *j, uint32_t count, bool exact_parts)
{
	bool to_the_end = count == j->cinfo.output_height - j->cinfo.output_scanline;

	if (exact_parts && count > to_the_end)
		count -= jpeg_skip_scanlines(&j->cinfo, count - to_the_end);
	while (count)
		count -=
			read_scanlines(j, j->d->pixels.data, count < RESIZE_ROWS_AT_ONCE ? count : RESIZE_ROWS_AT_ONCE);
}

static void stream_rows(struct jpeg *j)
{
	struct jpeg_decompress_struct *cinfo = &j->cinfo;
	const struct image_sink *sink = j->d->sink;
	struct image_size size = {
		.width = cinfo->image_width, .height = cinfo->image_height, .scale = cinfo->scale_denom};
	/*
	 * Does the library decode a part of this image to the same pixels?  It does for what nearly
	 * all files are.  Left out are the ones that are in its memory as a whole anyway (there is little
	 * to win, and it smooths the blocks of unfinished ones with their neighbours), rare samplings,
	 * and what is decoded at a scale.
	 */
	bool exact_parts = !jpeg_has_multiple_scans(cinfo) && cinfo->max_h_samp_factor <= 2 &&
			   cinfo->max_v_samp_factor <= 2 && cinfo->scale_denom == 1;
	struct image_window part;
	uint32_t first = 0, count;
	size_t stride_bytes;

	j->d->sink_begun = true;
	if (!sink->begin(sink->context, &size, &part))
		give_up(j, decode_no_memory(j->v));
	if (exact_parts)
		first = crop_columns(j, &part);
	stride_bytes = IMAGE_CHANNELS * (size_t)cinfo->output_width;
	if (!scratch_reserve(&j->d->pixels, RESIZE_ROWS_AT_ONCE * stride_bytes))
		give_up(j, decode_no_memory(j->v));
	skip_rows(j, part.y, exact_parts);
	for (uint32_t given = 0; given < part.height; given += count) {
		count = part.height - given < RESIZE_ROWS_AT_ONCE ? part.height - given : RESIZE_ROWS_AT_ONCE;
		for (uint32_t now = 0; now < count;)
			now += read_scanlines(j, j->d->pixels.data + now * stride_bytes, count - now);
		sink->rows(sink->context, j->d->pixels.data + IMAGE_CHANNELS * (size_t)(part.x - first), stride_bytes,
			   count);
	}
	skip_rows(j, cinfo->output_height - cinfo->output_scanline, exact_parts);
}

/*
 * The file ended, and no scan that it has is cut: the library would have warned.  But are these all
 * scans?  The precision of each coefficient of a progressive file must have come down to the last
 * bit, and of others each component must have had its scan.  NULL, or what is missing.
 */
static const char *missing_scans(const struct jpeg_decompress_struct *cinfo)
{
	if (cinfo->arith_code) /* its decoder makes up what is missing without a word */
		return "pixels may be made up, of arithmetic coding that cannot be told";
	for (int i = 0; i < cinfo->num_components; i++) {
		if (!cinfo->comp_info[i].quant_table)
			return "scans are missing";
		for (int k = 0; cinfo->progressive_mode && k < DCTSIZE2; k++)
			if (cinfo->coef_bits[i][k] != 0)
				return "scans are missing";
	}
	return NULL;
}

/* What it means that a file ended early, nothing else having been wrong with it. */
static void judge_end(struct jpeg *j)
{
	const char *what = missing_scans(&j->cinfo);

	if (what && j->d->limit.accept == ACCEPT_EOI)
		give_up(j, decode_bad(j->v, SHARD_MISS_TRUNCATED, "JPEG data ends early: %s", what));
	if (what)
		accept(j, "JPEG data ends early", what);
	else
		decode_bad(j->v, SHARD_MISS_TRUNCATED, "JPEG lacks its end-of-image marker, and nothing else");
}

/* A profile may go on in further segments; its head and its primaries are in the first one. */
static void note_profile(struct jpeg *j, const uint8_t *bytes, size_t size)
{
	size_t at = JPEG_SEGMENTS_AT;
	struct jpeg_segment s;

	while (jpeg_segment_next(bytes, size, &at, &s))
		if (jpeg_segment_is(&s, JPEG_APP2, ICC) && s.bytes >= ICC_HEAD_BYTES &&
		    s.data[ICC_HEAD_BYTES - 2] == 1) {
			if (!icc_is_like_srgb(s.data + ICC_HEAD_BYTES, s.bytes - ICC_HEAD_BYTES))
				decode_drop(j->v, DROPPED_PROFILE);
			return;
		}
}

/* A jump returns here, and reads no variable of this frame: it could be stale. */
static void decompress(struct jpeg *j, const uint8_t *bytes, size_t size)
{
	struct jpeg_decompress_struct *cinfo = &j->cinfo;
	uint64_t kept_bytes; /* of an image whose scans must all be there before it has a pixel */
	enum decode_status rc;

	if (setjmp(j->failed))
		return;
	jpeg_create_decompress(cinfo);
	cinfo->mem->max_memory_to_use = (long)j->d->limit.max_memory_bytes; /* see decoder_open */
	cinfo->progress = &j->progress;
	jpeg_mem_src(cinfo, bytes, size);
	jpeg_read_header(cinfo, TRUE);
	j->in_scan = true;
	rc = decode_check_size(j->d, cinfo->image_width, cinfo->image_height, j->v);
	if (!rc)
		rc = decode_first_of(j->d, mpf_pictures(bytes, size), "JPEG", "pictures", j->v);
	if (rc)
		give_up(j, rc);
	choose_colours(j);
	note_profile(j, bytes, size);
	choose_scale(j);
	kept_bytes = 0;
	for (int i = 0; i < cinfo->num_components; i++)
		kept_bytes += (uint64_t)cinfo->comp_info[i].width_in_blocks * cinfo->comp_info[i].height_in_blocks *
			      DCTSIZE2 * sizeof(JCOEF);
	if (jpeg_has_multiple_scans(cinfo))
		decode_claim(j->d, kept_bytes);
	jpeg_start_decompress(cinfo);
	stream_rows(j);
	j->all_rows = true;
	/* of a single scan: here, while coef_bits and the components can still be seen */
	while (!jpeg_input_complete(cinfo))
		jpeg_consume_input(cinfo);
	if (j->ends_early && !j->v->reason)
		judge_end(j);
	jpeg_finish_decompress(cinfo);
}

enum decode_status jpeg_run(struct decoder *d, const uint8_t *bytes, size_t size, struct decode_verdict *v)
{
	struct jpeg j = {.d = d, .v = v, .status = DECODE_OK};

	j.cinfo.err = jpeg_std_error(&j.errors);
	j.cinfo.client_data = &j;
	j.errors.error_exit = on_error;
	j.errors.emit_message = on_message;
	j.errors.output_message = on_output;
	j.progress.progress_monitor = on_progress;
	decompress(&j, bytes, size);
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
