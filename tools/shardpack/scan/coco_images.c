/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coco_images.c - the images that a JSON file of COCO lists, with fields from their annotations
 *
 * The values of a key, one of each annotation, become one array in JSON, which is then a field as
 * any other array is.  A mask stays where it is: the plan has the place of each outline.
 */
#include "tools/shardpack/scan/scan.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "shard_inspect.h"
#include "tools/common/exit_code.h"
#include "tools/common/message.h"
#include "tools/common/progress.h"
#include "tools/common/signals.h"
#include "tools/shardpack/input/place.h"
#include "tools/shardpack/input/stored.h"
#include "tools/shardpack/parse/parse.h"
#include "tools/shardpack/plan/bad_input.h"
#include "tools/shardpack/plan/field_part.h"
#include "tools/shardpack/plan/plan.h"
#include "tools/shardpack/scan/image_list.h"
#include "tools/shardpack/scan/pack_options.h"
#include "tools/shardpack/scan/request.h"

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
	int code = EXIT_DONE;

	/* the key has quotes, and a dot follows it */
	if (value->text[0] != '{' || strlen(above) + key->bytes >= sizeof(under))
		return EXIT_DONE;
	snprintf(under, sizeof(under), "%s%.*s.", above, (int)key->bytes - 2, key->text + 1);
	for (uint32_t i = 0; !wanted && i < recipe->field_count; i++)
		wanted = field_has_part(&recipe->from[i]) && !strncmp(key_of(r, i), under, strlen(under));
	json_scan_text(&j, value->text, value->bytes);
	while (wanted && code == EXIT_DONE && json_scan_member(&j, &first, &name) == JSON_ITEM &&
	       json_scan_take(&j, &inner)) {
		code = take_member(r, under, &name, &inner, out);
		if (code == EXIT_DONE)
			code = find_nested(r, under, &name, &inner, out);
	}
	return code;
}

static int find_members(struct reading *r, const struct coco_annotation *a, struct found *out)
{
	struct json_range key, value;
	struct json_scan j;
	bool first = true;
	int code = EXIT_DONE;

	*out = (struct found){.category = {.text = NULL}};
	json_scan_text(&j, r->object, a->bytes);
	while (code == EXIT_DONE && json_scan_member(&j, &first, &key) == JSON_ITEM && json_scan_take(&j, &value)) {
		if (json_range_is(&key, "category_id")) {
			if (out->category.text)
				return bad(r, SHARD_MISS_VALUE, "has category_id twice");
			out->category = value;
		}
		code = take_member(r, "", &key, &value, out);
		if (code == EXIT_DONE)
			code = find_nested(r, "", &key, &value, out);
	}
	return code;
}

static bool is_null(const struct json_range *value)
{
	return value->bytes == 4 && !memcmp(value->text, "null", 4);
}

/* Which class an annotation has.  A category that the file does not have is a mistake in it. */
static int class_of(struct reading *r, const struct found *f, int64_t *class_idx)
{
	int64_t id;

	if (!f->category.text)
		return bad(r, SHARD_MISS_INCOMPLETE, "has no category_id, a whole number");
	if (!json_range_whole(&f->category, &id))
		return bad(r, SHARD_MISS_INCOMPLETE, "category_id is %.*s, and must be a whole number",
			   f->category.bytes < 40 ? (int)f->category.bytes : 40, f->category.text);
	*class_idx = coco_list_class(&r->list, id);
	return *class_idx >= 0 ? EXIT_DONE
			       : bad(r, SHARD_MISS_VALUE,
				     "category %" PRId64 " is not among the categories; correct category_id, or add "
				     "the category to the file",
				     id);
}

/*
 * Whatever is packed: a category_id that is there belongs to one of the categories, if the file
 * lists any.  A file without that list, as some tools write it, has nothing to point to.
 */
static int check_category(struct reading *r, const struct found *f)
{
	int64_t class_idx;

	if (!f->category.text || is_null(&f->category) || !(r->list.lists >> COCO_CATEGORIES & 1))
		return EXIT_DONE;
	return class_of(r, f, &class_idx);
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
	int code;

	if (!f->field[i] || is_empty(&f->value[i])) {
		if (r->request->recipe->from[i].optional) {
			if (!r->left_out[i]++ || a->offset < r->first_left_out[i])
				r->first_left_out[i] = a->offset;
			return EXIT_DONE;
		}
		return bad(r, SHARD_MISS_INCOMPLETE, "has no segmentation; with optional, field %s leaves it out",
			   r->request->recipe->field[i].name);
	}
	code = class_of(r, f, &class_idx);
	shape = (struct field_shape){.offset = a->offset + (uint64_t)(f->value[i].text - r->object),
				     .bytes = f->value[i].bytes,
				     .value = (uint32_t)(class_idx + 1)}; /* 0 is where no object lies */
	if (code == EXIT_DONE)
		field_part_add_shape(&r->value[i], &shape);
	r->count[i]++;
	return code;
}

/* An element more of the array. */
static int add_element(struct reading *r, uint32_t i, const struct found *f)
{
	struct text *to = &r->value[i];
	int64_t class_idx;
	int code = EXIT_DONE;

	text_add(to, ",", to->bytes > 1);
	if (!strcmp(key_of(r, i), "category")) {
		code = class_of(r, f, &class_idx);
		if (code == EXIT_DONE)
			text_format(to, "%" PRId64, class_idx);
	} else if (f->field[i]) {
		text_add(to, f->value[i].text, f->value[i].bytes);
	} else {
		code = bad(r, SHARD_MISS_INCOMPLETE, "has no %s, and field %s comes from it", key_of(r, i),
			   r->request->recipe->field[i].name);
	}
	r->count[i]++;
	return code;
}

static int add_annotation(struct reading *r, const struct coco_annotation *a)
{
	const struct recipe *recipe = r->request->recipe;
	struct found f;
	char *larger;
	int code;

	if (a->bytes > r->object_capacity) {
		larger = realloc(r->object, a->bytes);
		if (!larger)
			return out_of_memory();
		r->object = larger;
		r->object_capacity = a->bytes;
	}
	code = stored_get(r->request->stored, r->list.file, a->offset, r->object, a->bytes);
	if (code == EXIT_DONE)
		code = find_members(r, a, &f);
	if (code == EXIT_DONE)
		code = check_category(r, &f);
	for (uint32_t i = 0; code == EXIT_DONE && i < recipe->field_count; i++) {
		const struct field_source *s = &recipe->from[i];

		if (field_has_part(s) && s->kind != FIELD_TENSOR)
			code = s->kind == FIELD_MASK ? add_shape(r, i, a, &f) : add_element(r, i, &f);
	}
	return code;
}

/* ---- one image ---- */

/* The only caption, without the quotes and escapes of JSON. */
static int add_caption(struct reading *r, uint32_t i, uint8_t *value, size_t *bytes, struct field_verdict *v)
{
	const struct field_source *s = &r->request->recipe->from[i];
	struct json_range range = {.text = r->value[i].data + 1, .bytes = r->value[i].bytes - 2};
	char *text = malloc(range.bytes + 1);
	size_t text_bytes = 0;
	int code = text ? EXIT_DONE : out_of_memory();

	if (code == EXIT_DONE && r->count[i] > 1)
		code = bad(r, SHARD_MISS_VALUE, "has %" PRIu64 " texts called %s; " FIELD_LIST_REMEDY, r->count[i],
			   key_of(r, i));
	if (code == EXIT_DONE && !json_range_string(&range, text, &text_bytes))
		code = bad(r, SHARD_MISS_VALUE, "%s is %.*s, and must be a text", key_of(r, i),
			   range.bytes < 60 ? (int)range.bytes : 60, range.text);
	if (code == EXIT_DONE && !field_value(&r->request->recipe->field[i], s, text, text_bytes, value, bytes, v))
		code = v->reason == FIELD_NO_MEMORY ? out_of_memory()
						    : bad(r, (uint32_t)v->reason, "%s, field %s: %s", key_of(r, i),
							  r->request->recipe->field[i].name, v->message);
	free(text);
	return code;
}

static int add_value(struct reading *r, const struct coco_image *x, uint32_t i, struct text *out)
{
	const struct shard_field *f = &r->request->recipe->field[i];
	const struct field_source *s = &r->request->recipe->from[i];
	uint8_t *value = malloc(field_value_room(f));
	struct field_verdict v;
	size_t bytes = 0;
	int code = EXIT_DONE;

	if (!value)
		return out_of_memory();
	if (s->kind == FIELD_TEXT && s->pick == PICK_UNSAID)
		code = add_caption(r, i, value, &bytes, &v);
	else if (!field_value(f, s, r->one[i], strlen(r->one[i]), value, &bytes, &v))
		code = v.reason == FIELD_NO_MEMORY
			       ? out_of_memory()
			       : bad(r, (uint32_t)v.reason, "%s, field %s: %s", key_of(r, i), f->name, v.message);
	if (code == EXIT_DONE && s->kind == FIELD_BOXES)
		field_part_add_sized(out, x->width, x->height, value, bytes);
	else if (code == EXIT_DONE && s->pick == PICK_ALL)
		field_texts_add(f, value, bytes, out);
	else if (code == EXIT_DONE)
		field_part_add_value(out, value, bytes);
	free(value);
	return code;
}

static void begin_values(struct reading *r, const struct coco_image *x)
{
	const struct recipe *recipe = r->request->recipe;

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
}

/* No annotation more. */
static int end_values(struct reading *r)
{
	const struct recipe *recipe = r->request->recipe;

	for (uint32_t i = 0; i < recipe->field_count; i++) {
		uint32_t kind = recipe->from[i].kind;

		if (field_has_part(&recipe->from[i]) && kind != FIELD_MASK && kind != FIELD_TENSOR)
			text_add(&r->value[i], "]", 1);
		if (text_failed(&r->value[i]))
			return out_of_memory();
		r->one[i] = r->value[i].data;
	}
	return EXIT_DONE;
}

static int find_values(struct reading *r, const struct coco_image *x)
{
	int code = EXIT_DONE;

	begin_values(r, x);
	for (uint64_t k = x->first; code == EXIT_DONE && k < x->end; k++) {
		r->annotation = &r->list.annotation[k];
		code = add_annotation(r, r->annotation);
	}
	r->annotation = NULL;
	return code == EXIT_DONE ? end_values(r) : code;
}

/* For when no image has one. */
static void tell_absent(struct reading *r, const struct coco_image *x, uint32_t i)
{
	scan_absent(r->request->scan, i, "%s: image %" PRId64 " has no annotation with a %s", r->list.where, x->id,
		    key_of(r, i));
}

/* The tokens of an input. */
static int put_fields(struct reading *r, const struct coco_image *x)
{
	const struct recipe *recipe = r->request->recipe;
	int code = EXIT_DONE;

	r->fields.bytes = 0;
	for (uint32_t i = 0; code == EXIT_DONE && i < recipe->field_count; i++) {
		const struct field_source *s = &recipe->from[i];

		if (!field_has_part(s))
			continue;
		if (s->optional && !r->count[i])
			tell_absent(r, x, i);
		if (s->kind == FIELD_MASK)
			text_add(&r->fields, r->value[i].data, r->value[i].bytes);
		else if (s->kind == FIELD_TEXT && !r->count[i] && s->optional)
			field_part_add_none(&r->fields);
		else if (s->kind == FIELD_TEXT && !r->count[i])
			code = bad(r, SHARD_MISS_INCOMPLETE, "has no %s; with optional, field %s is empty",
				   key_of(r, i), recipe->field[i].name);
		else
			code = add_value(r, x, i, &r->fields);
	}
	return code == EXIT_DONE && text_failed(&r->fields) ? out_of_memory() : code;
}

/* The file of an image, into `path`, which is empty if there is no such path. */
static int find_file(struct reading *r, const struct coco_image *x, char path[PLAN_PATH_BYTES_MAX], struct stat *st)
{
	const struct source_place *place = r->request->place;
	const char *name = r->list.names.data + x->name_at;
	char joined[2 * PLAN_PATH_BYTES_MAX];
	int bytes = snprintf(joined, sizeof(joined), "%s%s", r->folder, name), code;
	bool there;

	path[0] = '\0';
	if (name[0] == '/' || bytes >= (int)sizeof(joined) ||
	    !text_settle_path(joined, (size_t)bytes, path, PLAN_PATH_BYTES_MAX)) {
		path[0] = '\0';
		return bad(r, SHARD_MISS_VALUE, "file_name '%.100s' must be a path below %.100s%s%.100s", name,
			   place->root, r->folder[0] ? "/" : "", r->folder);
	}
	code = place_look(place, path, st, &there, &r->bad);
	if (code != EXIT_DONE || there)
		return code;
	return bad(r, SHARD_MISS_MISSING,
		   "names this file, and there is none; name the folder of its images with --root");
}

/* An input with its fields; or a bad one, as `code` says. */
static int add_input(struct reading *r, uint64_t idx, const char *path, const struct stat *st, int code)
{
	char name[PLAN_PATH_BYTES_MAX];

	if (code == EXIT_DONE)
		return image_list_add(r->images, path, "", input_file_bytes(st), PLAN_NO_FILE, 0, &r->fields);
	if (!bad_input_is(&r->bad, code))
		return code;
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
	int code;

	r->bad = (struct bad_input){.reason = 0};
	r->annotation = NULL;
	code = find_file(r, x, path, &st);
	if (code == EXIT_DONE)
		code = find_values(r, x);
	if (code == EXIT_DONE)
		code = text_each_open(&r->each, r->request->recipe, r->one, &r->bad);
	if (code != EXIT_DONE) {
		text_each_close(&r->each);
		return add_input(r, idx, path, &st, code);
	}
	for (r->text = 0; code == EXIT_DONE && r->text < r->each.count; r->text++) {
		r->bad.reason = 0;
		r->images->further = r->text > 0;
		code = text_each_at(&r->each, r->text, r->one) ? put_fields(r, x) : out_of_memory();
		code = add_input(r, idx, path, &st, code);
	}
	r->images->further = false;
	text_each_close(&r->each);
	return code;
}

static int add_images(struct reading *r)
{
	struct progress progress;
	int code = EXIT_DONE;

	progress_start(&progress, "listing", "images", 0);
	for (uint64_t i = 0; code == EXIT_DONE && i < r->list.image_count; i++) {
		code = interrupted() ? EXIT_INTERRUPTED : add_image(r, i);
		progress_add(&progress, 1, 0, 0);
		progress_tick(&progress);
	}
	progress_abandon(&progress);
	for (uint32_t i = 0; code == EXIT_DONE && i < r->request->recipe->field_count; i++)
		if (r->left_out[i] && r->left_out[i] < r->list.annotation_count) /* all: refused */
			scan_warn(r->request->scan,
				  "%s: %" PRIu64 " of %" PRIu64
				  " annotations have no segmentation; field %s leaves them "
				  "out (the first is at byte %" PRIu64 ")",
				  r->list.where, r->left_out[i], r->list.annotation_count,
				  r->request->recipe->field[i].name, r->first_left_out[i]);
	return code;
}

/* ---- all of them ---- */

/* Where file names begin: at --root, else at the folder of the file. */
static char *folder_of(const struct request *r, const char *path)
{
	const char *slash = strrchr(path, '/');
	char *out = NULL;

	if (r->o->root)
		return asprintf(&out, "%s%s", r->place->below, r->place->below[0] ? "/" : "") < 0 ? NULL : out;
	return strndup(path, slash ? (size_t)(slash + 1 - path) : 0);
}

int coco_images_add(struct image_list *images, struct classes *classes, const char *path)
{
	struct reading *r = calloc(1, sizeof(*r));
	int code = r ? coco_fields_settle(images->request) : out_of_memory();

	if (!r)
		return code;
	r->request = images->request;
	r->images = images;
	r->path = path;
	if (code == EXIT_DONE && !(r->folder = folder_of(r->request, path)))
		code = out_of_memory();
	if (code == EXIT_DONE)
		code = coco_list_read(&r->list, r->request, path);
	if (code == EXIT_DONE)
		code = coco_fields_check(r->request, &r->list);
	if (code == EXIT_DONE)
		code = coco_list_name_classes(&r->list, classes);
	if (code == EXIT_DONE)
		code = add_images(r);
	for (uint32_t i = 0; i < RECIPE_NAMED_MAX; i++)
		text_free(&r->value[i]);
	text_free(&r->fields);
	coco_list_free(&r->list);
	free(r->object);
	free(r->folder);
	free(r);
	return code;
}
