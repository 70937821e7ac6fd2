/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bound_pack.c - how fast a machine could pack images: read, decode, resize, and not one step more
 *
 *     bound_pack THREADS <LIST        LIST: one path per line; prints images per second
 *     bound_pack THREADS sum <LIST    prints the sum of the XXH3-64 of all records
 *
 * The plain loops over libjpeg-turbo, libpng and libwebp with the resampler of shardpack: short
 * side 256, centre 224, bilinear.  They check nothing.  Only the part of an image that the record
 * is made of becomes pixels, rows go to the resampler while they are in the cache, and what lies
 * below that part is not read.  Checksums of PNG are left out.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jpeglib.h>
#include <png.h>
#include <webp/decode.h>
#include <xxhash.h>

#include "bench/common/service.h"
#include "tools/shardpack/images/images.h"

enum { SHORT_SIDE = 256, CROP = 224, RECORD = 3 * CROP * CROP, STRIP_ROWS = 8, MARGIN = 2 };
enum { MAX_PATHS = 1 << 20, MAX_FILE = 32 << 20, MAX_PIXELS = 64 << 20 };

struct worker {
	uint8_t *bytes, *pixels; /* of a file; of its image, or some rows of it */
	size_t size, read;	 /* of the file; what libpng has taken of it */
	uint8_t record[RECORD];
	struct resizer *resizer;
	struct jpeg_decompress_struct jpeg;
};

static char *paths[MAX_PATHS];
static size_t path_count;
static atomic_size_t next_path;
static atomic_uint_fast64_t sum;
static bool sums;

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "bound_pack: %s\n", what);
	exit(1);
}

static void read_file(struct worker *w, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, w->bytes, MAX_FILE);

	if (got <= 0 || got == MAX_FILE)
		die(path);
	close(fd);
	w->size = (size_t)got;
	w->read = 0;
}

static uint32_t margin(uint32_t size)
{
	uint32_t half = (size - CROP) / 2;

	return half + (size - CROP) % 2 * (half % 2); /* halves go to the even side, as in torchvision */
}

/* The part of the image that the record is made of. */
static struct image_window begin(struct worker *w, uint32_t width, uint32_t height)
{
	struct resize_job job = {.in_width = width,
				 .in_height = height,
				 .width = width <= height ? SHORT_SIDE : SHORT_SIDE * width / height,
				 .height = width <= height ? SHORT_SIDE * height / width : SHORT_SIDE,
				 .filter = RESIZE_BILINEAR,
				 .target = {.pixels = w->record, .row_bytes = 3 * CROP}};
	struct image_window part;

	if ((uint64_t)width * height * 3 > MAX_PIXELS)
		die("an image is too large");
	job.window = (struct image_window){margin(job.width), margin(job.height), CROP, CROP};
	if (!resizer_begin(w->resizer, &job, &part))
		die("out of memory");
	return part;
}

/* ---- JPEG ---- */

/*
 * A little more than the part, so that its edges have neighbours to be interpolated with.  Returns
 * its first column.
 */
static uint32_t cut_jpeg(struct jpeg_decompress_struct *c, const struct image_window *part)
{
	JDIMENSION first = part->x < MARGIN ? 0 : part->x - MARGIN, end = part->x + part->width + MARGIN, count;

	count = (end > c->output_width ? c->output_width : end) - first;
	jpeg_crop_scanline(c, &first, &count);
	if (part->y)
		jpeg_skip_scanlines(c, part->y);
	return first;
}

static void jpeg(struct worker *w)
{
	struct jpeg_decompress_struct *c = &w->jpeg;
	struct image_window part;
	uint32_t first, rows;
	size_t stride;

	jpeg_mem_src(c, w->bytes, w->size);
	jpeg_read_header(c, TRUE);
	c->out_color_space = JCS_RGB;
	part = begin(w, c->image_width, c->image_height);
	jpeg_start_decompress(c);
	first = cut_jpeg(c, &part);
	stride = 3 * (size_t)c->output_width;
	for (uint32_t done = 0; done < part.height; done += rows) {
		rows = part.height - done < STRIP_ROWS ? part.height - done : STRIP_ROWS;
		for (uint32_t got = 0; got < rows;) {
			JSAMPROW to[STRIP_ROWS];

			for (uint32_t i = got; i < rows; i++)
				to[i - got] = w->pixels + i * stride;
			got += jpeg_read_scanlines(c, to, rows - got);
		}
		resizer_rows(w->resizer, w->pixels + 3 * (size_t)(part.x - first), stride, rows);
	}
	jpeg_abort_decompress(c);
}

/* ---- PNG ---- */

static void give_png(png_structp png, png_bytep out, size_t bytes)
{
	struct worker *w = png_get_io_ptr(png);

	if (bytes > w->size - w->read)
		die("a PNG ends early");
	memcpy(out, w->bytes + w->read, bytes);
	w->read += bytes;
}

static void png(struct worker *w)
{
	png_structp p = png_create_read_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
	png_infop info = p ? png_create_info_struct(p) : NULL;
	struct image_window part;
	uint32_t rows = 0;
	size_t stride;

	if (!info)
		die("out of memory");
	png_set_read_fn(p, w, give_png);
	png_set_crc_action(p, PNG_CRC_QUIET_USE, PNG_CRC_QUIET_USE);
#ifdef PNG_IGNORE_ADLER32 /* Debian 13 builds libpng without it */
	png_set_option(p, PNG_IGNORE_ADLER32, PNG_OPTION_ON);
#endif
	png_read_info(p, info);
	if (png_get_bit_depth(p, info) != 8 || png_get_interlace_type(p, info) != PNG_INTERLACE_NONE)
		die("a PNG of another kind than bench/corpus.py makes");
	png_set_strip_alpha(p);
	png_set_gray_to_rgb(p);
	png_set_palette_to_rgb(p);
	part = begin(w, png_get_image_width(p, info), png_get_image_height(p, info));
	png_read_update_info(p, info);
	stride = png_get_rowbytes(p, info);
	for (uint32_t y = 0; y < part.y; y++)
		png_read_row(p, NULL, NULL);
	for (uint32_t y = 0; y < part.height; y++) {
		png_read_row(p, w->pixels + rows++ * stride, NULL);
		if (rows == STRIP_ROWS || y + 1 == part.height) {
			resizer_rows(w->resizer, w->pixels + 3 * (size_t)part.x, stride, rows);
			rows = 0;
		}
	}
	png_destroy_read_struct(&p, &info, NULL);
}

/* ---- WebP ---- */

static void webp(struct worker *w)
{
	WebPDecoderConfig c;
	struct image_window part;
	uint32_t x, y, right, bottom, width, height;

	if (!WebPInitDecoderConfig(&c) || WebPGetFeatures(w->bytes, w->size, &c.input) != VP8_STATUS_OK)
		die("a WebP cannot be decoded");
	width = (uint32_t)c.input.width;
	height = (uint32_t)c.input.height;
	part = begin(w, width, height);
	/* a little more, from an even place on: colours are interpolated between pixels */
	x = (part.x < MARGIN ? 0 : part.x - MARGIN) & ~1u;
	y = (part.y < MARGIN ? 0 : part.y - MARGIN) & ~1u;
	right = part.x + part.width + MARGIN;
	bottom = part.y + part.height + MARGIN;
	c.options.use_cropping = 1;
	c.options.crop_left = (int)x;
	c.options.crop_top = (int)y;
	c.options.crop_width = (int)((right > width ? width : right) - x);
	c.options.crop_height = (int)((bottom > height ? height : bottom) - y);
	c.output.colorspace = MODE_RGB;
	c.output.is_external_memory = 1;
	c.output.u.RGBA.rgba = w->pixels;
	c.output.u.RGBA.stride = 3 * c.options.crop_width;
	c.output.u.RGBA.size = MAX_PIXELS;
	if (WebPDecode(w->bytes, w->size, &c) != VP8_STATUS_OK)
		die("a WebP cannot be decoded");
	resizer_rows(w->resizer, w->pixels + (part.y - y) * (size_t)c.output.u.RGBA.stride + 3 * (size_t)(part.x - x),
		     (size_t)c.output.u.RGBA.stride, part.height);
}

/* ---- all of them ---- */

static void *work(void *arg)
{
	struct worker *w = arg;
	struct jpeg_error_mgr errors;

	w->bytes = malloc(MAX_FILE);
	w->pixels = malloc(MAX_PIXELS);
	w->resizer = resizer_open();
	if (!w->bytes || !w->pixels || !w->resizer)
		die("out of memory");
	w->jpeg.err = jpeg_std_error(&errors);
	jpeg_create_decompress(&w->jpeg);
	for (size_t i; (i = atomic_fetch_add(&next_path, 1)) < path_count;) {
		read_file(w, paths[i]);
		if (w->bytes[0] == 0xff)
			jpeg(w);
		else if (w->bytes[0] == 'R')
			webp(w);
		else
			png(w);
		if (sums)
			sum += XXH3_64bits(w->record, RECORD);
	}
	jpeg_destroy_decompress(&w->jpeg);
	resizer_close(w->resizer);
	free(w->pixels);
	free(w->bytes);
	return NULL;
}

int main(int argc, char **argv)
{
	static struct worker worker[64];
	static char line[4096];
	pthread_t thread[64];
	int count = argc > 1 ? atoi(argv[1]) : 0;
	double from;

	sums = argc == 3 && !strcmp(argv[2], "sum");
	if (count < 1 || count > 64 || argc != 2 + sums)
		die("usage: bound_pack THREADS [sum] <LIST (1 to 64 threads)");
	while (path_count < MAX_PATHS && fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		if (!(paths[path_count++] = strdup(line)))
			die("out of memory");
	}
	from = bench_seconds();
	for (int i = 0; i < count; i++)
		if (pthread_create(&thread[i], NULL, work, &worker[i]))
			die("cannot start a thread");
	for (int i = 0; i < count; i++)
		pthread_join(thread[i], NULL);
	if (sums)
		printf("%" PRIu64 "\n", (uint64_t)sum);
	else
		printf("%.1f\n", (double)path_count / (bench_seconds() - from));
	return 0;
}
