/* SPDX-License-Identifier: Apache-2.0 */
/*
 * canvas.h - an RGB picture to draw text and thumbnails on
 *
 * Dots outside of the canvas are not drawn.
 */
#ifndef SHARD_DRAW_CANVAS_H
#define SHARD_DRAW_CANVAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/common/png_out.h"

struct colour {
	uint8_t r, g, b;
};

struct canvas {
	uint32_t width, height;
	uint8_t *pixels; /* packed RGB */
};

/* False if there is no memory for it.  Free it in any case. */
bool canvas_init(struct canvas *c, uint32_t width, uint32_t height, struct colour background);
void canvas_free(struct canvas *c);

void canvas_fill(struct canvas *c, uint32_t x, uint32_t y, uint32_t width, uint32_t height, struct colour colour);

/* One line of UTF-8 whose top left corner is (x, y), cut with "..." where it passes `width`. */
void canvas_text(struct canvas *c, uint32_t x, uint32_t y, uint32_t width, const char *text, size_t text_bytes,
		 struct colour colour, bool bold);

/*
 * Draw an image centred in a square: large ones shrunk by averaging, small ones as whole multiples.
 */
void canvas_thumbnail(struct canvas *c, uint32_t x, uint32_t y, uint32_t side, const struct png_image *image);

#endif
