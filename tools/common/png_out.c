/* SPDX-License-Identifier: Apache-2.0 */
/*
 * png_out.c - write pixels as a PNG file
 *
 * libpng reports errors by longjmp.  Everything that changes after setjmp lives in struct
 * png_job, behind a pointer that does not change, so nothing is left in a register.
 */
#include "tools/common/png_out.h"

#include <errno.h>
#include <png.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/memory.h"

struct png_job {
	FILE *out;
	char *error;
	size_t error_bytes;
	png_structp png;
	png_infop info;
	uint8_t *row;
};

static void on_error(png_structp png, png_const_charp text)
{
	struct png_job *job = png_get_error_ptr(png);

	if (!job->error[0])
		snprintf(job->error, job->error_bytes, "png: %s", text);
	png_longjmp(png, 1);
}

/* libpng warns about values that it corrects; with the ones set below there is nothing to say. */
static void on_warning(png_structp png, png_const_charp text)
{
	(void)png;
	(void)text;
}

static void on_write(png_structp png, png_bytep data, size_t data_bytes)
{
	struct png_job *job = png_get_io_ptr(png);

	errno = 0;
	if (fwrite(data, 1, data_bytes, job->out) == data_bytes)
		return;
	snprintf(job->error, job->error_bytes, "png: %s", strerror(errno ? errno : EIO));
	png_error(png, "write");
}

static void on_flush(png_structp png)
{
	(void)png; /* png_write() flushes once, and looks at the result */
}

static void gather_row(uint8_t *row, const struct png_image *image, uint32_t y)
{
	const uint8_t *from = image->pixels + y * image->row_bytes;

	for (uint32_t x = 0; x < image->width; x++)
		for (uint32_t c = 0; c < image->channel_count; c++) {
			const uint8_t *sample = from + x * image->pixel_bytes + c * image->channel_bytes;

			if (image->wide)
				*row++ = sample[1];
			*row++ = sample[0];
		}
}

/* Everything that libpng may jump out of. */
static int write_image(struct png_job *job, const struct png_image *image)
{
	if (setjmp(png_jmpbuf(job->png)))
		return -1;
	png_set_write_fn(job->png, job, on_write, on_flush);
	png_set_user_limits(job->png, 0x7fffffff, 0x7fffffff);
	png_set_IHDR(job->png, job->info, image->width, image->height, image->wide ? 16 : 8,
		     image->channel_count == 3 ? PNG_COLOR_TYPE_RGB : PNG_COLOR_TYPE_GRAY, PNG_INTERLACE_NONE,
		     PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
	png_set_compression_level(job->png, 6); /* said, so that no default can change the bytes */
	png_set_filter(job->png, PNG_FILTER_TYPE_DEFAULT, PNG_ALL_FILTERS);
	png_write_info(job->png, job->info);
	for (uint32_t y = 0; y < image->height; y++) {
		gather_row(job->row, image, y);
		png_write_row(job->png, job->row);
	}
	png_write_end(job->png, NULL);
	return 0;
}

int png_write(FILE *out, const struct png_image *image, char *error, size_t error_bytes)
{
	struct png_job job = {.out = out, .error = error, .error_bytes = error_bytes};
	int rc = -1;

	error[0] = 0;
	if (image->channel_count != 1 && image->channel_count != 3) {
		snprintf(error, error_bytes, "png: %u channels; an image has 1 or 3", image->channel_count);
		return -1;
	}
	if (!image->width || !image->height || image->width > 0x7fffffff || image->height > 0x7fffffff) {
		snprintf(error, error_bytes, "png: %u x %u pixels; each side must be 1 to 2147483647", image->width,
			 image->height);
		return -1;
	}
	job.row = xmalloc(image->width, (size_t)image->channel_count * (image->wide ? 2 : 1));
	job.png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &job, on_error, on_warning);
	job.info = job.png ? png_create_info_struct(job.png) : NULL;
	if (!job.info)
		snprintf(error, error_bytes, "png: out of memory");
	else
		rc = write_image(&job, image);
	if (!rc && fflush(out)) {
		snprintf(error, error_bytes, "png: %s", strerror(errno));
		rc = -1;
	}
	if (job.png)
		png_destroy_write_struct(&job.png, &job.info);
	free(job.row);
	return rc;
}
