/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_write.c - a plan, made line by line
 */
#include "tools/shardpack/plan/plan_write.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shard_pack.h"
#include "tools/common/exit_code.h"
#include "tools/common/message.h"
#include "tools/common/shelf.h"
#include "tools/shardpack/images/images.h"
#include "tools/shardpack/plan/bad_input.h"
#include "tools/shardpack/plan/classes.h"
#include "tools/shardpack/plan/plan.h"

static int out_of_memory(const struct plan *p)
{
	return shelf_refuse(p->text.shelf, "a plan of %" PRIu64 " inputs", p->input_count);
}

int plan_begin(struct plan *p, const struct recipe *recipe, const struct classes *classes)
{
	if (!recipe_copy(recipe, &p->recipe))
		return out_of_memory(p);
	p->class_count = classes->count;
	p->class_at = calloc(classes->count + 1, sizeof(*p->class_at));
	if (!p->class_at)
		return out_of_memory(p);
	for (uint64_t i = 0; i < classes->count; i++) {
		text_format(&p->text, "class %" PRIu64 " ", i);
		p->class_at[i] = p->text.bytes;
		text_encode(&p->text, classes->name[i], strlen(classes->name[i]), false);
		text_add(&p->text, "\n", 1);
	}
	text_format(&p->text, "classes %" PRIu64 "\n", classes->count);
	return text_failed(&p->text) ? out_of_memory(p) : EXIT_DONE;
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

/* The line of an input up to its path. */
static bool begin_input(struct plan *p, const char *classes, uint64_t source_bytes, const char *path,
			const char *fields)
{
	if (!plan_grow_inputs(p))
		return false;
	p->input_at[p->input_count] = p->text.bytes;
	note_formats(&p->recipe, path, fields);
	text_format(&p->text, "input %" PRIu64 " ", p->input_count);
	text_add(&p->text, classes, strlen(classes));
	text_format(&p->text, " %" PRIu64 " ", source_bytes);
	text_encode(&p->text, path, strlen(path), true);
	p->input_count++;
	p->source_bytes += source_bytes;
	return true;
}

static int end_input(struct plan *p, const char *fields)
{
	p->bad_count += bad_input_begins(fields);
	text_add(&p->text, fields, strlen(fields));
	text_add(&p->text, "\n", 1);
	return text_failed(&p->text) ? out_of_memory(p) : EXIT_DONE;
}

int plan_add_labelled(struct plan *p, const char *classes, uint64_t source_bytes, const char *path, uint64_t row,
		      uint32_t file, uint64_t offset, const char *fields)
{
	if (!begin_input(p, classes, source_bytes, path, fields))
		return out_of_memory(p);
	if (row > 1)
		text_format(&p->text, "#%" PRIu64, row);
	else if (file != PLAN_NO_FILE)
		text_format(&p->text, " %" PRIu32 " %" PRIu64, file, offset);
	return end_input(p, fields);
}

static const char *class_text(const struct plan *p, uint64_t class_idx, char out[24])
{
	if (!plan_has_labels(p) || class_idx == PLAN_NO_CLASS)
		return "-";
	snprintf(out, 24, "%" PRIu64, class_idx);
	return out;
}

int plan_add_part(struct plan *p, uint64_t class_idx, uint64_t source_bytes, const char *path, uint32_t file,
		  uint64_t offset, const char *fields)
{
	char number[24];

	return plan_add_labelled(p, class_text(p, class_idx, number), source_bytes, path, 1, file, offset, fields);
}

int plan_add_row(struct plan *p, uint64_t class_idx, uint64_t source_bytes, const char *path, uint64_t row,
		 const char *fields)
{
	char number[24];

	assert(row > 1 && row <= PLAN_ROWS_MAX);
	return plan_add_labelled(p, class_text(p, class_idx, number), source_bytes, path, row, PLAN_NO_FILE, 0, fields);
}

static void write_files(const struct plan *p, struct text *out)
{
	for (uint64_t i = 0; i < p->file_count; i++) {
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
	plan_settle_slices(p);
	for (uint64_t i = 0; i < p->slice_count; i++) {
		const struct plan_slice *s = &p->slice[i];

		text_format(&p->text,
			    "slice %" PRIu16 " %" PRIu64 " %" PRIu64 " %" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRIu64
			    " %s%s\n",
			    s->field, s->first, s->count, s->file, s->offset, s->stride, s->bytes, s->swap ? ">" : "",
			    shard_dtype_name(s->dtype));
	}
	text_format(&p->text, "slices %" PRIu64 "\n", p->slice_count);
	return true;
}

/* The head is written last: the shard size may depend on the number of inputs. */
static void put_head(struct plan *p)
{
	struct text head = {0};
	text_format(&head, "shardpack-plan 1\n");
	recipe_write(&p->recipe, &head);
	p->versions_at = head.bytes;
	recipe_write_versions(&p->recipe, &head);
	p->versions_bytes = head.bytes - p->versions_at;
	write_files(p, &head);
	text_put_before(&p->text, &head);
	for (uint64_t i = 0; i < p->class_count; i++)
		p->class_at[i] += head.bytes;
	for (uint64_t i = 0; p->input_at && i < p->input_count; i++)
		p->input_at[i] += head.bytes;
	text_free(&head);
}

int plan_settle_shard_size(struct plan *p, const struct shard_schema *s, uint64_t shard_records, uint64_t shard_bytes)
{
	struct shard_error err;
	int rc = shard_schema_shard_records(s, shard_records, shard_bytes, p->input_count, &p->recipe.shard_records,
					    &err);

	return rc == SHARD_OK ? EXIT_DONE : fail(exit_code_of_status(rc), "%s", err.message);
}

int plan_finish(struct plan *p)
{
	uint64_t first, count;

	assert(p->recipe.shard_records > 0);
	put_head(p);
	p->shard_count = (p->input_count + p->recipe.shard_records - 1) / p->recipe.shard_records;
	if (p->pack)
		token_pack_write(p->pack, &p->text);
	else if (!plan_names_inputs(p) && !write_slices(p))
		return out_of_memory(p);
	text_format(&p->text, "inputs %" PRIu64 "\n", p->input_count);
	for (uint64_t k = 0; k < p->shard_count; k++) {
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
