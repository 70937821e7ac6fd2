/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli_nearest.c - which name was probably meant
 *
 * Pure.  A name that the typed word begins wins ("res" for "resize"); else the one that the
 * fewest edits away, where swapping two neighbours is one edit, and only if those are few
 * for the length of the word: a wrong guess is worse than none.
 */
#include "tools/common/cli_nearest.h"

#include <string.h>

#define WORD_MAX 40 /* longer words are not guessed at */

static unsigned min_u(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* Edits (insert, delete, replace, swap neighbours) between two words of at most WORD_MAX. */
static unsigned distance(const char *a, const char *b)
{
	unsigned rows[3][WORD_MAX + 1]; /* row i is about the first i letters of `a`; three are enough */
	size_t a_length = strlen(a), b_length = strlen(b);

	for (size_t j = 0; j <= b_length; j++)
		rows[0][j] = (unsigned)j;
	for (size_t i = 1; i <= a_length; i++) {
		unsigned *row = rows[i % 3], *up = rows[(i - 1) % 3], *up2 = rows[(i + 1) % 3];

		row[0] = (unsigned)i;
		for (size_t j = 1; j <= b_length; j++) {
			row[j] = min_u(min_u(up[j], row[j - 1]) + 1, up[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				row[j] = min_u(row[j], up2[j - 2] + 1);
		}
	}
	return rows[a_length % 3][b_length];
}

int cli_nearest(const char *typed, const char *const *candidates, size_t candidate_count)
{
	size_t length = strlen(typed);
	unsigned least = (unsigned)(length + 1) / 3 + 1; /* one more than is allowed */
	int found = -1;

	if (length < 2 || length > WORD_MAX)
		return -1;
	for (size_t i = 0; i < candidate_count; i++)
		if (!strncmp(candidates[i], typed, length))
			return (int)i;
	for (size_t i = 0; i < candidate_count; i++) {
		unsigned edits;

		if (strlen(candidates[i]) > WORD_MAX)
			continue;
		edits = distance(typed, candidates[i]);
		if (edits < least && edits < length) {
			least = edits;
			found = (int)i;
		}
	}
	return found;
}
