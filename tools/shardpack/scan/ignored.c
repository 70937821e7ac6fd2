/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ignored.c - files of the source that are no inputs: how many of each ending, and their names
 */
#include "tools/shardpack/scan/scan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/shardpack/images/images.h"

#define LISTED_MOST 8u

/* The ending of a name, in lower case; "" if there is none. */
static void ending_of(const char *name, char out[IGNORED_ENDING_BYTES + 1])
{
	const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name, *dot = strrchr(base, '.');
	size_t bytes = dot && dot > base ? strlen(dot) : 0;

	if (bytes < 2 || bytes > IGNORED_ENDING_BYTES)
		bytes = 0;
	for (size_t i = 0; i < bytes; i++) {
		bool upper = dot[i] >= 'A' && dot[i] <= 'Z', other = dot[i] <= ' ' || dot[i] > '~';

		if (other)
			bytes = 0;
		else
			out[i] = upper ? (char)(dot[i] - 'A' + 'a') : dot[i];
	}
	out[bytes] = '\0';
}

static void count_ending(struct ignored *g, const char *ending)
{
	uint32_t i = 0;

	while (i < g->ending_count && strcmp(g->ending[i].text, ending) != 0)
		i++;
	if (i == IGNORED_ENDINGS) {
		g->other_count++;
		return;
	}
	if (i == g->ending_count)
		strcpy(g->ending[g->ending_count++].text, ending);
	g->ending[i].count++;
}

void ignored_add(struct ignored *g, const char *folder, const char *name)
{
	char ending[IGNORED_ENDING_BYTES + 1];

	g->count++;
	ending_of(name, ending);
	count_ending(g, ending);
	if (!g->keep_names)
		return;
	text_add(&g->names, folder, strlen(folder));
	text_add(&g->names, "/", *folder != '\0');
	text_add(&g->names, name, strlen(name) + 1);
}

static int compare(const void *x, const void *y)
{
	const struct ignored_ending *a = x, *b = y;

	if (a->count != b->count)
		return a->count > b->count ? -1 : 1;
	return strcmp(a->text, b->text);
}

void ignored_sort(struct ignored *g)
{
	qsort(g->ending, g->ending_count, sizeof(g->ending[0]), compare);
}

bool ignored_is_foreign_image(const char *ending)
{
	const struct image_format *f = *ending ? image_format_of_suffix(ending + 1) : NULL;

	return f && !image_format_is_input(f);
}

void ignored_list(const struct ignored *g, struct text *out)
{
	uint64_t rest = g->other_count;

	for (uint32_t i = 0; i < g->ending_count; i++) {
		if (i >= LISTED_MOST) {
			rest += g->ending[i].count;
			continue;
		}
		text_format(out, "%s%s %" PRIu64, i ? ", " : "", g->ending[i].text[0] ? g->ending[i].text : "no ending",
			    g->ending[i].count);
	}
	if (rest)
		text_format(out, ", others %" PRIu64, rest);
}

void ignored_free(struct ignored *g)
{
	text_free(&g->names);
}
