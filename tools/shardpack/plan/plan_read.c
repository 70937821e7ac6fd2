/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_read.c - a plan from its text, believing nothing
 *
 * The digest on the last line shows damage, not intent: whoever can write into the folder
 * can write a plan.  So every number is compared with its limit, and no path may leave the
 * source folder.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/exit_code.h"
#include "tools/common/message.h"
#include "tools/shardpack/plan/plan_parts.h"

#define TOKENS_MAX (8 + SHARD_FIELDS_MAX)
#define BYTES_MAX  PLAN_BYTES_MAX

/* The line being read, in tokens. */
struct line {
	const char *token[TOKENS_MAX];
	size_t bytes[TOKENS_MAX];
	unsigned token_count; /* TOKENS_MAX + 1 stands for more */
};

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
static bool next_line(struct parser *p, struct line *l)
{
	const char *lf = p->at < p->end ? memchr(p->at, '\n', (size_t)(p->end - p->at)) : NULL;

	l->token_count = 0;
	if (!lf)
		return false;
	p->number++;
	while (p->at <= lf && l->token_count <= TOKENS_MAX) {
		size_t bytes = strcspn(p->at, " \n");

		if (l->token_count < TOKENS_MAX) {
			l->token[l->token_count] = p->at;
			l->bytes[l->token_count] = bytes;
		}
		l->token_count++;
		p->at += bytes + 1;
	}
	p->at = lf + 1;
	return true;
}

static bool is_word(const struct line *l, unsigned token, const char *word)
{
	return l->token_count > token && l->bytes[token] == strlen(word) &&
	       memcmp(l->token[token], word, l->bytes[token]) == 0;
}

static bool number_at(const struct line *l, unsigned token, uint64_t max, uint64_t *out)
{
	return l->token_count > token && text_u64(l->token[token], l->bytes[token], out) && *out <= max;
}

/* Room for one more of what is numbered from 0; `count` is how many there are. */
static bool grow(uint64_t **array, uint64_t *capacity, uint64_t count)
{
	uint64_t want = *capacity ? 2 * *capacity : 1024;
	uint64_t *grown;

	if (count < *capacity)
		return true;
	grown = realloc(*array, want * sizeof(*grown));
	if (!grown)
		return false;
	*array = grown;
	*capacity = want;
	return true;
}

static int read_versions(struct parser *p, struct line *l)
{
	struct plan *plan = p->plan;

	plan->versions_at = (size_t)(p->at - plan->text.data);
	while (next_line(p, l) && is_word(l, 0, "version"))
		plan->versions_bytes = (size_t)(p->at - plan->text.data) - plan->versions_at;
	return plan->versions_bytes ? EXIT_DONE : broken(p, "no version");
}

/* A path of the source, decoded into `out` of PLAN_ENCODED_PATH_BYTES. */
static bool path_at(const struct line *l, unsigned token, char *out)
{
	return l->token_count > token && plan_path_decode(l->token[token], l->bytes[token], out);
}

/* `how` is judged by who follows it; here it is one word of plain letters. */
static int read_unpack(struct parser *p, const struct line *l)
{
	struct plan *plan = p->plan;
	uint64_t bytes, of;
	char how[256];

	if (l->token_count != 5 || !number_at(l, 2, BYTES_MAX, &bytes) || !number_at(l, 3, PLAN_FILES_MAX, &of) ||
	    of >= plan->file_count || l->bytes[4] >= sizeof(how) ||
	    strspn(l->token[4], "abcdefghijklmnopqrstuvwxyz0123456789,-") < l->bytes[4])
		return broken(p, "not what is made of a file");
	memcpy(how, l->token[4], l->bytes[4]);
	how[l->bytes[4]] = '\0';
	return plan_add_file(plan, bytes, plan->file[of].path, (uint32_t)of, how);
}

/* Begins with the line that is in `l`, leaves the one behind `files`. */
static int read_files(struct parser *p, struct line *l)
{
	struct plan *plan = p->plan;
	char path[PLAN_ENCODED_PATH_BYTES];
	uint64_t idx, bytes;
	int code = EXIT_DONE;

	if (!is_word(l, 0, "file") && plan_names_inputs(plan))
		return EXIT_DONE;
	for (; code == EXIT_DONE && (is_word(l, 0, "file") || is_word(l, 0, "unpack")); next_line(p, l)) {
		if (!number_at(l, 1, PLAN_FILES_MAX, &idx) || idx != plan->file_count)
			return broken(p, "files are not numbered from 0");
		if (is_word(l, 0, "unpack"))
			code = read_unpack(p, l);
		else if (l->token_count != 4 || !number_at(l, 2, BYTES_MAX, &bytes) || !path_at(l, 3, path))
			return broken(p, "not a file below the source");
		else
			code = plan_add_file(plan, bytes, path, PLAN_NO_FILE, NULL);
	}
	if (code != EXIT_DONE)
		return code;
	if (!is_word(l, 0, "files") || l->token_count != 2 || !number_at(l, 1, PLAN_FILES_MAX, &idx) || !idx ||
	    idx != plan->file_count)
		return broken(p, "the number of files is missing or wrong");
	next_line(p, l);
	return EXIT_DONE;
}

/* Begins with the line that is in `l`, leaves the one behind `classes`. */
static int read_classes(struct parser *p, struct line *l)
{
	struct plan *plan = p->plan;
	char name[3 * CLASS_NAME_BYTES_MAX + 1];
	uint64_t capacity = 0, idx;
	long bytes;

	for (; is_word(l, 0, "class"); next_line(p, l)) {
		if (l->token_count != 3 || !number_at(l, 1, CLASSES_MAX - 1, &idx) || idx != plan->class_count)
			return broken(p, "classes are not numbered from 0");
		bytes = l->bytes[2] < sizeof(name) ? text_decode(l->token[2], l->bytes[2], false, name) : -1;
		if (bytes < 0 || !text_is_name(name, (size_t)bytes, CLASS_NAME_BYTES_MAX))
			return broken(p, "not a class name");
		if (!grow(&plan->class_at, &capacity, plan->class_count))
			return fail(EXIT_IO, "%s: out of memory for its classes", p->name);
		plan->class_at[plan->class_count++] = (uint64_t)(l->token[2] - plan->text.data);
	}
	if (!is_word(l, 0, "classes") || l->token_count != 2 || !number_at(l, 1, CLASSES_MAX, &idx) ||
	    idx != plan->class_count)
		return broken(p, "the number of classes is missing or wrong");
	return EXIT_DONE;
}

/* NULL, or what is wrong with the tokens of fields, of which the first is number `token`. */
static const char *judge_parts(const struct plan *plan, const struct line *l, unsigned token, char *path)
{
	const char *wrong = NULL;
	uint32_t i;

	for (i = 0; !wrong && i < plan->recipe.field_count; i++)
		if (field_has_part(plan->recipe.from[i].kind)) {
			wrong = plan_judge_part(plan, i, l->token[token], l->bytes[token], path);
			token++;
		}
	return wrong;
}

static unsigned part_count(const struct recipe *r)
{
	unsigned count = 0;
	uint32_t i;

	for (i = 0; i < r->field_count; i++)
		count += field_has_part(r->from[i].kind);
	return count;
}

/* NULL, or what is wrong with a line "input ...". */
static const char *judge_input(const struct plan *plan, const struct line *l, unsigned parts, char *path, uint64_t *bytes)
{
	size_t extra = extra_bytes(&plan->recipe);
	unsigned count = l->token_count - (extra > 0) - parts;
	uint64_t idx, class_idx, file, offset;
	uint8_t bytes_of_extra[EXTRA_BYTES_MAX];

	if (l->token_count > TOKENS_MAX || (count != 5 && count != 7) || !number_at(l, 1, PLAN_INPUTS_MAX - 1, &idx) ||
	    idx != plan->input_count)
		return "inputs are not numbered from 0";
	if (!number_at(l, 2, CLASSES_MAX, &class_idx) || class_idx >= plan->class_count)
		return "there is no such class";
	if (!number_at(l, 3, BYTES_MAX, bytes) || plan->source_bytes > UINT64_C(1) << 61)
		return "not a size";
	if (!path_at(l, 4, path))
		return "not a path below the source";
	if (extra && (l->token[count][0] != '=' ||
		      !text_unhex(l->token[count] + 1, l->bytes[count] - 1, bytes_of_extra, extra)))
		return "not the bytes of extra columns";
	if (count == 7 &&
	    (!number_at(l, 5, PLAN_FILES_MAX, &file) || !number_at(l, 6, BYTES_MAX, &offset) || !plan_has_bytes(plan, file, offset, *bytes)))
		return "not a part of a file";
	return judge_parts(plan, l, count + (extra > 0), path);
}

static int read_inputs(struct parser *p, struct line *l)
{
	struct plan *plan = p->plan;
	char *path = malloc(PLAN_ENCODED_PATH_BYTES);
	const char *wrong = NULL;
	unsigned parts = part_count(&plan->recipe);
	bool fits = path != NULL;
	uint64_t bytes = 0;

	while (fits && !wrong && next_line(p, l) && is_word(l, 0, "input")) {
		wrong = judge_input(plan, l, parts, path, &bytes);
		fits = wrong || grow(&plan->input_at, &plan->input_capacity, plan->input_count);
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
static bool dtype_at(const struct line *l, unsigned token, struct plan_slice *s)
{
	uint32_t dtype;

	s->swap = l->bytes[token] && l->token[token][0] == '>';
	dtype = text_named(shard_dtype_name, l->token[token] + s->swap, l->bytes[token] - s->swap, SHARD_U8);
	s->dtype = (uint8_t)dtype;
	return dtype != TEXT_NO_NAME;
}

/* Elements of a field with the dtype that they have in the file must lie in it, one input behind the other. */
static bool slice_fits(const struct plan *plan, const struct plan_slice *s)
{
	const struct shard_field *f = &plan->recipe.field[s->field];
	uint64_t item = shard_dtype_bytes(s->dtype), last;

	if (!s->count || s->count > PLAN_INPUTS_MAX || s->first > PLAN_INPUTS_MAX - s->count || s->offset > plan->file[s->file].bytes ||
	    s->bytes > plan->file[s->file].bytes - s->offset || !s->bytes)
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

static const char *judge_slice(const struct plan *plan, const struct line *l, struct plan_slice *s)
{
	uint64_t field, file;

	if (l->token_count != 9 || !number_at(l, 1, SHARD_FIELDS_MAX, &field) || field >= plan->recipe.field_count ||
	    !number_at(l, 2, PLAN_INPUTS_MAX, &s->first) || !number_at(l, 3, PLAN_INPUTS_MAX, &s->count) ||
	    !number_at(l, 4, PLAN_FILES_MAX, &file) || file >= plan->file_count || !number_at(l, 5, BYTES_MAX, &s->offset) ||
	    !number_at(l, 6, BYTES_MAX, &s->stride) || !number_at(l, 7, BYTES_MAX, &s->bytes) || !dtype_at(l, 8, s))
		return "not a slice of a file";
	s->field = (uint16_t)field;
	s->file = (uint32_t)file;
	return slice_fits(plan, s) ? NULL : "a slice does not fit its file or its field";
}

/* Every field but those of lengths has slices for the same number of inputs, without a hole. */
static bool slices_tile(struct plan *plan)
{
	const struct recipe *r = &plan->recipe;
	uint32_t f;
	uint64_t i;

	plan_settle_slices(plan);
	for (f = 0; f < r->field_count; f++) {
		uint64_t at = 0;

		if (r->field[f].semantic == SHARD_LENGTH) {
			if (plan->field_slice[f] != plan->field_slice[f + 1])
				return false;
			continue;
		}
		for (i = plan->field_slice[f]; i < plan->field_slice[f + 1]; i++) {
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

static int read_slices(struct parser *p, struct line *l)
{
	struct plan *plan = p->plan;
	struct plan_slice s = {0};
	const char *wrong;
	uint64_t count;
	int code = EXIT_DONE;

	while (code == EXIT_DONE && next_line(p, l) && is_word(l, 0, "slice")) {
		wrong = judge_slice(plan, l, &s);
		if (!wrong && plan->slice_count && s.field < plan->slice[plan->slice_count - 1].field)
			wrong = "slices are not in the order of fields";
		if (wrong)
			return broken(p, wrong);
		code = plan_add_slice(plan, &s);
	}
	if (code != EXIT_DONE)
		return code;
	if (!is_word(l, 0, "slices") || l->token_count != 2 || !number_at(l, 1, UINT64_MAX, &count) ||
	    count != plan->slice_count || !slices_tile(plan))
		return broken(p, "the slices do not give each field of each input once");
	next_line(p, l);
	return EXIT_DONE;
}

static int read_input_count(struct parser *p, struct line *l)
{
	uint64_t count;

	if (!is_word(l, 0, "inputs") || l->token_count != 2 || !number_at(l, 1, PLAN_INPUTS_MAX, &count) ||
	    count != p->plan->input_count)
		return broken(p, "the number of inputs is missing or wrong");
	return EXIT_DONE;
}

/* Where shards begin follows from the recipe; the lines must say the same. */
static int read_shards(struct parser *p, struct line *l)
{
	struct plan *plan = p->plan;
	uint64_t idx = 0, first, count, said[3];

	plan->shard_count = (plan->input_count + plan->recipe.shard_records - 1) / plan->recipe.shard_records;
	while (next_line(p, l) && is_word(l, 0, "shard")) {
		if (idx == plan->shard_count)
			return broken(p, "more shards than inputs ask for");
		plan_shard(plan, idx, &first, &count);
		if (l->token_count != 4 || !number_at(l, 1, UINT64_MAX, &said[0]) ||
		    !number_at(l, 2, UINT64_MAX, &said[1]) || !number_at(l, 3, UINT64_MAX, &said[2]) ||
		    said[0] != idx || said[1] != first || said[2] != count)
			return broken(p, "not the shard that the recipe asks for");
		idx++;
	}
	if (!is_word(l, 0, "shards") || l->token_count != 2 || !number_at(l, 1, UINT64_MAX, &said[0]) ||
	    said[0] != idx || idx != plan->shard_count)
		return broken(p, "the number of shards is missing or wrong");
	return next_line(p, l) ? broken(p, "a line behind the shards") : EXIT_DONE;
}

/* The last line: "end " and a digest of what is before it. */
static int check_end(struct parser *p, const struct text *text)
{
	static const size_t end_bytes = 4 + 64 + 1;
	uint8_t said[32];

	if (text->bytes < end_bytes || memcmp(text->data + text->bytes - end_bytes, "end ", 4) != 0 ||
	    text->data[text->bytes - 1] != '\n' || !text_unhex(text->data + text->bytes - 65, 64, said, 32))
		return fail(EXIT_BAD, "%s: %zu bytes without the last line of a plan", p->name, text->bytes);
	p->end = text->data + text->bytes - end_bytes;
	shard_sha256(text->data, (size_t)(p->end - text->data), p->plan->digest);
	if (memcmp(said, p->plan->digest, 32) != 0)
		return fail(EXIT_BAD, "%s: damaged: its SHA-256 is not the one on its last line", p->name);
	return EXIT_DONE;
}

int plan_parse(struct plan *plan, struct text *text, const char *name)
{
	struct parser p = {.plan = plan, .name = name};
	size_t recipe_bytes, wrong;
	const char *at;
	struct line l;
	int code;

	memset(plan, 0, sizeof(*plan));
	plan->text = *text;
	memset(text, 0, sizeof(*text));
	code = check_end(&p, &plan->text);
	if (code != EXIT_DONE)
		return code;
	p.at = plan->text.data;
	if (!next_line(&p, &l) || l.token_count != 2 || !is_word(&l, 0, "shardpack-plan"))
		return broken(&p, "not the first line of a plan");
	if (!is_word(&l, 1, "1"))
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
