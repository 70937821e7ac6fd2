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
#include "tools/shardpack/plan/classes.h"
#include "tools/shardpack/plan/field_part.h"
#include "tools/shardpack/plan/plan.h"
#include "tools/shardpack/plan/plan_tokens.h"
#include "tools/shardpack/plan/recipe_read.h"

#define BYTES_MAX	   (UINT64_C(1) << 60) /* of a file or an input; sums of a few stay below 2^64 */
#define ENCODED_PATH_BYTES (3 * (size_t)PLAN_PATH_BYTES_MAX)

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

/* A path below the source, decoded into `out` of ENCODED_PATH_BYTES; false if it is none. */
static bool decode_path(const char *text, size_t bytes, char *out)
{
	return bytes < ENCODED_PATH_BYTES && text_decode(text, bytes, true, out) > 0 &&
	       strlen(out) < PLAN_PATH_BYTES_MAX && text_stays_below(out);
}

static bool path_at(const struct plan_tokens *l, unsigned token, char *out)
{
	return l->token_count > token && decode_path(l->token[token], l->bytes[token], out);
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
	char path[ENCODED_PATH_BYTES];
	uint64_t idx, bytes;
	int code = EXIT_DONE;

	if (!plan_tokens_is(l, 0, "file") && plan_names_inputs(plan))
		return EXIT_DONE;
	for (; code == EXIT_DONE && (plan_tokens_is(l, 0, "file") || plan_tokens_is(l, 0, "unpack")); next_line(p, l)) {
		if (!plan_tokens_number(l, 1, PLAN_FILES_MAX, &idx) || idx != plan->file_count)
			return broken(p, "files are not numbered from 0");
		if (plan_tokens_is(l, 0, "unpack"))
			code = read_unpack(p, l);
		else if (l->token_count != 4 || !plan_tokens_number(l, 2, BYTES_MAX, &bytes) || !path_at(l, 3, path))
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
	    idx != plan->class_count)
		return broken(p, "the number of classes is missing or wrong");
	return EXIT_DONE;
}

static bool is_hex(const struct field_part *value)
{
	return strspn(value->text, "0123456789abcdef") >= value->text_bytes;
}

/* A value has its bytes in hex, and as many as such a field may have. */
static bool value_fits(const struct shard_field *f, const struct field_part *part)
{
	uint64_t item = shard_dtype_bytes(f->dtype), row = item * recipe_field_items(f);

	if (!is_hex(part) || part->bytes > row)
		return false;
	if (f->kind == SHARD_TENSOR)
		return part->bytes == row;
	return part->bytes % (row / f->shape[0]) == 0;
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
		return !field_is_picture(s->kind) && value_fits(&p->recipe.field[field], &part)
			       ? NULL
			       : "not a value of its field";
	case FIELD_PART_FILE:
		return decode_path(part.text, part.text_bytes, path) ? NULL : "a field's path leaves the source";
	case FIELD_PART_MEMBER:
		return file_has(p, part.file, part.offset, part.bytes) ? NULL
								       : "the bytes of a field are not within a file";
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

/* NULL, or what is wrong with a line "input ...". */
static const char *judge_input(const struct plan *plan, const struct plan_tokens *l, unsigned parts, char *path,
			       uint64_t *bytes)
{
	size_t column_bytes = recipe_column_bytes(&plan->recipe);
	unsigned count = l->token_count - (column_bytes > 0) - parts;
	uint64_t idx, class_idx, file, offset;
	struct field_part columns;

	if (l->token_count > PLAN_TOKENS_MAX || (count != 5 && count != 7) ||
	    !plan_tokens_number(l, 1, PLAN_INPUTS_MAX - 1, &idx) || idx != plan->input_count)
		return "inputs are not numbered from 0";
	if (!plan_tokens_number(l, 2, CLASSES_MAX, &class_idx) || class_idx >= plan->class_count)
		return "there is no such class";
	if (!plan_tokens_number(l, 3, BYTES_MAX, bytes) || plan->source_bytes > UINT64_C(1) << 61)
		return "not a size";
	if (!path_at(l, 4, path))
		return "not a path below the source";
	if (column_bytes && (!field_part_read(l->token[count], l->bytes[count], &columns) ||
			     columns.kind != FIELD_PART_VALUE || columns.bytes != column_bytes || !is_hex(&columns)))
		return "not the numbers of --columns";
	if (count == 7 && (!plan_tokens_number(l, 5, PLAN_FILES_MAX, &file) ||
			   !plan_tokens_number(l, 6, BYTES_MAX, &offset) || !file_has(plan, file, offset, *bytes)))
		return "not a part of a file";
	return judge_parts(plan, l, count + (column_bytes > 0), path);
}

static int read_inputs(struct parser *p, struct plan_tokens *l)
{
	struct plan *plan = p->plan;
	char *path = malloc(ENCODED_PATH_BYTES);
	const char *wrong = NULL;
	unsigned parts = part_count(&plan->recipe);
	bool fits = path != NULL;
	uint64_t bytes = 0;

	while (fits && !wrong && next_line(p, l) && plan_tokens_is(l, 0, "input")) {
		wrong = judge_input(plan, l, parts, path, &bytes);
		fits = wrong ||
		       grow(&plan->input_at, &plan->input_capacity, plan->input_count + 1, sizeof(*plan->input_at));
		if (wrong || !fits)
			break;
		plan->input_at[plan->input_count++] = (uint64_t)(l->token[0] - plan->text.data);
		plan->source_bytes += bytes;
	}
	free(path);
	if (!fits)
		return fail(EXIT_IO, "%s: out of memory for its inputs", p->name);
	return wrong ? broken(p, wrong) : EXIT_DONE;
}

/* A dtype as in a file, '>' before it for the other byte order. */
static bool dtype_at(const struct plan_tokens *l, unsigned token, struct plan_slice *s)
{
	uint32_t dtype;

	s->swap = l->bytes[token] && l->token[token][0] == '>';
	dtype = text_named(shard_dtype_name, l->token[token] + s->swap, l->bytes[token] - s->swap, SHARD_U8);
	s->dtype = (uint8_t)dtype;
	return dtype != TEXT_NO_NAME;
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
	if (s->dtype != f->dtype && (s->dtype > SHARD_I64 || f->dtype != SHARD_I64))
		return false;
	if (last >= s->bytes)
		return false;
	if (f->kind == SHARD_RAGGED)
		return s->bytes - last <= recipe_field_items(f) * item && (s->bytes - last) % item == 0;
	return s->bytes - last == recipe_field_items(f) * item;
}

static const char *judge_slice(const struct plan *plan, const struct plan_tokens *l, struct plan_slice *s)
{
	uint64_t field, file;

	if (l->token_count != 9 || !plan_tokens_number(l, 1, SHARD_FIELDS_MAX, &field) ||
	    field >= plan->recipe.field_count || !plan_tokens_number(l, 2, PLAN_INPUTS_MAX, &s->first) ||
	    !plan_tokens_number(l, 3, PLAN_INPUTS_MAX, &s->count) || !plan_tokens_number(l, 4, PLAN_FILES_MAX, &file) ||
	    file >= plan->file_count || !plan_tokens_number(l, 5, BYTES_MAX, &s->offset) ||
	    !plan_tokens_number(l, 6, BYTES_MAX, &s->stride) || !plan_tokens_number(l, 7, BYTES_MAX, &s->bytes) ||
	    !dtype_at(l, 8, s))
		return "not a slice within a file";
	s->field = (uint16_t)field;
	s->file = (uint32_t)file;
	return slice_fits(plan, s) ? NULL : "a slice does not fit its file or its field";
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

static int read_slices(struct parser *p, struct plan_tokens *l)
{
	struct plan *plan = p->plan;
	struct plan_slice s = {0};
	const char *wrong;
	uint64_t count;
	int code = EXIT_DONE;

	while (code == EXIT_DONE && next_line(p, l) && plan_tokens_is(l, 0, "slice")) {
		wrong = judge_slice(plan, l, &s);
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
