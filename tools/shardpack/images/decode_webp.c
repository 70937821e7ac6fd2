/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode_webp.c - WebP, lossy and lossless
 *
 * Alpha is dropped, as everywhere.  libwebp decodes what it is given; that a file is as long as it
 * says is seen to here.
 *
 * Of an animation the first frame is decoded.  It lies on a canvas, which is black beside it, as in
 * Pillow.
 */
#include "tools/shardpack/images/images.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <webp/decode.h>
#include <webp/demux.h>

#include "libshard/base/bytes.h"
#include "shard_inspect.h"

#define VP8X_END 30 /* 12 of the magic, 8 of the chunk's head, 10 */

static enum decode_status refuse(VP8StatusCode code, struct decode_verdict *v)
{
	switch (code) {
	case VP8_STATUS_OUT_OF_MEMORY:
		return decode_no_memory(v);
	case VP8_STATUS_NOT_ENOUGH_DATA:
		return decode_bad(v, SHARD_MISS_TRUNCATED, "WebP data ends early");
	case VP8_STATUS_UNSUPPORTED_FEATURE:
		return decode_bad(v, SHARD_MISS_UNSUPPORTED, "WebP has a feature that libwebp does not know");
	default:
		return decode_bad(v, SHARD_MISS_DECODE, "WebP data is damaged (libwebp: status %d)", (int)code);
	}
}

/* What is decoded, and where it lies on the picture. */
struct still {
	const uint8_t *bytes;
	size_t size;
	uint32_t width, height; /* of the picture */
	uint32_t x, y;
};

static enum decode_status no_animation(struct decode_verdict *v)
{
	return decode_bad(v, SHARD_MISS_DECODE, "WebP data is damaged: its frames are not an animation");
}

/* The first frame, which need not be as large as it says. */
static enum decode_status take_frame(WebPDemuxer *demux, WebPDecoderConfig *config, struct still *s,
				     struct decode_verdict *v)
{
	WebPIterator frame;
	VP8StatusCode code;

	if (!WebPDemuxGetFrame(demux, 1, &frame))
		return no_animation(v);
	*s = (struct still){.bytes = frame.fragment.bytes,
			    .size = frame.fragment.size,
			    .width = WebPDemuxGetI(demux, WEBP_FF_CANVAS_WIDTH),
			    .height = WebPDemuxGetI(demux, WEBP_FF_CANVAS_HEIGHT),
			    .x = (uint32_t)frame.x_offset,
			    .y = (uint32_t)frame.y_offset};
	WebPDemuxReleaseIterator(&frame);
	code = WebPGetFeatures(s->bytes, s->size, &config->input);
	if (code != VP8_STATUS_OK)
		return refuse(code, v);
	if (config->input.width < 1 || config->input.height < 1 ||
	    (uint64_t)s->x + (uint64_t)config->input.width > s->width ||
	    (uint64_t)s->y + (uint64_t)config->input.height > s->height)
		return no_animation(v);
	return DECODE_OK;
}

/* The frames behind the first one must be there, and are not decoded. */
static enum decode_status find_frame(struct decoder *d, WebPDecoderConfig *config, struct still *s,
				     struct decode_verdict *v)
{
	WebPDemuxer *demux = WebPDemux(&(WebPData){s->bytes, s->size});
	enum decode_status rc;

	if (!demux)
		return no_animation(v);
	rc = decode_first_of(d, WebPDemuxGetI(demux, WEBP_FF_FRAME_COUNT), "WebP", "frames", v);
	if (rc == DECODE_OK)
		rc = take_frame(demux, config, s, v);
	WebPDemuxDelete(demux);
	return rc;
}

static enum decode_status decode_still(struct decoder *d, WebPDecoderConfig *config, const struct still *s,
				       struct decode_verdict *v)
{
	size_t stride_bytes = IMAGE_CHANNELS * (size_t)s->width, bytes = stride_bytes * s->height;
	size_t first = s->y * stride_bytes + IMAGE_CHANNELS * (size_t)s->x;
	enum decode_status rc = decode_check_size(d, s->width, s->height, v);
	VP8StatusCode code;

	if (rc != DECODE_OK)
		return rc;
	/*
	 * At once, for the first claim is what counts: the image, and what libwebp holds of a
	 * lossless one.
	 */
	decode_claim(d, (IMAGE_CHANNELS + 4) * (uint64_t)s->width * s->height);
	rc = decode_begin(d, s->width, s->height, v);
	if (rc != DECODE_OK)
		return rc;
	if ((uint32_t)config->input.width < s->width || (uint32_t)config->input.height < s->height)
		memset(d->pixels.data, 0, bytes);
	if (config->input.has_alpha)
		decode_drop(v, DROPPED_ALPHA);
	config->output.colorspace = MODE_RGB;
	config->output.is_external_memory = 1;
	config->output.u.RGBA.rgba = d->pixels.data + first;
	config->output.u.RGBA.stride = (int)stride_bytes;
	config->output.u.RGBA.size = bytes - first;
	code = WebPDecode(s->bytes, s->size, config);
	return code == VP8_STATUS_OK ? DECODE_OK : refuse(code, v);
}

/* The chunk of a profile is right behind the head of an extended file, which says that it is. */
static void note_profile(const uint8_t *bytes, size_t size, struct decode_verdict *v)
{
	const uint8_t *at = bytes + VP8X_END;

	if (size < VP8X_END + 8 || memcmp(bytes + 12, "VP8X", 4) != 0 || !(bytes[20] & 0x20) ||
	    memcmp(at, "ICCP", 4) != 0)
		return;
	if (load32(at + 4) > size - VP8X_END - 8 || !icc_is_like_srgb(at + 8, load32(at + 4)))
		decode_drop(v, DROPPED_PROFILE);
}

enum decode_status webp_run(struct decoder *d, const uint8_t *bytes, size_t size, struct decode_verdict *v)
{
	uint64_t said = (uint64_t)load32(bytes + 4) + 8; /* decode.c saw the 12 bytes of the magic */
	struct still s = {.bytes = bytes, .size = (size_t)said};
	WebPDecoderConfig config;
	enum decode_status rc = DECODE_OK;
	VP8StatusCode code;

	if (said > size)
		return decode_bad(v, SHARD_MISS_TRUNCATED, "WebP data ends early: has %zu bytes of %" PRIu64, size,
				  said);
	note_profile(bytes, s.size, v);
	if (!WebPInitDecoderConfig(&config))
		return decode_bad(v, SHARD_MISS_UNSUPPORTED,
				  "libwebp is another version than shardpack was built with");
	code = WebPGetFeatures(s.bytes, s.size, &config.input);
	if (code != VP8_STATUS_OK)
		return refuse(code, v);
	if (config.input.has_animation) {
		rc = find_frame(d, &config, &s, v);
	} else if (config.input.width < 1 || config.input.height < 1) {
		return decode_bad(v, SHARD_MISS_DECODE, "WebP has no pixels");
	} else {
		s.width = (uint32_t)config.input.width;
		s.height = (uint32_t)config.input.height;
	}
	return rc == DECODE_OK ? decode_still(d, &config, &s, v) : rc;
}

const char *decoder_webp_version(void)
{
	static char text[32]; /* every thread writes the same */
	int version = WebPGetDecoderVersion();

	snprintf(text, sizeof(text), "libwebp %d.%d.%d", version >> 16, version >> 8 & 255, version & 255);
	return text;
}
