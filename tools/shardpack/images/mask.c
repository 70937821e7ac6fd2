/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mask.c - masks: what the pixels of the file mean, and which of them the record has
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libshard/base/words.h"
#include "shard_inspect.h"
#include "tools/common/shelf.h"
#include "tools/shardpack/images/images.h"
#include "tools/shardpack/parse/parse.h"

/* ---- maps: the class of each colour, or of each value ---- */

struct mask_map_line {
	uint32_t key; /* a value, or R + 256 G + 65536 B */
	uint32_t class_idx;
};

#define WORDS_MAX  4 /* R G B CLASS */
#define VALUE_MOST UINT16_MAX
#define OTHERS	   "else"

struct refusal {
	char *why;
	size_t why_bytes;
};

__attribute__((format(printf, 2, 3))) static bool refuse(const struct refusal *s, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(s->why, s->why_bytes, fmt, ap);
	va_end(ap);
	return false;
}

/* Where the key is, or would be. */
static uint64_t key_position(const struct mask_map *m, uint32_t key)
{
	uint64_t low = 0, high = m->count;

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (m->line[middle].key < key)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* False if no line names the key. */
static bool mask_map_find(const struct mask_map *m, uint32_t key, uint32_t *class_idx)
{
	uint64_t at = key_position(m, key);

	if (at < m->count && m->line[at].key == key)
		*class_idx = m->line[at].class_idx;
	else if (m->has_others)
		*class_idx = m->others;
	else
		return false;
	return true;
}

static bool insert(struct mask_map *m, uint32_t key, uint32_t class_idx, const struct refusal *s)
{
	uint64_t at = key_position(m, key);

	if (at < m->count && m->line[at].key == key)
		return refuse(s, "this %s is there twice", m->of_colours ? "colour" : "value");
	if (m->count == MASK_MAP_LINES_MAX)
		return refuse(s, "more than the limit of %d lines", MASK_MAP_LINES_MAX);
	if (!grow_if_room(&m->line, &m->capacity, m->count + 1, sizeof(*m->line)))
		return refuse(s, "out of memory for the lines of a map");
	memmove(m->line + at + 1, m->line + at, (size_t)(m->count - at) * sizeof(*m->line));
	m->line[at] = (struct mask_map_line){key, class_idx};
	m->count++;
	return true;
}

/* A line of one kind may not follow lines of the other. */
static bool check_kind(struct mask_map *m, bool of_colours, const struct refusal *s)
{
	if (m->count && m->of_colours != of_colours)
		return refuse(s,
			      "the lines before have %s; a map has colours 'R G B CLASS' or values 'VALUE CLASS', "
			      "not both",
			      m->of_colours ? "colours" : "values");
	m->of_colours = of_colours;
	return true;
}

static bool number_of(const struct word *w, uint64_t most, uint32_t *out, const struct refusal *s)
{
	uint64_t value;

	if (!text_u64(w->text, w->bytes, &value) || value > most)
		return refuse(s, "'%.*s' must be a whole number, 0 to %" PRIu64, (int)(w->bytes < 40 ? w->bytes : 40),
			      w->text, most);
	*out = (uint32_t)value;
	return true;
}

/* The words before a '#'; one more than WORDS_MAX if there are too many. */
static unsigned split_words(const char *text, size_t bytes, struct word *word)
{
	const char *end = memchr(text, '#', bytes);
	unsigned count = 0;
	size_t n;

	for (bytes = end ? (size_t)(end - text) : bytes; bytes; text += n, bytes -= n) {
		bool blank = *text == ' ' || *text == '\t' || *text == '\r';

		for (n = 1; n < bytes && (text[n] == ' ' || text[n] == '\t' || text[n] == '\r') == blank; n++)
			;
		if (!blank && count < WORDS_MAX)
			word[count] = (struct word){text, n};
		count += !blank && count <= WORDS_MAX;
	}
	return count;
}

bool mask_map_add(struct mask_map *m, const char *text, size_t bytes, char *why, size_t why_bytes)
{
	struct refusal s = {why, why_bytes};
	struct word word[WORDS_MAX];
	unsigned count = split_words(text, bytes, word);
	uint32_t class_idx, key[3] = {0};

	if (!count)
		return true;
	if (count != 2 && count != WORDS_MAX)
		return refuse(&s, "must be 'R G B CLASS', 'VALUE CLASS' or '* CLASS': four or two words, not %s%u",
			      count > WORDS_MAX ? "more than " : "", count > WORDS_MAX ? WORDS_MAX : count);
	if (!number_of(&word[count - 1], UINT32_MAX, &class_idx, &s))
		return false;
	if (count == 2 && word[0].bytes == 1 && word[0].text[0] == '*') {
		if (m->has_others)
			return refuse(&s, "a line '* CLASS' is there twice");
		m->has_others = true;
		m->others = class_idx;
		return true;
	}
	if (count == 2)
		return check_kind(m, false, &s) && number_of(&word[0], VALUE_MOST, &key[0], &s) &&
		       insert(m, key[0], class_idx, &s);
	for (unsigned i = 0; i < 3; i++)
		if (!number_of(&word[i], 255, &key[i], &s))
			return false;
	return check_kind(m, true, &s) && insert(m, key[0] | key[1] << 8 | key[2] << 16, class_idx, &s);
}

void mask_map_write(const struct mask_map *m, struct text *out)
{
	for (uint64_t i = 0; i < m->count; i++) {
		uint32_t key = m->line[i].key;

		text_format(out, i ? "/" : "");
		if (m->of_colours)
			text_format(out, "%" PRIu32 ".%" PRIu32 ".%" PRIu32, key & 255, key >> 8 & 255, key >> 16);
		else
			text_format(out, "%" PRIu32, key);
		text_format(out, "-%" PRIu32, m->line[i].class_idx);
	}
	if (m->has_others)
		text_format(out, "%s" OTHERS "-%" PRIu32, m->count ? "/" : "", m->others);
}

/* One line of a plan's word as one of a file: its dots and its dash are blanks there. */
static bool read_plan_line(struct mask_map *m, const char *at, size_t bytes)
{
	char line[64], why[160];

	if (!bytes || bytes >= sizeof(line))
		return false;
	for (size_t i = 0; i < bytes; i++)
		if (at[i] == ' ' || at[i] == '\t' || at[i] == '\r' || at[i] == '#' || at[i] == '*')
			return false;
		else
			line[i] = at[i] == '.' || at[i] == '-' ? ' ' : at[i];
	if (bytes > strlen(OTHERS) && !memcmp(line, OTHERS " ", strlen(OTHERS) + 1))
		memcpy(line, "*   ", strlen(OTHERS));
	return mask_map_add(m, line, bytes, why, sizeof(why));
}

bool mask_map_read(struct mask_map *m, const char *word, size_t bytes)
{
	struct text again = {0};
	size_t n;
	bool ok = true;

	for (size_t at = 0; ok && at <= bytes; at += n + 1) {
		const char *slash = memchr(word + at, '/', bytes - at);

		n = slash ? (size_t)(slash - word) - at : bytes - at;
		ok = read_plan_line(m, word + at, n);
	}
	mask_map_write(m, &again);
	ok = ok && m->count && !text_failed(&again) && again.bytes == bytes && !memcmp(again.data, word, bytes);
	text_free(&again);
	return ok;
}

uint32_t mask_map_most(const struct mask_map *m)
{
	uint32_t most = m->has_others ? m->others : 0;

	for (uint64_t i = 0; i < m->count; i++)
		most = m->line[i].class_idx > most ? m->line[i].class_idx : most;
	return most;
}

void mask_map_copy(const struct mask_map *m, struct mask_map *out)
{
	*out = *m;
	out->line = NULL;
	out->capacity = 0;
	if (!m->count)
		return;
	grow(&out->line, &out->capacity, m->count, sizeof(*m->line));
	memcpy(out->line, m->line, (size_t)m->count * sizeof(*m->line));
}

void mask_map_free(struct mask_map *m)
{
	free(m->line);
	*m = (struct mask_map){0};
}

/* ---- the pixels of a mask that does not have single bytes ---- */

static bool is_coloured(const struct mask_pixels *p)
{
	return p->channels > 2;
}

enum decode_status mask_codes_check(const struct mask_codes *c, const struct mask_pixels *p, struct decode_verdict *v)
{
	if (p->wide && p->channels > 1)
		return decode_bad(v, SHARD_MISS_UNSUPPORTED,
				  "%s has %" PRIu32 " channels of 16 bits: save the mask with 8 bits", p->format,
				  p->channels);
	if (!c->map && p->palette)
		return decode_bad(
			v, SHARD_MISS_UNSUPPORTED,
			"%s has a palette: for its indices leave dtype out, for the ids of its colours save it "
			"as RGB",
			p->format);
	if (c->map && c->map->of_colours && p->wide)
		return decode_bad(v, SHARD_MISS_UNSUPPORTED,
				  "%s is gray with 16 bits, and the map has colours: give lines 'VALUE CLASS'",
				  p->format);
	if (c->map && !c->map->of_colours && is_coloured(p))
		return decode_bad(v, SHARD_MISS_UNSUPPORTED,
				  "%s has %" PRIu32 " channels, and the map has values: give lines 'R G B CLASS'",
				  p->format, p->channels);
	return DECODE_OK;
}

/* What a pixel is called in a message: "the colour 1 2 3", "the value 7". */
static const char *name_of(const struct mask_codes *c, const struct mask_pixels *p, uint32_t key, char out[64])
{
	if (is_coloured(p) || (c->map && c->map->of_colours))
		snprintf(out, 64, "colour %" PRIu32 " %" PRIu32 " %" PRIu32, key & 255, key >> 8 & 255, key >> 16);
	else
		snprintf(out, 64, "value %" PRIu32, key);
	return out;
}

/* The largest sample of a record. */
static inline uint32_t mask_codes_most(const struct mask_codes *c)
{
	return (uint32_t)((UINT64_C(1) << 8 * c->sample_bytes) - 1);
}

static enum decode_status bad_code(const struct mask_codes *c, const struct mask_pixels *p, uint32_t key, uint32_t x,
				   uint32_t y, struct decode_verdict *v)
{
	char name[64];

	if (c->map)
		return decode_bad(v, SHARD_MISS_UNSUPPORTED,
				  "%s has the %s at column %" PRIu32 " of row %" PRIu32
				  ", which is not in the map; add a line for it, or '* CLASS' for all others",
				  p->format, name_of(c, p, key, name), x, y);
	return decode_bad(v, SHARD_MISS_UNSUPPORTED,
			  "%s has the %s at column %" PRIu32 " of row %" PRIu32 ", number %" PRIu32 ": u%" PRIu32
			  " holds 0 to %" PRIu32 "; give dtype=%s",
			  p->format, name_of(c, p, key, name), x, y, key, 8 * c->sample_bytes, mask_codes_most(c),
			  key > UINT16_MAX ? "u32" : "u16");
}

static enum decode_status bad_alpha(const struct mask_pixels *p, uint32_t alpha, uint32_t x, uint32_t y,
				    struct decode_verdict *v)
{
	return decode_bad(v, SHARD_MISS_UNSUPPORTED,
			  "%s has the alpha %" PRIu32 " at column %" PRIu32 " of row %" PRIu32
			  ": only opaque pixels, 255, have a class; save it without alpha",
			  p->format, alpha, x, y);
}

/* R + 256 G + 65536 B */
static inline uint32_t mask_map_colour(const uint8_t *rgb)
{
	return rgb[0] | (uint32_t)rgb[1] << 8 | (uint32_t)rgb[2] << 16;
}

/* The key of a pixel in the map; of an index beyond the palette UINT32_MAX. */
static uint32_t key_of(const struct mask_codes *c, const struct mask_pixels *p, const uint8_t *pixel)
{
	if (p->wide)
		return (uint32_t)pixel[0] << 8 | pixel[1];
	if (is_coloured(p))
		return mask_map_colour(pixel);
	if (!c->map || !c->map->of_colours)
		return pixel[0];
	if (!p->palette)
		return pixel[0] * UINT32_C(0x10101);
	return pixel[0] < p->palette_count ? mask_map_colour(p->palette + 3 * (size_t)pixel[0]) : UINT32_MAX;
}

enum decode_status mask_codes_row(const struct mask_codes *c, const struct mask_pixels *p, const uint8_t *row,
				  uint32_t width, uint32_t y, uint8_t *to, struct decode_verdict *v)
{
	uint32_t pixel_bytes = mask_pixel_bytes(p), most = mask_codes_most(c), last = 0, code = 0;
	bool known = false, alpha = p->channels == 2 || p->channels == 4;

	for (uint32_t x = 0; x < width; x++, row += pixel_bytes, to += c->sample_bytes) {
		uint32_t key = key_of(c, p, row);

		if (alpha && row[pixel_bytes - 1] != 255)
			return bad_alpha(p, row[pixel_bytes - 1], x, y, v);
		if (!known || key != last) { /* most pixels are as their neighbour */
			if (key == UINT32_MAX)
				return decode_bad(
					v, SHARD_MISS_DAMAGED,
					"%s data is damaged: palette index %u, but the palette ends at %" PRIu32,
					p->format, row[0], p->palette_count - 1);
			code = key;
			if ((c->map && !mask_map_find(c->map, key, &code)) || code > most)
				return bad_code(c, p, key, x, y, v);
			last = key;
			known = true;
		}
		integer_store(to, c->sample_bytes, code);
	}
	return DECODE_OK;
}

/* ---- which pixel of the file each pixel of the record is ---- */

/*
 * Columns and rows are chosen apart, once for a mask: one table each, in the order in which the
 * file has them.  So the rows are used as they come, and a mask that is to be turned needs no
 * memory of its own: its tables run along the other axis of the record, or backwards.
 */

/* The columns, or the rows, of the file that are wanted. */
struct axis {
	struct scratch table; /* uint32_t each, ascending; the first is 0, where the wanted part begins */
	uint32_t count;
	ptrdiff_t first, step; /* where in the record the first one goes, and how far the others lie apart */
};

struct mask {
	struct transform_options opt;
	struct image_sink sink;
	uint8_t *record; /* being written */
	uint32_t source_width, source_height, orientation;
	struct axis columns, rows;
	uint32_t row, rows_done; /* row: of the wanted part, the next to come; rows_done: of the table */
	uint32_t sample_bytes, fill;
};

static const uint32_t *table_of(const struct axis *a)
{
	return (const uint32_t *)(const void *)a->table.data;
}

/*
 * `size` pixels resized to `resized`, of which `span` is kept.  Pillow adds the scale up from pixel
 * to pixel, and so does this, from the first one on: a product would be rounded otherwise.  Returns
 * where the wanted part of the file begins; *count is how long it is.
 */
static uint32_t choose_pixels(struct axis *a, uint32_t size, uint32_t resized, const struct transform_span *span,
			      bool back, uint32_t *count)
{
	uint32_t *table = (uint32_t *)(void *)a->table.data, last = span->count - 1, begin;
	double scale = (double)size / resized, at = scale * 0.5;

	for (uint32_t i = 0; i < span->from; i++)
		at += scale;
	for (uint32_t i = 0; i <= last; i++, at += scale) {
		uint32_t idx = at < size ? (uint32_t)at : size - 1;

		table[back ? last - i : i] = back ? size - 1 - idx : idx;
	}
	begin = table[0];
	*count = table[last] - begin + 1;
	for (uint32_t i = 0; i <= last; i++)
		table[i] -= begin;
	a->count = span->count;
	return begin;
}

/* Where in the record that goes.  Along the axis its pixels are `stride` bytes apart. */
static void lay_axis(struct axis *a, const struct transform_span *span, bool back, ptrdiff_t stride)
{
	a->first = ((ptrdiff_t)span->to + (back ? span->count - 1 : 0)) * stride;
	a->step = back ? -stride : stride;
}

void mask_fill(const struct transform_options *opt, uint32_t sample_bytes, uint32_t fill, uint8_t *dst)
{
	size_t bytes = (size_t)opt->crop * opt->crop * sample_bytes;
	uint16_t half = (uint16_t)fill;

	if (sample_bytes == 1)
		memset(dst, (int)fill, bytes);
	else
		for (size_t i = 0; i < bytes; i += sample_bytes)
			memcpy(dst + i, sample_bytes == 2 ? (const void *)&half : &fill, sample_bytes);
}

/* A mask is never scaled. */
static bool begin(void *context, const struct image_size *size, struct image_window *wanted)
{
	struct mask *m = context;
	struct turn_axes turn = turn_axes(m->orientation);
	struct transform_geometry g;
	uint32_t crop = m->opt.crop, width = size->width, height = size->height;
	ptrdiff_t pixel_bytes = m->sample_bytes, row_bytes = crop * pixel_bytes;

	m->source_width = turn.lies ? height : width;
	m->source_height = turn.lies ? width : height;
	m->row = 0;
	m->rows_done = 0;
	if (!scratch_reserve(&m->columns.table, crop * sizeof(uint32_t)) ||
	    !scratch_reserve(&m->rows.table, crop * sizeof(uint32_t)))
		return false;
	g = transform_geometry(&m->opt, m->source_width, m->source_height);
	if (g.across.count < crop || g.down.count < crop)
		mask_fill(&m->opt, m->sample_bytes, m->fill, m->record);
	if (turn.lies) {
		wanted->x = choose_pixels(&m->columns, width, g.height, &g.down, turn.columns_back, &wanted->width);
		wanted->y = choose_pixels(&m->rows, height, g.width, &g.across, turn.rows_back, &wanted->height);
		lay_axis(&m->columns, &g.down, turn.columns_back, row_bytes);
		lay_axis(&m->rows, &g.across, turn.rows_back, pixel_bytes);
	} else {
		wanted->x = choose_pixels(&m->columns, width, g.width, &g.across, turn.columns_back, &wanted->width);
		wanted->y = choose_pixels(&m->rows, height, g.height, &g.down, turn.rows_back, &wanted->height);
		lay_axis(&m->columns, &g.across, turn.columns_back, pixel_bytes);
		lay_axis(&m->rows, &g.down, turn.rows_back, row_bytes);
	}
	return true;
}

static void take_row(const struct mask *m, const uint8_t *values, uint8_t *to)
{
	const uint32_t *columns = table_of(&m->columns);

	if (m->sample_bytes == 1)
		for (uint32_t i = 0; i < m->columns.count; i++, to += m->columns.step)
			*to = values[columns[i]];
	else if (m->sample_bytes == 2)
		for (uint32_t i = 0; i < m->columns.count; i++, to += m->columns.step)
			memcpy(to, values + 2 * (size_t)columns[i], 2);
	else
		for (uint32_t i = 0; i < m->columns.count; i++, to += m->columns.step)
			memcpy(to, values + 4 * (size_t)columns[i], 4);
}

static void rows(void *context, const uint8_t *values, size_t stride_bytes, uint32_t row_count)
{
	struct mask *m = context;
	const uint32_t *wanted = table_of(&m->rows);

	for (; row_count; row_count--, values += stride_bytes, m->row++)
		for (; m->rows_done < m->rows.count && wanted[m->rows_done] == m->row; m->rows_done++)
			take_row(m, values,
				 m->record + m->columns.first + m->rows.first + (ptrdiff_t)m->rows_done * m->rows.step);
}

struct mask *mask_open(const struct transform_options *opt, uint32_t sample_bytes, uint32_t fill)
{
	struct mask *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->opt = *opt;
	m->sample_bytes = sample_bytes;
	m->fill = fill;
	m->sink = (struct image_sink){.begin = begin, .rows = rows, .context = m};
	return m;
}

void mask_close(struct mask *m)
{
	if (!m)
		return;
	scratch_free(&m->columns.table);
	scratch_free(&m->rows.table);
	free(m);
}

const struct image_sink *mask_sink(struct mask *m, uint32_t orientation, uint8_t *dst)
{
	m->orientation = orientation;
	m->record = dst;
	return &m->sink;
}

void mask_source_size(const struct mask *m, uint32_t *width, uint32_t *height)
{
	*width = m->source_width;
	*height = m->source_height;
}
