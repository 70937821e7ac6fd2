/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coco.c - the images that a JSON file of COCO lists, with fields from their annotations
 *
 * The file may be larger than memory: of an annotation only its place and its image are kept.  The
 * values of a key, one of each annotation, become one array in JSON, which is then a field as any
 * other array is.  A mask stays where it is: the plan has the place of each outline.
 */
#include "tools/shardpack/scan/scan.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "libshard/base/utf8.h"
#include "shard_pack.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/progress.h"
#include "tools/common/shelf.h"
#include "tools/common/signals.h"
#include "tools/shardpack/images/images.h"
#include "tools/shardpack/input/input.h"
#include "tools/shardpack/parse/parse.h"
#include "tools/shardpack/plan/plan.h"

/* ---- what the file lists: images, annotations, categories, in any order ---- */

struct coco_image {
	int64_t id;
	uint64_t name_at;	/* of its file, in `names`; NUL-terminated */
	uint32_t width, height; /* 0: not said */
	uint64_t first, end;	/* of its annotations */
};

struct coco_annotation {
	int64_t image; /* its id; then its number */
	uint64_t offset;
	uint32_t bytes;
};

struct coco_category {
	int64_t id;
	uint64_t name_at;
};

struct coco_list { /* start it zeroed */
	const struct request *request;
	char *where;	   /* the file, for messages */
	uint32_t file;	   /* its number in the plan */
	struct text names; /* on the shelf of the plan, as all lists here are */
	struct coco_image *image;
	uint64_t image_count, image_capacity;
	struct coco_annotation *annotation; /* by image, then as in the file */
	uint64_t annotation_count, annotation_capacity;
	int64_t *id; /* of annotations that say one */
	uint64_t id_count, id_capacity;
	struct coco_category *category; /* by id */
	uint64_t category_count, category_capacity;
	uint32_t lists; /* bit i: a list of that name was there */
};

enum { COCO_IMAGES, COCO_ANNOTATIONS, COCO_CATEGORIES };

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

static int list_out_of_memory(const struct coco_list *l)
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

/* A size that is null is not said. */
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
	return step == JSON_END ? NULL : "is not an object";
}

/* A text of an item, into `names`. */
static int keep_name(struct coco_list *l, uint32_t list, const struct json_range *item, const struct json_range *name,
		     uint64_t *at)
{
	char *text = name->text ? xmalloc(name->bytes, 1) : NULL, what[80];
	size_t bytes = 0;
	int rc = EXIT_DONE;

	snprintf(what, sizeof(what), "must have a %s, a text of UTF-8", list == COCO_IMAGES ? "file_name" : "name");
	if (!text || !json_range_string(name, text, &bytes) || !text_is_name(text, bytes, name->bytes))
		rc = refuse(l, list, item->offset, what);
	*at = l->names.bytes;
	if (rc == EXIT_DONE)
		text_add(&l->names, text, bytes + 1);
	free(text);
	return rc == EXIT_DONE && text_failed(&l->names) ? list_out_of_memory(l) : rc;
}

static int list_image(struct coco_list *l, const struct json_range *range, const struct item *x)
{
	struct coco_image *i;

	if (!x->has_id)
		return refuse(l, COCO_IMAGES, range->offset, "must have one id, a whole number");
	if ((x->width > 0) != (x->height > 0))
		return refuse(l, COCO_IMAGES, range->offset, "must have both width and height, or none of them");
	if (!grow_on(l->names.shelf, &l->image, &l->image_capacity, l->image_count + 1, sizeof(*l->image)))
		return list_out_of_memory(l);
	i = &l->image[l->image_count++];
	*i = (struct coco_image){.id = x->id};
	if (x->width > 0) {
		i->width = (uint32_t)x->width;
		i->height = (uint32_t)x->height;
	}
	return keep_name(l, COCO_IMAGES, range, &x->name, &i->name_at);
}

static int list_annotation(struct coco_list *l, const struct json_range *range, const struct item *x)
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
		return list_out_of_memory(l);
	if (x->has_id)
		l->id[l->id_count++] = x->id;
	l->annotation[l->annotation_count++] = (struct coco_annotation){
		.image = x->image_id, .offset = range->offset, .bytes = (uint32_t)range->bytes};
	return EXIT_DONE;
}

static int list_category(struct coco_list *l, const struct json_range *range, const struct item *x)
{
	struct coco_category *c;

	if (!x->has_id)
		return refuse(l, COCO_CATEGORIES, range->offset, "must have one id, a whole number");
	if (!grow_on(l->names.shelf, &l->category, &l->category_capacity, l->category_count + 1, sizeof(*l->category)))
		return list_out_of_memory(l);
	c = &l->category[l->category_count++];
	*c = (struct coco_category){.id = x->id};
	return keep_name(l, COCO_CATEGORIES, range, &x->name, &c->name_at);
}

/* ---- the document ---- */

static bool read_stored(void *context, uint64_t offset, void *out, size_t bytes)
{
	const struct coco_list *l = context;

	return source_file_get(l->request->source_files, l->file, offset, out, bytes) == EXIT_DONE;
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
		[COCO_IMAGES] = list_image, [COCO_ANNOTATIONS] = list_annotation, [COCO_CATEGORIES] = list_category};
	struct json_range range;
	enum json_step step;
	struct item item;
	const char *wrong;
	bool first = true;
	int rc = EXIT_DONE;

	if (l->lists >> list & 1)
		return fail(EXIT_BAD, "%s: has %s twice", l->where, list_names[list]);
	l->lists |= 1u << list;
	while (rc == EXIT_DONE && (step = json_scan_element(j, &first)) == JSON_ITEM) {
		if (interrupted())
			return EXIT_INTERRUPTED;
		if (!json_scan_take(j, &range))
			return broken(l, j);
		wrong = read_item(list, &range, &item);
		rc = wrong ? refuse(l, list, range.offset, wrong) : add[list](l, &range, &item);
	}
	return rc == EXIT_DONE && step != JSON_END ? broken(l, j) : rc;
}

static int read_document(struct coco_list *l, struct json_scan *j)
{
	struct json_range key;
	enum json_step step;
	bool first = true;
	int rc = EXIT_DONE;

	if (json_scan_peek(j) == '[')
		return fail(EXIT_BAD,
			    "%s: is an array, such as the results of a detector; must be an object with images, "
			    "annotations and categories, as COCO has it; if it is a table of paths and labels, make "
			    "a .jsonl of it with jq -c '.[]'",
			    l->where);
	while (rc == EXIT_DONE && (step = json_scan_member(j, &first, &key)) == JSON_ITEM) {
		uint32_t list = 0;

		while (list < LISTS && !json_range_is(&key, list_names[list]))
			list++;
		if (list < LISTS)
			rc = read_list(l, j, list);
		else if (!json_scan_skip(j))
			return broken(l, j);
	}
	if (rc != EXIT_DONE)
		return rc;
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

struct image_by_id {
	int64_t id;
	uint64_t idx;
};

/* Items of a list, which begin with their id: no two may have the same one. */
static int sort_by_id(const struct coco_list *l, uint32_t list, void *items, uint64_t count, size_t item_bytes)
{
	const char *item = items;

	if (!shelf_sort(l->names.shelf, items, count, item_bytes, order_ids, NULL))
		return list_out_of_memory(l);
	for (uint64_t i = 1; i < count; i++, item += item_bytes)
		if (!compare_ids(item, item + item_bytes))
			return fail(EXIT_BAD, "%s: two of its %s have the id %" PRId64 "; an id must be that of one",
				    l->where, list_names[list], *(const int64_t *)(const void *)item);
	return EXIT_DONE;
}

/* Each annotation with its image. */
static int settle_annotations(struct coco_list *l, const struct image_by_id *by_id)
{
	uint64_t at = 0;

	for (uint64_t i = 0; i < l->annotation_count; i++) {
		struct coco_annotation *a = &l->annotation[i];
		const struct image_by_id *p = bsearch(&a->image, by_id, l->image_count, sizeof(*by_id), compare_ids);

		if (!p)
			return fail(EXIT_BAD,
				    "%s: the annotation at byte %" PRIu64 " belongs to image %" PRId64
				    ", which is not among its images",
				    l->where, a->offset, a->image);
		a->image = (int64_t)p->idx;
	}
	if (!shelf_sort(l->names.shelf, l->annotation, l->annotation_count, sizeof(*l->annotation), order_annotations,
			NULL))
		return list_out_of_memory(l);
	for (uint64_t i = 0; i < l->image_count; i++) {
		l->image[i].first = at;
		while (at < l->annotation_count && (uint64_t)l->annotation[at].image == i)
			at++;
		l->image[i].end = at;
	}
	return EXIT_DONE;
}

static int settle_ids(struct coco_list *l)
{
	struct image_by_id *by_id = NULL;
	uint64_t capacity = 0;
	int rc;

	if (!grow_on(l->names.shelf, &by_id, &capacity, l->image_count + 1, sizeof(*by_id)))
		return list_out_of_memory(l);
	for (uint64_t i = 0; i < l->image_count; i++)
		by_id[i] = (struct image_by_id){l->image[i].id, i};
	rc = sort_by_id(l, COCO_IMAGES, by_id, l->image_count, sizeof(*by_id));
	if (rc == EXIT_DONE)
		rc = sort_by_id(l, COCO_ANNOTATIONS, l->id, l->id_count, sizeof(*l->id));
	if (rc == EXIT_DONE)
		rc = sort_by_id(l, COCO_CATEGORIES, l->category, l->category_count, sizeof(*l->category));
	if (rc == EXIT_DONE)
		rc = settle_annotations(l, by_id);
	shelf_free(l->names.shelf, l->id);
	l->id = NULL;
	shelf_free(l->names.shelf, by_id);
	return rc;
}

static int read_lists(struct coco_list *l, const struct request *r, const char *path)
{
	struct json_scan j;
	char mark[UTF8_MARK_BYTES] = "";
	int rc;

	*l = (struct coco_list){.request = r, .names.shelf = r->plan->text.shelf};
	rc = input_file_open(r, path, &l->file);
	if (rc != EXIT_DONE)
		return rc;
	l->where = source_file_name(r->source_files, l->file);
	json_scan_start(&j, source_file_bytes(r->source_files, l->file), read_stored, l);
	if (j.bytes >= sizeof(mark))
		rc = source_file_get(r->source_files, l->file, 0, mark, sizeof(mark));
	if (rc == EXIT_DONE && utf8_is_utf16(mark, sizeof(mark)))
		rc = fail(EXIT_BAD, "%s: " UTF8_UTF16, l->where);
	j.base = utf8_mark(mark, sizeof(mark));
	if (rc == EXIT_DONE)
		rc = read_document(l, &j);
	json_scan_free(&j);
	return rc == EXIT_DONE ? settle_ids(l) : rc;
}

/* ---- which keys of annotations become fields ---- */

/* The key that a field comes from, as a plan says it. */
static int settle_field(const struct request *r, uint32_t i)
{
	static const char *const defaults[] = {
		[FIELD_TEXT] = "caption", [FIELD_BOXES] = "bbox", [FIELD_MASK] = "segmentation"};
	static const char *const moving[] = {"bbox", "segmentation", "keypoints"};
	struct field_source *s = &r->recipe->from[i];
	const char *name = r->recipe->field[i].name;
	bool has_default = s->kind < sizeof(defaults) / sizeof(defaults[0]) && defaults[s->kind];
	char key[FIELD_FROM_BYTES_MAX + 1];

	if (s->kind == FIELD_IMAGE || s->kind == FIELD_BYTES)
		return fail(EXIT_USAGE, "--field %s: kind=%s is not in annotations of COCO", name,
			    field_kind_names[s->kind]);
	strcpy(key, has_default && !strcmp(s->from, name) ? defaults[s->kind] : s->from);
	if (s->kind == FIELD_TENSOR && strcmp(key, "image_id"))
		return fail(EXIT_USAGE,
			    "--field %s: an image has any number of annotations, so kind must be ragged; kind=tensor "
			    "is for from=image_id alone",
			    name);
	if ((s->kind == FIELD_MASK && strcmp(key, "segmentation")) || (s->kind == FIELD_BOXES && strcmp(key, "bbox")))
		return fail(EXIT_USAGE, "--field %s: from=%s: of COCO, kind=%s must come from %s", name, key,
			    field_kind_names[s->kind], defaults[s->kind]);
	for (size_t k = 0; k < sizeof(moving) / sizeof(moving[0]) && s->kind == FIELD_RAGGED; k++)
		if (!strcmp(key, moving[k]))
			return fail(EXIT_USAGE,
				    "--field %s: from=%s: numbers do not follow the image through resize and crop; "
				    "boxes and masks do",
				    name, key);
	if (s->unit || (s->boxes != BOXES_XYXY && s->boxes != BOXES_XYWH))
		return fail(EXIT_USAGE,
			    "--field %s: bbox of COCO is format=xywh, in pixels; leave format and scale out", name);
	if (s->map.count)
		return fail(EXIT_USAGE,
			    "--field %s: map= is for masks in files; one of COCO has class + 1, and 0 elsewhere", name);
	if (s->turn == TURN_OWN)
		return fail(EXIT_USAGE, "--field %s: turn=own: COCO has no orientation; must be image or none", name);
	if (s->kind == FIELD_BOXES)
		s->boxes = BOXES_XYWH;
	if (snprintf(s->from, sizeof(s->from), "coco:%s", key) >= (int)sizeof(s->from))
		return fail(EXIT_USAGE, "--field %s: from=%s is too long", name, key);
	return EXIT_DONE;
}

/* Has the file what the fields come from, and have its classes room in them? */
static int check_fields(const struct request *r, const struct coco_list *l)
{
	const struct recipe *recipe = r->recipe;

	for (uint32_t i = 0; i < recipe->field_count; i++) {
		const struct field_source *s = &recipe->from[i];

		if (!field_has_part(s) || s->kind == FIELD_TENSOR)
			continue;
		if (!(l->lists >> COCO_ANNOTATIONS & 1))
			return fail(EXIT_BAD, "%s: has no annotations, and field %s comes from them", l->where,
				    recipe->field[i].name);
		if (s->kind == FIELD_MASK && l->category_count > field_mask_most(recipe->field[i].dtype))
			return fail(EXIT_BAD,
				    "%s: has %" PRIu64 " categories; field %s holds %" PRIu64 ", say dtype=u16",
				    l->where, l->category_count, recipe->field[i].name,
				    field_mask_most(recipe->field[i].dtype));
	}
	return EXIT_DONE;
}

/* ---- the values of annotations ---- */

struct reading {
	const struct request *request;
	struct image_list *images;
	struct coco_list list;
	char *folder; /* of the images, below the root; with a slash, or empty */
	char *object; /* the annotation at hand */
	size_t object_capacity;
	struct text value[RECIPE_NAMED_MAX]; /* of the image at hand, as an array in JSON; of masks their token */
	uint64_t count[RECIPE_NAMED_MAX];    /* of its elements */
	struct text fields;
	struct text_each each;
	const char *one[RECIPE_NAMED_MAX];	  /* the values of the input at hand: pick=each takes lists apart */
	size_t text;				  /* its number */
	const char *path;			  /* of the JSON, below the root */
	const struct coco_annotation *annotation; /* at hand; NULL: what is said is of the image */
	/* annotations without an outline, which an optional mask leaves out; and the first one */
	uint64_t left_out[RECIPE_NAMED_MAX], first_left_out[RECIPE_NAMED_MAX];
	struct bad_input bad; /* of the image at hand */
};

static int out_of_memory(void)
{
	return fail(EXIT_IO, "out of memory for the annotations of an image");
}

/* The image at hand is bad; the next one may be good.  Returns EXIT_BAD. */
__attribute__((format(printf, 3, 4))) static int bad(struct reading *r, uint32_t reason, const char *fmt, ...)
{
	char what[BAD_INPUT_MESSAGE_BYTES], where[64] = "";
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	if (r->annotation)
		snprintf(where, sizeof(where), ", annotation at byte %" PRIu64, r->annotation->offset);
	else if (r->each.recipe && r->each.count > 1)
		snprintf(where, sizeof(where), ", text %zu of %zu", r->text + 1, r->each.count);
	return bad_input(&r->bad, reason, "%.120s%s: %s", r->path, where, what);
}

static const char *key_of(const struct reading *r, uint32_t i)
{
	return field_coco_key(&r->request->recipe->from[i]);
}

/* ---- one annotation ---- */

struct found {
	bool field[RECIPE_NAMED_MAX], nested[RECIPE_NAMED_MAX]; /* it is there; within an object */
	struct json_range category, value[RECIPE_NAMED_MAX];
};

/*
 * A member of an annotation, or with `under`, of the object in it that has this key.  The key of a
 * field may name such a member, as attributes.occluded; one whose own name has the dot comes first.
 */
static int take_member(struct reading *r, const char *under, const struct json_range *key,
		       const struct json_range *value, struct found *out)
{
	const struct recipe *recipe = r->request->recipe;
	size_t under_bytes = strlen(under);

	for (uint32_t i = 0; i < recipe->field_count; i++) {
		const char *name = field_has_part(&recipe->from[i]) ? key_of(r, i) : "";

		if (strncmp(name, under, under_bytes) || !json_range_is(key, name + under_bytes))
			continue;
		if (under_bytes && out->field[i] && !out->nested[i])
			continue;
		if (out->field[i] && out->nested[i] == (under_bytes > 0))
			return bad(r, SHARD_MISS_VALUE, "has %s twice", name);
		out->field[i] = true;
		out->nested[i] = under_bytes > 0;
		out->value[i] = *value;
	}
	return EXIT_DONE;
}

/* The members of a value that is an object, as far as the key of a field goes on behind its own. */
static int find_nested(struct reading *r, const char *above, const struct json_range *key,
		       const struct json_range *value, struct found *out)
{
	const struct recipe *recipe = r->request->recipe;
	char under[FIELD_FROM_BYTES_MAX + 2];
	struct json_range name, inner;
	struct json_scan j;
	bool first = true, wanted = false;
	int rc = EXIT_DONE;

	/* the key has quotes, and a dot follows it */
	if (value->text[0] != '{' || strlen(above) + key->bytes >= sizeof(under))
		return EXIT_DONE;
	snprintf(under, sizeof(under), "%s%.*s.", above, (int)key->bytes - 2, key->text + 1);
	for (uint32_t i = 0; !wanted && i < recipe->field_count; i++)
		wanted = field_has_part(&recipe->from[i]) && !strncmp(key_of(r, i), under, strlen(under));
	json_scan_text(&j, value->text, value->bytes);
	while (wanted && rc == EXIT_DONE && json_scan_member(&j, &first, &name) == JSON_ITEM &&
	       json_scan_take(&j, &inner)) {
		rc = take_member(r, under, &name, &inner, out);
		if (rc == EXIT_DONE)
			rc = find_nested(r, under, &name, &inner, out);
	}
	return rc;
}

static int find_members(struct reading *r, const struct coco_annotation *a, struct found *out)
{
	struct json_range key, value;
	struct json_scan j;
	bool first = true;
	int rc = EXIT_DONE;

	*out = (struct found){.category = {.text = NULL}};
	json_scan_text(&j, r->object, a->bytes);
	while (rc == EXIT_DONE && json_scan_member(&j, &first, &key) == JSON_ITEM && json_scan_take(&j, &value)) {
		if (json_range_is(&key, "category_id")) {
			if (out->category.text)
				return bad(r, SHARD_MISS_VALUE, "has category_id twice");
			out->category = value;
		}
		rc = take_member(r, "", &key, &value, out);
		if (rc == EXIT_DONE)
			rc = find_nested(r, "", &key, &value, out);
	}
	return rc;
}

static bool is_null(const struct json_range *value)
{
	return value->bytes == 4 && !memcmp(value->text, "null", 4);
}

/* Which class an annotation has.  A category that the file does not have is a mistake in it. */
static int class_of(struct reading *r, const struct found *f, int64_t *class_idx)
{
	const struct coco_category *c;
	int64_t id;

	if (!f->category.text)
		return bad(r, SHARD_MISS_INCOMPLETE, "has no category_id, a whole number");
	if (!json_range_whole(&f->category, &id))
		return bad(r, SHARD_MISS_INCOMPLETE, "category_id is %.*s, and must be a whole number",
			   f->category.bytes < 40 ? (int)f->category.bytes : 40, f->category.text);
	c = r->list.category_count ? bsearch(&id, r->list.category, r->list.category_count, sizeof(*c), compare_ids)
				   : NULL;
	*class_idx = c ? c - r->list.category : -1;
	return *class_idx >= 0 ? EXIT_DONE
			       : bad(r, SHARD_MISS_VALUE,
				     "category %" PRId64 " is not among the categories; correct category_id, or add "
				     "the category to the file",
				     id);
}

/* "[]", "[ ]" or null: an annotation without an outline. */
static bool is_empty(const struct json_range *value)
{
	return (value->text[0] == '[' && strspn(value->text + 1, " \t\r\n") + 2 == value->bytes) || is_null(value);
}

static int add_shape(struct reading *r, uint32_t i, const struct coco_annotation *a, const struct found *f)
{
	struct field_shape shape;
	int64_t class_idx = 0;
	int rc;

	if (!f->field[i] || is_empty(&f->value[i])) {
		if (r->request->recipe->from[i].optional) {
			if (!r->left_out[i]++ || a->offset < r->first_left_out[i])
				r->first_left_out[i] = a->offset;
			return EXIT_DONE;
		}
		return bad(r, SHARD_MISS_INCOMPLETE, "has no segmentation; with optional, field %s leaves it out",
			   r->request->recipe->field[i].name);
	}
	rc = class_of(r, f, &class_idx);
	shape = (struct field_shape){.offset = a->offset + (uint64_t)(f->value[i].text - r->object),
				     .bytes = f->value[i].bytes,
				     .value = (uint32_t)(class_idx + 1)}; /* 0 is where no object lies */
	if (rc == EXIT_DONE)
		field_part_add_shape(&r->value[i], &shape);
	r->count[i]++;
	return rc;
}

/* An element more of the array. */
static int add_element(struct reading *r, uint32_t i, const struct found *f)
{
	struct text *to = &r->value[i];
	int64_t class_idx;
	int rc = EXIT_DONE;

	text_add(to, ",", to->bytes > 1);
	if (!strcmp(key_of(r, i), "category")) {
		rc = class_of(r, f, &class_idx);
		if (rc == EXIT_DONE)
			text_format(to, "%" PRId64, class_idx);
	} else if (f->field[i]) {
		text_add(to, f->value[i].text, f->value[i].bytes);
	} else {
		rc = bad(r, SHARD_MISS_INCOMPLETE, "has no %s, and field %s comes from it", key_of(r, i),
			 r->request->recipe->field[i].name);
	}
	r->count[i]++;
	return rc;
}

static int add_annotation(struct reading *r, const struct coco_annotation *a)
{
	const struct recipe *recipe = r->request->recipe;
	struct found f;
	int64_t class_idx;
	int rc;

	if (a->bytes > r->object_capacity) {
		r->object = xrealloc(r->object, a->bytes, 1);
		r->object_capacity = a->bytes;
	}
	rc = source_file_get(r->request->source_files, r->list.file, a->offset, r->object, a->bytes);
	if (rc == EXIT_DONE)
		rc = find_members(r, a, &f);
	/*
	 * Whatever is packed: a category_id that is there belongs to one of the categories, if the
	 * file lists any.  A file without that list, as some tools write it, has nothing to point to.
	 */
	if (rc == EXIT_DONE && f.category.text && !is_null(&f.category) && r->list.lists >> COCO_CATEGORIES & 1)
		rc = class_of(r, &f, &class_idx);
	for (uint32_t i = 0; rc == EXIT_DONE && i < recipe->field_count; i++) {
		const struct field_source *s = &recipe->from[i];

		if (field_has_part(s) && s->kind != FIELD_TENSOR)
			rc = s->kind == FIELD_MASK ? add_shape(r, i, a, &f) : add_element(r, i, &f);
	}
	return rc;
}

/* ---- one image ---- */

/* The only caption, without the quotes and escapes of JSON. */
static int add_caption(struct reading *r, uint32_t i, uint8_t *value, size_t *bytes, struct field_verdict *v)
{
	const struct field_source *s = &r->request->recipe->from[i];
	struct json_range range = {.text = r->value[i].data + 1, .bytes = r->value[i].bytes - 2};
	char *text = xmalloc(range.bytes + 1, 1);
	size_t text_bytes = 0;
	int rc = EXIT_DONE;

	if (r->count[i] > 1)
		rc = bad(r, SHARD_MISS_VALUE, "has %" PRIu64 " texts called %s; " FIELD_LIST_REMEDY, r->count[i],
			 key_of(r, i));
	if (rc == EXIT_DONE && !json_range_string(&range, text, &text_bytes))
		rc = bad(r, SHARD_MISS_VALUE, "%s is %.*s, and must be a text", key_of(r, i),
			 range.bytes < 60 ? (int)range.bytes : 60, range.text);
	if (rc == EXIT_DONE && !field_value(&r->request->recipe->field[i], s, text, text_bytes, value, bytes, v))
		rc = v->reason == FIELD_NO_MEMORY ? out_of_memory()
						  : bad(r, (uint32_t)v->reason, "%s, field %s: %s", key_of(r, i),
							r->request->recipe->field[i].name, v->message);
	free(text);
	return rc;
}

static int add_value(struct reading *r, const struct coco_image *x, uint32_t i, struct text *out)
{
	const struct shard_field *f = &r->request->recipe->field[i];
	const struct field_source *s = &r->request->recipe->from[i];
	uint8_t *value = xmalloc(field_value_room(f), 1);
	struct field_verdict v;
	size_t bytes = 0;
	int rc = EXIT_DONE;

	if (s->kind == FIELD_TEXT && s->pick == PICK_UNSAID)
		rc = add_caption(r, i, value, &bytes, &v);
	else if (!field_value(f, s, r->one[i], strlen(r->one[i]), value, &bytes, &v))
		rc = v.reason == FIELD_NO_MEMORY
			     ? out_of_memory()
			     : bad(r, (uint32_t)v.reason, "%s, field %s: %s", key_of(r, i), f->name, v.message);
	if (rc == EXIT_DONE && s->kind == FIELD_BOXES)
		field_part_add_sized(out, x->width, x->height, value, bytes);
	else if (rc == EXIT_DONE && s->pick == PICK_ALL)
		field_texts_add(f, value, bytes, out);
	else if (rc == EXIT_DONE)
		field_part_add_value(out, value, bytes);
	free(value);
	return rc;
}

/* The values of its annotations for each field, as one text. */
static int find_values(struct reading *r, const struct coco_image *x)
{
	const struct recipe *recipe = r->request->recipe;
	int rc = EXIT_DONE;

	for (uint32_t i = 0; i < recipe->field_count; i++) {
		const struct field_source *s = &recipe->from[i];

		if (!field_has_part(s))
			continue;
		r->value[i].bytes = 0;
		r->count[i] = 0;
		if (s->kind == FIELD_MASK)
			field_part_begin_shapes(&r->value[i], x->width, x->height, r->list.file);
		else if (s->kind == FIELD_TENSOR)
			text_format(&r->value[i], "%" PRId64, x->id);
		else
			text_add(&r->value[i], "[", 1);
	}
	for (uint64_t k = x->first; rc == EXIT_DONE && k < x->end; k++) {
		r->annotation = &r->list.annotation[k];
		rc = add_annotation(r, r->annotation);
	}
	r->annotation = NULL;
	for (uint32_t i = 0; i < recipe->field_count; i++) {
		uint32_t kind = recipe->from[i].kind;

		if (field_has_part(&recipe->from[i]) && kind != FIELD_MASK && kind != FIELD_TENSOR)
			text_add(&r->value[i], "]", 1);
		r->one[i] = r->value[i].data;
	}
	return rc;
}

/* The tokens of an input. */
static int put_fields(struct reading *r, const struct coco_image *x)
{
	const struct recipe *recipe = r->request->recipe;
	int rc = EXIT_DONE;

	r->fields.bytes = 0;
	for (uint32_t i = 0; rc == EXIT_DONE && i < recipe->field_count; i++) {
		const struct field_source *s = &recipe->from[i];

		if (!field_has_part(s))
			continue;
		if (s->optional && !r->count[i])
			scan_absent(r->request->scan, i, "%s: image %" PRId64 " has no annotation with a %s",
				    r->list.where, x->id, key_of(r, i));
		if (s->kind == FIELD_MASK)
			text_add(&r->fields, r->value[i].data, r->value[i].bytes);
		else if (s->kind == FIELD_TEXT && !r->count[i] && s->optional)
			field_part_add_none(&r->fields);
		else if (s->kind == FIELD_TEXT && !r->count[i])
			rc = bad(r, SHARD_MISS_INCOMPLETE, "has no %s; with optional, field %s is empty", key_of(r, i),
				 recipe->field[i].name);
		else
			rc = add_value(r, x, i, &r->fields);
	}
	return rc;
}

/* The file of an image, into `path`, which is empty if there is no such path. */
static int find_file(struct reading *r, const struct coco_image *x, char path[PLAN_PATH_BYTES_MAX], struct stat *st)
{
	const struct source_root *root = r->request->root;
	const char *name = r->list.names.data + x->name_at;
	char joined[2 * PLAN_PATH_BYTES_MAX];
	int bytes = snprintf(joined, sizeof(joined), "%s%s", r->folder, name), rc;
	bool there;

	path[0] = '\0';
	if (name[0] == '/' || bytes >= (int)sizeof(joined) ||
	    !text_settle_path(joined, (size_t)bytes, path, PLAN_PATH_BYTES_MAX)) {
		path[0] = '\0';
		return bad(r, SHARD_MISS_VALUE, "file_name '%.100s' must be a path below %.100s%s%.100s", name,
			   root->name, r->folder[0] ? "/" : "", r->folder);
	}
	rc = source_root_stat(root, path, st, &there, &r->bad);
	if (rc != EXIT_DONE || there)
		return rc;
	return bad(r, SHARD_MISS_MISSING,
		   "names this file, which does not exist; name the folder of its images with --root");
}

/* An input with its fields; or a bad one, as `rc` says. */
static int add_input(struct reading *r, uint64_t idx, const char *path, const struct stat *st, int rc)
{
	char name[PLAN_PATH_BYTES_MAX];

	if (rc == EXIT_DONE)
		return image_list_add(r->images, path, "", input_file_bytes(st), PLAN_NO_FILE, 0, &r->fields);
	if (!bad_input_is(&r->bad, rc))
		return rc;
	if (!path[0] && !image_list_row(r->path, idx + 1, name))
		return fail(EXIT_BAD, "%s: the name is too long", r->list.where);
	return image_list_add_bad(r->images, path[0] ? path : name, "", path[0] ? input_file_bytes(st) : 0,
				  PLAN_NO_FILE, 0, &r->bad);
}

/* One input, or with pick=each one for each text. */
static int add_image(struct reading *r, uint64_t idx)
{
	const struct coco_image *x = &r->list.image[idx];
	char path[PLAN_PATH_BYTES_MAX];
	struct stat st = {0};
	int rc;

	r->bad = (struct bad_input){.reason = 0};
	r->annotation = NULL;
	rc = find_file(r, x, path, &st);
	if (rc == EXIT_DONE)
		rc = find_values(r, x);
	if (rc == EXIT_DONE)
		rc = text_each_open(&r->each, r->request->recipe, r->one, &r->bad);
	if (rc != EXIT_DONE) {
		text_each_close(&r->each);
		return add_input(r, idx, path, &st, rc);
	}
	for (r->text = 0; rc == EXIT_DONE && r->text < r->each.count; r->text++) {
		r->bad.reason = 0;
		r->images->further = r->text > 0;
		rc = text_each_at(&r->each, r->text, r->one) ? put_fields(r, x) : out_of_memory();
		rc = add_input(r, idx, path, &st, rc);
	}
	r->images->further = false;
	text_each_close(&r->each);
	return rc;
}

static int add_images(struct reading *r)
{
	struct progress progress;
	int rc = EXIT_DONE;

	progress_start(&progress, "listing", "images", 0);
	for (uint64_t i = 0; rc == EXIT_DONE && i < r->list.image_count; i++) {
		rc = interrupted() ? EXIT_INTERRUPTED : add_image(r, i);
		progress_add(&progress, 1, 0, 0);
		progress_tick(&progress);
	}
	progress_abandon(&progress);
	for (uint32_t i = 0; rc == EXIT_DONE && i < r->request->recipe->field_count; i++)
		if (r->left_out[i] && r->left_out[i] < r->list.annotation_count) /* all: refused */
			scan_warn(r->request->scan,
				  "%s: %" PRIu64 " of %" PRIu64
				  " annotations have no segmentation; field %s leaves them "
				  "out (the first is at byte %" PRIu64 ")",
				  r->list.where, r->left_out[i], r->list.annotation_count,
				  r->request->recipe->field[i].name, r->first_left_out[i]);
	return rc;
}

/* ---- all of them ---- */

/* Where file names begin: at --root, else at the folder of the file. */
static char *folder_of(const struct request *r, const char *path)
{
	const char *slash = strrchr(path, '/');

	if (r->o->root)
		return xasprintf("%s%s", r->root->below, r->root->below[0] ? "/" : "");
	return xstrndup(path, slash ? (size_t)(slash + 1 - path) : 0);
}

int coco_images_add(struct image_list *images, struct classes *classes, const char *path)
{
	struct reading *r = xcalloc(1, sizeof(*r));
	struct recipe *recipe = images->request->recipe;
	int rc = EXIT_DONE;

	r->request = images->request;
	r->images = images;
	r->path = path;
	r->folder = folder_of(r->request, path);
	for (uint32_t i = 0; rc == EXIT_DONE && i < recipe->field_count; i++)
		if (field_has_part(&recipe->from[i]))
			rc = settle_field(r->request, i);
	if (rc == EXIT_DONE)
		rc = read_lists(&r->list, r->request, path);
	if (rc == EXIT_DONE)
		rc = check_fields(r->request, &r->list);
	for (uint64_t i = 0; rc == EXIT_DONE && i < r->list.category_count; i++) {
		const char *name = r->list.names.data + r->list.category[i].name_at;

		rc = classes_add(classes, name, strlen(name), r->list.where);
	}
	if (rc == EXIT_DONE)
		rc = classes_index(classes, r->list.where);
	if (rc == EXIT_DONE)
		rc = add_images(r);
	for (uint32_t i = 0; i < RECIPE_NAMED_MAX; i++)
		text_free(&r->value[i]);
	text_free(&r->fields);
	shelf_free(r->list.names.shelf, r->list.image);
	shelf_free(r->list.names.shelf, r->list.annotation);
	shelf_free(r->list.names.shelf, r->list.id);
	shelf_free(r->list.names.shelf, r->list.category);
	text_free(&r->list.names);
	free(r->list.where);
	free(r->object);
	free(r->folder);
	free(r);
	return rc;
}
