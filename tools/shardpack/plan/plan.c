/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.c - what will be packed: made line by line, and read from where it lies
 *
 * Lines of a finished plan were written here or checked by plan_read.c, so what reads them
 * again trusts them.
 */
#include "tools/shardpack/plan/plan.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
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
	return plan_add_part(p, class_idx, source_bytes, path, path_bytes, PLAN_NO_FILE, 0, "");
}

int plan_add_part(struct plan *p, uint64_t class_idx, uint64_t source_bytes, const char *path, size_t path_bytes,
		  uint32_t file, uint64_t offset, const char *fields)
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
	if (file != PLAN_NO_FILE)
		text_format(&p->text, " %" PRIu32 " %" PRIu64, file, offset);
	text_add(&p->text, fields, strlen(fields));
	text_add(&p->text, "\n", 1);
	p->input_count++;
	p->source_bytes += source_bytes;
	return text_failed(&p->text) ? out_of_memory(p) : EXIT_DONE;
}

int plan_add_file(struct plan *p, uint64_t bytes, const char *path, uint32_t of, const char *how)
{
	struct plan_file *f;

	if (p->file_count == PLAN_FILES_MAX)
		return fail(EXIT_BAD, "more than %" PRIu32 " files, which is the limit", PLAN_FILES_MAX);
	if (p->file_count == p->file_capacity) {
		uint64_t capacity = p->file_capacity ? 2 * p->file_capacity : 64;
		struct plan_file *grown = realloc(p->file, capacity * sizeof(*grown));

		if (!grown)
			return out_of_memory(p);
		p->file = grown;
		p->file_capacity = capacity;
	}
	f = &p->file[p->file_count++];
	*f = (struct plan_file){.bytes = bytes, .of = of, .path = strdup(path), .how = how ? strdup(how) : NULL};
	return f->path && (!how || f->how) ? EXIT_DONE : out_of_memory(p);
}

int plan_add_slice(struct plan *p, const struct plan_slice *slice)
{
	if (p->slice_count == p->slice_capacity) {
		uint64_t capacity = p->slice_capacity ? 2 * p->slice_capacity : 64;
		struct plan_slice *grown = realloc(p->slice, capacity * sizeof(*grown));

		if (!grown)
			return out_of_memory(p);
		p->slice = grown;
		p->slice_capacity = capacity;
	}
	p->slice[p->slice_count++] = *slice;
	return EXIT_DONE;
}

int plan_settle_order(struct plan *p)
{
	struct shard_error err;

	if (p->recipe.order != SHARD_ORDER_SHUFFLE || !p->input_count ||
	    (!plan_names_inputs(p) && p->input_count > PLAN_ORDER_MAX))
		return EXIT_DONE;
	p->order = calloc(p->input_count, sizeof(*p->order));
	if (!p->order)
		return out_of_memory(p);
	if (shard_shuffle(p->recipe.seed, p->input_count, 0, p->input_count, p->order, &err) != SHARD_OK)
		return fail(exit_code_of_status(err.status), "%s", err.message);
	return EXIT_DONE;
}

static void write_files(const struct plan *p, struct text *out)
{
	uint64_t i;

	for (i = 0; i < p->file_count; i++) {
		const struct plan_file *f = &p->file[i];

		if (f->how) {
			text_format(out, "unpack %" PRIu64 " %" PRIu64 " %" PRIu32 " %s\n", i, f->bytes, f->of, f->how);
			continue;
		}
		text_format(out, "file %" PRIu64 " %" PRIu64 " ", i, f->bytes);
		text_encode(out, f->path, strlen(f->path), true);
		text_add(out, "\n", 1);
	}
	if (p->file_count)
		text_format(out, "files %" PRIu64 "\n", p->file_count);
}

static int compare_slices(const void *a, const void *b)
{
	const struct plan_slice *x = a, *y = b;

	if (x->field != y->field)
		return x->field < y->field ? -1 : 1;
	return x->first < y->first ? -1 : x->first > y->first;
}

void plan_settle_slices(struct plan *p)
{
	uint64_t i;
	uint32_t field = 0;

	for (i = 0, p->source_bytes = 0; i < p->file_count; i++)
		p->source_bytes += p->file[i].how ? 0 : p->file[i].bytes;

	for (i = 0; i < p->slice_count; i++)
		while (field <= p->slice[i].field)
			p->field_slice[field++] = i;
	while (field <= p->recipe.field_count)
		p->field_slice[field++] = p->slice_count;
}

static void write_slices(struct plan *p)
{
	uint64_t i;

	qsort(p->slice, p->slice_count, sizeof(*p->slice), compare_slices);
	plan_settle_slices(p);
	for (i = 0; i < p->slice_count; i++) {
		const struct plan_slice *s = &p->slice[i];

		text_format(&p->text,
			    "slice %" PRIu16 " %" PRIu64 " %" PRIu64 " %" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %s%s\n",
			    s->field, s->first, s->count, s->file, s->offset, s->stride, s->bytes, s->swap ? ">" : "",
			    shard_dtype_name(s->dtype));
	}
	text_format(&p->text, "slices %" PRIu64 "\n", p->slice_count);
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
	write_files(p, &head);
	text_put_before(&p->text, &head);
	for (i = 0; i < p->class_count; i++)
		p->class_at[i] += head.bytes;
	for (i = 0; p->input_at && i < p->input_count; i++)
		p->input_at[i] += head.bytes;
	text_free(&head);
}

int plan_finish(struct plan *p)
{
	uint64_t k, first, count;

	assert(p->recipe.shard_records > 0);
	put_head(p);
	p->shard_count = (p->input_count + p->recipe.shard_records - 1) / p->recipe.shard_records;
	if (!plan_names_inputs(p))
		write_slices(p);
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
	uint64_t i;

	text_free(&p->text);
	for (i = 0; i < p->file_count; i++) {
		free(p->file[i].path);
		free(p->file[i].how);
	}
	free(p->file);
	free(p->slice);
	free(p->class_at);
	free(p->input_at);
	free(p->order);
	memset(p, 0, sizeof(*p));
}

bool plan_names_inputs(const struct plan *p)
{
	return recipe_is_images(&p->recipe);
}

/* A number of a checked line, and the space behind it. */
static uint64_t take_number(const char **at)
{
	uint64_t value = 0;

	while (**at >= '0' && **at <= '9')
		value = value * 10 + (uint64_t)(*(*at)++ - '0');
	(*at)++;
	return value;
}

/* Is the next token all digits? */
static bool is_number_next(const char *at)
{
	size_t digits = at[0] == ' ' ? strspn(at + 1, "0123456789") : 0;

	return digits && (at[1 + digits] == ' ' || at[1 + digits] == '\n');
}

/* What stands for a line that fixed records have not: the file of the first field, and which record of it. */
static void describe_record(const struct plan *p, uint64_t input_idx, struct plan_input *out)
{
	const struct plan_slice *s = plan_find_slice(p, p->slice[0].field, input_idx);
	int bytes;

	out->class_idx = 0;
	out->file = s->file;
	out->offset = s->offset + (input_idx - s->first) * s->stride;
	out->source_bytes = p->source_bytes / p->input_count;
	bytes = snprintf(out->path, sizeof(out->path), "%s#%" PRIu64, p->file[s->file].path, input_idx - s->first);
	out->path_bytes = bytes < (int)sizeof(out->path) ? (size_t)bytes : sizeof(out->path) - 1;
}

void plan_input(const struct plan *p, uint64_t input_idx, struct plan_input *out)
{
	size_t encoded, extra = extra_bytes(&p->recipe);
	const char *at;
	uint64_t number;
	long bytes;

	if (!plan_names_inputs(p)) {
		describe_record(p, input_idx, out);
		return;
	}
	at = p->text.data + p->input_at[input_idx] + strlen("input ");
	number = take_number(&at);
	assert(number == input_idx);
	out->class_idx = (uint32_t)take_number(&at);
	out->source_bytes = take_number(&at);
	encoded = strcspn(at, " \n");
	bytes = text_decode(at, encoded, true, out->path);
	assert(bytes > 0 && number == input_idx);
	out->path_bytes = (size_t)bytes;
	out->file = PLAN_NO_FILE;
	out->offset = 0;
	at += encoded;
	if (is_number_next(at)) {
		at++;
		out->file = (uint32_t)take_number(&at);
		out->offset = take_number(&at); /* and past the blank or LF behind it */
		at--;
	}
	if (extra) {
		if (!text_unhex(at + 2, strcspn(at + 2, " \n"), out->extra, extra))
			assert(!"plan_read.c saw to it");
		at += 2 + 2 * extra;
	}
	out->parts = at + (at[0] == ' ');
}

const struct plan_slice *plan_find_slice(const struct plan *p, uint32_t field, uint64_t input_idx)
{
	uint64_t low = p->field_slice[field], high = p->field_slice[field + 1];

	assert(low < high && input_idx < p->input_count);
	while (high - low > 1) {
		uint64_t middle = low + (high - low) / 2;

		if (p->slice[middle].first <= input_idx)
			low = middle;
		else
			high = middle;
	}
	return &p->slice[low];
}

int plan_inputs_at(const struct plan *p, uint64_t first, uint64_t count, uint64_t *input_idx)
{
	struct shard_error err;
	uint64_t i;

	assert(first <= p->input_count && count <= p->input_count - first);
	if (p->order)
		memcpy(input_idx, p->order + first, count * sizeof(*input_idx));
	else if (p->recipe.order == SHARD_ORDER_SHUFFLE)
		return shard_shuffle(p->recipe.seed, p->input_count, first, count, input_idx, &err) == SHARD_OK
			       ? EXIT_DONE
			       : fail(exit_code_of_status(err.status), "%s", err.message);
	else
		for (i = 0; i < count; i++)
			input_idx[i] = first + i;
	return EXIT_DONE;
}

uint64_t plan_input_at(const struct plan *p, uint64_t ordinal)
{
	uint64_t idx = ordinal;

	assert(ordinal < p->input_count);
	if (p->order)
		return p->order[ordinal];
	plan_inputs_at(p, ordinal, 1, &idx); /* of one place, it only fails if memory ran out, and then it says so */
	return idx;
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
