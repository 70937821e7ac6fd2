/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_resize.c - the resampler against a plain one, against Pillow's stored answers, and against its own windows
 */
#include "tools/shardpack/resize.h"

#include <math.h>

#include "tests/pack/prng.h"
#include "tests/test.h"

static const char *const filter_names[] = {"box", "bilinear", "bicubic", "lanczos"};
static const double supports[] = {0.5, 1, 2, 3};

static double sinc(double x)
{
	return x == 0 ? 1 : sin(x * 3.14159265358979323846) / (x * 3.14159265358979323846);
}

static double filter_at(int filter, double x)
{
	double d = fabs(x);

	switch (filter) {
	case RESIZE_BOX:
		return x > -0.5 && x <= 0.5;
	case RESIZE_BILINEAR:
		return d < 1 ? 1 - d : 0;
	case RESIZE_BICUBIC:
		return d < 1 ? (1.5 * d - 2.5) * d * d + 1 : d < 2 ? (((d - 5) * d + 8) * d - 4) * -0.5 : 0;
	default:
		return -3 <= x && x < 3 ? sinc(x) * sinc(x / 3) : 0;
	}
}

/*
 * The slow twin: one axis of an image seen as [outer][n][inner], made [outer][m][inner], sample by sample, in double
 * weights turned to 22-bit fixed point one at a time.  inner is 3 for rows, 3 * width for columns.
 */
static void twin_axis(const uint8_t *in, uint8_t *out, size_t outer, int n, int m, size_t inner, int filter)
{
	double scale = (double)n / m, stretch = scale < 1 ? 1 : scale, reach = supports[filter] * stretch;

	if (n == m) {
		memcpy(out, in, outer * (size_t)n * inner);
		return;
	}
	for (int i = 0; i < m; i++) {
		double center = (i + 0.5) * scale, total = 0;
		int from = (int)(center - reach + 0.5), end = (int)(center + reach + 0.5);

		from = from < 0 ? 0 : from;
		end = end > n ? n : end;
		for (int x = from; x < end; x++)
			total += filter_at(filter, (x - center + 0.5) * (1 / stretch));
		for (size_t o = 0; o < outer * inner; o++) {
			const uint8_t *line = in + o / inner * (size_t)n * inner + o % inner;
			int64_t sum = 1 << 21;

			for (int x = from; x < end; x++) {
				double w = filter_at(filter, (x - center + 0.5) * (1 / stretch)) / total * (1 << 22);

				sum += (int64_t)(w < 0 ? w - 0.5 : w + 0.5) * line[(size_t)x * inner];
			}
			sum = sum < 0 ? 0 : sum >> 22 > 255 ? 255 : sum >> 22;
			out[o / inner * (size_t)m * inner + (size_t)i * inner + o % inner] = (uint8_t)sum;
		}
	}
}

static uint8_t *twin_resize(const struct image *src, int width, int height, int filter)
{
	size_t row_bytes = 3 * (size_t)width;
	uint8_t *rows = malloc(row_bytes * src->height), *out = malloc(row_bytes * (size_t)height);

	CHECK(rows && out);
	twin_axis(src->pixels, rows, src->height, (int)src->width, width, 3, filter);
	twin_axis(rows, out, 1, (int)src->height, height, row_bytes, filter);
	free(rows);
	return out;
}

/* The whole image through the resampler, or through its window when `w` is given. */
static uint8_t *resize(struct resizer *r, const struct image *src, uint32_t width, uint32_t height, int filter,
		       const struct resize_window *w)
{
	struct resize_window whole = {0, 0, width, height};
	uint8_t *out;

	w = w ? w : &whole;
	out = malloc(3 * (size_t)w->width * w->height);
	CHECK(out);
	CHECK(resizer_run(r, src, width, height, (enum resize_filter)filter, w, out, 3 * (size_t)w->width));
	return out;
}

static struct image picture(uint64_t seed, uint32_t width, uint32_t height)
{
	uint8_t *pixels = malloc(3 * (size_t)width * height);

	CHECK(pixels);
	prng_fill(seed, pixels, 3 * (size_t)width * height);
	return (struct image){pixels, width, height};
}

static uint32_t up_to(uint64_t seed, uint64_t i, uint32_t limit)
{
	return 1 + (uint32_t)(prng_at(seed, i) % limit);
}

TEST(equals_the_plain_one)
{
	struct resizer *r = resizer_open();

	CHECK(r);
	for (uint64_t i = 0; i < 240; i++) {
		/* Small sides often, so that the ends of rows, odd rows and short blocks all come up. */
		uint32_t limit = i % 3 ? 24 : 90, w = up_to(1, i, limit), h = up_to(2, i, limit);
		uint32_t new_w = i % 11 ? up_to(3, i, limit) : w, new_h = i % 7 ? up_to(4, i, limit) : h;
		int filter = (int)(i % 4);
		struct image src = picture(i, w, h);
		uint8_t *got = resize(r, &src, new_w, new_h, filter, NULL);
		uint8_t *want = twin_resize(&src, (int)new_w, (int)new_h, filter);

		STORY("%ux%u to %ux%u, %s", w, h, new_w, new_h, filter_names[filter]);
		CHECK_MEM(got, want, 3 * (size_t)new_w * new_h);
		free(got);
		free(want);
		free((void *)src.pixels);
	}
	resizer_close(r);
}

TEST(equals_the_answers_of_pillow)
{
	struct resizer *r = resizer_open();
	FILE *f = fopen("tests/twin/pillow_hashes.txt", "r");
	char line[256], name[16];
	int count = 0;

	CHECK(r && f);
	while (fgets(line, sizeof(line), f)) {
		uint64_t seed, want;
		uint32_t w, h, new_w, new_h;
		struct image src;
		uint8_t *got;
		int filter = 0;

		if (sscanf(line, "resize %" SCNu64 " %" SCNu32 " %" SCNu32 " %" SCNu32 " %" SCNu32 " %15s %" SCNx64,
			   &seed, &w, &h, &new_w, &new_h, name, &want) != 7)
			continue;
		while (strcmp(filter_names[filter], name))
			CHECK(++filter < 4);
		src = picture(seed, w, h);
		got = resize(r, &src, new_w, new_h, filter, NULL);
		STORY("%.*s", (int)strcspn(line, "\n"), line);
		CHECK_EQ(prng_hash(got, 3 * (size_t)new_w * new_h), want);
		free(got);
		free((void *)src.pixels);
		count++;
	}
	fclose(f);
	CHECK(count >= 200);
	resizer_close(r);
}

TEST(window_equals_the_crop_of_the_whole)
{
	struct resizer *r = resizer_open();

	CHECK(r);
	for (uint64_t i = 0; i < 400; i++) {
		uint32_t w = up_to(5, i, 150), h = up_to(6, i, 150);
		uint32_t new_w = i % 5 ? up_to(7, i, 150) : w, new_h = i % 7 ? up_to(8, i, 150) : h;
		struct resize_window win = {.width = up_to(9, i, new_w), .height = up_to(10, i, new_h)};
		int filter = (int)(i / 2 % 4);
		struct image src = picture(i, w, h);
		uint8_t *whole = resize(r, &src, new_w, new_h, filter, NULL), *got;

		win.x = up_to(11, i, new_w - win.width + 1) - 1;
		win.y = up_to(12, i, new_h - win.height + 1) - 1;
		got = resize(r, &src, new_w, new_h, filter, &win);
		for (uint32_t y = 0; y < win.height; y++) {
			STORY("%ux%u to %ux%u, %s, window %u,%u %ux%u, row %u", w, h, new_w, new_h,
			      filter_names[filter], win.x, win.y, win.width, win.height, y);
			CHECK_MEM(got + 3 * (size_t)win.width * y, whole + 3 * ((size_t)new_w * (win.y + y) + win.x),
				  3 * (size_t)win.width);
		}
		free(got);
		free(whole);
		free((void *)src.pixels);
	}
	resizer_close(r);
}

/* One window sliding over one image: tables that differ in their first sample only. */
TEST(window_may_move)
{
	struct resizer *r = resizer_open();
	struct image src = picture(8, 31, 31);
	uint8_t *whole = resize(r, &src, 17, 17, RESIZE_BICUBIC, NULL);

	for (uint32_t i = 0; i <= 14; i++) {
		uint8_t *got = resize(r, &src, 17, 17, RESIZE_BICUBIC, &(struct resize_window){i, 14 - i, 3, 3});

		for (uint32_t y = 0; y < 3; y++) {
			STORY("window at %u, row %u", i, y);
			CHECK_MEM(got + 9 * y, whole + 3 * (17 * (14 - i + y) + i), 9);
		}
		free(got);
	}
	free(whole);
	free((void *)src.pixels);
	resizer_close(r);
}

/* A thread sees more sizes than it keeps tables for; what it kept must not depend on what came between. */
TEST(forgets_tables_without_changing_results)
{
	struct resizer *r = resizer_open();
	struct image src = picture(3, 40, 30);
	uint8_t *first = resize(r, &src, 17, 23, RESIZE_LANCZOS, NULL), *again;

	for (uint32_t n = 1; n <= 200; n++)
		free(resize(r, &src, n, n + 1, (int)(n % 4), NULL));
	again = resize(r, &src, 17, 23, RESIZE_LANCZOS, NULL);
	CHECK_MEM(first, again, 3 * 17 * 23);
	free(first);
	free(again);
	free((void *)src.pixels);
	resizer_close(r);
}

/* Tables too large to keep have one place per axis; both at once must not meet. */
TEST(both_tables_may_be_large)
{
	struct resizer *r = resizer_open();
	struct image src = picture(2, 12000, 10);
	uint8_t *got = resize(r, &src, 20, 9500, RESIZE_LANCZOS, NULL);
	uint8_t *want = twin_resize(&src, 20, 9500, RESIZE_LANCZOS);

	CHECK_MEM(got, want, 3 * 20 * 9500);
	free(got);
	free(want);
	free((void *)src.pixels);
	resizer_close(r);
}

/* 65,500 x 1 with a short side of 256 would be 16.7 million wide: only the window may cost anything. */
TEST(enormous_shapes_cost_only_the_window)
{
	static const struct {
		uint32_t w, h, new_w, new_h;
	} rows[] = {{65500, 1, 16768000, 256}, {1, 65500, 256, 16768000}, {65500, 1, 1, 1}, {1, 65500, 1, 1}};
	struct resizer *r = resizer_open();

	CHECK(r);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint32_t w = rows[i].new_w < 224 ? rows[i].new_w : 224, h = rows[i].new_h < 224 ? rows[i].new_h : 224;
		struct resize_window win = {(rows[i].new_w - w) / 2, (rows[i].new_h - h) / 2, w, h};
		struct image src = picture(0, rows[i].w, rows[i].h);
		uint8_t *constant = malloc(65500 * 3), *got;

		memset(constant, 77, 65500 * 3);
		free((void *)src.pixels);
		src.pixels = constant;
		got = resize(r, &src, rows[i].new_w, rows[i].new_h, RESIZE_LANCZOS, &win);
		STORY("%ux%u", rows[i].w, rows[i].h);
		for (size_t n = 0; n < 3 * (size_t)w * h; n++)
			CHECK_EQ(got[n], 77);
		free(got);
		free(constant);
	}
	resizer_close(r);
}

TEST_MAIN()
