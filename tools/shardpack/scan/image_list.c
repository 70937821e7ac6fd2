/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_list.c - images with labels, as found, before it is known which classes there are
 */
#include "tools/shardpack/scan/image_list.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/exit_code.h"
#include "tools/common/files.h"
#include "tools/common/grow.h"
#include "tools/common/human.h"
#include "tools/common/message.h"
#include "tools/common/text.h"
#include "tools/shardpack/input/place.h"
#include "tools/shardpack/plan/classes.h"
#include "tools/shardpack/plan/plan_write.h"
#include "tools/shardpack/scan/pack_options.h"
#include "tools/shardpack/scan/request.h"
#include "tools/shardpack/scan/scan.h"

static int out_of_memory(const struct image_list *images)
{
	return fail(EXIT_IO, "out of memory for a list of %" PRIu64 " images", images->count);
}

/* " -1", "07" or "3.0": meant as a number. */
static bool reads_as_number(const char *label)
{
	size_t digits;

	label += strspn(label, " \t");
	label += *label == '-' || *label == '+';
	digits = strspn(label, "0123456789");
	label += digits;
	label += *label == '.' ? 1 + strspn(label + 1, "0123456789") : 0;
	return digits && !label[strspn(label, " \t")];
}

static void note_label(struct image_list *images, const char *label)
{
	bool number = reads_as_number(label);
	struct image_label *first = number ? &images->number : &images->name;

	if (images->by_folder)
		return;
	images->number_count += number;
	if (!first->there)
		*first = (struct image_label){true, images->count, images->table, images->line};
}

int image_list_add(struct image_list *images, const char *path, const char *label, uint64_t bytes, uint32_t file,
		   uint64_t offset, const struct text *fields)
{
	struct image_item *i;

	if (!grow(&images->item, &images->capacity, images->count + 1, sizeof(*images->item)))
		return out_of_memory(images);
	i = &images->item[images->count];
	*i = (struct image_item){.path_at = images->text.bytes,
				 .bytes = bytes,
				 .file = file,
				 .offset = offset,
				 .by_folder = images->by_folder};
	text_add(&images->text, path, strlen(path) + 1);
	if (text_failed(&images->text))
		return out_of_memory(images);
	if (images->count && !strcmp(images->text.data + images->last_label_at, label)) {
		i->label_at = images->last_label_at;
	} else {
		i->label_at = images->last_label_at = images->text.bytes;
		text_add(&images->text, label, strlen(label) + 1);
	}
	i->fields_at = i->path_at + strlen(path); /* an empty text */
	if (fields->bytes) {
		i->fields_at = images->text.bytes;
		text_add(&images->text, fields->data, fields->bytes + 1);
	}
	note_label(images, label);
	images->count++;
	images->by_folder_count += images->by_folder;
	return text_failed(&images->text) ? out_of_memory(images) : EXIT_DONE;
}

static const char *path_of(const struct image_list *images, uint64_t i)
{
	return images->text.data + images->item[i].path_at;
}

static const char *label_of(const struct image_list *images, uint64_t i)
{
	return images->text.data + images->item[i].label_at;
}

static int compare_paths(const void *a, const void *b, void *context)
{
	return strcmp(path_of(context, *(const uint64_t *)a), path_of(context, *(const uint64_t *)b));
}

static int compare_labels(const void *a, const void *b, void *context)
{
	return strcmp(label_of(context, *(const uint64_t *)a), label_of(context, *(const uint64_t *)b));
}

static uint64_t *sorted(struct image_list *images, int (*compare)(const void *a, const void *b, void *context))
{
	uint64_t *order = calloc(images->count + 1, sizeof(*order));

	for (uint64_t i = 0; order && i < images->count; i++)
		order[i] = i;
	if (order)
		qsort_r(order, images->count, sizeof(*order), compare, images);
	return order;
}

static int refuse_twice(struct image_list *images)
{
	uint64_t *order = sorted(images, compare_paths);
	int code = order ? EXIT_DONE : out_of_memory(images);

	for (uint64_t i = 1; code == EXIT_DONE && i < images->count; i++)
		if (!strcmp(path_of(images, order[i - 1]), path_of(images, order[i])))
			code = fail(EXIT_BAD, "%s/%s: appears twice; each image must appear once",
				    images->request->place->root, path_of(images, order[i]));
	free(order);
	return code;
}

/* The first item whose label is that number. */
static const char *path_of_number(const struct image_list *images, uint64_t number)
{
	uint64_t i, value = 0;

	for (i = 0; i + 1 < images->count; i++)
		if (text_u64(label_of(images, i), strlen(label_of(images, i)), &value) && value == number)
			break;
	return path_of(images, i);
}

/* All labels are numbers, without leading zeros, that can be classes?  *largest is the largest. */
static bool are_numbers(const struct image_list *images, uint64_t *largest)
{
	uint64_t i, value;

	for (i = 0, *largest = 0; i < images->count; i++) {
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
	size_t width = strlen(label_of(images, 0));
	bool same_width = true;
	uint64_t odd = images->count, value;

	for (uint64_t i = 0; i < images->count; i++) {
		const char *label = label_of(images, i);

		if (!reads_as_number(label))
			return EXIT_DONE;
		same_width = same_width && strlen(label) == width && strspn(label, "0123456789") == width;
		if (odd == images->count && (!text_u64(label, strlen(label), &value) || value >= CLASSES_MAX))
			odd = i;
	}
	if (same_width)
		return EXIT_DONE;
	return fail(EXIT_BAD,
		    "%s/%s: label '%s' is a number but not of a class: must be 0 to %" PRIu32 " without "
		    "sign, blanks or leading zeros; correct it, or name the classes with --classes",
		    images->request->place->root, path_of(images, odd), label_of(images, odd), CLASSES_MAX - 1);
}

/* Number 10 of a list and folder "10", which is a name: two classes or one? */
static int refuse_mixture(const struct image_list *images)
{
	uint64_t folder = images->count, list = images->count;

	for (uint64_t i = images->count; i-- > 0;)
		*(images->item[i].by_folder ? &folder : &list) = i;
	return fail(EXIT_BAD,
		    "%s: folder '%s' gives its images a class by name, but '%s' has its class by the number "
		    "%s; name the classes with --classes FILE",
		    images->request->place->root, label_of(images, folder), path_of(images, list),
		    label_of(images, list));
}

static void say_where(const struct image_list *images, const struct image_label *l, char *out, size_t bytes)
{
	const char *root = images->request->place->root;

	if (l->table)
		snprintf(out, bytes, "%s/%s: line %" PRIu64, root, l->table, l->line);
	else
		snprintf(out, bytes, "%s/%s", root, path_of(images, l->item));
}

/*
 * Numbers and names.  If most are numbers, of the images or of the classes, a name is a mistake or
 * stands for no label, and to sort the numbers as text would make other classes of them.  If most
 * are names, a number may well be one.
 */
static int judge_numbers(const struct image_list *images, const struct classes *names)
{
	uint64_t listed = images->count - images->by_folder_count, numbers = images->number_count, classes = 0;
	char where[3 * FILES_PATH_BYTES], count[HUMAN_CHARS], of[HUMAN_CHARS];
	const char *label;

	if (!numbers || (numbers == listed && !images->by_folder_count))
		return EXIT_DONE;
	if (numbers == listed)
		return refuse_mixture(images);
	for (uint64_t i = 0; i < names->count; i++)
		classes += reads_as_number(names->name[i]);
	human_count(count, numbers);
	human_count(of, listed);
	if (2 * numbers >= listed || (2 * classes >= names->count && !images->by_folder_count)) {
		say_where(images, &images->name, where, sizeof(where));
		return fail(EXIT_BAD,
			    "%s: label '%s' is no number, but %s of %s labels are; correct it, or list all classes "
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

/* All numbers up to the largest are classes; a hole may be meant, or one label be wrong. */
static void warn_of_holes(const struct image_list *images, uint64_t largest)
{
	uint8_t *has = calloc(1, (size_t)largest + 1);
	uint64_t value = 0, empty = 0, first = 0;

	for (uint64_t i = 0; has && i < images->count; i++)
		has[text_u64(label_of(images, i), strlen(label_of(images, i)), &value) ? value : 0] = 1;
	for (uint64_t i = 0; has && i <= largest; i++)
		if (!has[i] && !empty++)
			first = i;
	free(has);
	if (empty)
		scan_warn(images->request->scan,
			  "%" PRIu64 " of %" PRIu64 " classes have no image: labels are "
			  "numbers, the largest is %" PRIu64 " (%s), and no image has %" PRIu64,
			  empty, largest + 1, largest, path_of_number(images, largest), first);
}

/* Each label once, in byte order. */
static int collect_names(struct image_list *images, struct classes *out)
{
	uint64_t *order = sorted(images, compare_labels);
	int code = order ? EXIT_DONE : out_of_memory(images);

	for (uint64_t i = 0; code == EXIT_DONE && i < images->count; i++)
		if (!i || strcmp(label_of(images, order[i - 1]), label_of(images, order[i])))
			code = classes_add(out, label_of(images, order[i]), strlen(label_of(images, order[i])),
					   path_of(images, order[i]));
	free(order);
	return code;
}

static bool is_any_listed(const struct image_list *images, const struct classes *list)
{
	for (uint64_t i = 0; i < images->count; i++)
		if (classes_find(list, label_of(images, i)) >= 0)
			return true;
	return false;
}

static int settle_classes(struct image_list *images, struct classes *out, bool *by_number)
{
	const char *list = images->request->o->classes;
	uint64_t largest;
	int code;

	*by_number = are_numbers(images, &largest) && images->by_folder_count < images->count;
	if (*by_number && images->by_folder_count && !list)
		return refuse_mixture(images);
	if (list) {
		code = classes_from_list(out, list);
		/* Numbers of which any is a name in the list are names; so are those of folders. */
		if (code == EXIT_DONE && *by_number)
			*by_number = !images->by_folder_count && !is_any_listed(images, out);
		if (code == EXIT_DONE && *by_number && largest >= out->count)
			code = fail(EXIT_BAD,
				    "%s/%s: label %" PRIu64 ", but --classes %s has %" PRIu64 " classes, "
				    "numbered from 0",
				    images->request->place->root, path_of_number(images, largest), largest, list,
				    out->count);
		return code;
	}
	if (*by_number) {
		warn_of_holes(images, largest);
		return classes_add_numbers(out, largest + 1);
	}
	code = images->by_folder_count < images->count ? refuse_odd_numbers(images) : EXIT_DONE;
	if (code == EXIT_DONE)
		code = collect_names(images, out);
	if (code == EXIT_DONE)
		code = classes_index(out, images->request->place->root);
	if (code == EXIT_DONE)
		code = judge_numbers(images, out);
	if (code == EXIT_DONE && images->by_folder_count)
		scan_warn_of_numbers(images->request->scan, out);
	return code;
}

/* A label that --classes lacks.  Was it meant as a number, and is a name for another's sake? */
static void refuse_unlisted(const struct image_list *images, uint64_t i, const struct classes *classes)
{
	char where[3 * FILES_PATH_BYTES], because[4 * FILES_PATH_BYTES] = "";

	if (reads_as_number(label_of(images, i)) && images->name.there) {
		say_where(images, &images->name, where, sizeof(where));
		snprintf(because, sizeof(because), "; it is taken as a name, because %s has label '%s'", where,
			 label_of(images, images->name.item));
	}
	fail(EXIT_BAD, "%s/%s: label '%s' is not one of the %" PRIu64 " classes of --classes %s%s",
	     images->request->place->root, path_of(images, i), label_of(images, i), classes->count,
	     images->request->o->classes, because);
}

/* The class of an item, or -1 and a message. */
static int64_t class_of(const struct image_list *images, uint64_t i, const struct classes *classes, bool by_number)
{
	int64_t class_idx;
	uint64_t value = 0;

	if (by_number) {
		text_u64(label_of(images, i), strlen(label_of(images, i)), &value);
		return (int64_t)value;
	}
	class_idx = classes_find(classes, label_of(images, i));
	if (class_idx < 0)
		refuse_unlisted(images, i, classes);
	return class_idx;
}

int image_list_plan(struct image_list *images)
{
	const struct request *r = images->request;
	struct classes classes = {0};
	bool by_number = false;
	int code = images->count ? refuse_twice(images) : scan_refuse_barren(r->scan, r->place->root, "images", "");

	if (code == EXIT_DONE) {
		scan_warn_of_barren(r->scan, "image");
		code = settle_classes(images, &classes, &by_number);
	}
	if (code == EXIT_DONE)
		code = plan_begin(r->plan, r->recipe, &classes);
	for (uint64_t i = 0; code == EXIT_DONE && i < images->count; i++) {
		const struct image_item *x = &images->item[i];
		int64_t class_idx = class_of(images, i, &classes, by_number);

		code = class_idx < 0 ? EXIT_BAD
				     : plan_add_part(r->plan, (uint64_t)class_idx, x->bytes, path_of(images, i),
						     x->file, x->offset, images->text.data + x->fields_at);
	}
	classes_free(&classes);
	return code;
}

void image_list_free(struct image_list *images)
{
	text_free(&images->text);
	free(images->item);
	images->item = NULL;
	images->count = images->capacity = 0;
}
