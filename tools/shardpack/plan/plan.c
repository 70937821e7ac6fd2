/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.c - what will be packed, read from where it lies
 *
 * The lines were written or checked by plan_text.c, so this file trusts them.
 */
#include "tools/shardpack/plan/plan.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shard_pack.h"
#include "tools/common/files.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/shelf.h"

#define INTERPOLATIONS 8 /* of plan_find_slice(), which then halves; 10^7 documents of like lengths take 6 steps */

int plan_check_versions(const struct plan *p, const char *name)
{
	const char *there = p->text.data + p->versions_at, *here;
	struct text ours = {0};
	size_t there_bytes = p->versions_bytes, here_bytes;
	int rc = EXIT_DONE;

	recipe_write_versions(&p->recipe, &ours);
	here = ours.data;
	here_bytes = ours.bytes;
	/* Past all lines that agree, the first that does not is the one to show. */
	while (there_bytes && here_bytes) {
		size_t line = (size_t)((const char *)memchr(there, '\n', there_bytes) + 1 - there);

		if (line > here_bytes || memcmp(there, here, line))
			break;
		there += line;
		here += line;
		there_bytes -= line;
		here_bytes -= line;
	}
	if (there_bytes || here_bytes)
		rc = fail(EXIT_MISMATCH,
			  "%s: made with '%.*s', but this shardpack has '%.*s'; other versions may make other bytes",
			  name, (int)(there_bytes ? strcspn(there, "\n") : 0), there,
			  (int)(here_bytes ? strcspn(here, "\n") : 0), here);
	text_free(&ours);
	return rc;
}

void plan_free(struct plan *p)
{
	struct shelf *shelf = p->text.shelf;

	recipe_free(&p->recipe);
	token_pack_free(p->pack);
	for (uint64_t i = 0; i < p->file_count; i++) {
		free(p->file[i].path);
		free(p->file[i].how);
	}
	free(p->file);
	shelf_free(p->text.shelf, p->slice);
	free(p->class_at);
	free(p->decoders);
	shelf_free(p->text.shelf, p->input_at);
	shelf_free(p->text.shelf, p->order);
	text_free(&p->text);
	shelf_close(shelf);
	memset(p, 0, sizeof(*p));
}

bool plan_names_inputs(const struct plan *p)
{
	return recipe_is_images(&p->recipe);
}

bool plan_has_labels(const struct plan *p)
{
	return recipe_has_label(&p->recipe);
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

/* Of fixed records, which have no line: the place of the first field. */
static void describe_record(const struct plan *p, uint64_t input_idx, struct plan_input *out)
{
	const struct plan_slice *s;

	if (p->pack) {
		*out = (struct plan_input){.input_idx = input_idx,
					   .file = p->pack->stream[0].file,
					   .source_bytes = p->source_bytes / p->input_count};
		return;
	}
	s = plan_find_slice(p, p->slice[0].field, input_idx);
	*out = (struct plan_input){.input_idx = input_idx,
				   .class_idx = PLAN_NO_CLASS,
				   .file = s->file,
				   .offset = s->offset + (input_idx - s->first) * s->stride,
				   .source_bytes = p->source_bytes / p->input_count};
}

void plan_input(const struct plan *p, uint64_t input_idx, struct plan_input *out)
{
	const char *at;
	size_t digits;

	if (!plan_names_inputs(p)) {
		describe_record(p, input_idx, out);
		return;
	}
	at = p->text.data + p->input_at[input_idx] + strlen("input ");
	out->input_idx = take_number(&at);
	assert(out->input_idx == input_idx);
	out->class_idx = PLAN_NO_CLASS;
	out->classes = recipe_is_multi_label(&p->recipe) ? at : NULL;
	if (out->classes)
		at += strcspn(at, " ") + 1;
	else if (*at == '-')
		at += strlen("- ");
	else
		out->class_idx = (uint32_t)take_number(&at);
	out->source_bytes = take_number(&at);
	out->encoded_path = at;
	out->file = PLAN_NO_FILE;
	out->offset = 0;
	out->row = 1;
	at += strcspn(at, "# \n");
	if (*at == '#') {
		at++;
		out->row = take_number(&at);
		at--; /* the blank or LF behind it */
	}
	digits = at[0] == ' ' ? strspn(at + 1, "0123456789") : 0;
	if (digits && (at[1 + digits] == ' ' || at[1 + digits] == '\n')) { /* the next token is a number */
		at++;
		out->file = (uint32_t)take_number(&at);
		out->offset = take_number(&at); /* and past the blank or LF behind it */
		at--;
	}
	out->parts = at + (at[0] == ' ');
	out->bad_reason = bad_input_begins(out->parts) ? bad_input_reason(out->parts, strcspn(out->parts, " ")) : 0;
}

void plan_bad_message(const struct plan_input *in, char *out)
{
	const char *at = in->parts + strcspn(in->parts, " ") + 1;

	bad_input_message(at, strcspn(at, "\n"), out);
}

void plan_count_classes(const struct plan *p, uint64_t *count)
{
	struct plan_input input;
	uint32_t class_idx;

	memset(count, 0, p->class_count * sizeof(*count));
	for (uint64_t i = 0; i < p->input_count; i++) {
		plan_input(p, i, &input);
		if (input.class_idx != PLAN_NO_CLASS)
			count[input.class_idx]++;
		while (input.classes && class_list_next(&input.classes, &class_idx))
			count[class_idx]++;
	}
}

size_t plan_input_file(const struct plan_input *in, char out[PLAN_PATH_BYTES_MAX])
{
	return (size_t)text_decode(in->encoded_path, strcspn(in->encoded_path, "# \n"), true, out);
}

size_t plan_input_path(const struct plan *p, const struct plan_input *in, char out[PLAN_PATH_BYTES_MAX])
{
	const struct plan_slice *s;
	int bytes;

	if (in->encoded_path) {
		size_t path_bytes = plan_input_file(in, out);

		if (in->row == 1)
			return path_bytes;
		return path_bytes + (size_t)snprintf(out + path_bytes, PLAN_PATH_BYTES_MAX - path_bytes, "#%" PRIu64,
						     in->row); /* it was seen that it fits */
	}
	if (p->pack)
		return (size_t)snprintf(out, PLAN_PATH_BYTES_MAX, "window#%" PRIu64, in->input_idx);
	s = plan_find_slice(p, p->slice[0].field, in->input_idx);
	bytes = snprintf(out, PLAN_PATH_BYTES_MAX, "%s#%" PRIu64, p->file[s->file].path, in->input_idx - s->first);
	return bytes < PLAN_PATH_BYTES_MAX ? (size_t)bytes : PLAN_PATH_BYTES_MAX - 1;
}

/*
 * By interpolation: documents of like lengths are found in a few steps, where halving would touch
 * one more page with each bit of their number.  Where that does not help, halving goes on.
 */
const struct plan_slice *plan_find_slice(const struct plan *p, uint32_t field, uint64_t input_idx)
{
	uint64_t low = p->field_slice[field], high = p->field_slice[field + 1], at = low;
	double slices_per_input = (double)(high - low) / (double)p->input_count;

	assert(input_idx < p->input_count);
	for (unsigned step = 0;; step++) {
		const struct plan_slice *s = &p->slice[at];
		double guess;

		assert(low < high);
		if (input_idx < s->first)
			high = at;
		else if (input_idx - s->first < s->count)
			return s;
		else
			low = at + 1;
		guess = (double)at + ((double)input_idx - (double)s->first) * slices_per_input;
		if (step >= INTERPOLATIONS)
			at = low + (high - low) / 2;
		else
			at = guess <= (double)low ? low : guess >= (double)high ? high - 1 : (uint64_t)guess;
	}
}

int plan_inputs_at(const struct plan *p, uint64_t first, uint64_t count, uint64_t *input_idx)
{
	struct shard_error err;
	assert(first <= p->input_count && count <= p->input_count - first);
	if (p->order)
		memcpy(input_idx, p->order + first, count * sizeof(*input_idx));
	else if (p->recipe.order == SHARD_ORDER_SHUFFLE)
		return shard_pack_order(p->recipe.seed, p->input_count, first, count, input_idx, &err) == SHARD_OK
			       ? EXIT_DONE
			       : fail_of_library(&err);
	else
		for (uint64_t i = 0; i < count; i++)
			input_idx[i] = first + i;
	return EXIT_DONE;
}

uint64_t plan_input_at(const struct plan *p, uint64_t ordinal)
{
	uint64_t idx = ordinal;

	assert(ordinal < p->input_count);
	if (p->order)
		return p->order[ordinal];
	/* of one place, it only fails if memory ran out, and then it says so */
	plan_inputs_at(p, ordinal, 1, &idx);
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

bool plan_class_names(const struct plan *p, const struct plan_input *in, char *out)
{
	const char *at = in->classes;
	char name[SHARD_KEY_BYTES_MAX + 1];
	size_t used = 0, room = PLAN_CLASS_NAMES_BYTES - sizeof("...");
	uint32_t class_idx;

	out[0] = '\0';
	if (in->class_idx != PLAN_NO_CLASS)
		plan_class_name(p, in->class_idx, out);
	while (at && class_list_next(&at, &class_idx)) {
		plan_class_name(p, class_idx, name);
		if (used + strlen(name) + 1 >= room) {
			strcpy(out + used, "...");
			break;
		}
		used += (size_t)sprintf(out + used, "%s%s", used ? "," : "", name);
	}
	return out[0];
}
