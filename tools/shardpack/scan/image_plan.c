/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_plan.c - the classes of the images that were found, and a line of the plan for each
 */
#include "tools/shardpack/scan/scan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/files.h"
#include "tools/common/human.h"
#include "tools/common/message.h"
#include "tools/common/shelf.h"
#include "tools/common/text.h"
#include "tools/shardpack/input/input.h"
#include "tools/shardpack/plan/plan.h"

/* ---- the same image in several rows of a table ---- */

static int compare_paths(const void *a, const void *b, void *context)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	int order = strcmp(image_list_path(context, x), image_list_path(context, y));

	return order ? order : x < y ? -1 : x > y;
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
			    images->request->root->name, path, bytes, sizeof(key) - 1);
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;
		int compared = strcmp(key, image_list_path(images, order[middle]));

		if (!compared)
			return fail(EXIT_BAD,
				    "%s/%s: is in several rows, and '%s', the key of one of them, is the path of "
				    "another image; rename that",
				    images->request->root->name, path, key);
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

static bool list_has(const struct image_list *every, uint64_t first, uint64_t end, const char *label)
{
	while (first < end && strcmp(label_of(every, first), label))
		first++;
	return first < end;
}

/* Labels of one image differ from each other: as many that are all among the others are the same. */
static bool same_labels(const struct image_list *images, uint64_t x, uint64_t y)
{
	uint64_t a, a_end, b, b_end;

	if (!images->every)
		return !strcmp(label_of(images, x), label_of(images, y));
	every_label(images, x, &a, &a_end);
	every_label(images, y, &b, &b_end);
	if (a_end - a != b_end - b)
		return false;
	while (a < a_end && list_has(images->every, b, b_end, label_of(images->every, a)))
		a++;
	return a == a_end;
}

/* The first field in which two items differ, of the ones that are compared; field_count: none. */
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
		/* captions and bytes of an image's rows are meant to differ */
		if (r->from[i].kind != FIELD_TEXT && r->from[i].kind != FIELD_BYTES &&
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

static void tell_of_repeated(const struct image_list *images, const struct repeated *r)
{
	const struct request *q = images->request;
	char count[HUMAN_CHARS], rows[HUMAN_CHARS];
	struct text labels = {0};

	scan_note(q->scan,
		  "%s image%s%s, %s %s in all; each %s is an input, and the second one of an image has a key such as "
		  "'%s#2'",
		  human_count(count, r->images), r->images == 1 ? "" : "s",
		  r->further	   ? r->images == 1 ? " has several texts" : " have several texts"
		  : r->images == 1 ? " stands in several rows"
				   : " stand in several rows",
		  human_count(rows, r->rows), r->further ? "texts" : "rows", r->further ? "text" : "row",
		  image_list_path(images, r->example));
	if (r->label_images) {
		add_labels(images, r->first, &labels);
		text_add(&labels, " and ", 5);
		add_labels(images, r->second, &labels);
		scan_warn(q->scan,
			  "%s image%s several rows with different labels; each row is a record with its own "
			  "(the first is '%s', with %s)",
			  human_count(count, r->label_images), r->label_images == 1 ? " stands in" : "s stand in",
			  image_list_path(images, r->first), labels.data);
		text_free(&labels);
	}
	if (r->field_images)
		scan_note(q->scan, "%s image%s several rows that differ in fields (the first is '%s', in %s)",
			  human_count(count, r->field_images), r->field_images == 1 ? " stands in" : "s stand in",
			  image_list_path(images, r->field_example), q->recipe->field[r->field_of_first].name);
}

/* Rows of one path: only parts of files can differ in their place. */
static bool same_place(const struct image_item *a, const struct image_item *b)
{
	return a->file == b->file && a->offset == b->offset && (a->file == PLAN_NO_FILE || a->bytes == b->bytes);
}

/* With --extents: a key that two images have would not say which of them a record is. */
static int refuse_place(const struct image_list *images, uint64_t i, const struct image_item *a,
			const struct image_item *b)
{
	const struct plan_file *file = images->request->plan->file;

	return fail(EXIT_BAD,
		    "%s: '%s' is the key of two images, %" PRIu64 " bytes at offset %" PRIu64 " of %s and %" PRIu64
		    " bytes at offset %" PRIu64 " of %s; give each a key of its own in a column 'key'",
		    images->request->root->name, image_list_path(images, i), a->bytes, a->offset, file[a->file].path,
		    b->bytes, b->offset, file[b->file].path);
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
	const struct image_item *good = NULL;

	*most = 0;
	for (uint64_t i = first; i < end; i++) {
		struct image_item *x = &images->item[order[i]];

		if (!image_list_is_bad(images, order[i]) && x->in_table && good && !same_place(good, x))
			return refuse_place(images, order[i], good, x);
		good = image_list_is_bad(images, order[i]) || !x->in_table ? good : x;

		if (*most == PLAN_ROWS_MAX && (x->in_table || x->further))
			return fail(EXIT_BAD, "%s/%s: more than the limit of %" PRIu32 " rows",
				    images->request->root->name, image_list_path(images, order[i]), PLAN_ROWS_MAX);
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
	if (good_others && good_rows + good_others > 1)
		return fail(EXIT_BAD, "%s/%s: appears twice; each image must appear once, unless in rows of a table",
			    images->request->root->name, image_list_path(images, order[first]));
	return EXIT_DONE;
}

int image_rows_number(struct image_list *images)
{
	uint64_t *order = shelf_number(images->text.shelf, images->count, compare_paths, images), end;
	int rc = order ? EXIT_DONE : image_list_refuse(images);
	struct repeated repeated = {0};
	uint32_t most;

	for (uint64_t i = 0; rc == EXIT_DONE && i < images->count; i = end) {
		for (end = i + 1; end < images->count; end++)
			if (strcmp(image_list_path(images, order[i]), image_list_path(images, order[end])))
				break;
		rc = number_run(images, order, i, end, &most);
		if (most < 2)
			continue;
		repeated.example = repeated.images++ ? repeated.example : order[i];
		repeated.rows += most;
		repeated.further = repeated.further || images->item[order[end - 1]].further;
		compare_rows(images, order, i, end, &repeated);
	}
	for (uint64_t i = 0; rc == EXIT_DONE && repeated.images && i < images->count; i++)
		if (images->item[i].row > 1 && !image_list_is_bad(images, i))
			rc = refuse_key(images, order, i);
	if (rc == EXIT_DONE && repeated.images)
		tell_of_repeated(images, &repeated);
	shelf_free(images->text.shelf, order);
	return rc;
}

/* ---- classes and lines ---- */

/*
 * Labels that are numbers may leave most of this many classes without an image; of more classes, at
 * least one of that many must have one.
 */
#define CLASSES_FREE   65536
#define CLASSES_SPARSE 8

#define WARNED_MOST 20 /* of bad inputs, as elsewhere */

/* A bad input may have no label, and then it says nothing of classes. */
static bool has_label(const struct image_list *images, uint64_t i)
{
	return !images->item[i].unlabelled;
}

static int compare_labels(const void *a, const void *b, void *context)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	if (!has_label(context, x) || !has_label(context, y))
		return has_label(context, x) - has_label(context, y);
	return strcmp(label_of(context, x), label_of(context, y));
}

/* The first item whose label is that number. */
static const char *path_of_number(const struct image_list *images, uint64_t number)
{
	uint64_t i, value = 0;

	for (i = 0; i + 1 < images->count; i++)
		if (has_label(images, i) && text_u64(label_of(images, i), strlen(label_of(images, i)), &value) &&
		    value == number)
			break;
	return image_list_path(images, i);
}

/* All labels are numbers, without leading zeros, that can be classes?  *largest is the largest. */
static bool are_numbers(const struct image_list *images, uint64_t *largest)
{
	uint64_t i, value;

	for (i = 0, *largest = 0; i < images->count; i++) {
		if (!has_label(images, i))
			continue;
		if (!text_u64(label_of(images, i), strlen(label_of(images, i)), &value) || value >= CLASSES_MAX)
			return false;
		*largest = value > *largest ? value : *largest;
	}
	return true;
}

/*
 * Numbers of which one cannot be a class would all become names, and "10" sorts before "2": each
 * label another class than it says.  Digits of one width ("00" to "42") sort as they count.
 */
static int refuse_odd_numbers(const struct image_list *images)
{
	size_t width = 0;
	bool same_width = true;
	uint64_t odd = images->count, value;

	for (uint64_t i = 0; i < images->count; i++) {
		const char *label = label_of(images, i);

		if (!has_label(images, i))
			continue;
		if (!image_label_is_number(label))
			return EXIT_DONE;
		width = width ? width : strlen(label);
		same_width = same_width && strlen(label) == width && strspn(label, "0123456789") == width;
		if (odd == images->count && (!text_u64(label, strlen(label), &value) || value >= CLASSES_MAX))
			odd = i;
	}
	if (same_width)
		return EXIT_DONE;
	return fail(EXIT_BAD,
		    "%s/%s: label '%s' is a number but not of a class: must be 0 to %" PRIu32 " without "
		    "sign, blanks or leading zeros; correct it, or name the classes with --classes",
		    images->request->root->name, image_list_path(images, odd), label_of(images, odd), CLASSES_MAX - 1);
}

/* Number 10 of a list and folder "10", which is a name: two classes or one? */
static int refuse_mixture(const struct image_list *images)
{
	uint64_t folder = images->count, list = images->count;

	for (uint64_t i = images->count; i-- > 0;)
		if (has_label(images, i))
			*(images->item[i].by_folder ? &folder : &list) = i;
	return fail(EXIT_BAD,
		    "%s: folder '%s' gives its images a class by name, but '%s' has its class by the number "
		    "%s; name the classes with --classes FILE",
		    images->request->root->name, label_of(images, folder), image_list_path(images, list),
		    label_of(images, list));
}

/* Labels that are not names of folders. */
static uint64_t listed_count(const struct image_list *images)
{
	return images->count - images->by_folder_count - images->unlabelled_count;
}

static void say_where(const struct image_list *images, const struct image_label *l, char *out, size_t bytes)
{
	const char *root = images->request->root->name;

	if (l->table)
		snprintf(out, bytes, "%s/%s: line %" PRIu64, root, l->table, l->line);
	else
		snprintf(out, bytes, "%s/%s", root, image_list_path(images, l->item));
}

/* Numbers of one width that are names: 08, 09 and 10 are the classes 0, 1 and 2. */
static void warn_of_digits(const struct image_list *images, const struct classes *names)
{
	for (uint64_t i = 0; i < names->count; i++) {
		if (strtoull(names->name[i], NULL, 10) == i)
			continue;
		scan_warn(images->request->scan,
			  "labels are numbers, but are taken as names, since %s: label '%s' is class %" PRIu64
			  "; %sset the numbers with --classes FILE",
			  names->name[0][0] == '0' ? "one has a leading zero" : "one is above the limit of classes",
			  names->name[i], i, names->name[0][0] == '0' ? "leave the zeros out, or " : "");
		return;
	}
}

/*
 * Numbers and names.  If most are numbers, of the images or of the classes, a name is a mistake or
 * stands for no label, and to sort the numbers as text would make other classes of them.  If most
 * are names, a number may well be one.
 */
static int judge_numbers(const struct image_list *images, const struct classes *names)
{
	uint64_t listed = listed_count(images), numbers = images->number_count, classes = 0;
	char where[3 * FILES_PATH_BYTES], count[HUMAN_CHARS], of[HUMAN_CHARS];
	const char *label;

	if (!numbers)
		return EXIT_DONE;
	if (numbers == listed && images->by_folder_count)
		return refuse_mixture(images);
	if (numbers == listed) {
		warn_of_digits(images, names);
		return EXIT_DONE;
	}
	for (uint64_t i = 0; i < names->count; i++)
		classes += image_label_is_number(names->name[i]);
	human_count(count, numbers);
	human_count(of, listed);
	if (2 * numbers >= listed || (2 * classes >= names->count && !images->by_folder_count)) {
		say_where(images, &images->name, where, sizeof(where));
		return fail(EXIT_BAD,
			    "%s: label '%s' is not a number, but %s of %s labels are; correct it, or list all classes "
			    "by name with --classes FILE",
			    where, label_of(images, images->name.item), count, of);
	}
	say_where(images, &images->number, where, sizeof(where));
	label = label_of(images, images->number.item);
	scan_warn(images->request->scan,
		  "%s: label '%s' is taken as a name, and is class %" PRId64 ": %s of %s labels are numbers, the "
		  "others are names; set the numbers with --classes FILE",
		  where, label, classes_find(names, label), count, of);
	return EXIT_DONE;
}

/*
 * Ids, or the like: each number up to the largest would be a class with a name in the plan, the
 * manifest and every shard's statistics, and next to none of them would have an image.
 */
static int refuse_ids(const struct image_list *images, uint64_t largest, uint64_t distinct)
{
	const struct pack_options *o = images->request->o;
	const char *from = o->label_key ? o->label_key : images->number.table ? "label" : "cls";
	char different[HUMAN_CHARS], field[FILES_PATH_BYTES] = "";

	if (!o->label_regex && !o->label_list && !recipe_is_multi_label(images->request->recipe))
		snprintf(field, sizeof(field),
			 "if it is an id or a measure, pack it as a field: --no-label --field "
			 "id:kind=tensor,dtype=i64,from=%s%s; ",
			 o->label_key && !images->number.table ? "json:" : "", from);
	return fail(EXIT_BAD,
		    "%s/%s: label %" PRIu64 " would make %" PRIu64 " classes, and only %s of them have an image; %sif "
		    "it is a class, name all of them with --classes FILE",
		    images->request->root->name, path_of_number(images, largest), largest, largest + 1,
		    human_count(different, distinct), field);
}

/* All numbers up to the largest are classes; a hole may be meant, or one label be wrong. */
static int judge_holes(const struct image_list *images, uint64_t largest)
{
	uint8_t *has = calloc(1, (size_t)largest + 1);
	uint64_t value = 0, empty = 0, first = 0;

	if (!has)
		return image_list_refuse(images);
	for (uint64_t i = 0; i < images->count; i++)
		if (has_label(images, i) && text_u64(label_of(images, i), strlen(label_of(images, i)), &value))
			has[value] = 1;
	for (uint64_t i = 0; i <= largest; i++)
		if (!has[i] && !empty++)
			first = i;
	free(has);
	if (largest >= CLASSES_FREE && (largest + 1 - empty) * CLASSES_SPARSE <= largest)
		return refuse_ids(images, largest, largest + 1 - empty);
	if (empty)
		scan_warn(images->request->scan,
			  "%" PRIu64 " of %" PRIu64 " classes have no image: labels are "
			  "numbers, the largest is %" PRIu64 " (%s), and no image has %" PRIu64,
			  empty, largest + 1, largest, path_of_number(images, largest), first);
	return EXIT_DONE;
}

/* Each label once, in byte order. */
static int collect_names(struct image_list *images, struct classes *out)
{
	uint64_t *order = shelf_number(images->text.shelf, images->count, compare_labels, images),
		 first = images->unlabelled_count;
	int rc = order ? EXIT_DONE : image_list_refuse(images);

	/* items without a label come first */
	for (uint64_t i = first; rc == EXIT_DONE && i < images->count; i++)
		if (i == first || strcmp(label_of(images, order[i - 1]), label_of(images, order[i])))
			rc = classes_add(out, label_of(images, order[i]), strlen(label_of(images, order[i])),
					 image_list_path(images, order[i]));
	shelf_free(images->text.shelf, order);
	return rc;
}

static int settle_classes(struct image_list *images, struct classes *out, bool *by_number)
{
	const char *list = images->request->o->classes;
	uint64_t largest;
	int rc;

	*by_number = are_numbers(images, &largest) && listed_count(images);
	if (*by_number && images->by_folder_count && !list)
		return refuse_mixture(images);
	if (list) {
		rc = classes_from_list(out, list);
		/* Numbers of which any is a name in the list are names; so are the names of folders. */
		*by_number = *by_number && !images->by_folder_count;
		for (uint64_t i = 0; rc == EXIT_DONE && *by_number && i < images->count; i++)
			*by_number = !has_label(images, i) || classes_find(out, label_of(images, i)) < 0;
		if (rc == EXIT_DONE && *by_number && largest >= out->count)
			rc = fail(EXIT_BAD,
				  "%s/%s: label %" PRIu64 ", but --classes %s has %" PRIu64 " classes, "
				  "numbered from 0",
				  images->request->root->name, path_of_number(images, largest), largest, list,
				  out->count);
		return rc;
	}
	if (*by_number) {
		rc = judge_holes(images, largest);
		return rc == EXIT_DONE ? classes_add_numbers(out, largest + 1) : rc;
	}
	rc = listed_count(images) ? refuse_odd_numbers(images) : EXIT_DONE;
	if (rc == EXIT_DONE)
		rc = collect_names(images, out);
	if (rc == EXIT_DONE)
		rc = classes_index(out, images->request->root->name);
	if (rc == EXIT_DONE)
		rc = judge_numbers(images, out);
	if (rc == EXIT_DONE && images->by_folder_count)
		scan_warn_of_folders(images->request->scan, out);
	return rc;
}

/* A label that --classes lacks.  Was it meant as a number, and is a name for another's sake? */
static void refuse_unlisted(const struct image_list *images, uint64_t i, const struct classes *classes)
{
	char where[3 * FILES_PATH_BYTES], because[4 * FILES_PATH_BYTES] = "";

	if (image_label_is_number(label_of(images, i)) && images->name.there) {
		say_where(images, &images->name, where, sizeof(where));
		snprintf(because, sizeof(because), "; it is taken as a name, because %s has label '%s'", where,
			 label_of(images, images->name.item));
	}
	fail(EXIT_BAD, "%s/%s: label '%s' is not one of the %" PRIu64 " classes of --classes %s%s",
	     images->request->root->name, image_list_path(images, i), label_of(images, i), classes->count,
	     images->request->o->classes, because);
}

/* The class of an item, or -1 and a message. */
static int64_t class_of(const struct image_list *images, uint64_t i, const struct classes *classes, bool by_number)
{
	const char *label = label_of(images, i);
	int64_t class_idx;
	uint64_t value = 0;

	if (by_number) {
		text_u64(label, strlen(label), &value);
		return (int64_t)value;
	}
	class_idx = classes_find(classes, label);
	if (class_idx < 0)
		refuse_unlisted(images, i, classes);
	return class_idx;
}

/* Why images have no label: the first ones, as many as are listed of bad inputs. */
static void warn_of_bad(const struct image_list *images)
{
	char why[BAD_INPUT_MESSAGE_BYTES];
	uint64_t shown = 0;

	for (uint64_t i = 0; i < images->count && shown < WARNED_MOST; i++) {
		const char *reason = images->text.data + images->item[i].fields_at + 1, *said = strchr(reason, ' ');

		if (!image_list_is_bad(images, i) || !said || !bad_input_message(said + 1, strlen(said + 1), why))
			continue;
		warn("%s/%s: %s", images->request->root->name, image_list_path(images, i), why);
		shown++;
	}
}

/* Room for each class, now that it is known how many there are. */
static int settle_room(const struct image_list *images, const struct classes *classes)
{
	const struct request *r = images->request;

	if (r->recipe->label == LABEL_HOT)
		r->recipe->label_room = (uint32_t)classes->count;
	if (!recipe_is_multi_label(r->recipe) || classes->count)
		return EXIT_DONE;
	warn_of_bad(images);
	return fail(EXIT_BAD,
		    "%s: no image has a label; if texts have several, say with --label-separator what is between them; "
		    "or name the classes with --classes FILE, or say --no-label",
		    r->root->name);
}

static int plan_image(struct image_list *images, uint64_t i, const struct classes *classes, bool by_number,
		      struct text *list)
{
	const struct request *r = images->request;
	const struct image_item *x = &images->item[i];
	struct plan_input in = {.class_idx = PLAN_NO_CLASS,
				.source_bytes = x->bytes,
				.file = x->file,
				.offset = x->offset,
				.row = x->row};
	uint64_t first, end;
	int64_t class_idx;

	if (images->every) { /* the token of an image that may have several labels: classes.c */
		every_label(images, i, &first, &end);
		list->bytes = 0;
		for (uint64_t k = first; k < end; k++) {
			class_idx = class_of(images->every, k, classes, by_number);
			if (class_idx < 0)
				return EXIT_BAD;
			text_format(list, "%s%" PRId64, k > first ? "," : "", class_idx);
		}
		if (first == end)
			text_add(list, "-", 1);
		in.classes = list->data;
	} else if (recipe_has_label(r->recipe) && has_label(images, i)) {
		class_idx = class_of(images, i, classes, by_number);
		if (class_idx < 0)
			return EXIT_BAD;
		in.class_idx = (uint32_t)class_idx;
	}
	return plan_add_input(r->plan, &in, image_list_path(images, i), images->text.data + x->fields_at);
}

int image_plan(struct image_list *images)
{
	const struct request *r = images->request;
	struct classes classes = {0};
	struct text list = {0};
	bool by_number = false;
	int rc = images->count ? EXIT_DONE : scan_refuse_barren(r->scan, r->root->name, "images", "");

	if (rc == EXIT_DONE) {
		scan_warn_of_barren(r->scan, "image");
		if (recipe_has_label(r->recipe))
			rc = settle_classes(images->every ? images->every : images, &classes, &by_number);
	}
	if (rc == EXIT_DONE)
		rc = settle_room(images, &classes);
	if (rc == EXIT_DONE)
		rc = plan_begin(r->plan, r->recipe, images->classes ? images->classes : &classes);
	for (uint64_t i = 0; rc == EXIT_DONE && i < images->count; i++)
		rc = plan_image(images, i, &classes, by_number, &list);
	text_free(&list);
	classes_free(&classes);
	return rc;
}
