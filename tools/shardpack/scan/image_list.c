/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_list.c - images with labels, as found, before it is known which classes there are
 */
#include "tools/shardpack/scan/image_list.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tools/common/exit_code.h"
#include "tools/common/message.h"
#include "tools/shardpack/input/place.h"
#include "tools/shardpack/plan/classes.h"
#include "tools/shardpack/plan/plan_write.h"
#include "tools/shardpack/scan/fixed_fields.h"
#include "tools/shardpack/scan/pack_options.h"
#include "tools/shardpack/scan/request.h"
#include "tools/shardpack/scan/scan.h"

static int out_of_memory(const struct items *it)
{
	return fail(EXIT_IO, "out of memory for a list of %" PRIu64 " images", it->count);
}

bool items_is_image(const char *name)
{
	static const char *const extensions[] = {".jpg", ".jpeg", ".png",  ".ppm", ".bmp",
						 ".pgm", ".tif",  ".tiff", ".webp"};
	size_t bytes = strlen(name), i;

	for (i = 0; i < sizeof(extensions) / sizeof(*extensions); i++) {
		size_t n = strlen(extensions[i]);

		if (bytes >= n && strcasecmp(name + bytes - n, extensions[i]) == 0)
			return true;
	}
	return false;
}

int items_add(struct items *it, const char *path, const char *label, uint64_t bytes, uint32_t file, uint64_t offset,
	      const struct text *fields)
{
	struct item *i;

	if (it->count == it->capacity) {
		uint64_t capacity = it->capacity ? 2 * it->capacity : 1024;
		struct item *grown = realloc(it->item, capacity * sizeof(*grown));

		if (!grown)
			return out_of_memory(it);
		it->item = grown;
		it->capacity = capacity;
	}
	i = &it->item[it->count];
	*i = (struct item){.path_at = it->text.bytes, .bytes = bytes, .file = file, .offset = offset, .by_folder = it->by_folder};
	text_add(&it->text, path, strlen(path) + 1);
	if (text_failed(&it->text))
		return out_of_memory(it);
	if (it->count && strcmp(it->text.data + it->last_label_at, label) == 0) {
		i->label_at = it->last_label_at;
	} else {
		i->label_at = it->last_label_at = it->text.bytes;
		text_add(&it->text, label, strlen(label) + 1);
	}
	i->fields_at = i->path_at + strlen(path); /* an empty text */
	if (fields->bytes) {
		i->fields_at = it->text.bytes;
		text_add(&it->text, fields->data, fields->bytes + 1);
	}
	it->count++;
	it->by_folder_count += it->by_folder;
	return text_failed(&it->text) ? out_of_memory(it) : EXIT_DONE;
}

static const char *path_of(const struct items *it, uint64_t i)
{
	return it->text.data + it->item[i].path_at;
}

static const char *label_of(const struct items *it, uint64_t i)
{
	return it->text.data + it->item[i].label_at;
}

static int compare_paths(const void *a, const void *b, void *context)
{
	return strcmp(path_of(context, *(const uint64_t *)a), path_of(context, *(const uint64_t *)b));
}

static int compare_labels(const void *a, const void *b, void *context)
{
	return strcmp(label_of(context, *(const uint64_t *)a), label_of(context, *(const uint64_t *)b));
}

static uint64_t *sorted(struct items *it, int (*compare)(const void *a, const void *b, void *context))
{
	uint64_t *order = calloc(it->count + 1, sizeof(*order)), i;

	for (i = 0; order && i < it->count; i++)
		order[i] = i;
	if (order)
		qsort_r(order, it->count, sizeof(*order), compare, it);
	return order;
}

static int refuse_twice(struct items *it)
{
	uint64_t *order = sorted(it, compare_paths), i;
	int code = order ? EXIT_DONE : out_of_memory(it);

	for (i = 1; code == EXIT_DONE && i < it->count; i++)
		if (strcmp(path_of(it, order[i - 1]), path_of(it, order[i])) == 0)
			code = fail(EXIT_BAD, "%s/%s: there twice; each image must be, once", it->request->place->root,
				    path_of(it, order[i]));
	free(order);
	return code;
}

/* The first item whose label is that number. */
static const char *path_of_number(const struct items *it, uint64_t number)
{
	uint64_t i, value = 0;

	for (i = 0; i + 1 < it->count; i++)
		if (text_u64(label_of(it, i), strlen(label_of(it, i)), &value) && value == number)
			break;
	return path_of(it, i);
}

/* All labels are numbers, without leading zeros, that can be classes?  *largest is the largest. */
static bool are_numbers(const struct items *it, uint64_t *largest)
{
	uint64_t i, value;

	for (i = 0, *largest = 0; i < it->count; i++) {
		if (!text_u64(label_of(it, i), strlen(label_of(it, i)), &value) || value >= CLASSES_MAX)
			return false;
		*largest = value > *largest ? value : *largest;
	}
	return true;
}

/* " -1", "07" or "3.0": a number to whoever wrote it. */
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

/*
 * Numbers of which one cannot be a class would all become names, and "10" sorts before "2": each label another class
 * than it says.  Digits of one width ("00" to "42") sort as they count.
 */
static int refuse_odd_numbers(const struct items *it)
{
	size_t width = strlen(label_of(it, 0));
	bool same_width = true;
	uint64_t odd = it->count, i, value;

	for (i = 0; i < it->count; i++) {
		const char *label = label_of(it, i);

		if (!reads_as_number(label))
			return EXIT_DONE;
		same_width = same_width && strlen(label) == width && strspn(label, "0123456789") == width;
		if (odd == it->count && (!text_u64(label, strlen(label), &value) || value >= CLASSES_MAX))
			odd = i;
	}
	if (same_width)
		return EXIT_DONE;
	return fail(EXIT_BAD, "%s/%s: label '%s' is a number but none of a class, which is 0 to %" PRIu32
		    " without sign, blanks or zeros before it; correct it, or name the classes with --classes", it->request->place->root,
		    path_of(it, odd), label_of(it, odd), CLASSES_MAX - 1);
}

/* Number 10 of a list and folder "10", which is a name: two classes or one? */
static int refuse_mixture(const struct items *it)
{
	uint64_t i, folder = it->count, list = it->count;

	for (i = it->count; i-- > 0;)
		*(it->item[i].by_folder ? &folder : &list) = i;
	return fail(EXIT_BAD, "%s: folder '%s' is a class by its name, '%s' one by its number %s; --classes FILE names the classes",
		    it->request->place->root, label_of(it, folder), path_of(it, list), label_of(it, list));
}

/* All numbers up to the largest are classes; a hole may be meant, or one label be wrong. */
static void warn_of_holes(const struct items *it, uint64_t largest)
{
	uint8_t *has = calloc(1, (size_t)largest + 1);
	uint64_t i, value = 0, empty = 0, first = 0;

	for (i = 0; has && i < it->count; i++)
		has[text_u64(label_of(it, i), strlen(label_of(it, i)), &value) ? value : 0] = 1;
	for (i = 0; has && i <= largest; i++)
		if (!has[i] && !empty++)
			first = i;
	free(has);
	if (empty)
		scan_warn(it->request->scan, "%" PRIu64 " of %" PRIu64 " classes have no image: labels are numbers, the largest is %" PRIu64
			  " (%s), and none is %" PRIu64, empty, largest + 1, largest, path_of_number(it, largest), first);
}

/* Each label once, in byte order. */
static int collect_names(struct items *it, struct classes *out)
{
	uint64_t *order = sorted(it, compare_labels), i;
	int code = order ? EXIT_DONE : out_of_memory(it);

	for (i = 0; code == EXIT_DONE && i < it->count; i++)
		if (!i || strcmp(label_of(it, order[i - 1]), label_of(it, order[i])) != 0)
			code = classes_add(out, label_of(it, order[i]), strlen(label_of(it, order[i])), path_of(it, order[i]));
	free(order);
	return code;
}

static int settle_classes(struct items *it, struct classes *out, bool *by_number)
{
	const char *list = it->request->o->classes;
	uint64_t largest;
	int code;

	*by_number = are_numbers(it, &largest) && it->by_folder_count < it->count;
	if (*by_number && it->by_folder_count && !list)
		return refuse_mixture(it);
	if (list) {
		code = classes_from_list(out, list);
		/* Numbers that are names in the list are names; so are those of folders. */
		if (code == EXIT_DONE && *by_number && (it->by_folder_count || classes_find(out, label_of(it, 0)) >= 0))
			*by_number = false;
		if (code == EXIT_DONE && *by_number && largest >= out->count)
			code = fail(EXIT_BAD, "%s/%s: label %" PRIu64 ", but --classes %s has %" PRIu64 ", numbered from 0", it->request->place->root,
				    path_of_number(it, largest), largest, list, out->count);
		return code;
	}
	if (*by_number) {
		warn_of_holes(it, largest);
		return columns_numbered(out, largest + 1);
	}
	code = it->by_folder_count < it->count ? refuse_odd_numbers(it) : EXIT_DONE;
	if (code == EXIT_DONE)
		code = collect_names(it, out);
	if (code == EXIT_DONE && it->by_folder_count)
		scan_warn_of_numbers(it->request->scan, out);
	return code == EXIT_DONE ? classes_index(out, it->request->place->root) : code;
}

/* The class of an item, or -1 and a message. */
static int64_t class_of(const struct items *it, uint64_t i, const struct classes *classes, bool by_number)
{
	int64_t class_idx;
	uint64_t value = 0;

	if (by_number) {
		text_u64(label_of(it, i), strlen(label_of(it, i)), &value);
		return (int64_t)value;
	}
	class_idx = classes_find(classes, label_of(it, i));
	if (class_idx < 0)
		fail(EXIT_BAD, "%s/%s: label '%s' is none of the %" PRIu64 " of --classes %s", it->request->place->root, path_of(it, i),
		     label_of(it, i), classes->count, it->request->o->classes);
	return class_idx;
}

int items_plan(struct items *it)
{
	const struct request *r = it->request;
	struct classes classes = {0};
	bool by_number = false;
	uint64_t i;
	int code = it->count ? refuse_twice(it) : scan_refuse_barren(r->scan, r->place->root, "images", "");

	if (code == EXIT_DONE) {
		scan_warn_of_barren(r->scan, "image");
		code = settle_classes(it, &classes, &by_number);
	}
	if (code == EXIT_DONE)
		code = plan_begin(r->plan, r->recipe, &classes);
	for (i = 0; code == EXIT_DONE && i < it->count; i++) {
		const struct item *x = &it->item[i];
		int64_t class_idx = class_of(it, i, &classes, by_number);

		code = class_idx < 0 ? EXIT_BAD
				     : plan_add_part(r->plan, (uint64_t)class_idx, x->bytes, path_of(it, i), x->file, x->offset, it->text.data + x->fields_at);
	}
	classes_free(&classes);
	return code;
}

void items_free(struct items *it)
{
	text_free(&it->text);
	free(it->item);
	it->item = NULL;
	it->count = it->capacity = 0;
}
