/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.c - what will be packed: made line by line, and read from where it lies
 *
 * Lines of a finished plan were written here or checked by plan_read.c, so what reads them
 * again trusts them.
 */
#include "tools/shardpack/plan.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/exit_code.h"
#include "tools/common/message.h"

static int out_of_memory(const struct plan *p)
{
	return fail(EXIT_IO, "out of memory for a plan of %" PRIu64 " inputs", p->input_count);
}

int plan_begin(struct plan *p, const struct recipe *recipe, const struct classes *classes)
{
	uint64_t i;

	memset(p, 0, sizeof(*p));
	p->recipe = *recipe;
	p->class_count = classes->count;
	p->class_at = calloc(classes->count + 1, sizeof(*p->class_at));
	if (!p->class_at)
		return out_of_memory(p);
	for (i = 0; i < classes->count; i++) {
		text_format(&p->text, "class %" PRIu64 " ", i);
		p->class_at[i] = p->text.bytes;
		text_encode(&p->text, classes->name[i], strlen(classes->name[i]), false);
		text_add(&p->text, "\n", 1);
	}
	text_format(&p->text, "classes %" PRIu64 "\n", classes->count);
	return text_failed(&p->text) ? out_of_memory(p) : EXIT_DONE;
}

int plan_add_input(struct plan *p, uint64_t class_idx, uint64_t source_bytes, const char *path, size_t path_bytes)
{
	if (p->input_count == p->input_capacity) {
		uint64_t capacity = p->input_capacity ? 2 * p->input_capacity : 1024;
		uint64_t *grown = realloc(p->input_at, capacity * sizeof(*grown));

		if (!grown)
			return out_of_memory(p);
		p->input_at = grown;
		p->input_capacity = capacity;
	}
	p->input_at[p->input_count] = p->text.bytes;
	text_format(&p->text, "input %" PRIu64 " %" PRIu64 " %" PRIu64 " ", p->input_count, class_idx, source_bytes);
	text_encode(&p->text, path, path_bytes, true);
	text_add(&p->text, "\n", 1);
	p->input_count++;
	p->source_bytes += source_bytes;
	return text_failed(&p->text) ? out_of_memory(p) : EXIT_DONE;
}

int plan_settle_order(struct plan *p)
{
	struct shard_error err;

	if (p->recipe.order != SHARD_ORDER_SHUFFLE || !p->input_count)
		return EXIT_DONE;
	p->order = calloc(p->input_count, sizeof(*p->order));
	if (!p->order)
		return out_of_memory(p);
	if (shard_shuffle(p->recipe.seed, p->input_count, 0, p->input_count, p->order, &err) != SHARD_OK)
		return fail(exit_code_of_status(err.status), "%s", err.message);
	return EXIT_DONE;
}

/* What stands before the classes is written last: the shard size may depend on how many inputs there are. */
static void put_head(struct plan *p)
{
	struct text head = {0};
	uint64_t i;

	text_format(&head, "shardpack-plan 1\n");
	recipe_write(&p->recipe, &head);
	p->versions_at = head.bytes;
	recipe_write_versions(&p->recipe, &head);
	p->versions_bytes = head.bytes - p->versions_at;
	text_put_before(&p->text, &head);
	for (i = 0; i < p->class_count; i++)
		p->class_at[i] += head.bytes;
	for (i = 0; i < p->input_count; i++)
		p->input_at[i] += head.bytes;
	text_free(&head);
}

int plan_finish(struct plan *p)
{
	uint64_t k, first, count;

	assert(p->recipe.shard_records > 0);
	put_head(p);
	p->shard_count = (p->input_count + p->recipe.shard_records - 1) / p->recipe.shard_records;
	text_format(&p->text, "inputs %" PRIu64 "\n", p->input_count);
	for (k = 0; k < p->shard_count; k++) {
		plan_shard(p, k, &first, &count);
		text_format(&p->text, "shard %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", k, first, count);
	}
	text_format(&p->text, "shards %" PRIu64 "\n", p->shard_count);
	if (text_failed(&p->text))
		return out_of_memory(p);
	shard_sha256(p->text.data, p->text.bytes, p->digest);
	text_add(&p->text, "end ", 4);
	text_hex(&p->text, p->digest, sizeof(p->digest));
	text_add(&p->text, "\n", 1);
	return text_failed(&p->text) ? out_of_memory(p) : plan_settle_order(p);
}

int plan_check_versions(const struct plan *p, const char *name)
{
	const char *there = p->text.data + p->versions_at, *here;
	struct text ours = {0};
	size_t there_bytes = p->versions_bytes, here_bytes;
	int code = EXIT_DONE;

	recipe_write_versions(&p->recipe, &ours);
	if (text_failed(&ours)) {
		text_free(&ours);
		return out_of_memory(p);
	}
	here = ours.data;
	here_bytes = ours.bytes;
	/* Past all lines that agree, the first that does not is the one to show. */
	while (there_bytes && here_bytes) {
		size_t line = (size_t)((const char *)memchr(there, '\n', there_bytes) + 1 - there);

		if (line > here_bytes || memcmp(there, here, line) != 0)
			break;
		there += line;
		here += line;
		there_bytes -= line;
		here_bytes -= line;
	}
	if (there_bytes || here_bytes)
		code = fail(EXIT_MISMATCH,
			    "%s: made with '%.*s', but this shardpack has '%.*s'; other versions may make other bytes",
			    name, (int)(there_bytes ? strcspn(there, "\n") : 0), there,
			    (int)(here_bytes ? strcspn(here, "\n") : 0), here);
	text_free(&ours);
	return code;
}

void plan_free(struct plan *p)
{
	text_free(&p->text);
	free(p->class_at);
	free(p->input_at);
	free(p->order);
	memset(p, 0, sizeof(*p));
}

/* A number of a checked line, and the space behind it. */
static uint64_t take_number(const char **at)
{
	uint64_t value = 0;

	while (**at != ' ')
		value = value * 10 + (uint64_t)(*(*at)++ - '0');
	(*at)++;
	return value;
}

void plan_input(const struct plan *p, uint64_t input_idx, struct plan_input *out)
{
	const char *at = p->text.data + p->input_at[input_idx] + strlen("input ");
	uint64_t number = take_number(&at);
	long bytes;

	assert(number == input_idx);
	out->class_idx = (uint32_t)take_number(&at);
	out->source_bytes = take_number(&at);
	bytes = text_decode(at, strcspn(at, "\n"), true, out->path);
	assert(bytes > 0 && number == input_idx);
	out->path_bytes = (size_t)bytes;
}

uint64_t plan_input_at(const struct plan *p, uint64_t ordinal)
{
	assert(ordinal < p->input_count);
	return p->order ? p->order[ordinal] : ordinal;
}

void plan_shard(const struct plan *p, uint64_t shard_idx, uint64_t *first, uint64_t *count)
{
	uint64_t left;

	assert(shard_idx < p->shard_count);
	*first = shard_idx * p->recipe.shard_records;
	left = p->input_count - *first;
	*count = left < p->recipe.shard_records ? left : p->recipe.shard_records;
}

void plan_class_name(const struct plan *p, uint64_t class_idx, char *out)
{
	const char *at = p->text.data + p->class_at[class_idx];

	assert(class_idx < p->class_count);
	text_decode(at, strcspn(at, "\n"), false, out);
}
