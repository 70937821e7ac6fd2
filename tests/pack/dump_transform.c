/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dump_transform.c - decode and transform what stdin asks for, pixels to stdout
 *
 * Not a test but a test's tool, see tests/twin/pillow.py.  One job per line:
 *
 *     FILE RESIZE CROP FILTER LAYOUT FIT PIXELS SCALE EXIF
 *
 * (FILTER: 0 box 1 bilinear 2 bicubic 3 lanczos; LAYOUT: 0 HWC 1 CHW; FIT: 0 short 1 long 2 stretch
 * 3 pad 4 area; PIXELS: 0 rows-first 1 pillow-12 2 pillow-13; SCALE: 0 to 3: 1, 1/2, 1/4, 1/8,
 * 4 auto; EXIF: 1 turns the image)
 *
 * answered by "ok WIDTH HEIGHT" and the samples, or "bad REASON MESSAGE".  CROP 0 stops after
 * decoding.  Of a whole image (area) only its own pixels are written; behind them must be zeros.
 * All jobs share one decoder, so nothing may be left over from one image to the next.  With the
 * argument `wide` all images have 16 bits a sample, and the samples are u16.
 */
#include <inttypes.h>
#include <string.h>

#include "tests/pack/dump.h"
#include "tests/pack/kept.h"
#include "tools/shardpack/images/images.h"

static void claim_nothing(void *context, uint64_t bytes)
{
	(void)context;
	(void)bytes;
}

static void print_answer(enum decode_status status, const struct decode_verdict *v, uint32_t width, uint32_t height,
			 const uint8_t *samples, size_t pixel_bytes)
{
	if (status != DECODE_OK) {
		printf("bad %d %s\n", v->reason, v->message);
		return;
	}
	printf("ok %" PRIu32 " %" PRIu32 "\n", width, height);
	fwrite(samples, pixel_bytes, (size_t)width * height, stdout);
}

/* As the packer does it with --exif apply. */
static enum decode_status stream(struct decoder *d, bool wide, const uint8_t *bytes, size_t size, uint32_t orientation,
				 const struct image_sink *sink, struct decode_verdict *v)
{
	struct turn turn = {.claim = claim_nothing};
	enum decode_status status;

	sink = orientation < 2 ? sink : turn_sink(&turn, orientation, wide, sink);
	status = decoder_stream(d, wide ? DECODE_WIDE : DECODE_RGB, NULL, bytes, size, sink, v);
	if (status == DECODE_OK && orientation > 1)
		must(turn_finish(&turn) ? d : NULL, "out of memory");
	turn_free(&turn);
	return status;
}

/* Of a whole image, whose record ends with zeros. */
static void whole_size(const struct transform *t, const struct transform_options *opt, uint8_t *record, uint32_t *width,
		       uint32_t *height)
{
	struct transform_geometry g;
	size_t end = (size_t)opt->crop * opt->crop * IMAGE_CHANNELS;

	transform_source_size(t, width, height);
	g = transform_geometry(opt, *width, *height);
	*width = g.width;
	*height = g.height;
	for (size_t i = (size_t)g.width * g.height * IMAGE_CHANNELS; i < end; i++)
		must(record[i] ? NULL : record, "a byte behind the image is not zero");
}

static void run_job(struct decoder *d, const char *path, const struct transform_options *opt, bool upright)
{
	struct decode_verdict v;
	enum decode_status status;
	size_t size;
	uint8_t *bytes = read_file(path, &size);
	enum exif_rules rules = opt->pixels == RESIZE_PILLOW_13 ? EXIF_RULES_PILLOW_13 : EXIF_RULES_PILLOW_12;
	uint32_t orientation = 0, pixel_bytes = opt->wide ? IMAGE_WIDE_BYTES : IMAGE_CHANNELS;

	if (upright && !image_stated(bytes, size, rules, &orientation))
		must(NULL, "out of memory");
	if (!opt->crop) {
		struct kept k = {.want = KEPT_WHOLE, .channels = pixel_bytes};
		const struct image_sink sink = kept_sink(&k);

		status = stream(d, opt->wide, bytes, size, orientation, &sink, &v);
		print_answer(status, &v, k.width, k.height, k.pixels, pixel_bytes);
		free(k.pixels);
	} else {
		struct transform *t = must(transform_open(opt), "out of memory");
		size_t record_bytes = (size_t)opt->crop * opt->crop * pixel_bytes;
		uint8_t *record = must(malloc(record_bytes), "out of memory");
		uint32_t width = opt->crop, height = opt->crop;

		memset(record, 0xa5, record_bytes);
		status = stream(d, opt->wide, bytes, size, orientation, transform_sink(t, record), &v);
		if (status == DECODE_OK)
			transform_finish(t);
		if (status == DECODE_OK && opt->fit == FIT_AREA)
			whole_size(t, opt, record, &width, &height);
		print_answer(status, &v, width, height, record, pixel_bytes);
		free(record);
		transform_close(t);
	}
	free(bytes);
}

int main(int argc, char **argv)
{

	struct decoder *d = must(decoder_open(NULL), "out of memory");
	bool wide = argc > 1 && !strcmp(argv[1], "wide");
	struct transform_options opt = {.wide = wide, .samples = wide ? IMAGE_U16 : IMAGE_U8};
	unsigned filter, layout, fit, pixels, scale, upright;
	char path[4096];

	while (scanf("%4095s %" SCNu32 " %" SCNu32 " %u %u %u %u %u %u", path, &opt.resize, &opt.crop, &filter, &layout,
		     &fit, &pixels, &scale, &upright) == 9) {
		opt.filter = (enum resize_filter)filter;
		opt.layout = (enum image_layout)layout;
		opt.fit = (enum transform_fit)fit;
		opt.pixels = (enum resize_pixels)pixels;
		opt.scale = (enum transform_scale)scale;
		run_job(d, path, &opt, upright);
	}
	decoder_close(d);
	return flushed();
}
