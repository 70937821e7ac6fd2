/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_rows.c - the same image in several rows of a table
 */
#include "tools/shardpack/scan/scan.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/common/exit_code.h"
#include "tools/common/human.h"
#include "tools/common/message.h"
#include "tools/common/shelf.h"
#include "tools/common/text.h"
#include "tools/shardpack/input/place.h"
#include "tools/shardpack/plan/field_part.h"
#include "tools/shardpack/plan/plan.h"
#include "tools/shardpack/scan/image_list.h"
#include "tools/shardpack/scan/request.h"

static int compare_paths(const void *a, const void *b, void *context)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	int order = strcmp(image_list_path(context, x), image_list_path(context, y));

	return order ? order : x < y ? -1 : x > y;
}

static int refuse_twice(const struct image_list *images, uint64_t i)
{
	return fail(EXIT_BAD, "%s/%s: appears twice; each image must appear once, unless in rows of a table",
		    images->request->place->root, image_list_path(images, i));
}

/* Is "PATH#ROW" the path of an image?  Then two records would have that key. */
static int refuse_key(const struct image_list *images, const uint64_t *order, uint64_t i)
{
	const char *path = image_list_path(images, i);
	char key[PLAN_PATH_BYTES_MAX];
	uint64_t low = 0, high = images->count;
	int bytes = snprintf(key, sizeof(key), "%s#%" PRIu32, path, (uint32_t)images->item[i].row);

	if (bytes >= (int)sizeof(key))
		return fail(EXIT_BAD, "%s/%s: is in several rows, and its key would have %d bytes; the limit is %zu",
			    images->request->place->root, path, bytes, sizeof(key) - 1);
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;
		int compared = strcmp(key, image_list_path(images, order[middle]));

		if (!compared)
			return fail(EXIT_BAD,
				    "%s/%s: is in several rows, and '%s', the key of one of them, is the path of "
				    "another image; rename that",
				    images->request->place->root, path, key);
		if (compared < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return EXIT_DONE;
}

/* What is noted of images that are more than one input. */
struct repeated {
	uint64_t images, rows, example;
	bool further;		 /* by pick=each */
	uint64_t label_images;	 /* whose rows have different labels */
	uint64_t first, second;	 /* of the first of these: two items with other labels */
	uint64_t field_images;	 /* whose rows differ in numbers, boxes or pictures */
	uint64_t field_example;	 /* an item of the first of these */
	uint64_t field_of_first; /* which field that is */
};

static const char *label_of(const struct image_list *images, uint64_t i)
{
	return images->text.data + images->item[i].label_at;
}

/* The labels of an image that may have several: items [*first, *end) of the list of labels. */
static void every_label(const struct image_list *images, uint64_t i, uint64_t *first, uint64_t *end)
{
	*first = images->item[i].label_at;
	*end = i + 1 < images->count ? images->item[i + 1].label_at : images->every->count;
}

static bool has_label(const struct image_list *every, uint64_t first, uint64_t end, const char *label)
{
	while (first < end && strcmp(label_of(every, first), label))
		first++;
	return first < end;
}

/* Labels of one image are different from each other, so as many that are all there are the same. */
static bool same_labels(const struct image_list *images, uint64_t x, uint64_t y)
{
	uint64_t a, a_end, b, b_end;

	if (!images->every)
		return !strcmp(label_of(images, x), label_of(images, y));
	every_label(images, x, &a, &a_end);
	every_label(images, y, &b, &b_end);
	if (a_end - a != b_end - b)
		return false;
	while (a < a_end && has_label(images->every, b, b_end, label_of(images->every, a)))
		a++;
	return a == a_end;
}

/* Captions and bytes of an image's rows are meant to differ; numbers, boxes and masks are not. */
static bool is_compared(const struct field_source *s)
{
	return s->kind != FIELD_TEXT && s->kind != FIELD_BYTES;
}

/* The first field in which two items differ, of those that are compared; field_count: none. */
static uint32_t field_that_differs(const struct image_list *images, uint64_t x, uint64_t y)
{
	const struct recipe *r = images->request->recipe;
	const char *a = images->text.data + images->item[x].fields_at,
		   *b = images->text.data + images->item[y].fields_at;
	struct field_part x_part, y_part;

	if (!strcmp(a, b))
		return r->field_count;
	a++; /* a blank stands before the first token */
	b++;
	for (uint32_t i = 0; i < r->field_count; i++) {
		const char *a_from = a, *b_from = b;

		field_part_next(&r->field[i], &r->from[i], &a, &x_part);
		field_part_next(&r->field[i], &r->from[i], &b, &y_part);
		if (is_compared(&r->from[i]) &&
		    (a - a_from != b - b_from || memcmp(a_from, b_from, (size_t)(a - a_from))))
			return i;
	}
	return r->field_count;
}

/* Good rows [first, end) of one image: do they say the same of it? */
static void compare_rows(const struct image_list *images, const uint64_t *order, uint64_t first, uint64_t end,
			 struct repeated *r)
{
	uint32_t field_count = images->request->recipe->field_count;
	bool labels = !recipe_has_label(images->request->recipe), fields = !field_count;
	uint64_t known = end;

	for (uint64_t i = first; i < end && !(labels && fields); i++) {
		const struct image_item *x = &images->item[order[i]];
		uint32_t field;

		if (image_list_is_bad(images, order[i]) || x->further)
			continue;
		if (known == end) {
			known = i;
			continue;
		}
		if (!labels && !same_labels(images, order[known], order[i])) {
			labels = true;
			if (!r->label_images++ || order[known] < r->first) {
				r->first = order[known];
				r->second = order[i];
			}
		}
		field = fields ? field_count : field_that_differs(images, order[known], order[i]);
		if (field == field_count)
			continue;
		fields = true;
		if (!r->field_images++ || order[known] < r->field_example) {
			r->field_example = order[known];
			r->field_of_first = field;
		}
	}
}

static void add_labels(const struct image_list *images, uint64_t i, struct text *out)
{
	uint64_t first, end;

	if (!images->every) {
		text_format(out, "'%s'", label_of(images, i));
		return;
	}
	every_label(images, i, &first, &end);
	if (first == end)
		text_format(out, "no label");
	for (uint64_t k = first; k < end; k++)
		text_format(out, "%s'%s'", k > first ? "," : "", label_of(images->every, k));
}

static void tell_of_differences(const struct image_list *images, const struct repeated *r)
{
	const struct request *q = images->request;
	char count[HUMAN_CHARS];
	struct text labels = {0};

	if (r->label_images) {
		add_labels(images, r->first, &labels);
		text_add(&labels, " and ", 5);
		add_labels(images, r->second, &labels);
		scan_warn(q->scan,
			  "%s image%s several rows with different labels; each row is a record with its own "
			  "(the first is '%s', with %s)",
			  human_count(count, r->label_images), r->label_images == 1 ? " stands in" : "s stand in",
			  image_list_path(images, r->first), text_failed(&labels) ? "" : labels.data);
		text_free(&labels);
	}
	if (r->field_images)
		scan_note(q->scan, "%s image%s several rows that differ in fields (the first is '%s', in %s)",
			  human_count(count, r->field_images), r->field_images == 1 ? " stands in" : "s stand in",
			  image_list_path(images, r->field_example), q->recipe->field[r->field_of_first].name);
}

static void note_repeated(const struct image_list *images, const struct repeated *r)
{
	char of_images[HUMAN_CHARS], of_rows[HUMAN_CHARS];

	scan_note(images->request->scan,
		  "%s image%s%s, %s %s in all; each %s is an input, and the second one of an image has a key such as "
		  "'%s#2'",
		  human_count(of_images, r->images), r->images == 1 ? "" : "s",
		  r->further	   ? r->images == 1 ? " has several texts" : " have several texts"
		  : r->images == 1 ? " stands in several rows"
				   : " stand in several rows",
		  human_count(of_rows, r->rows), r->further ? "texts" : "rows", r->further ? "text" : "row",
		  image_list_path(images, r->example));
}

/*
 * Images [first, end) of `order` have one path: number the rows among them, and further inputs of
 * one.  *most is the largest number.
 */
static int number_run(struct image_list *images, const uint64_t *order, uint64_t first, uint64_t end, uint32_t *most)
{
	uint64_t good_rows = 0, good_others = 0;
	uint32_t row = 0;
	bool counted = false;

	*most = 0;
	for (uint64_t i = first; i < end; i++) {
		struct image_item *x = &images->item[order[i]];

		if (*most == PLAN_ROWS_MAX && (x->in_table || x->further))
			return fail(EXIT_BAD, "%s/%s: more than the limit of %" PRIu32 " rows",
				    images->request->place->root, image_list_path(images, order[i]), PLAN_ROWS_MAX);
		x->row = row = x->further ? row + 1 : x->in_table ? *most + 1 : 1;
		*most = row > *most && (x->in_table || x->further) ? row : *most;
		counted = counted && x->further;
		if (!counted && !image_list_is_bad(images, order[i])) {
			counted = true;
			good_rows += x->in_table;
			good_others += !x->in_table;
		}
	}
	/* bad inputs make no record, so they need no key of their own */
	return good_others && good_rows + good_others > 1 ? refuse_twice(images, order[first]) : EXIT_DONE;
}

int image_rows_number(struct image_list *images)
{
	uint64_t *order = shelf_number(images->text.shelf, images->count, compare_paths, images), end;
	int code = order ? EXIT_DONE : shelf_refuse(images->text.shelf, "a list of %" PRIu64 " images", images->count);
	struct repeated repeated = {0};
	uint32_t most;

	for (uint64_t i = 0; code == EXIT_DONE && i < images->count; i = end) {
		for (end = i + 1; end < images->count; end++)
			if (strcmp(image_list_path(images, order[i]), image_list_path(images, order[end])))
				break;
		code = number_run(images, order, i, end, &most);
		if (most < 2)
			continue;
		repeated.example = repeated.images++ ? repeated.example : order[i];
		repeated.rows += most;
		repeated.further = repeated.further || images->item[order[end - 1]].further;
		compare_rows(images, order, i, end, &repeated);
	}
	for (uint64_t i = 0; code == EXIT_DONE && repeated.images && i < images->count; i++)
		if (images->item[i].row > 1 && !image_list_is_bad(images, i))
			code = refuse_key(images, order, i);
	if (code == EXIT_DONE && repeated.images)
		note_repeated(images, &repeated);
	if (code == EXIT_DONE)
		tell_of_differences(images, &repeated);
	shelf_free(images->text.shelf, order);
	return code;
}
