/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_resize.c - the resampler against a plain one, against Pillow's stored answers, and against its
 * own windows
 *
 * Both ways of it: portable, and with what this processor has.  Where that is nothing, the second
 * is the first again.
 */
#include "tools/shardpack/images/images.h"

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
 * The slow twin: one axis of an image seen as [outer][n][inner], made [outer][m][inner], sample by
 * sample, in double weights turned to 22-bit fixed point one at a time.  inner is 3 for rows, 3 *
 * width for columns.  Of n the box is used.
 */
static void twin_axis(const uint8_t *in, uint8_t *out, size_t outer, int n, int m, size_t inner, int filter,
		      struct resize_box box)
{
	double scale = box.length / m, stretch = scale < 1 ? 1 : scale, reach = supports[filter] * stretch;

	if (n == m && box.length == n) {
		memcpy(out, in, outer * (size_t)n * inner);
		return;
	}
	for (int i = 0; i < m; i++) {
		double center = box.from + (i + 0.5) * scale, total = 0;
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

/* Pillow's own words: Image.resize() of 12.2, ImagingResampleInner() of 13.0. */
static bool twin_columns_first(int pixels, int w, int h, int new_w, int new_h)
{
	return (pixels == RESIZE_PILLOW_12 && h > w * 100 && new_h < h) ||
	       (pixels == RESIZE_PILLOW_13 && h - new_h > 0 && h - new_h > (w - new_w) * 2);
}

static uint8_t *twin_resize_box(const struct image *src, int width, int height, int filter, struct resize_box across,
				struct resize_box down, int pixels)
{
	bool columns = twin_columns_first(pixels, (int)src->width, (int)src->height, width, height);
	size_t row_bytes = 3 * (size_t)width, src_bytes = 3 * (size_t)src->width;
	uint8_t *between = malloc(columns ? src_bytes * (size_t)height : row_bytes * src->height);
	uint8_t *out = malloc(row_bytes * (size_t)height);

	CHECK(between && out);
	if (columns) {
		twin_axis(src->pixels, between, 1, (int)src->height, height, src_bytes, filter, down);
		twin_axis(between, out, (size_t)height, (int)src->width, width, 3, filter, across);
	} else {
		twin_axis(src->pixels, between, src->height, (int)src->width, width, 3, filter, across);
		twin_axis(between, out, 1, (int)src->height, height, row_bytes, filter, down);
	}
	free(between);
	return out;
}

static uint8_t *twin_resize(const struct image *src, int width, int height, int filter)
{
	return twin_resize_box(src, width, height, filter, (struct resize_box){0, src->width},
			       (struct resize_box){0, src->height}, RESIZE_ROWS_FIRST);
}

#define WAYS 2

static struct resizer *open_way(int way)
{
	struct resizer *r = way ? resizer_open() : resizer_open_portable();

	CHECK(r);
	return r;
}

/* The whole image through the resampler, or through its window when `w` is given. */
static uint8_t *resize(struct resizer *r, const struct image *src, uint32_t width, uint32_t height, int filter,
		       const struct image_window *w)
{
	struct image_window whole = {0, 0, width, height};
	uint8_t *out;

	w = w ? w : &whole;
	out = malloc(3 * (size_t)w->width * w->height);
	CHECK(out);
	CHECK(resizer_run(r, src, width, height, (enum resize_filter)filter, w,
			  &(struct resize_target){.pixels = out, .row_bytes = 3 * (size_t)w->width}));
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

static void equals_the_plain_one_in(int way)
{
	struct resizer *r = open_way(way);

	for (uint64_t i = 0; i < 240; i++) {
		/*
		 * Small sides often, so that the ends of rows, odd rows and short blocks all come
		 * up.
		 */
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

TEST(equals_the_plain_one)
{
	for (int way = 0; way < WAYS; way++)
		equals_the_plain_one_in(way);
}

static void equals_the_answers_of_pillow_in(int way)
{
	struct resizer *r = open_way(way);
	FILE *f = fopen("tests/twin/pillow_hashes.txt", "r");
	char line[256], name[16];
	int count = 0;

	CHECK(f);
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

TEST(equals_the_answers_of_pillow)
{
	for (int way = 0; way < WAYS; way++)
		equals_the_answers_of_pillow_in(way);
}

static void window_equals_the_crop_of_the_whole_in(int way)
{
	struct resizer *r = open_way(way);

	for (uint64_t i = 0; i < 400; i++) {
		uint32_t w = up_to(5, i, 150), h = up_to(6, i, 150);
		uint32_t new_w = i % 5 ? up_to(7, i, 150) : w, new_h = i % 7 ? up_to(8, i, 150) : h;
		struct image_window win = {.width = up_to(9, i, new_w), .height = up_to(10, i, new_h)};
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

TEST(window_equals_the_crop_of_the_whole)
{
	for (int way = 0; way < WAYS; way++)
		window_equals_the_crop_of_the_whole_in(way);
}

/* One window sliding over one image: tables that differ in their first sample only. */
static void window_may_move_in(int way)
{
	struct resizer *r = open_way(way);
	struct image src = picture(8, 31, 31);
	uint8_t *whole = resize(r, &src, 17, 17, RESIZE_BICUBIC, NULL);

	for (uint32_t i = 0; i <= 14; i++) {
		uint8_t *got = resize(r, &src, 17, 17, RESIZE_BICUBIC, &(struct image_window){i, 14 - i, 3, 3});

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

TEST(window_may_move)
{
	for (int way = 0; way < WAYS; way++)
		window_may_move_in(way);
}

/*
 * A thread sees more sizes than it keeps tables for; what it kept must not depend on what came
 * between.
 */
static void forgets_tables_without_changing_results_in(int way)
{
	struct resizer *r = open_way(way);
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

TEST(forgets_tables_without_changing_results)
{
	for (int way = 0; way < WAYS; way++)
		forgets_tables_without_changing_results_in(way);
}

/* Tables too large to keep have one place per axis; both at once must not meet. */
static void both_tables_may_be_large_in(int way)
{
	struct resizer *r = open_way(way);
	struct image src = picture(2, 12000, 10);
	uint8_t *got = resize(r, &src, 20, 9500, RESIZE_LANCZOS, NULL);
	uint8_t *want = twin_resize(&src, 20, 9500, RESIZE_LANCZOS);

	CHECK_MEM(got, want, 3 * 20 * 9500);
	free(got);
	free(want);
	free((void *)src.pixels);
	resizer_close(r);
}

TEST(both_tables_may_be_large)
{
	for (int way = 0; way < WAYS; way++)
		both_tables_may_be_large_in(way);
}

/*
 * 65,500 x 1 with a short side of 256 would be 16.7 million wide: only the window may cost
 * anything.
 */
static void enormous_shapes_cost_only_the_window_in(int way)
{
	static const struct {
		uint32_t w, h, new_w, new_h;
	} rows[] = {{65500, 1, 16768000, 256}, {1, 65500, 256, 16768000}, {65500, 1, 1, 1}, {1, 65500, 1, 1}};
	struct resizer *r = open_way(way);

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint32_t w = rows[i].new_w < 224 ? rows[i].new_w : 224, h = rows[i].new_h < 224 ? rows[i].new_h : 224;
		struct image_window win = {(rows[i].new_w - w) / 2, (rows[i].new_h - h) / 2, w, h};
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

TEST(enormous_shapes_cost_only_the_window)
{
	for (int way = 0; way < WAYS; way++)
		enormous_shapes_cost_only_the_window_in(way);
}

/* Rows given a few at a time, from a place that ends where the needed part does. */
static void give_rows(struct resizer *r, const struct image *src, const struct image_window *needed, uint64_t seed)
{
	for (uint32_t y = 0, n; y < needed->height; y += n) {
		size_t row_bytes = 3 * (size_t)needed->width, skip = seed % 3;
		uint8_t *rows;

		n = up_to(seed, y, 40);
		n = n < needed->height - y ? n : needed->height - y;
		/* not a byte more: the sanitizer sees a read behind it */
		rows = malloc(n * (row_bytes + skip) - skip);
		CHECK(rows);
		for (uint32_t i = 0; i < n; i++)
			memcpy(rows + i * (row_bytes + skip),
			       src->pixels + 3 * ((size_t)(needed->y + y + i) * src->width + needed->x), row_bytes);
		resizer_rows(r, rows, row_bytes + skip, n);
		free(rows);
	}
}

/*
 * One side of a shape: small, like a photo's, or so large that what comes out is a small part of
 * it.
 */
static uint32_t side(uint64_t seed, uint64_t i)
{
	static const uint32_t limits[] = {3, 40, 40, 300, 300, 300, 700, 5000};

	return up_to(seed, i, limits[prng_at(seed + 1000, i) % 8]);
}

/*
 * The window in a frame of bytes that must stay as they are; planes lie one behind the other, with
 * such bytes between.
 */
static uint8_t *framed(struct resizer *r, const struct image *src, const struct resize_job *like, bool planes,
		       size_t *bytes, uint64_t seed)
{
	struct resize_job job = *like;
	size_t row_bytes = (size_t)job.window.width * (planes ? 1 : 3) + 5;
	struct image_window needed;
	uint8_t *frame;

	job.target.row_bytes = row_bytes;
	job.target.plane_bytes = planes ? row_bytes * job.window.height + 7 : 0;
	*bytes = 64 + (planes ? 3 * job.target.plane_bytes : row_bytes * job.window.height);
	frame = malloc(*bytes);
	CHECK(frame);
	memset(frame, 0xa5, *bytes);
	job.target.pixels = frame + 32;
	CHECK(resizer_begin(r, &job, &needed));
	CHECK(needed.width && needed.x + needed.width <= src->width);
	CHECK(needed.height && needed.y + needed.height <= src->height);
	give_rows(r, src, &needed, seed);
	return frame;
}

/*
 * Every shape, filter, window, layout and way to hand rows over; and nothing is written outside of
 * the window.
 */
TEST(both_ways_are_equal)
{
	struct resizer *ways[WAYS] = {open_way(0), open_way(1)};

	for (uint64_t i = 0; i < 1500; i++) {
		uint32_t w = side(20, i), h = w > 700 ? up_to(21, i, 30) : side(21, i);
		struct resize_job job = {w,
					 h,
					 side(22, i) % 900 + 1,
					 side(23, i) % 900 + 1,
					 (enum resize_filter)(i % 4),
					 {0},
					 {0},
					 {0, 0},
					 {0, 0},
					 (enum resize_pixels)(i / 2 % 3)};
		struct image src = picture(i, w, h);
		uint8_t *got[WAYS];
		size_t bytes;

		if (i % 9 == 0)
			job.width = w;
		if (i % 10 == 0)
			job.height = h;
		job.window.width = i % 5 ? up_to(24, i, job.width) : job.width;
		job.window.height = i % 5 ? up_to(25, i, job.height) : job.height;
		/* At the near edge, the far one, and between. */
		job.window.x = i % 3 == 0   ? 0
			       : i % 3 == 1 ? job.width - job.window.width
					    : up_to(26, i, job.width - job.window.width + 1) - 1;
		job.window.y = i / 3 % 3 == 0	? 0
			       : i / 3 % 3 == 1 ? job.height - job.window.height
						: up_to(27, i, job.height - job.window.height + 1) - 1;
		for (int way = 0; way < WAYS; way++)
			got[way] = framed(ways[way], &src, &job, i / 4 % 2, &bytes, i + (uint64_t)way);
		STORY("%ux%u to %ux%u, %s, window %u,%u %ux%u, %s", w, h, job.width, job.height,
		      filter_names[job.filter], job.window.x, job.window.y, job.window.width, job.window.height,
		      i / 4 % 2 ? "planes" : "pixels");
		CHECK_MEM(got[1], got[0], bytes);
		CHECK_EQ(got[0][31], 0xa5);
		CHECK_EQ(got[0][bytes - 32], 0xa5);
		free(got[0]);
		free(got[1]);
		free((void *)src.pixels);
	}
	resizer_close(ways[0]);
	resizer_close(ways[1]);
}

/* Part of `n` pixels, in eighths; sometimes all of it. */
static struct resize_box choose_box(uint64_t seed, uint64_t i, uint32_t n)
{
	struct resize_box b = {0, up_to(seed, i, 8 * n) / 8.0};

	if (i % 5 == 0)
		b.length = n;
	else if (i % 5 < 3) /* a little less than all of it, as scaled images have it */
		b.length = n - (i % 7 + 1) / 8.0;
	b.from = i % 2 ? n - b.length : up_to(seed + 1, i, (uint32_t)((n - b.length) * 8) + 1) / 8.0 - 0.125;
	return b;
}

TEST(boxes_are_the_plain_ones)
{
	for (uint64_t i = 0; i < 1000; i++) {
		/* every fourth so tall that Pillow 12.2 cares */
		uint32_t w = up_to(40, i, i % 4 ? i % 3 ? 24 : 90 : 4);
		uint32_t h = i % 4 ? up_to(41, i, i % 3 ? 24 : 90) : 95 * w + up_to(41, i, 20);
		struct resize_job job = {.in_width = w,
					 .in_height = h,
					 .filter = (enum resize_filter)(i / 16 % 4),
					 .pixels = (enum resize_pixels)(i % 3)};
		struct resizer *r = open_way((int)(i / 4 % WAYS));
		struct image src = picture(i, w, h);
		uint8_t *got, *want;
		size_t bytes;

		job.width = i % 11 ? up_to(42, i, 60) : w;
		job.height = i % 7 ? up_to(43, i, 60) : h;
		job.window = (struct image_window){0, 0, job.width, job.height};
		job.across = choose_box(44, i, w);
		job.down = choose_box(46, i / 3, h);
		got = framed(r, &src, &job, false, &bytes, i);
		want = twin_resize_box(&src, (int)job.width, (int)job.height, (int)job.filter, job.across, job.down,
				       (int)job.pixels);
		STORY("%ux%u, %g+%g by %g+%g, to %ux%u, %s, pixels %d", w, h, job.across.from, job.across.length,
		      job.down.from, job.down.length, job.width, job.height, filter_names[job.filter], (int)job.pixels);
		for (uint32_t y = 0; y < job.height; y++)
			CHECK_MEM(got + 32 + y * (3 * job.width + 5), want + y * 3 * job.width, 3 * (size_t)job.width);
		free(got);
		free(want);
		free((void *)src.pixels);
		resizer_close(r);
	}
}

/*
 * Planes are the pixels, split; so the frame of the test above cannot hold the same mistake twice.
 */
TEST(planes_are_the_pixels_apart)
{
	for (int way = 0; way < WAYS; way++)
		for (uint32_t n = 1; n <= 80; n++) {
			struct resizer *r = open_way(way);
			struct image src = picture(n, n + 1, 6);
			struct resize_job job = {n + 1,	       6,   n,	    4,	    RESIZE_BICUBIC,
						 {0, 0, n, 4}, {0}, {0, 0}, {0, 0}, RESIZE_ROWS_FIRST};
			uint8_t *pixels, *planes;
			size_t bytes;

			pixels = framed(r, &src, &job, false, &bytes, n);
			planes = framed(r, &src, &job, true, &bytes, n);
			for (uint32_t y = 0; y < 4; y++)
				for (uint32_t x = 0; x < n; x++)
					for (uint32_t c = 0; c < 3; c++) {
						STORY("way %d, width %u, %u,%u", way, n, x, y);
						CHECK_EQ(planes[32 + c * ((n + 5) * 4 + 7) + y * (n + 5) + x],
							 pixels[32 + y * (3 * n + 5) + 3 * x + c]);
					}
			free(pixels);
			free(planes);
			free((void *)src.pixels);
			resizer_close(r);
		}
}

/* The greatest weights there are: few samples made many.  They must fit where vectors keep them. */
TEST(weights_stay_below_two)
{
	for (uint32_t in = 1; in <= 12; in++)
		for (uint32_t out = 1; out <= 300; out++)
			for (int filter = RESIZE_BOX; filter <= RESIZE_LANCZOS; filter++) {
				struct taps_axis axis = {in, out, 0, out, (enum resize_filter)filter, {0, 0}};
				uint32_t per_sample = taps_per_sample(&axis);
				struct taps_range range[300];
				int32_t weight[300 * 13];
				double work[13];

				CHECK(per_sample <= 13);
				taps_fill(&axis, range, weight, per_sample, work);
				STORY("%u to %u, %s", in, out, filter_names[filter]);
				for (uint32_t n = 0; n < out * per_sample; n++)
					CHECK(weight[n] < 1.3 * (1 << TAPS_FRACTION_BITS) &&
					      weight[n] > -0.5 * (1 << TAPS_FRACTION_BITS));
			}
}

TEST_MAIN()
