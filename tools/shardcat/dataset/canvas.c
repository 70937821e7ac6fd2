/* SPDX-License-Identifier: Apache-2.0 */
/*
 * canvas.c - an RGB picture to draw text and thumbnails on
 */
#include "tools/shardcat/dataset/cat_dataset.h"

#include <stdlib.h>
#include <string.h>

bool canvas_init(struct canvas *c, uint32_t width, uint32_t height, struct colour background)
{
	*c = (struct canvas){width, height, malloc((size_t)width * height * 3)};
	if (c->pixels)
		canvas_fill(c, 0, 0, width, height, background);
	return c->pixels != NULL;
}

void canvas_free(struct canvas *c)
{
	free(c->pixels);
	*c = (struct canvas){0};
}

static void set_pixel(struct canvas *c, uint32_t x, uint32_t y, struct colour colour)
{
	uint8_t *to = c->pixels + ((size_t)y * c->width + x) * 3;

	if (x >= c->width || y >= c->height)
		return;
	to[0] = colour.r;
	to[1] = colour.g;
	to[2] = colour.b;
}

void canvas_fill(struct canvas *c, uint32_t x, uint32_t y, uint32_t width, uint32_t height, struct colour colour)
{
	for (uint32_t j = 0; j < height; j++)
		for (uint32_t i = 0; i < width; i++)
			set_pixel(c, x + i, y + j, colour);
}

struct pen {
	struct canvas *canvas;
	uint32_t x, y;
	struct colour colour;
	bool bold;
};

static void draw_dot(void *context, unsigned x, unsigned y)
{
	const struct pen *pen = context;

	set_pixel(pen->canvas, pen->x + x, pen->y + y, pen->colour);
	if (pen->bold)
		set_pixel(pen->canvas, pen->x + x + 1, pen->y + y, pen->colour);
}

void canvas_text(struct canvas *c, uint32_t x, uint32_t y, uint32_t width, const char *text, size_t text_bytes,
		 struct colour colour, bool bold)
{
	struct pen pen = {c, x, y, colour, bold};
	size_t fits = font_fit(text, text_bytes, width);

	if (fits < text_bytes) {
		unsigned dots = font_width(" ...", 4);

		fits = font_fit(text, text_bytes, width > dots ? width - dots : 0);
		font_draw(text, fits, draw_dot, &pen);
		pen.x += font_width(text, fits) + font_width(" ", 1) / 2;
		font_draw("...", 3, draw_dot, &pen);
	} else {
		font_draw(text, text_bytes, draw_dot, &pen);
	}
}

/*
 * The mean of the source pixels that pixel (x, y) of a width x height picture covers: one, if it is
 * enlarged.
 */
static struct colour mean_colour(const struct png_image *image, uint32_t x, uint32_t y, uint32_t width, uint32_t height)
{
	uint64_t x0 = (uint64_t)x * image->width / width, x1 = ((uint64_t)x + 1) * image->width / width;
	uint64_t y0 = (uint64_t)y * image->height / height, y1 = ((uint64_t)y + 1) * image->height / height;
	uint64_t sum[3] = {0}, count;

	x1 = x1 > x0 ? x1 : x0 + 1;
	y1 = y1 > y0 ? y1 : y0 + 1;
	count = (x1 - x0) * (y1 - y0);
	for (uint64_t j = y0; j < y1; j++)
		for (uint64_t i = x0; i < x1; i++)
			for (uint32_t k = 0; k < 3; k++) /* of a gray image, three times the same channel */
				sum[k] += image->pixels[j * image->row_bytes + i * image->pixel_bytes +
							(image->channel_count == 3 ? k : 0) * image->channel_bytes];
	for (uint32_t k = 0; k < 3; k++)
		sum[k] = (sum[k] + count / 2) / count;
	return (struct colour){(uint8_t)sum[0], (uint8_t)sum[1], (uint8_t)sum[2]};
}

void canvas_thumbnail(struct canvas *c, uint32_t x, uint32_t y, uint32_t side, const struct png_image *image)
{
	uint32_t longer = image->width > image->height ? image->width : image->height;
	uint32_t width = image->width, height = image->height, multiple = side / longer;

	if (longer > side) {
		width = (uint32_t)((uint64_t)image->width * side / longer);
		height = (uint32_t)((uint64_t)image->height * side / longer);
	} else if (multiple > 1) {
		width *= multiple;
		height *= multiple;
	}
	width += !width; /* a line of one pixel stays visible */
	height += !height;
	x += (side - width) / 2;
	y += (side - height) / 2;
	for (uint32_t j = 0; j < height; j++)
		for (uint32_t i = 0; i < width; i++)
			set_pixel(c, x + i, y + j, mean_colour(image, i, j, width, height));
}
