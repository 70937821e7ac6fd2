/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resize.c - resized images per second, with what the processor offers against the portable twin,
 * and that against Pillow
 *
 * An image of ImageNet's commonest size, 500 x 375.  The first rows make what `shardpack images`
 * makes of it: the centre 224 x 224 of 341 x 256.  Pillow has no such window, so the last row makes
 * all of 341 x 256 on both sides.  What is on the image does not matter: the same sums are made of
 * any.
 */
#include <stdio.h>
#include <stdlib.h>

#include "bench/common/bench.h"
#include "tools/shardpack/images/images.h"

enum { WIDTH = 500, HEIGHT = 375, NEW_WIDTH = 341, NEW_HEIGHT = 256, CROP = 224, ROUNDS = 200 };

static const struct image_window centre = {(NEW_WIDTH - CROP) / 2, (NEW_HEIGHT - CROP) / 2, CROP, CROP};
static const struct image_window whole = {0, 0, NEW_WIDTH, NEW_HEIGHT};

struct work {
	struct resizer *fast, *portable;
	struct image source;
	uint8_t *out;
	const struct image_window *window;
	enum resize_filter filter;
	const char *python;
};

static double run(struct work *w, struct resizer *r)
{
	struct resize_target target = {.pixels = w->out, .row_bytes = 3 * (size_t)w->window->width};
	double begin = bench_seconds();

	for (int i = 0; i < ROUNDS; i++)
		if (!resizer_run(r, &w->source, NEW_WIDTH, NEW_HEIGHT, w->filter, w->window, &target))
			bench_die("out of memory");
	return ROUNDS / (bench_seconds() - begin);
}

static double run_fast(void *context)
{
	struct work *w = context;

	return run(w, w->fast);
}

static double run_portable(void *context)
{
	struct work *w = context;

	return run(w, w->portable);
}

static double run_pillow(void *context)
{
	struct work *w = context;
	char command[256], line[64] = "";
	FILE *f;

	snprintf(command, sizeof(command), "'%s' bench/pillow_resize.py %d %d %d %d %d", w->python, WIDTH, HEIGHT,
		 NEW_WIDTH, NEW_HEIGHT, ROUNDS);
	f = popen(command, "r");
	if (!f || !fgets(line, sizeof(line), f) || pclose(f))
		bench_die("%s: failed", command);
	return strtod(line, NULL);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		enum resize_filter filter;
	} rows[] = {{"resize/box", RESIZE_BOX},
		    {"resize/bilinear", RESIZE_BILINEAR},
		    {"resize/bicubic", RESIZE_BICUBIC},
		    {"resize/lanczos", RESIZE_LANCZOS}};
	struct bench *b = bench_open(argc, argv);
	size_t bytes = (3 * (size_t)WIDTH * HEIGHT + 7) / 8 * 8;
	uint8_t *pixels = bench_memory(bytes);
	struct work w = {.fast = resizer_open(),
			 .portable = resizer_open_portable(),
			 .source = {pixels, WIDTH, HEIGHT},
			 .out = bench_memory(3 * (size_t)NEW_WIDTH * NEW_HEIGHT),
			 .window = &centre,
			 .python = getenv("PYTHON")};
	struct bench_row row = {.unit = "images/s", .warm_up_count = 1, .context = &w};

	if (!w.fast || !w.portable)
		bench_die("out of memory");
	bench_random_fill(pixels, bytes, 1);
	row.side[0] = (struct bench_side){"with what the processor has", run_fast, NULL, NULL, 0};
	row.side[1] = (struct bench_side){"portable", run_portable, NULL, NULL, 0};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		row.name = rows[i].name;
		w.filter = rows[i].filter;
		bench_run(b, &row);
	}
	row.name = "resize/portable/pillow";
	w.filter = RESIZE_BILINEAR;
	w.window = &whole;
	row.side[0] = (struct bench_side){"portable, the whole image", run_portable, NULL, NULL, 0};
	row.side[1] = (struct bench_side){"Pillow", run_pillow, NULL, NULL, 0};
	if (w.python && *w.python)
		bench_run(b, &row);
	else if (bench_wants(b, row.name))
		bench_skipped(b, row.name, "no Python with Pillow and NumPy (Debian: python3-pil python3-numpy)");
	resizer_close(w.fast);
	resizer_close(w.portable);
	return bench_close(b);
}
