/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_text.c - a plan as text: made line by line, and read back, believing nothing
 *
 * The digest on the last line shows damage, not intent: a process that can write into the folder
 * can write a plan.  So every number is compared with its limit, and no path may leave the
 * source folder.
 */
#include "tools/shardpack/plan/plan.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libshard/base/words.h"
#include "shard_pack.h"
#include "tools/common/files.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/shelf.h"
#include "tools/common/text.h"
#include "tools/shardpack/images/images.h"

/* ---- a plan, made line by line ---- */

static int out_of_room(const struct plan *p)
{
	return shelf_refuse(p->text.shelf, "a plan of %" PRIu64 " inputs", p->input_count);
}

int plan_add_file(struct plan *p, uint64_t bytes, const char *path, uint32_t of, const char *how)
{
	struct plan_file *f;

	if (p->file_count == PLAN_FILES_MAX)
		return fail(EXIT_BAD, "more than the limit of %" PRIu32 " files", PLAN_FILES_MAX);
	grow(&p->file, &p->file_capacity, p->file_count + 1, sizeof(*p->file));
	f = &p->file[p->file_count++];
	*f = (struct plan_file){.bytes = bytes, .of = of, .path = xstrdup(path), .how = how ? xstrdup(how) : NULL};
	return EXIT_DONE;
}

int plan_add_slice(struct plan *p, const struct plan_slice *slice)
{
	if (!grow_on(p->text.shelf, &p->slice, &p->slice_capacity, p->slice_count + 1, sizeof(*p->slice)))
		return out_of_room(p);
	p->slice[p->slice_count++] = *slice;
	return EXIT_DONE;
}

int plan_begin(struct plan *p, const struct recipe *recipe, const struct classes *classes)
{
	p->recipe = *recipe;
	for (uint32_t i = 0; i < recipe->field_count; i++)
		mask_map_copy(&recipe->from[i].map, &p->recipe.from[i].map);
	p->class_count = classes->count;
	p->class_at = xcalloc(classes->count + 1, sizeof(*p->class_at));
	for (uint64_t i = 0; i < classes->count; i++) {
		text_format(&p->text, "class %" PRIu64 " ", i);
		p->class_at[i] = p->text.bytes;
		text_encode(&p->text, classes->name[i], strlen(classes->name[i]), false);
		text_add(&p->text, "\n", 1);
	}
	text_format(&p->text, "classes %" PRIu64 "\n", classes->count);
	return text_failed(&p->text) ? out_of_room(p) : EXIT_DONE;
}

/* By the names of an input and of its further images; that of a member is the suffix in from=. */
static void note_formats(struct recipe *r, const char *path, const char *fields)
{
	r->formats |= image_format_bit(image_format_of_name(path, strlen(path)));
	for (size_t bytes; *fields; fields += bytes) {
		bytes = strcspn(fields + 1, " ") + 1;
		r->formats |= image_format_bit(image_format_of_name(fields, bytes));
	}
	for (uint32_t i = 0; i < r->field_count; i++)
		if (r->from[i].kind == FIELD_IMAGE)
			r->formats |= image_format_bit(image_format_of_name(r->from[i].from, strlen(r->from[i].from)));
}

/* Room for the line of one more input. */
static bool grow_inputs(struct plan *p)
{
	return grow_on(p->text.shelf, &p->input_at, &p->input_capacity, p->input_count + 1, sizeof(*p->input_at));
}

int plan_add_input(struct plan *p, const struct plan_input *in, const char *path, const char *fields)
{
	assert(in->row <= PLAN_ROWS_MAX);
	if (!grow_inputs(p))
		return out_of_room(p);
	note_formats(&p->recipe, path, fields);
	p->input_at[p->input_count] = p->text.bytes;
	text_format(&p->text, "input %" PRIu64 " ", p->input_count);
	if (in->classes)
		text_add(&p->text, in->classes, strlen(in->classes));
	else if (plan_has_labels(p) && in->class_idx != PLAN_NO_CLASS)
		text_format(&p->text, "%" PRIu32, in->class_idx);
	else
		text_add(&p->text, "-", 1);
	text_format(&p->text, " %" PRIu64 " ", in->source_bytes);
	text_encode(&p->text, path, strlen(path), true);
	if (in->row > 1)
		text_format(&p->text, "#%" PRIu64, in->row);
	if (in->file != PLAN_NO_FILE)
		text_format(&p->text, " %" PRIu32 " %" PRIu64, in->file, in->offset);
	text_add(&p->text, fields, strlen(fields));
	text_add(&p->text, "\n", 1);
	p->input_count++;
	p->source_bytes += in->source_bytes;
	p->bad_count += bad_input_begins(fields);
	return text_failed(&p->text) ? out_of_room(p) : EXIT_DONE;
}

/* The last step of making and of reading a plan: the order in which its inputs are packed. */
static int settle_order(struct plan *p)
{
	struct shard_error err;
	uint64_t capacity = 0;

	if (p->recipe.order != SHARD_ORDER_SHUFFLE || !p->input_count ||
	    (!plan_names_inputs(p) && p->input_count > PLAN_ORDER_MAX))
		return EXIT_DONE;
	if (!grow_on(p->text.shelf, &p->order, &capacity, p->input_count, sizeof(*p->order)))
		return out_of_room(p);
	if (shard_pack_order(p->recipe.seed, p->input_count, 0, p->input_count, p->order, &err) != SHARD_OK)
		return fail_of_library(&err);
	return EXIT_DONE;
}

/* Its slices are in order: find where those of each field begin, and what all files have. */
static void settle_slices(struct plan *p)
{
	uint32_t field = 0;

	p->source_bytes = 0;
	for (uint64_t i = 0; i < p->file_count; i++)
		p->source_bytes += p->file[i].how ? 0 : p->file[i].bytes;
	for (uint64_t i = 0; i < p->slice_count; i++)
		while (field <= p->slice[i].field)
			p->field_slice[field++] = i;
	while (field <= p->recipe.field_count)
		p->field_slice[field++] = p->slice_count;
}

static int compare_slices(const void *a, const void *b, void *unused)
{
	const struct plan_slice *x = a, *y = b;

	(void)unused;
	if (x->field != y->field)
		return x->field < y->field ? -1 : 1;
	return x->first < y->first ? -1 : x->first > y->first;
}

static bool write_slices(struct plan *p)
{
	if (!shelf_sort(p->text.shelf, p->slice, p->slice_count, sizeof(*p->slice), compare_slices, NULL))
		return false;
	settle_slices(p);
	for (uint64_t i = 0; i < p->slice_count; i++) {
		const struct plan_slice *s = &p->slice[i];

		text_format(&p->text,
			    "slice %" PRIu16 " %" PRIu64 " %" PRIu64 " %" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRIu64
			    " %s%s\n",
			    s->field, s->first, s->count, s->file, s->offset, s->stride, s->bytes, s->swap ? ">" : "",
			    shard_name(SHARD_NAME_DTYPE, s->dtype));
	}
	text_format(&p->text, "slices %" PRIu64 "\n", p->slice_count);
	return true;
}

/* The head is written last: the shard size may depend on the number of inputs. */
static void write_head(struct plan *p)
{
	struct text head = {0};

	text_format(&head, "shardpack-plan 1\n");
	recipe_write(&p->recipe, &head);
	p->versions_at = head.bytes;
	recipe_write_versions(&p->recipe, &head);
	p->versions_bytes = head.bytes - p->versions_at;
	for (uint64_t i = 0; i < p->file_count; i++) {
		const struct plan_file *f = &p->file[i];

		if (f->how) {
			text_format(&head, "unpack %" PRIu64 " %" PRIu64 " %" PRIu32 " %s\n", i, f->bytes, f->of,
				    f->how);
			continue;
		}
		text_format(&head, "file %" PRIu64 " %" PRIu64 " ", i, f->bytes);
		text_encode(&head, f->path, strlen(f->path), true);
		text_add(&head, "\n", 1);
	}
	if (p->file_count)
		text_format(&head, "files %" PRIu64 "\n", p->file_count);
	text_put_before(&p->text, &head);
	for (uint64_t i = 0; i < p->class_count; i++)
		p->class_at[i] += head.bytes;
	for (uint64_t i = 0; p->input_at && i < p->input_count; i++)
		p->input_at[i] += head.bytes;
	text_free(&head);
}

int plan_finish(struct plan *p)
{
	uint64_t first, count;

	assert(p->recipe.shard_records > 0);
	write_head(p);
	p->shard_count = (p->input_count + p->recipe.shard_records - 1) / p->recipe.shard_records;
	if (p->pack)
		token_pack_write(p->pack, &p->text);
	else if (!plan_names_inputs(p) && !write_slices(p))
		return out_of_room(p);
	text_format(&p->text, "inputs %" PRIu64 "\n", p->input_count);
	for (uint64_t k = 0; k < p->shard_count; k++) {
		plan_shard(p, k, &first, &count);
		text_format(&p->text, "shard %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", k, first, count);
	}
	text_format(&p->text, "shards %" PRIu64 "\n", p->shard_count);
	if (text_failed(&p->text))
		return out_of_room(p);
	shard_sha256(p->text.data, p->text.bytes, p->digest);
	text_add(&p->text, "end ", 4);
	text_hex(&p->text, p->digest, sizeof(p->digest));
	text_add(&p->text, "\n", 1);
	return text_failed(&p->text) ? out_of_room(p) : settle_order(p);
}

/* ---- a line "slice ..." ---- */

bool plan_take_dtype(struct words *l, uint8_t *out, uint8_t *swap)
{
	struct word w;
	uint32_t dtype;

	if (!words_take(l, ' ', &w))
		return false;
	*swap = w.bytes && w.text[0] == '>';
	dtype = text_named(SHARD_NAME_DTYPE, w.text + *swap, w.bytes - *swap, SHARD_U8);
	*out = (uint8_t)dtype;
	return dtype != TEXT_NO_NAME;
}

/* Labels become i64.  Tokens of 8 bits become u16, those of 64 bits u32, as all of them fit. */
static bool converts(const struct plan_slice *s, const struct shard_field *f)
{
	if (f->semantic == SHARD_TOKENS)
		return (s->dtype == SHARD_U8 && f->dtype == SHARD_U16) ||
		       (s->dtype == SHARD_U64 && f->dtype == SHARD_U32);
	return s->dtype <= SHARD_I64 && f->dtype == SHARD_I64;
}

/* All inputs of a slice must lie in it, with the dtype that they have in the file. */
static bool slice_fits(const struct plan *plan, const struct plan_slice *s)
{
	const struct shard_field *f = &plan->recipe.field[s->field];
	uint64_t item = shard_dtype_bytes(s->dtype), last;

	if (!s->count || s->count > PLAN_INPUTS_MAX || s->first > PLAN_INPUTS_MAX - s->count ||
	    s->offset > plan->file[s->file].bytes || s->bytes > plan->file[s->file].bytes - s->offset || !s->bytes)
		return false;
	if (s->stride && s->count - 1 > s->bytes / s->stride)
		return false;
	last = (s->count - 1) * s->stride; /* at most s->bytes */
	if (s->dtype != f->dtype && !converts(s, f))
		return false;
	if (last >= s->bytes)
		return false;
	if (f->kind == SHARD_RAGGED)
		return s->bytes - last <= recipe_field_items(f) * item && (s->bytes - last) % item == 0;
	return s->bytes - last == recipe_field_items(f) * item;
}

/* NULL, or what is wrong with what is behind "slice".  The files and fields of the plan are there already. */
static const char *read_slice_line(const struct plan *plan, struct words *l, struct plan_slice *s)
{
	uint64_t field, file;

	if (!words_u64(l, ' ', SHARD_FIELDS_MAX, &field) || field >= plan->recipe.field_count ||
	    !words_u64(l, ' ', PLAN_INPUTS_MAX, &s->first) || !words_u64(l, ' ', PLAN_INPUTS_MAX, &s->count) ||
	    !words_u64(l, ' ', PLAN_FILES_MAX, &file) || file >= plan->file_count ||
	    !words_u64(l, ' ', PLAN_BYTES_MAX, &s->offset) || !words_u64(l, ' ', PLAN_BYTES_MAX, &s->stride) ||
	    !words_u64(l, ' ', PLAN_BYTES_MAX, &s->bytes) || !plan_take_dtype(l, &s->dtype, &s->swap) || !words_done(l))
		return "not a slice within a file";
	s->field = (uint16_t)field;
	s->file = (uint32_t)file;
	return slice_fits(plan, s) ? NULL : "a slice does not fit its file or its field";
}

/* ---- a plan from its text ---- */

#define ENCODED_BYTES (3 * (size_t)PLAN_PATH_BYTES_MAX) /* room that a path takes when it is decoded */

struct parser {
	struct plan *plan;
	struct words text; /* up to the line `end ...` */
	const char *name;
	uint64_t number; /* of the line, from 1 */
};

static int broken(const struct parser *p, const char *what)
{
	return fail(EXIT_BAD, "%s: line %" PRIu64 ": %s; this is not a plan that shardpack wrote", p->name, p->number,
		    what);
}

/* False, and no words, at the end. */
static bool next_line(struct parser *p, struct words *l)
{
	bool there = words_line(&p->text, l);

	if (!there)
		*l = (struct words){NULL, NULL};
	p->number += there;
	return there;
}

/* A line of a word and a number. */
static bool take_count(struct words *l, const char *word, uint64_t most, uint64_t *out)
{
	return words_is(l, ' ', word) && words_u64(l, ' ', most, out) && words_done(l);
}

/* A path below the source, decoded into `out` of ENCODED_BYTES; false if it is not one. */
static bool decode_path(struct word w, char *out)
{
	return w.bytes < ENCODED_BYTES && text_decode(w.text, w.bytes, true, out) > 0 &&
	       strlen(out) < PLAN_PATH_BYTES_MAX && text_stays_below(out);
}

/*
 * The same of an input, whose path may have a number behind it, as "a.jpg#2": *row, else 1.  The
 * two together must be no longer than a path may be.
 */
static bool take_input(struct words *l, char *out, uint64_t *row)
{
	struct word whole, path;
	struct words c;

	*row = 1;
	if (!words_take(l, ' ', &whole))
		return false;
	c = words_of(whole.text, whole.bytes);
	words_take(&c, '#', &path);
	if (!words_done(&c) && (!words_u64(&c, '#', PLAN_ROWS_MAX, row) || *row < 2 || !words_done(&c)))
		return false;
	return decode_path(path, out) && strlen(out) + whole.bytes - path.bytes < PLAN_PATH_BYTES_MAX;
}

static bool file_has(const struct plan *p, uint64_t file, uint64_t offset, uint64_t bytes)
{
	return file < p->file_count && offset <= p->file[file].bytes && bytes <= p->file[file].bytes - offset;
}

static int read_versions(struct parser *p, struct words *l)
{
	struct plan *plan = p->plan;

	plan->versions_at = (size_t)(p->text.at - plan->text.data);
	while (next_line(p, l) && (words_is(l, ' ', "bytes-version") || words_is(l, ' ', "version")))
		plan->versions_bytes = (size_t)(p->text.at - plan->text.data) - plan->versions_at;
	return plan->versions_bytes ? EXIT_DONE : broken(p, "no version");
}

/* The words behind "unpack" and its number; unpack.c judges `how`, which here is of plain letters. */
static int read_unpack(struct parser *p, struct words *l)
{
	struct plan *plan = p->plan;
	uint64_t bytes, of;
	char how[256];
	struct word w;

	if (!words_u64(l, ' ', PLAN_BYTES_MAX, &bytes) || !words_u64(l, ' ', PLAN_FILES_MAX, &of) ||
	    of >= plan->file_count || !words_take(l, ' ', &w) || !words_done(l) || w.bytes >= sizeof(how) ||
	    strspn(w.text, "abcdefghijklmnopqrstuvwxyz0123456789,-") < w.bytes)
		return broken(p, "not a way to unpack a file");
	memcpy(how, w.text, w.bytes);
	how[w.bytes] = '\0';
	return plan_add_file(plan, bytes, plan->file[of].path, (uint32_t)of, how);
}

/* The words behind "file" and its number. */
static int read_file(struct parser *p, struct words *l)
{
	char path[ENCODED_BYTES];
	uint64_t bytes;
	struct word w;

	if (!words_u64(l, ' ', PLAN_BYTES_MAX, &bytes) || !words_take(l, ' ', &w) || !words_done(l) ||
	    !decode_path(w, path))
		return broken(p, "not a file below the source");
	return plan_add_file(p->plan, bytes, path, PLAN_NO_FILE, NULL);
}

/* Begins with the line that is in `l`, leaves the one behind `files`. */
static int read_files(struct parser *p, struct words *l)
{
	struct plan *plan = p->plan;
	uint64_t idx;
	bool unpack, any = false;
	int rc = EXIT_DONE;

	for (; rc == EXIT_DONE; next_line(p, l)) {
		unpack = words_is(l, ' ', "unpack");
		if (!unpack && !words_is(l, ' ', "file"))
			break;
		if (!words_u64(l, ' ', PLAN_FILES_MAX, &idx) || idx != plan->file_count)
			return broken(p, "files are not numbered from 0");
		rc = unpack ? read_unpack(p, l) : read_file(p, l);
		any = true;
	}
	if (rc != EXIT_DONE || (!any && plan_names_inputs(plan)))
		return rc;
	if (!take_count(l, "files", PLAN_FILES_MAX, &idx) || !idx || idx != plan->file_count)
		return broken(p, "the number of files is missing or wrong");
	next_line(p, l);
	return EXIT_DONE;
}

/* Begins with the line that is in `l`, leaves the one behind `classes`. */
static int read_classes(struct parser *p, struct words *l)
{
	struct plan *plan = p->plan;
	char name[3 * CLASS_NAME_BYTES_MAX + 1];
	uint64_t capacity = 0, idx;
	struct word w;
	long bytes;

	for (; words_is(l, ' ', "class"); next_line(p, l)) {
		if (!words_u64(l, ' ', CLASSES_MAX - 1, &idx) || idx != plan->class_count || !words_take(l, ' ', &w) ||
		    !words_done(l))
			return broken(p, "classes are not numbered from 0");
		bytes = w.bytes < sizeof(name) ? text_decode(w.text, w.bytes, false, name) : -1;
		if (bytes < 0 || !text_is_name(name, (size_t)bytes, CLASS_NAME_BYTES_MAX))
			return broken(p, "not a class name");
		grow(&plan->class_at, &capacity, plan->class_count + 1, sizeof(*plan->class_at));
		plan->class_at[plan->class_count++] = (uint64_t)(w.text - plan->text.data);
	}
	if (!take_count(l, "classes", CLASSES_MAX, &idx) || idx != plan->class_count ||
	    (idx && plan_names_inputs(plan) && !recipe_names_classes(&plan->recipe)) ||
	    (plan->recipe.label == LABEL_HOT && idx != plan->recipe.label_room))
		return broken(p, "the number of classes is missing or wrong");
	return EXIT_DONE;
}

static bool is_hex(const struct field_part *value)
{
	return strspn(value->text, "0123456789abcdef") >= value->text_bytes;
}

/* NULL, or what is wrong with the token of a field; `path` is room for what is decoded. */
static const char *judge_part(const struct plan *p, uint32_t field, struct word w, char *path)
{
	const struct field_source *s = &p->recipe.from[field];
	struct field_part part;

	if (!field_part_read(w.text, w.bytes, &part) || part.bytes > PLAN_BYTES_MAX)
		return "not a field of an input";
	switch (part.kind) {
	case FIELD_PART_NONE:
		return s->optional ? NULL : "a field that is not optional is missing";
	case FIELD_PART_VALUE:
		return !field_is_picture(s->kind) && is_hex(&part) && field_texts_fit(&p->recipe.field[field], s, &part)
			       ? NULL
			       : "not a value of its field";
	case FIELD_PART_FILE:
		return decode_path((struct word){part.text, part.text_bytes}, path)
			       ? NULL
			       : "a field's path leaves the source";
	case FIELD_PART_MEMBER:
		return file_has(p, part.file, part.offset, part.bytes) ? NULL
								       : "the bytes of a field are not within a file";
	case FIELD_PART_SHAPES:
		return s->kind == FIELD_MASK && field_coco_key(s) && part.file < p->file_count &&
				       field_part_shapes_fit(&part, p->file[part.file].bytes,
							     field_mask_most(p->recipe.field[field].dtype))
			       ? NULL
			       : "the objects of a mask are not within a file";
	}
	return NULL;
}

/* The two words at the end of an input that is known to be bad. */
static bool take_bad(struct words *l)
{
	char message[BAD_INPUT_MESSAGE_BYTES];
	struct words next = *l;
	struct word why, said;

	if (!words_take(&next, ' ', &why) || !words_take(&next, ' ', &said) || !words_done(&next) ||
	    !bad_input_reason(why.text, why.bytes) || !bad_input_message(said.text, said.bytes, message))
		return false;
	*l = next;
	return true;
}

static bool is_label(const struct plan *plan, struct word w, bool bad)
{
	struct words c = words_of(w.text, w.bytes);
	uint64_t class_idx;

	if (recipe_is_multi_label(&plan->recipe))
		return class_list_is(w.text, w.bytes, plan->class_count, plan->recipe.label_room);
	if (plan_has_labels(plan) && !(bad && word_is(w, "-")))
		return words_u64(&c, ' ', CLASSES_MAX, &class_idx) && class_idx < plan->class_count;
	return word_is(w, "-");
}

/* NULL, or what is wrong with what is behind "input". */
static const char *judge_input(const struct plan *plan, struct words *l, char *path, uint64_t *bytes, bool *bad)
{
	const struct recipe *r = &plan->recipe;
	size_t column_bytes = 0; /* of the numbers of --columns */
	uint64_t idx, file, offset, row;
	struct field_part columns;
	struct word label, w;
	const char *wrong = NULL;

	if (!words_u64(l, ' ', PLAN_INPUTS_MAX - 1, &idx) || idx != plan->input_count || !words_take(l, ' ', &label))
		return "inputs are not numbered from 0";
	if (!words_u64(l, ' ', PLAN_BYTES_MAX, bytes) || plan->source_bytes > UINT64_C(1) << 61)
		return "not a size";
	if (!take_input(l, path, &row))
		return "not a path below the source";
	if (words_u64(l, ' ', PLAN_FILES_MAX, &file) &&
	    (!words_u64(l, ' ', PLAN_BYTES_MAX, &offset) || !file_has(plan, file, offset, *bytes)))
		return "not a part of a file";
	*bad = take_bad(l);
	if (!is_label(plan, label, *bad))
		return "there is no such class";
	if (*bad)
		return NULL;
	for (uint32_t i = 0; i < r->field_count; i++)
		column_bytes += r->from[i].column ? shard_dtype_bytes(r->field[i].dtype) : 0;
	if (column_bytes && (!words_take(l, ' ', &w) || !field_part_read(w.text, w.bytes, &columns) ||
			     columns.kind != FIELD_PART_VALUE || columns.bytes != column_bytes || !is_hex(&columns)))
		return "not the numbers of --columns";
	for (uint32_t i = 0; !wrong && i < r->field_count; i++)
		if (field_has_part(&r->from[i]))
			wrong = words_take(l, ' ', &w) ? judge_part(plan, i, w, path)
						       : "a field of an input is missing";
	return wrong || words_done(l) ? wrong : "more words than an input has";
}

static int read_inputs(struct parser *p, struct words *l)
{
	struct plan *plan = p->plan;
	char *path = xmalloc(ENCODED_BYTES, 1);
	const char *wrong = NULL, *line = p->text.at;
	bool fits = true, bad;
	uint64_t bytes = 0;

	for (; fits && next_line(p, l) && words_is(l, ' ', "input"); line = p->text.at) {
		wrong = judge_input(plan, l, path, &bytes, &bad);
		fits = wrong || grow_inputs(plan);
		if (wrong || !fits)
			break;
		plan->input_at[plan->input_count++] = (uint64_t)(line - plan->text.data);
		plan->bad_count += bad;
		plan->source_bytes += bytes;
	}
	free(path);
	if (!fits)
		return shelf_refuse(plan->text.shelf, "the inputs of %s", p->name);
	return wrong ? broken(p, wrong) : EXIT_DONE;
}

/* Every field but those of lengths has slices for the same number of inputs, without a hole. */
static bool slices_tile(struct plan *plan)
{
	const struct recipe *r = &plan->recipe;
	settle_slices(plan);
	for (uint32_t f = 0; f < r->field_count; f++) {
		uint64_t at = 0;

		if (r->field[f].semantic == SHARD_LENGTH) {
			if (plan->field_slice[f] != plan->field_slice[f + 1])
				return false;
			continue;
		}
		for (uint64_t i = plan->field_slice[f]; i < plan->field_slice[f + 1]; i++) {
			if (plan->slice[i].first != at)
				return false;
			at += plan->slice[i].count;
		}
		if (!at || (plan->input_count && at != plan->input_count))
			return false;
		plan->input_count = at;
	}
	return plan->input_count > 0;
}

/* Begins with the line that is in `l`, leaves the one behind `pack`. */
static int read_pack(struct parser *p, struct words *l)
{
	struct plan *plan = p->plan;
	uint64_t count;

	plan->pack = xcalloc(1, sizeof(*plan->pack));
	for (; words_is(l, ' ', "stream"); next_line(p, l))
		if (!token_pack_read_stream(plan->pack, l, plan))
			return broken(p, "not tokens within a file");
	if (!take_count(l, "streams", UINT64_MAX, &count) || count != plan->pack->stream_count)
		return broken(p, "the number of streams is missing or wrong");
	if (!next_line(p, l) || !token_pack_read(plan->pack, l, &plan->recipe))
		return broken(p, "not a way to pack documents");
	plan->input_count = plan->pack->window_count;
	settle_slices(plan);
	next_line(p, l);
	return EXIT_DONE;
}

static int read_slices(struct parser *p, struct words *l)
{
	struct plan *plan = p->plan;
	struct plan_slice s = {0};
	const char *wrong;
	struct words peek;
	uint64_t count;
	int rc = EXIT_DONE;

	next_line(p, l);
	peek = *l;
	if (words_is(&peek, ' ', "stream"))
		return read_pack(p, l);
	for (; rc == EXIT_DONE && words_is(l, ' ', "slice"); next_line(p, l)) {
		wrong = read_slice_line(plan, l, &s);
		if (!wrong && plan->slice_count && s.field < plan->slice[plan->slice_count - 1].field)
			wrong = "slices are not in the order of fields";
		if (wrong)
			return broken(p, wrong);
		rc = plan_add_slice(plan, &s);
	}
	if (rc != EXIT_DONE)
		return rc;
	if (!take_count(l, "slices", UINT64_MAX, &count) || count != plan->slice_count || !slices_tile(plan))
		return broken(p, "the slices do not give each field of each input once");
	next_line(p, l);
	return EXIT_DONE;
}

/* Where shards begin follows from the recipe; the lines must say the same. */
static int read_shards(struct parser *p, struct words *l)
{
	struct plan *plan = p->plan;
	uint64_t idx = 0, first, count, said[3];

	plan->shard_count = (plan->input_count + plan->recipe.shard_records - 1) / plan->recipe.shard_records;
	while (next_line(p, l) && words_is(l, ' ', "shard")) {
		if (idx == plan->shard_count)
			return broken(p, "more shards than inputs ask for");
		plan_shard(plan, idx, &first, &count);
		if (!words_u64(l, ' ', UINT64_MAX, &said[0]) || !words_u64(l, ' ', UINT64_MAX, &said[1]) ||
		    !words_u64(l, ' ', UINT64_MAX, &said[2]) || !words_done(l) || said[0] != idx || said[1] != first ||
		    said[2] != count)
			return broken(p, "not the shard that the recipe asks for");
		idx++;
	}
	if (!take_count(l, "shards", UINT64_MAX, &said[0]) || said[0] != idx || idx != plan->shard_count)
		return broken(p, "the number of shards is missing or wrong");
	return next_line(p, l) ? broken(p, "a line follows the shards") : EXIT_DONE;
}

/* The last line: "end " and a digest of what is before it. */
static int check_end(struct parser *p, const struct text *text)
{
	static const size_t end_bytes = 4 + 64 + 1;
	uint8_t said[32];

	if (text->bytes < end_bytes || memcmp(text->data + text->bytes - end_bytes, "end ", 4) ||
	    text->data[text->bytes - 1] != '\n' || !text_unhex(text->data + text->bytes - 65, 64, said, 32))
		return fail(EXIT_BAD, "%s: cut short: the last line of a plan is missing after %zu bytes", p->name,
			    text->bytes);
	p->text = words_of(text->data, text->bytes - end_bytes);
	shard_sha256(text->data, text->bytes - end_bytes, p->plan->digest);
	if (memcmp(said, p->plan->digest, 32))
		return fail(EXIT_BAD, "%s: damaged: its SHA-256 is not the one on its last line", p->name);
	return EXIT_DONE;
}

int plan_parse(struct plan *plan, struct text *text, const char *name)
{
	struct parser p = {.plan = plan, .name = name};
	size_t recipe_bytes, wrong;
	uint64_t count;
	const char *at;
	struct word version;
	struct words l;
	int rc;

	memset(plan, 0, sizeof(*plan));
	plan->text = *text;
	memset(text, 0, sizeof(*text));
	rc = check_end(&p, &plan->text);
	if (rc != EXIT_DONE)
		return rc;
	if (!next_line(&p, &l) || !words_is(&l, ' ', "shardpack-plan") || !words_take(&l, ' ', &version) ||
	    !words_done(&l))
		return broken(&p, "not the first line of a plan");
	if (!word_is(version, "1"))
		return fail(EXIT_UNSUPPORTED, "%s: plan version %.*s; this shardpack reads version 1", name,
			    (int)version.bytes, version.text);
	recipe_bytes = recipe_read(&plan->recipe, p.text.at, (size_t)(p.text.end - p.text.at), &wrong);
	if (!recipe_bytes) {
		p.number++;
		return broken(&p, "not a recipe");
	}
	p.text.at += recipe_bytes;
	for (at = plan->text.data; at < p.text.at; at++)
		p.number += *at == '\n';
	p.number--; /* the first line was counted */
	rc = read_versions(&p, &l);
	if (rc == EXIT_DONE)
		rc = read_files(&p, &l);
	if (rc == EXIT_DONE)
		rc = read_classes(&p, &l);
	if (rc == EXIT_DONE)
		rc = plan_names_inputs(plan) ? read_inputs(&p, &l) : read_slices(&p, &l);
	if (rc == EXIT_DONE && (!take_count(&l, "inputs", PLAN_INPUTS_MAX, &count) || count != plan->input_count))
		rc = broken(&p, "the number of inputs is missing or wrong");
	if (rc == EXIT_DONE)
		rc = read_shards(&p, &l);
	return rc == EXIT_DONE ? settle_order(plan) : rc;
}
