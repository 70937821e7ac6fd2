/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_pack_pictures.c - any bytes as an image or a mask: GIFs, TIFFs, AVIFs and masks of codes
 *
 * The first byte says as what the others are read.  A verdict has a reason and a sentence, and an
 * image that is good gives all rows that were wanted, and no others.
 */
#include "tests/fuzz/fuzz.h"
#include "tools/shardpack/images/images.h"

#define PIXELS_MAX 65536
#define SIDE_MAX   4096

struct taken {
	uint32_t pixel_bytes;
	struct image_window want;
	uint64_t rows, sum;
	bool begun;
};

static bool begin(void *context, const struct image_size *size, struct image_window *wanted)
{
	struct taken *t = context;
	uint32_t width = image_columns(size), height = image_rows(size);

	must(!t->begun, "an image begins twice");
	must(width && height && (uint64_t)width * height <= PIXELS_MAX, "an image is over its limit");
	t->begun = true;
	t->want = (struct image_window){width / 3, height / 4, width - width / 3, height - height / 4};
	*wanted = t->want;
	return true;
}

/* Every byte is looked at, for a sanitizer to see. */
static void rows(void *context, const uint8_t *pixels, size_t stride_bytes, uint32_t row_count)
{
	struct taken *t = context;

	must(t->begun, "rows come before the image begins");
	for (uint32_t y = 0; y < row_count; y++, t->rows++)
		for (size_t i = 0; i < (size_t)t->want.width * t->pixel_bytes; i++)
			t->sum += pixels[y * stride_bytes + i];
	must(t->rows <= t->want.height, "more rows come than were wanted");
}

static void use(struct decoder *d, const struct mask_codes *codes, bool mask, bool wide, const uint8_t *data,
		size_t size)
{
	struct taken t = {.pixel_bytes = codes	? codes->sample_bytes
					 : mask ? 1
					 : wide ? IMAGE_WIDE_BYTES
						: IMAGE_CHANNELS};
	const struct image_sink sink = {.begin = begin, .rows = rows, .context = &t};
	struct decode_verdict v;
	enum decode_kind kind = codes || mask ? DECODE_MASK : wide ? DECODE_WIDE : DECODE_RGB;
	enum decode_status rc = decoder_stream(d, kind, codes, data, size, &sink, &v);

	must(rc != DECODE_OK || (t.begun && t.rows == t.want.height), "a good image lacks rows");
	must(rc != DECODE_BAD_INPUT || (v.reason && v.message[0]), "a refusal has no reason");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char colours[] = "0.0.0-0/7.7.7-1/else-2", values[] = "0-0/7-1/300-65535/else-9";
	struct decoder *d = decoder_open(
		&(struct decode_options){.max_pixels = PIXELS_MAX, .max_side = SIDE_MAX, .max_memory_bytes = 1 << 24});
	struct mask_map map = {0};
	struct mask_codes codes;
	unsigned how = size ? data[0] % 6 : 0;
	uint8_t *copy = malloc(size > 1 ? size - 1 : 1); /* a sanitizer sees one byte too many */

	must(d && copy, "no memory");
	if (size)
		memcpy(copy, data + 1, size - 1);
	if (how == 4)
		must(mask_map_read(&map, colours, sizeof(colours) - 1), "a map is not read");
	else if (how == 5)
		must(mask_map_read(&map, values, sizeof(values) - 1), "a map is not read");
	codes = (struct mask_codes){how == 4 ? 1 : how == 3 ? 4 : 2, map.count ? &map : NULL};
	use(d, how > 1 ? &codes : NULL, how == 1, false, copy, size ? size - 1 : 0);
	if (!how)
		use(d, NULL, false, true, copy, size ? size - 1 : 0);
	mask_map_free(&map);
	decoder_close(d);
	free(copy);
	return 0;
}
