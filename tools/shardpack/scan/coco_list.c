/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coco_list.c - what a JSON file of COCO lists: images, annotations, categories
 *
 * The lists may come in any order, so ids are looked up when all are there.
 */
#include "tools/shardpack/scan/scan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libshard/base/utf8.h"
#include "tools/common/exit_code.h"
#include "tools/common/message.h"
#include "tools/common/shelf.h"
#include "tools/common/signals.h"
#include "tools/shardpack/input/stored.h"
#include "tools/shardpack/parse/parse.h"
#include "tools/shardpack/plan/classes.h"
#include "tools/shardpack/plan/plan.h"
#include "tools/shardpack/scan/request.h"

static const char *const list_names[] = {
	[COCO_IMAGES] = "images", [COCO_ANNOTATIONS] = "annotations", [COCO_CATEGORIES] = "categories"};
static const char *const item_names[] = {
	[COCO_IMAGES] = "image", [COCO_ANNOTATIONS] = "annotation", [COCO_CATEGORIES] = "category"};
#define LISTS 3

/* The members of an item that are of use here. */
struct item {
	int64_t id, image_id, width, height;
	struct json_range name; /* of a file or a category */
	bool has_id, has_image_id, is_panoptic;
};

static int out_of_memory(const struct coco_list *l)
{
	return shelf_refuse(l->names.shelf, "the images and annotations of %s", l->where);
}

static int refuse(const struct coco_list *l, uint32_t list, uint64_t offset, const char *what)
{
	return fail(EXIT_BAD, "%s: the %s at byte %" PRIu64 " %s", l->where, item_names[list], offset, what);
}

/* ---- one item ---- */

static bool take_whole(struct json_scan *j, int64_t *out)
{
	struct json_range value;

	return json_scan_take(j, &value) && json_range_whole(&value, out);
}

/* A size that is null is none. */
static bool take_side(struct json_scan *j, int64_t *out)
{
	struct json_range value;

	if (!json_scan_take(j, &value))
		return false;
	*out = 0;
	return (value.bytes == 4 && !memcmp(value.text, "null", 4)) ||
	       (json_range_whole(&value, out) && *out > 0 && *out <= UINT32_MAX);
}

/* NULL, or what is wrong. */
static const char *read_item(uint32_t list, const struct json_range *range, struct item *out)
{
	const char *name_key = list == COCO_CATEGORIES ? "name" : "file_name";
	struct json_range key, other;
	struct json_scan j;
	enum json_step step;
	bool first = true;

	*out = (struct item){.width = -1, .height = -1};
	json_scan_text(&j, range->text, range->bytes);
	while ((step = json_scan_member(&j, &first, &key)) == JSON_ITEM) {
		if (json_range_is(&key, "id")) {
			if (out->has_id || !take_whole(&j, &out->id))
				return "must have one id, a whole number";
			out->has_id = true;
		} else if (list == COCO_ANNOTATIONS && json_range_is(&key, "image_id")) {
			if (out->has_image_id || !take_whole(&j, &out->image_id))
				return "must have one image_id, a whole number";
			out->has_image_id = true;
		} else if (list == COCO_IMAGES && json_range_is(&key, "width")) {
			if (out->width >= 0 || !take_side(&j, &out->width))
				return "must have one width, a number of pixels";
		} else if (list == COCO_IMAGES && json_range_is(&key, "height")) {
			if (out->height >= 0 || !take_side(&j, &out->height))
				return "must have one height, a number of pixels";
		} else if (list != COCO_ANNOTATIONS && json_range_is(&key, name_key)) {
			if (out->name.text)
				return "has its name twice";
			json_scan_take(&j, &out->name);
		} else {
			out->is_panoptic = out->is_panoptic || json_range_is(&key, "segments_info");
			json_scan_take(&j, &other);
		}
	}
	return step == JSON_END ? NULL : "is no object";
}

/* A text of an item, into `names`. */
static int keep_name(struct coco_list *l, uint32_t list, const struct json_range *item, const struct json_range *name,
		     uint64_t *at)
{
	char *text = name->text ? malloc(name->bytes) : NULL, what[80];
	size_t bytes = 0;
	int code = EXIT_DONE;

	snprintf(what, sizeof(what), "must have a %s, a text of UTF-8", list == COCO_IMAGES ? "file_name" : "name");
	if (name->text && !text)
		return out_of_memory(l);
	if (!text || !json_range_string(name, text, &bytes) || !text_is_name(text, bytes, name->bytes))
		code = refuse(l, list, item->offset, what);
	*at = l->names.bytes;
	if (code == EXIT_DONE)
		text_add(&l->names, text, bytes + 1);
	free(text);
	return code == EXIT_DONE && text_failed(&l->names) ? out_of_memory(l) : code;
}

static int add_image(struct coco_list *l, const struct json_range *range, const struct item *x)
{
	struct coco_image *i;

	if (!x->has_id)
		return refuse(l, COCO_IMAGES, range->offset, "must have one id, a whole number");
	if ((x->width > 0) != (x->height > 0))
		return refuse(l, COCO_IMAGES, range->offset, "must have both width and height, or none of them");
	if (!grow_on(l->names.shelf, &l->image, &l->image_capacity, l->image_count + 1, sizeof(*l->image)))
		return out_of_memory(l);
	i = &l->image[l->image_count++];
	*i = (struct coco_image){.id = x->id};
	if (x->width > 0) {
		i->width = (uint32_t)x->width;
		i->height = (uint32_t)x->height;
	}
	return keep_name(l, COCO_IMAGES, range, &x->name, &i->name_at);
}

static int add_annotation(struct coco_list *l, const struct json_range *range, const struct item *x)
{
	if (x->is_panoptic)
		return fail(EXIT_BAD,
			    "%s: is of panoptic segmentation, whose masks are PNG files; name them in a table, with "
			    "--field NAME:kind=mask,dtype=u32",
			    l->where);
	if (!x->has_image_id)
		return refuse(l, COCO_ANNOTATIONS, range->offset, "must have one image_id, a whole number");
	if (!grow_on(l->names.shelf, &l->annotation, &l->annotation_capacity, l->annotation_count + 1,
		     sizeof(*l->annotation)) ||
	    !grow_on(l->names.shelf, &l->id, &l->id_capacity, l->id_count + 1, sizeof(*l->id)))
		return out_of_memory(l);
	if (x->has_id)
		l->id[l->id_count++] = x->id;
	l->annotation[l->annotation_count++] = (struct coco_annotation){
		.image = x->image_id, .offset = range->offset, .bytes = (uint32_t)range->bytes};
	return EXIT_DONE;
}

static int add_category(struct coco_list *l, const struct json_range *range, const struct item *x)
{
	struct coco_category *c;

	if (!x->has_id)
		return refuse(l, COCO_CATEGORIES, range->offset, "must have one id, a whole number");
	if (!grow_on(l->names.shelf, &l->category, &l->category_capacity, l->category_count + 1, sizeof(*l->category)))
		return out_of_memory(l);
	c = &l->category[l->category_count++];
	*c = (struct coco_category){.id = x->id};
	return keep_name(l, COCO_CATEGORIES, range, &x->name, &c->name_at);
}

/* ---- the document ---- */

static bool read_stored(void *context, uint64_t offset, void *out, size_t bytes)
{
	const struct coco_list *l = context;

	return stored_get(l->request->stored, l->file, offset, out, bytes) == EXIT_DONE;
}

/* What the scan stumbled over; reading has said why it failed itself. */
static int broken(const struct coco_list *l, const struct json_scan *j)
{
	if (j->no_memory)
		return fail(EXIT_IO, "%s: %s", l->where, j->why);
	return j->why[0] ? fail(EXIT_BAD, "%s: %s; is it JSON of COCO, and complete?", l->where, j->why) : EXIT_IO;
}

static int read_list(struct coco_list *l, struct json_scan *j, uint32_t list)
{
	static int (*const add[])(struct coco_list * l, const struct json_range *range, const struct item *x) = {
		[COCO_IMAGES] = add_image, [COCO_ANNOTATIONS] = add_annotation, [COCO_CATEGORIES] = add_category};
	struct json_range range;
	enum json_step step;
	struct item item;
	const char *wrong;
	bool first = true;
	int code = EXIT_DONE;

	if (l->lists >> list & 1)
		return fail(EXIT_BAD, "%s: has %s twice", l->where, list_names[list]);
	l->lists |= 1u << list;
	while (code == EXIT_DONE && (step = json_scan_element(j, &first)) == JSON_ITEM) {
		if (interrupted())
			return EXIT_INTERRUPTED;
		if (!json_scan_take(j, &range))
			return broken(l, j);
		wrong = read_item(list, &range, &item);
		code = wrong ? refuse(l, list, range.offset, wrong) : add[list](l, &range, &item);
	}
	return code == EXIT_DONE && step != JSON_END ? broken(l, j) : code;
}

static int read_document(struct coco_list *l, struct json_scan *j)
{
	struct json_range key;
	enum json_step step;
	bool first = true;
	int code = EXIT_DONE;

	if (json_scan_peek(j) == '[')
		return fail(EXIT_BAD,
			    "%s: is an array, such as the results of a detector; must be an object with images, "
			    "annotations and categories, as COCO has it; if it is a table of paths and labels, make "
			    "a .jsonl of it with jq -c '.[]'",
			    l->where);
	while (code == EXIT_DONE && (step = json_scan_member(j, &first, &key)) == JSON_ITEM) {
		uint32_t list = 0;

		while (list < LISTS && !json_range_is(&key, list_names[list]))
			list++;
		if (list < LISTS)
			code = read_list(l, j, list);
		else if (!json_scan_skip(j))
			return broken(l, j);
	}
	if (code != EXIT_DONE)
		return code;
	if (step != JSON_END || !json_scan_ends(j))
		return broken(l, j);
	return l->lists >> COCO_IMAGES & 1
		       ? EXIT_DONE
		       : fail(EXIT_BAD,
			      "%s: has no images; JSON must be that of COCO, and other lists of images .jsonl",
			      l->where);
}

/* ---- ids ---- */

/* Of what has its id as its first member, too. */
static int compare_ids(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

static int order_ids(const void *a, const void *b, void *unused)
{
	(void)unused;
	return compare_ids(a, b);
}

static int order_annotations(const void *a, const void *b, void *unused)
{
	const struct coco_annotation *x = a, *y = b;

	(void)unused;
	if (x->image != y->image)
		return x->image < y->image ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

struct place {
	int64_t id;
	uint64_t idx;
};

static int refuse_twice(const struct coco_list *l, uint32_t list, int64_t id)
{
	return fail(EXIT_BAD, "%s: two of its %s have the id %" PRId64 "; an id must be that of one", l->where,
		    list_names[list], id);
}

static int sort_by_id(const struct coco_list *l, void *items, uint64_t count, size_t item_bytes)
{
	return shelf_sort(l->names.shelf, items, count, item_bytes, order_ids, NULL) ? EXIT_DONE : out_of_memory(l);
}

/* Images by id. */
static int sort_images(const struct coco_list *l, struct place *by_id)
{
	int code;

	for (uint64_t i = 0; i < l->image_count; i++)
		by_id[i] = (struct place){l->image[i].id, i};
	code = sort_by_id(l, by_id, l->image_count, sizeof(*by_id));
	for (uint64_t i = 1; code == EXIT_DONE && i < l->image_count; i++)
		if (by_id[i].id == by_id[i - 1].id)
			code = refuse_twice(l, COCO_IMAGES, by_id[i].id);
	return code;
}

/* Each annotation with its image. */
static int settle_annotations(struct coco_list *l, const struct place *by_id)
{
	uint64_t at = 0;

	for (uint64_t i = 0; i < l->annotation_count; i++) {
		struct coco_annotation *a = &l->annotation[i];
		const struct place *p = bsearch(&a->image, by_id, l->image_count, sizeof(*by_id), compare_ids);

		if (!p)
			return fail(EXIT_BAD,
				    "%s: the annotation at byte %" PRIu64 " belongs to image %" PRId64
				    ", which is not among its images",
				    l->where, a->offset, a->image);
		a->image = (int64_t)p->idx;
	}
	if (!shelf_sort(l->names.shelf, l->annotation, l->annotation_count, sizeof(*l->annotation), order_annotations,
			NULL))
		return out_of_memory(l);
	for (uint64_t i = 0; i < l->image_count; i++) {
		l->image[i].first = at;
		while (at < l->annotation_count && (uint64_t)l->annotation[at].image == i)
			at++;
		l->image[i].end = at;
	}
	return EXIT_DONE;
}

static int settle(struct coco_list *l)
{
	struct place *by_id = NULL;
	uint64_t capacity = 0;
	int code = grow_on(l->names.shelf, &by_id, &capacity, l->image_count + 1, sizeof(*by_id))
			   ? sort_images(l, by_id)
			   : out_of_memory(l);

	if (code == EXIT_DONE)
		code = sort_by_id(l, l->id, l->id_count, sizeof(*l->id));
	for (uint64_t i = 1; code == EXIT_DONE && i < l->id_count; i++)
		if (l->id[i] == l->id[i - 1])
			code = refuse_twice(l, COCO_ANNOTATIONS, l->id[i]);
	if (code == EXIT_DONE)
		code = sort_by_id(l, l->category, l->category_count, sizeof(*l->category));
	for (uint64_t i = 1; code == EXIT_DONE && i < l->category_count; i++)
		if (l->category[i].id == l->category[i - 1].id)
			code = refuse_twice(l, COCO_CATEGORIES, l->category[i].id);
	if (code == EXIT_DONE)
		code = settle_annotations(l, by_id);
	shelf_free(l->names.shelf, l->id);
	l->id = NULL;
	shelf_free(l->names.shelf, by_id);
	return code;
}

int coco_list_read(struct coco_list *l, const struct request *r, const char *path)
{
	struct json_scan j;
	char mark[UTF8_MARK_BYTES] = "";
	int code;

	*l = (struct coco_list){.request = r, .names.shelf = r->plan->text.shelf};
	code = input_file_open(r, path, &l->file);
	if (code != EXIT_DONE)
		return code;
	l->where = stored_name(r->stored, l->file);
	if (!l->where)
		return fail(EXIT_IO, "%s: out of memory for its name", path);
	json_scan_start(&j, stored_bytes(r->stored, l->file), read_stored, l);
	if (j.bytes >= sizeof(mark))
		code = stored_get(r->stored, l->file, 0, mark, sizeof(mark));
	if (code == EXIT_DONE && utf8_is_utf16(mark, sizeof(mark)))
		code = fail(EXIT_BAD, "%s: " UTF8_UTF16, l->where);
	j.base = utf8_mark(mark, sizeof(mark));
	if (code == EXIT_DONE)
		code = read_document(l, &j);
	json_scan_free(&j);
	return code == EXIT_DONE ? settle(l) : code;
}

void coco_list_free(struct coco_list *l)
{
	shelf_free(l->names.shelf, l->image);
	shelf_free(l->names.shelf, l->annotation);
	shelf_free(l->names.shelf, l->id);
	shelf_free(l->names.shelf, l->category);
	text_free(&l->names);
	free(l->where);
	*l = (struct coco_list){.request = NULL};
}

int64_t coco_list_class(const struct coco_list *l, int64_t id)
{
	const struct coco_category *c =
		l->category_count ? bsearch(&id, l->category, l->category_count, sizeof(*l->category), compare_ids)
				  : NULL;

	return c ? c - l->category : -1;
}

int coco_list_name_classes(const struct coco_list *l, struct classes *out)
{
	int code = EXIT_DONE;

	for (uint64_t i = 0; code == EXIT_DONE && i < l->category_count; i++) {
		const char *name = l->names.data + l->category[i].name_at;

		code = classes_add(out, name, strlen(name), l->where);
	}
	return code == EXIT_DONE ? classes_index(out, l->where) : code;
}
