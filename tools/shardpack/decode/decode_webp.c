/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode_webp.c - WebP, lossy and lossless
 *
 * Alpha is dropped, as everywhere.  libwebp decodes what it is given; that a file is as long as it
 * says is seen to here.
 */
#include "tools/shardpack/decode/decode_webp.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <webp/decode.h>

#include "shard_pack.h"
#include "tools/common/load.h"

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

enum decode_status webp_run(struct decoder *d, const uint8_t *bytes, size_t size, struct image *out,
			    struct decode_verdict *v)
{
	uint64_t said = (uint64_t)load32(bytes + 4) + 8; /* decode.c saw the 12 bytes of the magic */
	WebPDecoderConfig config;
	enum decode_status rc;
	VP8StatusCode code;

	if (d->channels == 1)
		return decode_bad(v, SHARD_MISS_UNSUPPORTED, "WebP has colours and no values: save the mask as PNG");
	if (said > size)
		return decode_bad(v, SHARD_MISS_TRUNCATED, "WebP data ends early: has %zu bytes of %" PRIu64, size,
				  said);
	if (!WebPInitDecoderConfig(&config))
		return decode_bad(v, SHARD_MISS_UNSUPPORTED,
				  "libwebp is another version than shardpack was built with");
	code = WebPGetFeatures(bytes, (size_t)said, &config.input);
	if (code != VP8_STATUS_OK)
		return refuse(code, v);
	if (config.input.has_animation)
		return decode_bad(v, SHARD_MISS_UNSUPPORTED,
				  "WebP is animated: save the frame that is wanted as an image");
	if (config.input.width < 1 || config.input.height < 1)
		return decode_bad(v, SHARD_MISS_DECODE, "WebP has no pixels");
	rc = decode_check_size(d, (uint64_t)config.input.width, (uint64_t)config.input.height, v);
	if (rc != DECODE_OK)
		return rc;
	/*
	 * At once, for the first claim is what counts: the image, and what libwebp holds of a
	 * lossless one.
	 */
	decode_claim(d, (IMAGE_CHANNELS + 4) * (uint64_t)config.input.width * (uint64_t)config.input.height);
	rc = decode_begin(d, (uint64_t)config.input.width, (uint64_t)config.input.height, out, v);
	if (rc != DECODE_OK)
		return rc;
	config.output.colorspace = MODE_RGB;
	config.output.is_external_memory = 1;
	config.output.u.RGBA.rgba = d->pixels.data;
	config.output.u.RGBA.stride = (int)out->width * IMAGE_CHANNELS;
	config.output.u.RGBA.size = (size_t)out->width * out->height * IMAGE_CHANNELS;
	code = WebPDecode(bytes, (size_t)said, &config);
	return code == VP8_STATUS_OK ? DECODE_OK : refuse(code, v);
}
