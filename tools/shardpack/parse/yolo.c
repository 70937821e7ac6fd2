/* SPDX-License-Identifier: Apache-2.0 */
/*
 * yolo.c - the text files in which YOLO has boxes
 */
#include "tools/shardpack/parse/parse.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tools/common/text.h"

#define NUMBERS	    5
#define WORD_BYTES  64
#define OUTLINE_MIN 7 /* a class and three points */

static enum yolo_status bad(const struct yolo *y, char *why, const char *what)
{
	snprintf(why, YOLO_WHY_BYTES, "line %" PRIu64 " %s; must be class, middle x and y, width and height", y->line,
		 what);
	return YOLO_BAD;
}

/* How many words the line has; the first five of them as numbers.  Of words that are none, 0. */
static size_t read_words(const char *at, const char *end, double *number, const char **wrong)
{
	char word[WORD_BYTES];
	size_t count = 0, bytes;

	for (*wrong = NULL; at < end; at += bytes) {
		while (at < end && memchr(" \t\r", *at, 3))
			at++;
		for (bytes = 0; at + bytes < end && !memchr(" \t\r", at[bytes], 3);)
			bytes++;
		if (!bytes)
			break;
		if (count++ >= NUMBERS)
			continue;
		if (bytes < sizeof(word)) {
			memcpy(word, at, bytes);
			word[bytes] = '\0';
		}
		if (bytes >= sizeof(word) || !text_parse_double(word, bytes, &number[count - 1])) {
			*wrong = "has a word that is not a number";
			return 0;
		}
	}
	return count;
}

enum yolo_status yolo_next(struct yolo *y, struct yolo_box *out, char *why)
{
	double number[NUMBERS];
	const char *wrong;

	while (y->at < y->end) {
		const char *lf = memchr(y->at, '\n', (size_t)(y->end - y->at)), *stop = lf ? lf : y->end;
		size_t count = read_words(y->at, stop, number, &wrong);

		y->at = lf ? lf + 1 : y->end;
		y->line++;
		if (wrong)
			return bad(y, why, wrong);
		if (!count)
			continue;
		if (count >= OUTLINE_MIN && count % 2)
			return bad(y, why, "is a polygon; only boxes are supported");
		if (count != NUMBERS)
			return bad(y, why, count < NUMBERS ? "has less than 5 numbers" : "has more than 5 numbers");
		if (number[0] != floor(number[0]) || number[0] < 0 || number[0] > INT32_MAX)
			return bad(y, why, "has a class that is not a whole number, 0 or more");
		out->class_idx = (int64_t)number[0];
		for (int n = 1; n < NUMBERS; n++)
			out->number[n - 1] = (float)number[n];
		return YOLO_BOX;
	}
	return YOLO_END;
}
