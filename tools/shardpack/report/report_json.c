/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_json.c - the report as JSON, with all that is known
 */
#include "tools/shardpack/report/report_json.h"

#include <stdio.h>
#include <string.h>

#include "shard_pack.h"
#include "tools/common/exit_code.h"
#include "tools/common/json_out.h"
#include "tools/shardpack/build/job.h"
#include "tools/shardpack/convert/account.h"
#include "tools/shardpack/decode/image.h"
#include "tools/shardpack/image/transform_image.h"
#include "tools/shardpack/plan/plan.h"
#include "tools/shardpack/report/report.h"
#include "tools/shardpack/report/report_statistics.h"
#include "tools/shardpack/scan/image_list.h"
#include "tools/shardpack/scan/request.h"
#include "tools/shardpack/scan/scan.h"
#include "tools/shardpack/token_pack/token_pack.h"

static void write_fields(struct json_out *j, const struct recipe *r)
{
	json_out_array(j, "fields");
	for (uint32_t i = 0; i < r->field_count; i++) {
		const struct shard_field *f = &r->field[i];

		json_out_object_line(j, NULL);
		json_out_string(j, "name", f->name);
		json_out_string(j, "dtype", shard_dtype_name(f->dtype));
		json_out_string(j, "kind", shard_kind_name(f->kind));
		json_out_string(j, "layout", shard_layout_name(f->layout));
		json_out_string(j, "semantic", shard_semantic_name(f->semantic));
		json_out_array_line(j, "shape");
		for (uint32_t d = 0; d < f->ndim; d++)
			json_out_u64(j, NULL, f->shape[d]);
		json_out_end(j);
		json_out_end(j);
	}
	json_out_end(j);
}

static void write_channels(struct json_out *j, const char *key, const double *value)
{
	json_out_array_line(j, key);
	for (uint32_t c = 0; c < IMAGE_CHANNELS; c++)
		json_out_double(j, NULL, value[c]);
	json_out_end(j);
}

static void write_recipe(struct json_out *j, const struct recipe *r)
{
	json_out_object(j, "recipe");
	json_out_string(j, "source", recipe_source_names[r->source]);
	if (recipe_is_images(r)) {
		json_out_string(j, "label", recipe_label_names[r->label]);
		json_out_string(j, "accept", recipe_accept_names[r->accept]);
		json_out_string(j, "exif", recipe_exif_names[r->exif]);
		if (r->transform.resize)
			json_out_u64(j, "resize", r->transform.resize);
		else
			json_out_null(j, "resize");
		json_out_string(j, "decode_scale", transform_scale_names[r->transform.scale]);
		json_out_string(j, "fit", transform_fit_names[r->transform.fit]);
		if (r->transform.fit == FIT_AREA)
			json_out_null(j, "crop");
		else
			json_out_u64(j, "crop", r->transform.crop);
		json_out_string(j, "filter", transform_filter_names[r->transform.filter]);
		json_out_string(j, "pixels", transform_pixels_names[r->transform.pixels]);
		json_out_string(j, "layout", transform_layout_names[r->transform.layout]);
		json_out_string(j, "dtype", transform_samples_names[r->transform.samples]);
		json_out_u64(j, "bits", r->transform.wide ? 16 : 8);
		if (image_is_normalised(r->transform.samples)) {
			write_channels(j, "mean", r->transform.normal.mean);
			write_channels(j, "std", r->transform.normal.std);
		}
	}
	if (r->field_count)
		write_fields(j, r);
	json_out_string(j, "compress", recipe_codec_names[r->codec]);
	json_out_u64(j, "align", r->align);
	json_out_string(j, "order", recipe_order_names[r->order]);
	json_out_u64(j, "seed", r->seed);
	json_out_string(j, "on_error", recipe_on_error_names[r->on_error]);
	json_out_u64(j, "shard_records", r->shard_records);
	json_out_end(j);
}

/* Lines as strings, each without the first `skip` bytes. */
static void write_lines(struct json_out *j, const char *key, const char *lines, size_t bytes, size_t skip)
{
	const char *end = lines + bytes;

	json_out_array(j, key);
	while (lines < end) {
		size_t line = strcspn(lines, "\n");

		json_out_string_bytes(j, NULL, lines + skip, line - skip);
		lines += line + 1;
	}
	json_out_end(j);
}

/* The first line is the bytes-version: nothing is built from a plan with any other one. */
static void write_versions(struct json_out *j, const struct plan *plan)
{
	const char *lines = plan->text.data + plan->versions_at;
	size_t first = strcspn(lines, "\n") + 1;

	json_out_u64(j, "bytes_version", SHARD_BYTES_VERSION);
	write_lines(j, "versions", lines + first, plan->versions_bytes - first, strlen("version "));
}

static void write_classes(struct json_out *j, const struct plan *plan, const struct shard_dataset *ds,
			  const uint64_t *inputs)
{
	const struct shard_schema *schema = ds ? shard_dataset_schema(ds) : NULL;
	const struct shard_field *label = schema ? shard_schema_label(schema) : NULL;
	char name[SHARD_KEY_BYTES_MAX + 1];
	struct shard_error err;
	uint64_t records;

	json_out_array(j, "classes");
	for (uint64_t i = 0; i < plan->class_count; i++) {
		plan_class_name(plan, i, name);
		json_out_object_line(j, NULL);
		json_out_string(j, "name", name);
		if (plan_has_labels(plan))
			json_out_u64(j, "inputs", inputs[i]);
		else
			json_out_null(j, "inputs");
		if (label &&
		    shard_dataset_class_records(ds, (uint32_t)(label - schema->field), i, &records, &err) == SHARD_OK)
			json_out_u64(j, "records", records);
		else
			json_out_null(j, "records");
		json_out_end(j);
	}
	json_out_end(j);
}

/* Documents of tokens that share records.  Only a process that packed them knows the padding. */
static void write_pack(struct json_out *j, const struct plan *plan)
{
	const struct token_pack *p = plan->pack;
	struct token_padding padding;

	if (!p)
		return;
	padding = token_pack_padding(p, plan->recipe.field[TOKEN_PACK_TOKENS].shape[0]);
	json_out_object_line(j, "packed");
	json_out_u64(j, "documents", p->document_count);
	json_out_u64(j, "tokens_in_records", padding.places);
	if (p->packed_count) {
		json_out_u64(j, "padding", padding.padding);
		json_out_double(j, "padding_percent", padding.percent);
	} else {
		json_out_null(j, "padding");
		json_out_null(j, "padding_percent");
	}
	json_out_end(j);
}

static void write_fit(struct json_out *j, const struct fit_count *f)
{
	json_out_object_line(j, "fit");
	json_out_u64(j, "images", f->images);
	json_out_u64(j, "enlarged", f->enlarged);
	json_out_u64(j, "padded", f->padded);
	json_out_u64(j, "boxes", f->boxes);
	json_out_u64(j, "boxes_without_area", f->empty_boxes);
	json_out_u64(j, "boxes_below_a_pixel", f->narrow_boxes);
	json_out_u64(j, "records_not_counted", f->unknown);
	json_out_end(j);
}

static void write_not_finite(struct json_out *j, const struct shard_schema *s, const struct not_finite *n)
{
	json_out_object_line(j, "not_finite");
	json_out_array(j, "fields");
	for (uint32_t f = 0; f < s->field_count; f++) {
		if (!n->nan[f] && !n->infinite[f])
			continue;
		json_out_object(j, NULL);
		json_out_string(j, "field", s->field[f].name);
		json_out_u64(j, "nan", n->nan[f]);
		json_out_u64(j, "infinite", n->infinite[f]);
		json_out_end(j);
	}
	json_out_end(j);
	json_out_u64(j, "records_not_counted", n->unknown);
	json_out_end(j);
}

/* The path of the first input of a count, or null if there is none. */
static void write_first(struct json_out *j, const char *key, const struct plan *plan, bool there, uint64_t input_idx)
{
	char path[PLAN_PATH_BYTES_MAX];
	struct plan_input input;

	if (!there) {
		json_out_null(j, key);
		return;
	}
	plan_input(plan, input_idx, &input);
	plan_input_path(plan, &input, path);
	json_out_string(j, key, path);
}

/* Counts and first inputs; of records_not_counted nobody knows. */
static void write_dropped(struct json_out *j, const struct plan *plan, const struct fit_count *f)
{
	static const char *const names[DROPPED_COUNT] = {[DROPPED_ORIENTATION] = "orientation",
							 [DROPPED_ALPHA] = "alpha",
							 [DROPPED_PROFILE] = "profile",
							 [DROPPED_CMYK] = "cmyk",
							 [DROPPED_BITS] = "bits"};
	bool there;

	json_out_object(j, "dropped");
	for (uint32_t i = 0; i < DROPPED_COUNT; i++) {
		json_out_object_line(j, names[i]);
		json_out_u64(j, "images", f->dropped[i]);
		there = f->dropped[i] && f->dropped_first[i] < plan->input_count;
		write_first(j, "first", plan, there, there ? plan_input_at(plan, f->dropped_first[i]) : 0);
		json_out_end(j);
	}
	json_out_end(j);
}

/* Lists and masks: a dataset that was there already does not say it. */
static void write_field_values(struct json_out *j, const struct plan *plan, const struct fit_count *fit)
{
	if (!fit->images && fit->unknown) {
		json_out_null(j, "field_values");
		return;
	}
	json_out_array(j, "field_values");
	for (uint32_t i = 0; i < plan->recipe.field_count; i++) {
		const struct fit_field *f = &fit->field[i];

		if (!f->records)
			continue;
		json_out_object_line(j, NULL);
		json_out_string(j, "field", plan->recipe.field[i].name);
		json_out_u64(j, "records", f->records);
		json_out_u64(j, "without_value", f->without);
		write_first(j, "first_without", plan, f->without && f->first < plan->input_count, f->first);
		if (fit_count_with(f)) {
			json_out_u64(j, "least", f->least);
			json_out_u64(j, "most", f->most);
		}
		json_out_end(j);
	}
	json_out_end(j);
}

static void write_account(struct json_out *j, const struct account *a)
{
	uint64_t failed = account_failed(a), bad = 0;

	for (uint64_t i = 0; i < a->problems.count; i++)
		bad += a->problems.item[i].how == PROBLEM_BAD;
	json_out_u64(j, "inputs", a->input_count);
	json_out_u64(j, "written", a->written);
	json_out_u64(j, "accepted_with_warnings", a->accepted);
	json_out_u64(j, "skipped", a->skipped);
	json_out_u64(j, "quarantined", a->quarantined);
	json_out_u64(j, "failed", failed);
	json_out_object_line(j, "failed_because");
	json_out_u64(j, "bad", bad);
	json_out_u64(j, "unreadable", a->unreadable);
	json_out_u64(j, "not_published", account_not_done(a));
	json_out_end(j);
}

static void write_problems(struct json_out *j, const char *key, const struct plan *plan,
			   const struct problem_list *list)
{
	static const char *const how[] = {
		[PROBLEM_SKIPPED] = "skipped",	 [PROBLEM_QUARANTINED] = "quarantined", [PROBLEM_BAD] = "failed",
		[PROBLEM_UNREADABLE] = "failed", [PROBLEM_ACCEPTED] = "accepted",	[PROBLEM_FIRST] = "first"};
	char class_name[PLAN_CLASS_NAMES_BYTES], path[PLAN_PATH_BYTES_MAX];
	struct plan_input input;
	json_out_array(j, key);
	for (uint64_t i = 0; i < list->count; i++) {
		const struct problem *p = &list->item[i];

		plan_input(plan, plan_input_at(plan, p->ordinal), &input);
		plan_input_path(plan, &input, path);
		json_out_object_line(j, NULL);
		json_out_string(j, "input", path);
		if (plan_class_names(plan, &input, class_name))
			json_out_string(j, "class", class_name);
		else
			json_out_null(j, "class");
		json_out_u64(j, "ordinal", p->ordinal);
		json_out_string(j, "reason",
				p->how == PROBLEM_UNREADABLE ? "unreadable" : shard_miss_reason_name(p->reason));
		json_out_string(j, "message", p->message);
		json_out_string(j, "how", how[p->how]);
		json_out_end(j);
	}
	json_out_end(j);
}

static void write_statistics(struct json_out *j, const struct shard_dataset *ds)
{
	struct report_statistics s;
	for (unsigned which = 0; which < 2; which++) {
		if (!ds || !report_statistics(ds, &s)) {
			json_out_null(j, which ? "std" : "mean");
			continue;
		}
		json_out_array_line(j, which ? "std" : "mean");
		for (unsigned i = 0; i < s.channels; i++)
			json_out_double(j, NULL, which ? s.deviation[i] : s.mean[i]);
		json_out_end(j);
	}
}

/* Not of a dataset that another process planned: that one listed the source. */
static void write_ignored(struct json_out *j, const struct scan *scan)
{
	const char *name, *end;

	if (!scan) {
		json_out_null(j, "ignored_files");
		return;
	}
	json_out_u64(j, "ignored_files", scan->ignored.count);
	json_out_object_line(j, "ignored_endings");
	for (uint32_t i = 0; i < scan->ignored.ending_count; i++)
		json_out_u64(j, scan->ignored.ending[i].text, scan->ignored.ending[i].count);
	json_out_end(j);
	json_out_array(j, "ignored");
	name = scan->ignored.names.data;
	end = name + scan->ignored.names.bytes;
	for (; name < end; name += strlen(name) + 1)
		json_out_string(j, NULL, name);
	json_out_end(j);
}

const char *report_outcome(const struct report *r)
{
	return r->exit_code == EXIT_INTERRUPTED || r->exit_code == EXIT_STOPPED ? "interrupted"
	       : r->exit_code != EXIT_DONE					? "failed"
	       : r->sealed							? "sealed"
	       : r->planned							? "planned"
										: "built";
}

void report_json(const struct report *r, FILE *out, const struct shard_dataset *ds, const uint64_t *inputs)
{
	const struct plan *plan = r->job->plan;
	struct text digest = {0};
	struct json_out j;

	text_hex(&digest, plan->digest, sizeof(plan->digest));
	json_out_start(&j, out);
	json_out_object(&j, NULL);
	json_out_string(&j, "outcome", report_outcome(r));
	json_out_u64(&j, "exit_code", (uint64_t)r->exit_code);
	json_out_string(&j, "plan", digest.data ? digest.data : "");
	write_recipe(&j, &plan->recipe);
	write_versions(&j, plan);
	write_account(&j, r->job->account);
	write_pack(&j, plan);
	if (recipe_is_images(&plan->recipe)) {
		write_fit(&j, &r->job->account->fit);
		write_dropped(&j, plan, &r->job->account->fit);
		write_field_values(&j, plan, &r->job->account->fit);
	}
	write_not_finite(&j, &r->job->schema, &r->job->account->not_finite);
	write_ignored(&j, r->scan);
	write_classes(&j, plan, ds, inputs);
	write_problems(&j, "bad_inputs", plan, &r->job->account->problems);
	write_problems(&j, "accepted_inputs", plan, &r->job->account->accepted_inputs);
	if (r->job->account->firsts_unknown)
		json_out_null(&j, "first_of_several");
	else
		write_problems(&j, "first_of_several", plan, &r->job->account->first_inputs);
	write_statistics(&j, ds);
	json_out_double(&j, "seconds", (double)r->elapsed_ns / 1e9);
	write_lines(&j, "warnings", r->scan ? r->scan->warnings.data : NULL, r->scan ? r->scan->warnings.bytes : 0, 0);
	write_lines(&j, "notes", r->scan ? r->scan->notes.data : NULL, r->scan ? r->scan->notes.bytes : 0, 0);
	json_out_end(&j);
	json_out_finish(&j); /* a memory stream: its one failure shows when it is closed */
	text_free(&digest);
}
