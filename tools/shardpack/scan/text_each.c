/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text_each.c - pick=each: a row whose lists of texts become an input for each text
 */
#include "tools/shardpack/scan/scan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shard_inspect.h"
#include "tools/common/message.h"
#include "tools/shardpack/plan/plan.h"

/* Its column or key. */
static const char *name_of(const struct field_source *s)
{
	const char *key = field_coco_key(s);

	return key ? key : s->from;
}

static bool is_each(const struct recipe *r, uint32_t i)
{
	return r->from[i].kind == FIELD_TEXT && r->from[i].pick == PICK_EACH;
}

bool text_each_asked(const struct recipe *r)
{
	for (uint32_t i = 0; i < r->field_count; i++)
		if (is_each(r, i))
			return true;
	return false;
}

int text_each_open(struct text_each *e, const struct recipe *r, const char *const *value, struct bad_input *bad)
{
	const char *first = NULL;
	size_t first_count = 0;

	*e = (struct text_each){.recipe = r, .count = 1};
	for (uint32_t i = 0; i < r->field_count; i++) {
		size_t count = 0;

		if (!is_each(r, i))
			continue;
		if (value[i] && value[i][0]) {
			json_t *list;

			errno = 0;
			list = json_loads(value[i], JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, NULL);
			if (!list && errno == ENOMEM)
				return fail(EXIT_IO, "out of memory for the texts of %.60s", name_of(&r->from[i]));
			count = json_is_array(list) ? json_array_size(list) : 1;
			if (json_is_array(list) && count)
				e->list[i] = list;
			else
				json_decref(list);
		}
		if (!count && r->from[i].optional)
			continue;
		if (count > TEXT_EACH_MOST)
			return bad_input(bad, SHARD_MISS_LIMIT,
					 "%.60s has %zu texts; the limit of pick=each is %d, shorten the list",
					 name_of(&r->from[i]), count, TEXT_EACH_MOST);
		if (first && count != first_count)
			return bad_input(bad, SHARD_MISS_VALUE,
					 "%.60s has %zu text%s and %.60s has %zu; with pick=each for both, text k of "
					 "each goes to one record, so correct one of the lists",
					 first, first_count, first_count == 1 ? "" : "s", name_of(&r->from[i]), count);
		first = first ? first : name_of(&r->from[i]);
		first_count = count;
	}
	e->count = first_count ? first_count : 1;
	return EXIT_DONE;
}

bool text_each_at(struct text_each *e, size_t k, const char **value)
{
	for (uint32_t i = 0; i < e->recipe->field_count; i++) {
		if (!e->list[i])
			continue;
		free(e->one[i]);
		e->one[i] = json_dumps(json_array_get(e->list[i], k), JSON_ENCODE_ANY | JSON_COMPACT);
		value[i] = e->one[i];
		if (!value[i])
			return false;
	}
	return true;
}

void text_each_close(struct text_each *e)
{
	for (uint32_t i = 0; e->recipe && i < e->recipe->field_count; i++) {
		json_decref(e->list[i]);
		free(e->one[i]);
	}
	e->recipe = NULL;
}
