/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mask_map.c - which class each colour, or each value, of a mask is
 */
#include "tools/shardpack/images/mask_map.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libshard/base/words.h"
#include "tools/common/shelf.h"

#define WORDS_MAX  4 /* R G B CLASS */
#define VALUE_MOST UINT16_MAX
#define OTHERS	   "else"

struct saying {
	char *why;
	size_t why_bytes;
};

__attribute__((format(printf, 2, 3))) static bool refuse(const struct saying *s, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(s->why, s->why_bytes, fmt, ap);
	va_end(ap);
	return false;
}

/* Where the key is, or would be. */
static uint64_t place_of(const struct mask_map *m, uint32_t key)
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

bool mask_map_find(const struct mask_map *m, uint32_t key, uint32_t *class_idx)
{
	uint64_t at = place_of(m, key);

	if (at < m->count && m->line[at].key == key)
		*class_idx = m->line[at].class_idx;
	else if (m->has_others)
		*class_idx = m->others;
	else
		return false;
	return true;
}

static bool insert(struct mask_map *m, uint32_t key, uint32_t class_idx, const struct saying *s)
{
	uint64_t at = place_of(m, key);

	if (at < m->count && m->line[at].key == key)
		return refuse(s, "this %s is there twice", m->of_colours ? "colour" : "value");
	if (m->count == MASK_MAP_LINES_MAX)
		return refuse(s, "more than the limit of %d lines", MASK_MAP_LINES_MAX);
	if (!grow(&m->line, &m->capacity, m->count + 1, sizeof(*m->line)))
		return refuse(s, "out of memory for the lines of a map");
	memmove(m->line + at + 1, m->line + at, (size_t)(m->count - at) * sizeof(*m->line));
	m->line[at] = (struct mask_map_line){key, class_idx};
	m->count++;
	return true;
}

static bool set_others(struct mask_map *m, uint32_t class_idx, const struct saying *s)
{
	if (m->has_others)
		return refuse(s, "a line '* CLASS' is there twice");
	m->has_others = true;
	m->others = class_idx;
	return true;
}

/* Of a line of one kind among those of the other. */
static bool settle_kind(struct mask_map *m, bool of_colours, const struct saying *s)
{
	if (m->count && m->of_colours != of_colours)
		return refuse(s,
			      "the lines before have %s; a map has colours 'R G B CLASS' or values 'VALUE CLASS', "
			      "not both",
			      m->of_colours ? "colours" : "values");
	m->of_colours = of_colours;
	return true;
}

static bool number_of(const struct word *w, uint64_t most, uint32_t *out, const struct saying *s)
{
	uint64_t value;

	if (!text_u64(w->text, w->bytes, &value) || value > most)
		return refuse(s, "'%.*s' must be a whole number, 0 to %" PRIu64, (int)(w->bytes < 40 ? w->bytes : 40),
			      w->text, most);
	*out = (uint32_t)value;
	return true;
}

/* The words before a '#'; one more than WORDS_MAX if there are too many. */
static unsigned split(const char *text, size_t bytes, struct word *word)
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
	struct saying s = {why, why_bytes};
	struct word word[WORDS_MAX];
	unsigned count = split(text, bytes, word);
	uint32_t class_idx, key[3] = {0};

	if (!count)
		return true;
	if (count != 2 && count != WORDS_MAX)
		return refuse(&s, "must be 'R G B CLASS', 'VALUE CLASS' or '* CLASS': four or two words, not %s%u",
			      count > WORDS_MAX ? "more than " : "", count > WORDS_MAX ? WORDS_MAX : count);
	if (!number_of(&word[count - 1], UINT32_MAX, &class_idx, &s))
		return false;
	if (count == 2 && word[0].bytes == 1 && word[0].text[0] == '*')
		return set_others(m, class_idx, &s);
	if (count == 2)
		return settle_kind(m, false, &s) && number_of(&word[0], VALUE_MOST, &key[0], &s) &&
		       insert(m, key[0], class_idx, &s);
	for (unsigned i = 0; i < 3; i++)
		if (!number_of(&word[i], 255, &key[i], &s))
			return false;
	return settle_kind(m, true, &s) && insert(m, key[0] | key[1] << 8 | key[2] << 16, class_idx, &s);
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
static bool read_line(struct mask_map *m, const char *at, size_t bytes)
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
		ok = read_line(m, word + at, n);
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

bool mask_map_copy(const struct mask_map *m, struct mask_map *out)
{
	*out = *m;
	out->line = NULL;
	out->capacity = 0;
	if (!m->count)
		return true;
	if (!grow(&out->line, &out->capacity, m->count, sizeof(*m->line))) {
		*out = (struct mask_map){0};
		return false;
	}
	memcpy(out->line, m->line, (size_t)m->count * sizeof(*m->line));
	return true;
}

void mask_map_free(struct mask_map *m)
{
	free(m->line);
	*m = (struct mask_map){0};
}
