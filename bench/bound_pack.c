/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bound_pack.c - how fast a machine could pack: read, decode, resize, and not one step more
 *
 *     bound_pack THREADS <LIST        LIST: one JPEG's path per line; prints images per second
 *
 * The plain loop over libjpeg-turbo, with one decompressor per thread and nothing checked, and the
 * resampler of shardpack (short side 256, centre 224, bilinear): what `shardpack images` is
 * measured against.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jpeglib.h>

#include "bench/common/service.h"
#include "tools/shardpack/image/resize.h"

enum { SHORT_SIDE = 256, CROP = 224, MAX_PATHS = 1 << 20, MAX_FILE = 32 << 20, MAX_PIXELS = 64 << 20 };

static char *paths[MAX_PATHS];
static size_t path_count;
static atomic_size_t next_path;

static void die(const char *what)
{
	fprintf(stderr, "bound_pack: %s\n", what);
	exit(1);
}

static size_t read_file(const char *path, uint8_t *bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, bytes, MAX_FILE);

	if (got <= 0 || got == MAX_FILE)
		die(path);
	close(fd);
	return (size_t)got;
}

static struct image decode(struct jpeg_decompress_struct *c, const uint8_t *bytes, size_t size, uint8_t *pixels)
{
	jpeg_mem_src(c, bytes, size);
	jpeg_read_header(c, TRUE);
	c->out_color_space = JCS_RGB;
	jpeg_start_decompress(c);
	if ((size_t)c->output_width * c->output_height * 3 > MAX_PIXELS)
		die("an image is too large");
	while (c->output_scanline < c->output_height) {
		JSAMPROW rows[4];

		for (uint32_t i = 0; i < 4; i++)
			rows[i] = pixels + (size_t)(c->output_scanline + i) * c->output_width * 3;
		jpeg_read_scanlines(c, rows, c->output_height - c->output_scanline < 4 ? 1 : 4);
	}
	jpeg_finish_decompress(c);
	return (struct image){pixels, c->output_width, c->output_height};
}

static void *worker(void *arg)
{
	uint8_t *bytes = malloc(MAX_FILE), *pixels = malloc(MAX_PIXELS), *record = arg;
	struct resizer *r = resizer_open();
	struct jpeg_decompress_struct c;
	struct jpeg_error_mgr errors;

	if (!bytes || !pixels || !r)
		die("out of memory");
	c.err = jpeg_std_error(&errors);
	jpeg_create_decompress(&c);
	for (size_t i; (i = atomic_fetch_add(&next_path, 1)) < path_count;) {
		struct image im = decode(&c, bytes, read_file(paths[i], bytes), pixels);
		uint32_t w = im.width <= im.height ? SHORT_SIDE : SHORT_SIDE * im.width / im.height;
		uint32_t h = im.width <= im.height ? SHORT_SIDE * im.height / im.width : SHORT_SIDE;
		struct image_window window = {(w - CROP) / 2, (h - CROP) / 2, CROP, CROP};
		struct resize_target target = {.pixels = record, .row_bytes = 3 * CROP};

		if (!resizer_run(r, &im, w, h, RESIZE_BILINEAR, &window, &target))
			die("out of memory");
	}
	jpeg_destroy_decompress(&c);
	resizer_close(r);
	free(pixels);
	free(bytes);
	return NULL;
}

int main(int argc, char **argv)
{
	static uint8_t records[64][3 * CROP * CROP];
	static char line[4096];
	pthread_t thread[64];
	int count = argc == 2 ? atoi(argv[1]) : 0;
	double begin;

	if (count < 1 || count > 64)
		die("usage: bound_pack THREADS <LIST (1 to 64 threads)");
	while (path_count < MAX_PATHS && fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		if (!(paths[path_count++] = strdup(line)))
			die("out of memory");
	}
	begin = bench_seconds();
	for (int i = 0; i < count; i++)
		if (pthread_create(&thread[i], NULL, worker, records[i]))
			die("cannot start a thread");
	for (int i = 0; i < count; i++)
		pthread_join(thread[i], NULL);
	printf("%.1f\n", (double)path_count / (bench_seconds() - begin));
	return 0;
}
