/* SPDX-License-Identifier: Apache-2.0 */
/*
 * classes.c - the names of the classes, and which number each has
 */
#include "tools/shardpack/plan/classes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libshard/base/words.h"
#include "tools/common/exit_code.h"
#include "tools/common/message.h"
#include "tools/common/shelf.h"
#include "tools/common/text.h"

int classes_add(struct classes *c, const char *name, size_t name_bytes, const char *where)
{
	if (!text_is_name(name, name_bytes, CLASS_NAME_BYTES_MAX))
		return fail(EXIT_BAD, "%s: class name '%.*s' must be UTF-8 of 1 to %d bytes; it has %zu", where,
			    (int)(name_bytes < 200 ? name_bytes : 200), name, CLASS_NAME_BYTES_MAX, name_bytes);
	if (c->count == CLASSES_MAX)
		return fail(EXIT_BAD, "%s: more than the limit of %" PRIu32 " classes", where, CLASSES_MAX);
	if (!grow(&c->name, &c->capacity, c->count + 1, sizeof(*c->name)))
		return fail(EXIT_IO, "out of memory for the names of %" PRIu64 " classes", c->count);
	c->name[c->count] = strndup(name, name_bytes);
	if (!c->name[c->count])
		return fail(EXIT_IO, "out of memory for the names of classes");
	c->count++;
	return EXIT_DONE;
}

int classes_add_numbers(struct classes *c, uint64_t count)
{
	char name[24];
	int code = EXIT_DONE;

	for (uint64_t i = 0; code == EXIT_DONE && i < count; i++) {
		snprintf(name, sizeof(name), "%" PRIu64, i);
		code = classes_add(c, name, strlen(name), "classes");
	}
	return code;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

void classes_sort(struct classes *c)
{
	if (c->count)
		qsort(c->name, c->count, sizeof(*c->name), compare_names);
}

static int compare_indirect(const void *a, const void *b, void *context)
{
	const struct classes *c = context;

	return strcmp(c->name[*(const uint32_t *)a], c->name[*(const uint32_t *)b]);
}

int classes_index(struct classes *c, const char *where)
{
	c->by_name = malloc((c->count + 1) * sizeof(*c->by_name));
	if (!c->by_name)
		return fail(EXIT_IO, "out of memory for the names of %" PRIu64 " classes", c->count);
	for (uint32_t i = 0; i < c->count; i++)
		c->by_name[i] = i;
	qsort_r(c->by_name, c->count, sizeof(*c->by_name), compare_indirect, c);
	for (uint32_t i = 1; i < c->count; i++)
		if (!strcmp(c->name[c->by_name[i - 1]], c->name[c->by_name[i]]))
			return fail(EXIT_BAD,
				    "%s: class '%s' appears twice, as numbers %" PRIu32 " and %" PRIu32 ", "
				    "counted from 0",
				    where, c->name[c->by_name[i]],
				    c->by_name[i - 1] < c->by_name[i] ? c->by_name[i - 1] : c->by_name[i],
				    c->by_name[i - 1] < c->by_name[i] ? c->by_name[i] : c->by_name[i - 1]);
	return EXIT_DONE;
}

int64_t classes_find(const struct classes *c, const char *name)
{
	uint64_t low = 0, high = c->count;

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;
		int order = strcmp(name, c->name[c->by_name[middle]]);

		if (order == 0)
			return c->by_name[middle];
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return -1;
}

void classes_free(struct classes *c)
{
	for (uint64_t i = 0; i < c->count; i++)
		free(c->name[i]);
	free(c->name);
	free(c->by_name);
	memset(c, 0, sizeof(*c));
}

/* ---- lists of classes ---- */

bool class_list_is(const char *token, size_t bytes, uint64_t class_count, uint64_t most)
{
	struct words c = words_of(token, bytes);
	uint64_t value, count = 0;

	if (bytes == 1 && token[0] == '-')
		return true;
	while (!words_done(&c))
		if (++count > most || !words_u64(&c, ',', UINT64_MAX, &value) || value >= class_count)
			return false;
	return true;
}

bool class_list_next(const char **at, uint32_t *class_idx)
{
	const char *digit = *at + (**at == ',');

	if (*digit < '0' || *digit > '9')
		return false;
	for (*class_idx = 0; *digit >= '0' && *digit <= '9'; digit++)
		*class_idx = 10 * *class_idx + (uint32_t)(*digit - '0');
	*at = digit;
	return true;
}
