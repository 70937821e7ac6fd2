/* SPDX-License-Identifier: Apache-2.0 */
/*
 * canvas.c - an RGB picture to draw text and thumbnails on, and the small font of its captions
 *
 * Glyphs are drawn here as text.  Rows that are missing at the bottom are empty; rows 0 to 6 stand
 * on the baseline and rows 7 and 8 hang below it.  The font has printable ASCII; everything else is
 * drawn as '?', one for each character of UTF-8.
 */
#include "tools/shardcat/dataset/cat_dataset.h"

#include <stdlib.h>
#include <string.h>

#include "libshard/base/utf8.h"
#include "tools/common/memory.h"

#define ROWS  9
#define SCALE 2
#define GAP   SCALE /* between characters */

/* ---- the font: glyphs of up to 5 x 9 dots, drawn at twice that size ---- */

struct glyph {
	unsigned width;
	const char *rows[ROWS];
};

static const struct glyph glyphs[] = {
	[' ' - ' '] = {3, {"...", "...", "...", "...", "...", "...", "..."}},
	['!' - ' '] = {1, {"#", "#", "#", "#", "#", ".", "#"}},
	['"' - ' '] = {3, {"#.#", "#.#", "#.#"}},
	['#' - ' '] = {5, {".#.#.", ".#.#.", "#####", ".#.#.", "#####", ".#.#.", ".#.#."}},
	['$' - ' '] = {5, {"..#..", ".####", "#.#..", ".###.", "..#.#", "####.", "..#.."}},
	['%' - ' '] = {5, {"##..#", "##.#.", "...#.", "..#..", ".#...", ".#.##", "#..##"}},
	['&' - ' '] = {5, {".##..", "#..#.", "#.#..", ".#...", "#.#.#", "#..#.", ".##.#"}},
	['\'' - ' '] = {1, {"#", "#", "#"}},
	['(' - ' '] = {3, {"..#", ".#.", "#..", "#..", "#..", ".#.", "..#"}},
	[')' - ' '] = {3, {"#..", ".#.", "..#", "..#", "..#", ".#.", "#.."}},
	['*' - ' '] = {5, {".....", "#.#.#", ".###.", "#####", ".###.", "#.#.#"}},
	['+' - ' '] = {5, {".....", "..#..", "..#..", "#####", "..#..", "..#.."}},
	[',' - ' '] = {2, {"..", "..", "..", "..", "..", ".#", ".#", "#."}},
	['-' - ' '] = {4, {"....", "....", "....", "####"}},
	['.' - ' '] = {1, {".", ".", ".", ".", ".", ".", "#"}},
	['/' - ' '] = {5, {"....#", "....#", "...#.", "..#..", ".#...", "#....", "#...."}},
	['0' - ' '] = {5, {".###.", "#...#", "#..##", "#.#.#", "##..#", "#...#", ".###."}},
	['1' - ' '] = {3, {".#.", "##.", ".#.", ".#.", ".#.", ".#.", "###"}},
	['2' - ' '] = {5, {".###.", "#...#", "....#", "...#.", "..#..", ".#...", "#####"}},
	['3' - ' '] = {5, {".###.", "#...#", "....#", "..##.", "....#", "#...#", ".###."}},
	['4' - ' '] = {5, {"...#.", "..##.", ".#.#.", "#..#.", "#####", "...#.", "...#."}},
	['5' - ' '] = {5, {"#####", "#....", "####.", "....#", "....#", "#...#", ".###."}},
	['6' - ' '] = {5, {".###.", "#....", "#....", "####.", "#...#", "#...#", ".###."}},
	['7' - ' '] = {5, {"#####", "....#", "...#.", "...#.", "..#..", "..#..", "..#.."}},
	['8' - ' '] = {5, {".###.", "#...#", "#...#", ".###.", "#...#", "#...#", ".###."}},
	['9' - ' '] = {5, {".###.", "#...#", "#...#", ".####", "....#", "....#", ".###."}},
	[':' - ' '] = {1, {".", ".", "#", ".", ".", ".", "#"}},
	[';' - ' '] = {2, {"..", "..", ".#", "..", "..", ".#", ".#", "#."}},
	['<' - ' '] = {4, {"...#", "..#.", ".#..", "#...", ".#..", "..#.", "...#"}},
	['=' - ' '] = {4, {"....", "....", "####", "....", "####"}},
	['>' - ' '] = {4, {"#...", ".#..", "..#.", "...#", "..#.", ".#..", "#..."}},
	['?' - ' '] = {5, {".###.", "#...#", "....#", "...#.", "..#..", ".....", "..#.."}},
	['@' - ' '] = {5, {".###.", "#...#", "#.###", "#.#.#", "#.###", "#....", ".####"}},
	['A' - ' '] = {5, {".###.", "#...#", "#...#", "#####", "#...#", "#...#", "#...#"}},
	['B' - ' '] = {5, {"####.", "#...#", "#...#", "####.", "#...#", "#...#", "####."}},
	['C' - ' '] = {5, {".###.", "#...#", "#....", "#....", "#....", "#...#", ".###."}},
	['D' - ' '] = {5, {"####.", "#...#", "#...#", "#...#", "#...#", "#...#", "####."}},
	['E' - ' '] = {5, {"#####", "#....", "#....", "####.", "#....", "#....", "#####"}},
	['F' - ' '] = {5, {"#####", "#....", "#....", "####.", "#....", "#....", "#...."}},
	['G' - ' '] = {5, {".###.", "#...#", "#....", "#.###", "#...#", "#...#", ".####"}},
	['H' - ' '] = {5, {"#...#", "#...#", "#...#", "#####", "#...#", "#...#", "#...#"}},
	['I' - ' '] = {3, {"###", ".#.", ".#.", ".#.", ".#.", ".#.", "###"}},
	['J' - ' '] = {5, {"..###", "...#.", "...#.", "...#.", "...#.", "#..#.", ".##.."}},
	['K' - ' '] = {5, {"#...#", "#..#.", "#.#..", "##...", "#.#..", "#..#.", "#...#"}},
	['L' - ' '] = {5, {"#....", "#....", "#....", "#....", "#....", "#....", "#####"}},
	['M' - ' '] = {5, {"#...#", "##.##", "#.#.#", "#.#.#", "#...#", "#...#", "#...#"}},
	['N' - ' '] = {5, {"#...#", "##..#", "##..#", "#.#.#", "#..##", "#..##", "#...#"}},
	['O' - ' '] = {5, {".###.", "#...#", "#...#", "#...#", "#...#", "#...#", ".###."}},
	['P' - ' '] = {5, {"####.", "#...#", "#...#", "####.", "#....", "#....", "#...."}},
	['Q' - ' '] = {5, {".###.", "#...#", "#...#", "#...#", "#.#.#", "#..#.", ".##.#"}},
	['R' - ' '] = {5, {"####.", "#...#", "#...#", "####.", "#.#..", "#..#.", "#...#"}},
	['S' - ' '] = {5, {".####", "#....", "#....", ".###.", "....#", "....#", "####."}},
	['T' - ' '] = {5, {"#####", "..#..", "..#..", "..#..", "..#..", "..#..", "..#.."}},
	['U' - ' '] = {5, {"#...#", "#...#", "#...#", "#...#", "#...#", "#...#", ".###."}},
	['V' - ' '] = {5, {"#...#", "#...#", "#...#", "#...#", ".#.#.", ".#.#.", "..#.."}},
	['W' - ' '] = {5, {"#...#", "#...#", "#...#", "#.#.#", "#.#.#", "##.##", "#...#"}},
	['X' - ' '] = {5, {"#...#", "#...#", ".#.#.", "..#..", ".#.#.", "#...#", "#...#"}},
	['Y' - ' '] = {5, {"#...#", "#...#", ".#.#.", "..#..", "..#..", "..#..", "..#.."}},
	['Z' - ' '] = {5, {"#####", "....#", "...#.", "..#..", ".#...", "#....", "#####"}},
	['[' - ' '] = {3, {"###", "#..", "#..", "#..", "#..", "#..", "###"}},
	['\\' - ' '] = {5, {"#....", "#....", ".#...", "..#..", "...#.", "....#", "....#"}},
	[']' - ' '] = {3, {"###", "..#", "..#", "..#", "..#", "..#", "###"}},
	['^' - ' '] = {5, {"..#..", ".#.#.", "#...#"}},
	['_' - ' '] = {5, {".....", ".....", ".....", ".....", ".....", ".....", ".....", "#####"}},
	['`' - ' '] = {2, {"#.", ".#"}},
	['a' - ' '] = {5, {".....", ".....", ".###.", "....#", ".####", "#...#", ".####"}},
	['b' - ' '] = {5, {"#....", "#....", "####.", "#...#", "#...#", "#...#", "####."}},
	['c' - ' '] = {4, {"....", "....", ".###", "#...", "#...", "#...", ".###"}},
	['d' - ' '] = {5, {"....#", "....#", ".####", "#...#", "#...#", "#...#", ".####"}},
	['e' - ' '] = {5, {".....", ".....", ".###.", "#...#", "#####", "#....", ".###."}},
	['f' - ' '] = {4, {"..##", ".#..", "####", ".#..", ".#..", ".#..", ".#.."}},
	['g' - ' '] = {5, {".....", ".....", ".####", "#...#", "#...#", "#...#", ".####", "....#", ".###."}},
	['h' - ' '] = {5, {"#....", "#....", "####.", "#...#", "#...#", "#...#", "#...#"}},
	['i' - ' '] = {1, {"#", ".", "#", "#", "#", "#", "#"}},
	['j' - ' '] = {3, {"..#", "...", "..#", "..#", "..#", "..#", "..#", "..#", "##."}},
	['k' - ' '] = {4, {"#...", "#...", "#..#", "#.#.", "##..", "#.#.", "#..#"}},
	['l' - ' '] = {2, {"#.", "#.", "#.", "#.", "#.", "#.", ".#"}},
	['m' - ' '] = {5, {".....", ".....", "##.#.", "#.#.#", "#.#.#", "#.#.#", "#.#.#"}},
	['n' - ' '] = {5, {".....", ".....", "####.", "#...#", "#...#", "#...#", "#...#"}},
	['o' - ' '] = {5, {".....", ".....", ".###.", "#...#", "#...#", "#...#", ".###."}},
	['p' - ' '] = {5, {".....", ".....", "####.", "#...#", "#...#", "#...#", "####.", "#....", "#...."}},
	['q' - ' '] = {5, {".....", ".....", ".####", "#...#", "#...#", "#...#", ".####", "....#", "....#"}},
	['r' - ' '] = {4, {"....", "....", "#.##", "##..", "#...", "#...", "#..."}},
	['s' - ' '] = {4, {"....", "....", ".###", "#...", ".##.", "...#", "###."}},
	['t' - ' '] = {4, {".#..", ".#..", "####", ".#..", ".#..", ".#..", "..##"}},
	['u' - ' '] = {5, {".....", ".....", "#...#", "#...#", "#...#", "#...#", ".####"}},
	['v' - ' '] = {5, {".....", ".....", "#...#", "#...#", ".#.#.", ".#.#.", "..#.."}},
	['w' - ' '] = {5, {".....", ".....", "#...#", "#.#.#", "#.#.#", "#.#.#", ".#.#."}},
	['x' - ' '] = {5, {".....", ".....", "#...#", ".#.#.", "..#..", ".#.#.", "#...#"}},
	['y' - ' '] = {5, {".....", ".....", "#...#", "#...#", "#...#", "#...#", ".####", "....#", ".###."}},
	['z' - ' '] = {4, {"....", "....", "####", "..#.", ".#..", "#...", "####"}},
	['{' - ' '] = {4, {"..##", ".#..", ".#..", "#...", ".#..", ".#..", "..##"}},
	['|' - ' '] = {1, {"#", "#", "#", "#", "#", "#", "#", "#"}},
	['}' - ' '] = {4, {"##..", "..#.", "..#.", "...#", "..#.", "..#.", "##.."}},
	['~' - ' '] = {5, {".....", ".....", ".##.#", "#.##."}},
};

/* The next character's glyph; *taken is how many bytes it has. */
static const struct glyph *next_glyph(const char *text, size_t text_bytes, size_t *taken)
{
	uint32_t code_point;

	*taken = utf8_character(text, text_bytes, &code_point);
	if (!*taken) {
		*taken = 1;
		code_point = '?';
	}
	return &glyphs[(code_point >= ' ' && code_point <= '~' ? code_point : '?') - ' '];
}

/* Pixels that the text takes. */
static unsigned font_width(const char *text, size_t text_bytes)
{
	unsigned width = 0;
	size_t taken;

	for (size_t i = 0; i < text_bytes; i += taken)
		width += next_glyph(text + i, text_bytes - i, &taken)->width * SCALE + GAP;
	return width ? width - GAP : 0;
}

/* The longest beginning of the text that fits, in bytes; never ends inside a character. */
static size_t font_fit(const char *text, size_t text_bytes, unsigned width)
{
	unsigned used_width = 0;
	size_t used = 0, taken;

	for (; used < text_bytes; used += taken) {
		used_width += next_glyph(text + used, text_bytes - used, &taken)->width * SCALE;
		if (used_width > width)
			break;
		used_width += GAP;
	}
	return used;
}

static bool is_set(const struct glyph *g, int x, int y)
{
	if (x < 0 || x >= (int)g->width || y < 0 || y >= ROWS || !g->rows[y])
		return false;
	return g->rows[y][x] == '#';
}

/*
 * Is pixel (x, y) of the doubled glyph set?  It is as its dot, unless both dot neighbours on its
 * side agree with each other and differ from the opposite ones: then it takes their colour, which
 * turns the stairs of a diagonal into a slope.
 */
static bool is_pixel_set(const struct glyph *g, int x, int y)
{
	int dot_x = x / SCALE, dot_y = y / SCALE;
	int side_x = x % SCALE ? 1 : -1, side_y = y % SCALE ? 1 : -1;
	bool beside = is_set(g, dot_x + side_x, dot_y), above = is_set(g, dot_x, dot_y + side_y);

	if (beside == above && beside != is_set(g, dot_x - side_x, dot_y) && above != is_set(g, dot_x, dot_y - side_y))
		return beside;
	return is_set(g, dot_x, dot_y);
}

/* ---- the canvas ---- */

void canvas_init(struct canvas *c, uint32_t width, uint32_t height, struct colour background)
{
	*c = (struct canvas){width, height, xmalloc((size_t)width * height, 3)};
	canvas_fill(c, 0, 0, width, height, background);
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
	uint32_t x, y; /* the top left corner of the next character */
	struct colour colour;
	bool bold;
};

static void draw_text(struct pen *pen, const char *text, size_t text_bytes)
{
	size_t taken;

	for (size_t i = 0; i < text_bytes; i += taken) {
		const struct glyph *g = next_glyph(text + i, text_bytes - i, &taken);

		for (unsigned y = 0; y < FONT_HEIGHT; y++)
			for (unsigned x = 0; x < g->width * SCALE; x++) {
				if (!is_pixel_set(g, (int)x, (int)y))
					continue;
				set_pixel(pen->canvas, pen->x + x, pen->y + y, pen->colour);
				if (pen->bold)
					set_pixel(pen->canvas, pen->x + x + 1, pen->y + y, pen->colour);
			}
		pen->x += g->width * SCALE + GAP;
	}
}

void canvas_text(struct canvas *c, uint32_t x, uint32_t y, uint32_t width, const char *text, size_t text_bytes,
		 struct colour colour, bool bold)
{
	struct pen pen = {c, x, y, colour, bold};
	size_t fits = font_fit(text, text_bytes, width);

	if (fits < text_bytes) {
		unsigned dots = font_width(" ...", 4);

		fits = font_fit(text, text_bytes, width > dots ? width - dots : 0);
		draw_text(&pen, text, fits);
		pen.x = x + font_width(text, fits) + font_width(" ", 1) / 2;
		draw_text(&pen, "...", 3);
	} else {
		draw_text(&pen, text, text_bytes);
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
