/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dump_transform.c - decode and transform what stdin asks for, pixels to stdout
 *
 * Not a test but a test's tool, see tests/twin/pillow.py.  One job per line:
 *
 *     FILE RESIZE CROP FILTER LAYOUT FIT
 *
 * (FILTER: 0 box 1 bilinear 2 bicubic 3 lanczos; LAYOUT: 0 HWC 1 CHW; FIT: 0 short 1 long 2 stretch
 * 3 pad)
 *
 * answered by "ok WIDTH HEIGHT" and the samples, or "bad REASON MESSAGE".  CROP 0 stops after
 * decoding.  All jobs share one decoder, so nothing may be left over from one image to the next.
 */
#include <inttypes.h>

#include "tests/pack/dump.h"
#include "tests/pack/kept.h"
#include "tools/shardpack/decode/decode.h"
#include "tools/shardpack/image/transform_image.h"

static void print_answer(enum decode_status status, const struct decode_verdict *v, uint32_t width, uint32_t height,
			 const uint8_t *samples)
{
	if (status != DECODE_OK) {
		printf("bad %d %s\n", v->reason, v->message);
		return;
	}
	printf("ok %" PRIu32 " %" PRIu32 "\n", width, height);
	fwrite(samples, IMAGE_CHANNELS, (size_t)width * height, stdout);
}

static void run_job(struct decoder *d, const char *path, const struct transform_options *opt)
{
	struct decode_verdict v;
	enum decode_status status;
	size_t size;
	uint8_t *bytes = read_file(path, &size);

	if (!opt->crop) {
		struct kept k = {.want = KEPT_WHOLE, .channels = IMAGE_CHANNELS};
		const struct image_sink sink = kept_sink(&k);

		status = decoder_stream(d, bytes, size, &sink, &v);
		print_answer(status, &v, k.width, k.height, k.pixels);
		free(k.pixels);
	} else {
		struct transform *t = must(transform_open(opt), "out of memory");
		uint8_t *record = must(malloc((size_t)opt->crop * opt->crop * IMAGE_CHANNELS), "out of memory");

		status = decoder_stream(d, bytes, size, transform_sink(t, record), &v);
		if (status == DECODE_OK)
			transform_finish(t);
		print_answer(status, &v, opt->crop, opt->crop, record);
		free(record);
		transform_close(t);
	}
	free(bytes);
}

int main(void)
{
	struct decoder *d = must(decoder_open(NULL), "out of memory");
	struct transform_options opt = {0};
	unsigned filter, layout, fit;
	char path[4096];

	while (scanf("%4095s %" SCNu32 " %" SCNu32 " %u %u %u", path, &opt.resize, &opt.crop, &filter, &layout, &fit) ==
	       6) {
		opt.filter = (enum resize_filter)filter;
		opt.layout = (enum image_layout)layout;
		opt.fit = (enum transform_fit)fit;
		run_job(d, path, &opt);
	}
	decoder_close(d);
	return flushed();
}
