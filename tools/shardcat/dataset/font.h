/* SPDX-License-Identifier: Apache-2.0 */
/*
 * font.h - a small proportional font for captions
 *
 * Printable ASCII; everything else is drawn as '?', one per character of UTF-8.  Glyphs are
 * up to 5 x 9 dots and are drawn at twice that size with smoothed corners.  Pure.
 */
#ifndef SHARD_DRAW_FONT_H
#define SHARD_DRAW_FONT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FONT_HEIGHT   18 /* of a line, descenders included */
#define FONT_BASELINE 14 /* rows above the baseline */

/* Pixels that the text takes. */
unsigned font_width(const char *text, size_t text_bytes);

/* The longest beginning of the text that fits, in bytes; never ends inside a character. */
size_t font_fit(const char *text, size_t text_bytes, unsigned width);

/*
 * Call `dot` for each pixel of the text, with x from 0 to font_width() - 1 and y from 0 to
 * FONT_HEIGHT - 1.
 */
void font_draw(const char *text, size_t text_bytes, void (*dot)(void *context, unsigned x, unsigned y), void *context);

#endif
