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
#include "tools/shardpack/plan.h"

/* The line being read, in tokens. */
struct line {
	const char *token[6];
	size_t bytes[6];
	unsigned token_count; /* 7 stands for more */
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
	while (p->at <= lf && l->token_count <= 6) {
		size_t bytes = strcspn(p->at, " \n");

		if (l->token_count < 6) {
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

/* Relative, and no component is empty, "." or "..". */
static bool stays_below(const char *path)
{
	size_t bytes;

	for (;; path += bytes + 1) {
		bytes = strcspn(path, "/");
		if (!bytes || (bytes == 1 && path[0] == '.') || (bytes == 2 && path[0] == '.' && path[1] == '.'))
			return false;
		if (!path[bytes])
			return true;
	}
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

static int read_inputs(struct parser *p, struct line *l)
{
	struct plan *plan = p->plan;
	static const size_t encoded_max = 3 * (size_t)PLAN_PATH_BYTES_MAX;
	char *path = malloc(encoded_max);
	uint64_t idx, class_idx, bytes;
	const char *wrong = NULL;

	while (path && !wrong && next_line(p, l) && is_word(l, 0, "input")) {
		if (l->token_count != 5 || !number_at(l, 1, PLAN_INPUTS_MAX - 1, &idx) || idx != plan->input_count)
			wrong = "inputs are not numbered from 0";
		else if (!number_at(l, 2, CLASSES_MAX, &class_idx) || class_idx >= plan->class_count)
			wrong = "there is no such class";
		else if (!number_at(l, 3, UINT64_C(1) << 60, &bytes) || plan->source_bytes > UINT64_C(1) << 61)
			wrong = "not a size";
		else if (l->bytes[4] >= encoded_max || text_decode(l->token[4], l->bytes[4], true, path) <= 0 ||
			 strlen(path) >= PLAN_PATH_BYTES_MAX || !stays_below(path))
			wrong = "not a path below the source";
		else if (!grow(&plan->input_at, &plan->input_capacity, plan->input_count))
			break;
		else {
			plan->input_at[plan->input_count++] = (uint64_t)(l->token[0] - plan->text.data);
			plan->source_bytes += bytes;
		}
	}
	if (!path || (!wrong && is_word(l, 0, "input"))) {
		free(path);
		return fail(EXIT_IO, "%s: out of memory for its inputs", p->name);
	}
	free(path);
	if (wrong)
		return broken(p, wrong);
	if (!is_word(l, 0, "inputs") || l->token_count != 2 || !number_at(l, 1, PLAN_INPUTS_MAX, &idx) ||
	    idx != plan->input_count)
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
	p.number += 11; /* lines of a recipe */
	code = read_versions(&p, &l);
	if (code == EXIT_DONE)
		code = read_classes(&p, &l);
	if (code == EXIT_DONE)
		code = read_inputs(&p, &l);
	if (code == EXIT_DONE)
		code = read_shards(&p, &l);
	return code == EXIT_DONE ? plan_settle_order(plan) : code;
}
