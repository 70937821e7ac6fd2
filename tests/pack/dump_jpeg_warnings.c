/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dump_jpeg_warnings.c - what libjpeg itself says of files, and what it makes of them
 *
 * For each path on stdin one line: every warning and the error, in order, each with what was being
 * read ("head" or "scan") and separated by tabs; an empty line if there was nothing to say.  With
 * an argument N also the pixels, as `djpeg -scale 1/N -rgb` has them: a line "WIDTH HEIGHT", "0 0"
 * unless there are all of them, and the samples.  Nothing of the converter is used: it is for tests
 * that ask whether the converter had a reason, and whose its pixels are.
 */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

struct reader {
	struct jpeg_decompress_struct cinfo;
	struct jpeg_error_mgr errors;
	jmp_buf failed;
	const char *phase;
	unsigned scale; /* 0: no pixels are wanted */
	unsigned char *pixels;
	unsigned rows;
};

static void say(struct reader *r)
{
	char text[JMSG_LENGTH_MAX];

	r->errors.format_message((j_common_ptr)&r->cinfo, text);
	printf("%s: %s\t", r->phase, text);
}

static void on_error(j_common_ptr cinfo)
{
	struct reader *r = cinfo->client_data;

	say(r);
	longjmp(r->failed, 1);
}

static void on_message(j_common_ptr cinfo, int level)
{
	if (level < 0)
		say(cinfo->client_data);
}

static void read_all(struct reader *r, FILE *f)
{
	size_t row_bytes;
	JSAMPROW row;

	jpeg_create_decompress(&r->cinfo);
	jpeg_stdio_src(&r->cinfo, f);
	jpeg_read_header(&r->cinfo, TRUE);
	r->phase = "scan";
	if (r->scale) {
		r->cinfo.out_color_space = JCS_RGB;
		r->cinfo.scale_num = 1;
		r->cinfo.scale_denom = r->scale;
	}
	jpeg_start_decompress(&r->cinfo);
	row_bytes = r->cinfo.output_width * (size_t)r->cinfo.output_components;
	r->pixels = malloc(row_bytes * r->cinfo.output_height);
	if (!r->pixels)
		abort();
	for (; r->rows < r->cinfo.output_height; r->rows++) {
		row = r->pixels + r->rows * row_bytes;
		jpeg_read_scanlines(&r->cinfo, &row, 1);
	}
	jpeg_finish_decompress(&r->cinfo);
}

static void put_pixels(const struct reader *r)
{
	unsigned width = r->cinfo.output_width, height = r->cinfo.output_height;
	int whole = r->pixels && r->rows == height;

	printf("%u %u\n", whole ? width : 0, whole ? height : 0);
	if (whole)
		fwrite(r->pixels, 3 * (size_t)width, height, stdout);
}

static void dump(const char *path, unsigned scale)
{
	struct reader r = {.phase = "head", .scale = scale};
	FILE *f = fopen(path, "rb");

	if (!f) {
		printf("cannot be opened\t\n");
		abort();
	}
	r.cinfo.err = jpeg_std_error(&r.errors);
	r.cinfo.client_data = &r;
	r.errors.error_exit = on_error;
	r.errors.emit_message = on_message;
	if (!setjmp(r.failed))
		read_all(&r, f);
	putchar('\n');
	if (scale)
		put_pixels(&r);
	free(r.pixels);
	jpeg_destroy_decompress(&r.cinfo);
	fclose(f);
}

int main(int argc, char **argv)
{
	unsigned scale = argc > 1 ? (unsigned)atoi(argv[1]) : 0;
	char path[4096];

	while (fgets(path, sizeof(path), stdin)) {
		path[strcspn(path, "\n")] = 0;
		dump(path, scale);
	}
	return 0;
}
