/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_rows.c - the same image in several rows of a table
 */
#include "tools/shardpack/scan/image_rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/common/exit_code.h"
#include "tools/common/human.h"
#include "tools/common/message.h"
#include "tools/common/shelf.h"
#include "tools/shardpack/input/place.h"
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
	bool further; /* by pick=each */
};

static void note_repeated(const struct image_list *images, const struct repeated *r)
{
	char of_images[HUMAN_CHARS], of_rows[HUMAN_CHARS];

	note("%s image%s%s, %s %s in all; each %s is an input, and the second one of an image has a key such as '%s#2'",
	     human_count(of_images, r->images), r->images == 1 ? "" : "s",
	     r->further	      ? r->images == 1 ? " has several texts" : " have several texts"
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
	}
	for (uint64_t i = 0; code == EXIT_DONE && repeated.images && i < images->count; i++)
		if (images->item[i].row > 1 && !image_list_is_bad(images, i))
			code = refuse_key(images, order, i);
	if (code == EXIT_DONE && repeated.images)
		note_repeated(images, &repeated);
	shelf_free(images->text.shelf, order);
	return code;
}
