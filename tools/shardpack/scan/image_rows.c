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

static void note_repeated(const struct image_list *images, uint64_t repeated, uint64_t rows, uint64_t example)
{
	char of_images[HUMAN_CHARS], of_rows[HUMAN_CHARS];

	note("%s image%s in several rows, %s rows in all; each row is an input, and the second one of an image has "
	     "a key such as '%s#2'",
	     human_count(of_images, repeated), repeated == 1 ? " stands" : "s stand", human_count(of_rows, rows),
	     image_list_path(images, example));
}

/* Images [first, end) of `order` have one path: number the rows among them. */
static int number_run(struct image_list *images, const uint64_t *order, uint64_t first, uint64_t end)
{
	uint64_t rows = 0, good_rows = 0, good_others = 0;

	for (uint64_t i = first; i < end; i++) {
		struct image_item *x = &images->item[order[i]];
		bool good = !image_list_is_bad(images, order[i]);

		if (x->in_table && rows == PLAN_ROWS_MAX)
			return fail(EXIT_BAD, "%s/%s: more than the limit of %" PRIu32 " rows",
				    images->request->place->root, image_list_path(images, order[i]), PLAN_ROWS_MAX);
		x->row = x->in_table ? (uint32_t)++rows : 1;
		good_rows += good && x->in_table;
		good_others += good && !x->in_table;
	}
	/* bad inputs make no record, so they need no key of their own */
	return good_others && good_rows + good_others > 1 ? refuse_twice(images, order[first]) : EXIT_DONE;
}

int image_rows_number(struct image_list *images)
{
	uint64_t *order = shelf_number(images->text.shelf, images->count, compare_paths, images), repeated = 0,
		 rows = 0, example = 0, end;
	int code = order ? EXIT_DONE : shelf_refuse(images->text.shelf, "a list of %" PRIu64 " images", images->count);

	for (uint64_t i = 0; code == EXIT_DONE && i < images->count; i = end) {
		for (end = i + 1; end < images->count; end++)
			if (strcmp(image_list_path(images, order[i]), image_list_path(images, order[end])))
				break;
		code = number_run(images, order, i, end);
		if (images->item[order[end - 1]].row == 1)
			continue;
		rows += images->item[order[end - 1]].row;
		example = repeated++ ? example : order[i];
	}
	for (uint64_t i = 0; code == EXIT_DONE && repeated && i < images->count; i++)
		if (images->item[i].row > 1 && !image_list_is_bad(images, i))
			code = refuse_key(images, order, i);
	if (code == EXIT_DONE && repeated)
		note_repeated(images, repeated, rows, example);
	shelf_free(images->text.shelf, order);
	return code;
}
