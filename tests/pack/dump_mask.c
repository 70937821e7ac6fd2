/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dump_mask.c - masks as stdin asks for them, values to stdout
 *
 * Not a test but a test's tool, see tests/twin/masks.py.  One job per line:
 *
 *     FILE RESIZE CROP FIT FILL EXIF
 *
 * (FIT as in dump_transform.c; EXIF: 1, turn the mask as its file says, or 0)
 *
 * answered by "ok WIDTH HEIGHT" and the values, or "bad REASON MESSAGE".  CROP 0 stops after
 * decoding.  All jobs share one decoder.
 */
#include <inttypes.h>

#include "tests/pack/dump.h"
#include "tests/pack/kept.h"
#include "tools/shardpack/images/images.h"

struct job {
	struct transform_options opt;
	unsigned fill, exif;
};

static void print_whole(struct decoder *d, const uint8_t *bytes, size_t size)
{
	struct kept k = {.want = KEPT_WHOLE, .channels = 1};
	const struct image_sink sink = kept_sink(&k);
	struct decode_verdict v;

	if (decoder_stream(d, DECODE_MASK, NULL, bytes, size, &sink, &v) == DECODE_OK) {
		printf("ok %" PRIu32 " %" PRIu32 "\n", k.width, k.height);
		fwrite(k.pixels, k.width, k.height, stdout);
	} else {
		printf("bad %d %s\n", v.reason, v.message);
	}
	free(k.pixels);
}

static void print_record(struct decoder *d, const uint8_t *bytes, size_t size, const struct job *job)
{
	struct mask *m = must(mask_open(&job->opt, 1, (uint32_t)job->fill), "out of memory");
	size_t record_bytes = (size_t)job->opt.crop * job->opt.crop;
	uint8_t *record = must(malloc(record_bytes), "out of memory");
	uint32_t orientation = 0;
	struct decode_verdict v;

	if (job->exif && !image_stated(bytes, size, EXIF_RULES_PILLOW_13, &orientation))
		must(NULL, "out of memory");
	if (decoder_stream(d, DECODE_MASK, NULL, bytes, size, mask_sink(m, orientation ? orientation : 1, record),
			   &v) == DECODE_OK) {
		printf("ok %" PRIu32 " %" PRIu32 "\n", job->opt.crop, job->opt.crop);
		fwrite(record, 1, record_bytes, stdout);
	} else {
		printf("bad %d %s\n", v.reason, v.message);
	}
	free(record);
	mask_close(m);
}

int main(void)
{
	struct decoder *d = must(decoder_open(NULL), "out of memory");
	struct job job = {0};
	char path[4096];
	unsigned fit;

	while (scanf("%4095s %" SCNu32 " %" SCNu32 " %u %u %u", path, &job.opt.resize, &job.opt.crop, &fit, &job.fill,
		     &job.exif) == 6) {
		size_t size;
		uint8_t *bytes = read_file(path, &size);

		job.opt.fit = (enum transform_fit)fit;
		if (job.opt.crop)
			print_record(d, bytes, size, &job);
		else
			print_whole(d, bytes, size);
		free(bytes);
	}
	decoder_close(d);
	return flushed();
}
