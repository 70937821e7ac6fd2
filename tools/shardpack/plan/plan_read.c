/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_read.c - a plan from its text, believing nothing
 *
 * The digest on the last line shows damage, not intent: a process that can write into the folder
 * can write a plan.  So every number is compared with its limit, and no path may leave the
 * source folder.
 */
#include "tools/shardpack/plan/plan_read.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "shard_pack.h"
#include "tools/common/exit_code.h"
#include "tools/common/files.h"
#include "tools/common/grow.h"
#include "tools/common/message.h"
#include "tools/common/shelf.h"
#include "tools/shardpack/plan/bad_input.h"
#include "tools/shardpack/plan/classes.h"
#include "tools/shardpack/plan/field_part.h"
#include "tools/shardpack/plan/field_texts.h"
#include "tools/shardpack/plan/plan.h"
#include "tools/shardpack/plan/plan_slice.h"
#include "tools/shardpack/plan/plan_tokens.h"
#include "tools/shardpack/plan/recipe_read.h"
#include "tools/shardpack/plan/token_pack_text.h"
#include "tools/shardpack/token_pack/token_pack.h"

#define BYTES_MAX PLAN_BYTES_MAX

struct parser {
	struct plan *plan;
	const char *at, *end; /* end: where the line `end ...` begins */
	const char *name;
	uint64_t number; /* of the line, from 1 */
};

static int broken(const struct parser *p, const char *what)
{
	return fail(EXIT_BAD, "%s: line %" PRIu64 ": %s; this is not a plan that shardpack wrote", p->name, p->number,
		    what);
}

/* False at the end. */
static bool next_line(struct parser *p, struct plan_tokens *l)
{
	bool there = plan_tokens_next(l, &p->at, p->end);

	p->number += there;
	return there;
}

static bool file_has(const struct plan *p, uint64_t file, uint64_t offset, uint64_t bytes)
{
	return file < p->file_count && offset <= p->file[file].bytes && bytes <= p->file[file].bytes - offset;
}

static int read_versions(struct parser *p, struct plan_tokens *l)
{
	struct plan *plan = p->plan;

	plan->versions_at = (size_t)(p->at - plan->text.data);
	while (next_line(p, l) && (plan_tokens_is(l, 0, "bytes-version") || plan_tokens_is(l, 0, "version")))
		plan->versions_bytes = (size_t)(p->at - plan->text.data) - plan->versions_at;
	return plan->versions_bytes ? EXIT_DONE : broken(p, "no version");
}

/* unpack.c judges `how`; here it is one word of plain letters. */
static int read_unpack(struct parser *p, const struct plan_tokens *l)
{
	struct plan *plan = p->plan;
	uint64_t bytes, of;
	char how[256];

	if (l->token_count != 5 || !plan_tokens_number(l, 2, BYTES_MAX, &bytes) ||
	    !plan_tokens_number(l, 3, PLAN_FILES_MAX, &of) || of >= plan->file_count || l->bytes[4] >= sizeof(how) ||
	    strspn(l->token[4], "abcdefghijklmnopqrstuvwxyz0123456789,-") < l->bytes[4])
		return broken(p, "not a way to unpack a file");
	memcpy(how, l->token[4], l->bytes[4]);
	how[l->bytes[4]] = '\0';
	return plan_add_file(plan, bytes, plan->file[of].path, (uint32_t)of, how);
}

/* Begins with the line that is in `l`, leaves the one behind `files`. */
static int read_files(struct parser *p, struct plan_tokens *l)
{
	struct plan *plan = p->plan;
	char path[PLAN_ENCODED_BYTES];
	uint64_t idx, bytes;
	int code = EXIT_DONE;

	if (!plan_tokens_is(l, 0, "file") && plan_names_inputs(plan))
		return EXIT_DONE;
	for (; code == EXIT_DONE && (plan_tokens_is(l, 0, "file") || plan_tokens_is(l, 0, "unpack")); next_line(p, l)) {
		if (!plan_tokens_number(l, 1, PLAN_FILES_MAX, &idx) || idx != plan->file_count)
			return broken(p, "files are not numbered from 0");
		if (plan_tokens_is(l, 0, "unpack"))
			code = read_unpack(p, l);
		else if (l->token_count != 4 || !plan_tokens_number(l, 2, BYTES_MAX, &bytes) ||
			 !plan_tokens_path(l, 3, path))
			return broken(p, "not a file below the source");
		else
			code = plan_add_file(plan, bytes, path, PLAN_NO_FILE, NULL);
	}
	if (code != EXIT_DONE)
		return code;
	if (!plan_tokens_is(l, 0, "files") || l->token_count != 2 || !plan_tokens_number(l, 1, PLAN_FILES_MAX, &idx) ||
	    !idx || idx != plan->file_count)
		return broken(p, "the number of files is missing or wrong");
	next_line(p, l);
	return EXIT_DONE;
}

/* Begins with the line that is in `l`, leaves the one behind `classes`. */
static int read_classes(struct parser *p, struct plan_tokens *l)
{
	struct plan *plan = p->plan;
	char name[3 * CLASS_NAME_BYTES_MAX + 1];
	uint64_t capacity = 0, idx;
	long bytes;

	for (; plan_tokens_is(l, 0, "class"); next_line(p, l)) {
		if (l->token_count != 3 || !plan_tokens_number(l, 1, CLASSES_MAX - 1, &idx) || idx != plan->class_count)
			return broken(p, "classes are not numbered from 0");
		bytes = l->bytes[2] < sizeof(name) ? text_decode(l->token[2], l->bytes[2], false, name) : -1;
		if (bytes < 0 || !text_is_name(name, (size_t)bytes, CLASS_NAME_BYTES_MAX))
			return broken(p, "not a class name");
		if (!grow(&plan->class_at, &capacity, plan->class_count + 1, sizeof(*plan->class_at)))
			return fail(EXIT_IO, "%s: out of memory for its classes", p->name);
		plan->class_at[plan->class_count++] = (uint64_t)(l->token[2] - plan->text.data);
	}
	if (!plan_tokens_is(l, 0, "classes") || l->token_count != 2 || !plan_tokens_number(l, 1, CLASSES_MAX, &idx) ||
	    idx != plan->class_count || (idx && plan_names_inputs(plan) && !recipe_names_classes(&plan->recipe)) ||
	    (plan->recipe.label == LABEL_HOT && idx != plan->recipe.label_room))
		return broken(p, "the number of classes is missing or wrong");
	return EXIT_DONE;
}

static bool is_hex(const struct field_part *value)
{
	return strspn(value->text, "0123456789abcdef") >= value->text_bytes;
}

/* NULL, or what is wrong with the token of a field; `path` is room for what is decoded. */
static const char *judge_part(const struct plan *p, uint32_t field, const char *token, size_t bytes, char *path)
{
	const struct field_source *s = &p->recipe.from[field];
	struct field_part part;

	if (!field_part_read(token, bytes, &part) || part.bytes > BYTES_MAX)
		return "not a field of an input";
	switch (part.kind) {
	case FIELD_PART_NONE:
		return s->optional ? NULL : "a field that is not optional is missing";
	case FIELD_PART_VALUE:
		return !field_is_picture(s->kind) && is_hex(&part) && field_texts_fit(&p->recipe.field[field], s, &part)
			       ? NULL
			       : "not a value of its field";
	case FIELD_PART_FILE:
		return plan_tokens_decode_path(part.text, part.text_bytes, path) ? NULL
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

/* NULL, or what is wrong with the tokens of fields, of which the first is number `token`. */
static const char *judge_parts(const struct plan *plan, const struct plan_tokens *l, unsigned token, char *path)
{
	const char *wrong = NULL;
	for (uint32_t i = 0; !wrong && i < plan->recipe.field_count; i++)
		if (field_has_part(&plan->recipe.from[i])) {
			wrong = judge_part(plan, i, l->token[token], l->bytes[token], path);
			token++;
		}
	return wrong;
}

static unsigned part_count(const struct recipe *r)
{
	unsigned count = 0;
	for (uint32_t i = 0; i < r->field_count; i++)
		count += field_has_part(&r->from[i]);
	return count;
}

/* Is it a line of an input that is known to be bad, with both tokens at its end? */
static bool is_bad(const struct plan_tokens *l)
{
	unsigned n = l->token_count;
	char message[BAD_INPUT_MESSAGE_BYTES];

	return (n == 7 || n == 9) && bad_input_reason(l->token[n - 2], l->bytes[n - 2]) &&
	       bad_input_message(l->token[n - 1], l->bytes[n - 1], message);
}

/* NULL, or what is wrong with a line "input ...". */
static const char *judge_input(const struct plan *plan, const struct plan_tokens *l, unsigned parts, char *path,
			       uint64_t *bytes)
{
	size_t column_bytes = recipe_column_bytes(&plan->recipe);
	bool bad = is_bad(l);
	unsigned count = l->token_count - (bad ? 2 : (column_bytes > 0) + parts);
	uint64_t idx, class_idx, file, offset, row;
	struct field_part columns;

	if (l->token_count > PLAN_TOKENS_MAX || (count != 5 && count != 7) ||
	    !plan_tokens_number(l, 1, PLAN_INPUTS_MAX - 1, &idx) || idx != plan->input_count)
		return "inputs are not numbered from 0";
	if (recipe_is_multi_label(&plan->recipe)
		    ? !class_list_is(l->token[2], l->bytes[2], plan->class_count, plan->recipe.label_room)
	    : plan_has_labels(plan) && !(bad && plan_tokens_is(l, 2, "-"))
		    ? !plan_tokens_number(l, 2, CLASSES_MAX, &class_idx) || class_idx >= plan->class_count
		    : !plan_tokens_is(l, 2, "-"))
		return "there is no such class";
	if (!plan_tokens_number(l, 3, BYTES_MAX, bytes) || plan->source_bytes > UINT64_C(1) << 61)
		return "not a size";
	if (!plan_tokens_input(l, 4, path, &row) || (row > 1 && count == 7))
		return "not a path below the source";
	if (!bad && column_bytes &&
	    (!field_part_read(l->token[count], l->bytes[count], &columns) || columns.kind != FIELD_PART_VALUE ||
	     columns.bytes != column_bytes || !is_hex(&columns)))
		return "not the numbers of --columns";
	if (count == 7 && (!plan_tokens_number(l, 5, PLAN_FILES_MAX, &file) ||
			   !plan_tokens_number(l, 6, BYTES_MAX, &offset) || !file_has(plan, file, offset, *bytes)))
		return "not a part of a file";
	return bad ? NULL : judge_parts(plan, l, count + (column_bytes > 0), path);
}

static int read_inputs(struct parser *p, struct plan_tokens *l)
{
	struct plan *plan = p->plan;
	char *path = malloc(PLAN_ENCODED_BYTES);
	const char *wrong = NULL;
	unsigned parts = part_count(&plan->recipe);
	bool fits = path != NULL;
	uint64_t bytes = 0;

	while (fits && !wrong && next_line(p, l) && plan_tokens_is(l, 0, "input")) {
		wrong = judge_input(plan, l, parts, path, &bytes);
		fits = wrong || plan_grow_inputs(plan);
		if (wrong || !fits)
			break;
		plan->input_at[plan->input_count++] = (uint64_t)(l->token[0] - plan->text.data);
		plan->bad_count += is_bad(l);
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
	plan_settle_slices(plan);
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
static int read_pack(struct parser *p, struct plan_tokens *l)
{
	struct plan *plan = p->plan;
	uint64_t count;

	plan->pack = calloc(1, sizeof(*plan->pack));
	if (!plan->pack)
		return fail(EXIT_IO, "%s: out of memory", p->name);
	for (; plan_tokens_is(l, 0, "stream"); next_line(p, l))
		if (!token_pack_read_stream(plan->pack, l, plan))
			return broken(p, "not tokens within a file");
	if (!plan_tokens_is(l, 0, "streams") || l->token_count != 2 || !plan_tokens_number(l, 1, UINT64_MAX, &count) ||
	    count != plan->pack->stream_count)
		return broken(p, "the number of streams is missing or wrong");
	if (!next_line(p, l) || !token_pack_read(plan->pack, l, &plan->recipe))
		return broken(p, "not a way to pack documents");
	plan->input_count = plan->pack->window_count;
	plan_settle_slices(plan);
	next_line(p, l);
	return EXIT_DONE;
}

static int read_slices(struct parser *p, struct plan_tokens *l)
{
	struct plan *plan = p->plan;
	struct plan_slice s = {0};
	const char *wrong;
	uint64_t count;
	int code = EXIT_DONE;

	next_line(p, l);
	if (plan_tokens_is(l, 0, "stream"))
		return read_pack(p, l);
	for (; code == EXIT_DONE && plan_tokens_is(l, 0, "slice"); next_line(p, l)) {
		wrong = plan_slice_read(plan, l, &s);
		if (!wrong && plan->slice_count && s.field < plan->slice[plan->slice_count - 1].field)
			wrong = "slices are not in the order of fields";
		if (wrong)
			return broken(p, wrong);
		code = plan_add_slice(plan, &s);
	}
	if (code != EXIT_DONE)
		return code;
	if (!plan_tokens_is(l, 0, "slices") || l->token_count != 2 || !plan_tokens_number(l, 1, UINT64_MAX, &count) ||
	    count != plan->slice_count || !slices_tile(plan))
		return broken(p, "the slices do not give each field of each input once");
	next_line(p, l);
	return EXIT_DONE;
}

static int read_input_count(struct parser *p, struct plan_tokens *l)
{
	uint64_t count;

	if (!plan_tokens_is(l, 0, "inputs") || l->token_count != 2 ||
	    !plan_tokens_number(l, 1, PLAN_INPUTS_MAX, &count) || count != p->plan->input_count)
		return broken(p, "the number of inputs is missing or wrong");
	return EXIT_DONE;
}

/* Where shards begin follows from the recipe; the lines must say the same. */
static int read_shards(struct parser *p, struct plan_tokens *l)
{
	struct plan *plan = p->plan;
	uint64_t idx = 0, first, count, said[3];

	plan->shard_count = (plan->input_count + plan->recipe.shard_records - 1) / plan->recipe.shard_records;
	while (next_line(p, l) && plan_tokens_is(l, 0, "shard")) {
		if (idx == plan->shard_count)
			return broken(p, "more shards than inputs ask for");
		plan_shard(plan, idx, &first, &count);
		if (l->token_count != 4 || !plan_tokens_number(l, 1, UINT64_MAX, &said[0]) ||
		    !plan_tokens_number(l, 2, UINT64_MAX, &said[1]) ||
		    !plan_tokens_number(l, 3, UINT64_MAX, &said[2]) || said[0] != idx || said[1] != first ||
		    said[2] != count)
			return broken(p, "not the shard that the recipe asks for");
		idx++;
	}
	if (!plan_tokens_is(l, 0, "shards") || l->token_count != 2 || !plan_tokens_number(l, 1, UINT64_MAX, &said[0]) ||
	    said[0] != idx || idx != plan->shard_count)
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
	p->end = text->data + text->bytes - end_bytes;
	shard_sha256(text->data, (size_t)(p->end - text->data), p->plan->digest);
	if (memcmp(said, p->plan->digest, 32))
		return fail(EXIT_BAD, "%s: damaged: its SHA-256 is not the one on its last line", p->name);
	return EXIT_DONE;
}

int plan_parse(struct plan *plan, struct text *text, const char *name)
{
	struct parser p = {.plan = plan, .name = name};
	size_t recipe_bytes, wrong;
	const char *at;
	struct plan_tokens l;
	int code;

	memset(plan, 0, sizeof(*plan));
	plan->text = *text;
	memset(text, 0, sizeof(*text));
	code = check_end(&p, &plan->text);
	if (code != EXIT_DONE)
		return code;
	p.at = plan->text.data;
	if (!next_line(&p, &l) || l.token_count != 2 || !plan_tokens_is(&l, 0, "shardpack-plan"))
		return broken(&p, "not the first line of a plan");
	if (!plan_tokens_is(&l, 1, "1"))
		return fail(EXIT_UNSUPPORTED, "%s: plan version %.*s; this shardpack reads version 1", name,
			    (int)l.bytes[1], l.token[1]);
	recipe_bytes = recipe_read(&plan->recipe, p.at, (size_t)(p.end - p.at), &wrong);
	if (!recipe_bytes) {
		p.number++;
		return broken(&p, "not a recipe");
	}
	p.at += recipe_bytes;
	for (at = plan->text.data; at < p.at; at++)
		p.number += *at == '\n';
	p.number--; /* the first line was counted */
	code = read_versions(&p, &l);
	if (code == EXIT_DONE)
		code = read_files(&p, &l);
	if (code == EXIT_DONE)
		code = read_classes(&p, &l);
	if (code == EXIT_DONE)
		code = plan_names_inputs(plan) ? read_inputs(&p, &l) : read_slices(&p, &l);
	if (code == EXIT_DONE)
		code = read_input_count(&p, &l);
	if (code == EXIT_DONE)
		code = read_shards(&p, &l);
	return code == EXIT_DONE ? plan_settle_order(plan) : code;
}
