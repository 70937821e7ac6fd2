/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_json.c - the report as JSON, with all that is known
 */
#include <stdio.h>
#include <string.h>

#include "tools/common/json_out.h"
#include "tools/shardpack/images/images.h"
#include "tools/shardpack/report/report.h"
#include "tools/shardpack/scan/scan.h"

/* Facts of one object follow each other. */
static void write_facts(struct json_out *j, const struct fact *fact, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		const char *object = fact[i].object;

		if (!fact[i].key)
			continue;
		if (object && (!i || object != fact[i - 1].object))
			json_out_object_line(j, object);
		json_out_u64(j, fact[i].key, fact[i].count);
		if (object && (i + 1 == count || object != fact[i + 1].object))
			json_out_end(j);
	}
}

static void write_fields(struct json_out *j, const struct recipe *r)
{
	json_out_array(j, "fields");
	for (uint32_t i = 0; i < r->field_count; i++) {
		const struct shard_field *f = &r->field[i];

		json_out_object_line(j, NULL);
		json_out_string(j, "name", f->name);
		json_out_string(j, "dtype", shard_name(SHARD_NAME_DTYPE, f->dtype));
		json_out_string(j, "kind", shard_name(SHARD_NAME_KIND, f->kind));
		json_out_string(j, "layout", shard_name(SHARD_NAME_LAYOUT, f->layout));
		json_out_string(j, "semantic", shard_name(SHARD_NAME_SEMANTIC, f->semantic));
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

static void write_known(struct json_out *j, const char *key, bool is_known, uint64_t count)
{
	if (is_known)
		json_out_u64(j, key, count);
	else
		json_out_null(j, key);
}

static void write_classes(struct json_out *j, const struct plan *plan, const struct shard_dataset *ds,
			  const uint64_t *inputs)
{
	struct fact_class c;

	json_out_array(j, "classes");
	for (uint64_t i = 0; i < plan->class_count; i++) {
		facts_class(plan, ds, inputs, i, &c);
		json_out_object_line(j, NULL);
		json_out_string(j, "name", c.name);
		write_known(j, "inputs", c.has_inputs, c.inputs);
		write_known(j, "records", c.has_records, c.records);
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
	write_known(j, "padding", p->packed_count, padding.padding);
	if (p->packed_count)
		json_out_double(j, "padding_percent", padding.percent);
	else
		json_out_null(j, "padding_percent");
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

	if (there)
		facts_path(plan, input_idx, path);
	if (there)
		json_out_string(j, key, path);
	else
		json_out_null(j, key);
}

/* Counts and first inputs; of records_not_counted nobody knows. */
static void write_dropped(struct json_out *j, const struct plan *plan, const struct fit_count *f)
{
	json_out_object(j, "dropped");
	for (uint32_t i = 0; i < DROPPED_COUNT; i++) {
		bool there = f->dropped[i] && f->dropped_first[i] < plan->input_count;

		json_out_object_line(j, facts_dropped[i].key);
		json_out_u64(j, "images", f->dropped[i]);
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

static void write_list(struct json_out *j, const struct plan *plan, const struct fact_list *l)
{
	static const char *const how[] = {
		[PROBLEM_SKIPPED] = "skipped",	 [PROBLEM_QUARANTINED] = "quarantined", [PROBLEM_BAD] = "failed",
		[PROBLEM_UNREADABLE] = "failed", [PROBLEM_ACCEPTED] = "accepted",	[PROBLEM_FIRST] = "first"};
	char class_name[PLAN_CLASS_NAMES_BYTES], path[PLAN_PATH_BYTES_MAX];
	struct plan_input input;

	if (!l->list) {
		json_out_null(j, l->key);
		return;
	}
	json_out_array(j, l->key);
	for (uint64_t i = 0; i < l->list->count; i++) {
		const struct problem *p = &l->list->item[i];

		plan_input(plan, plan_input_at(plan, p->ordinal), &input);
		plan_input_path(plan, &input, path);
		json_out_object_line(j, NULL);
		json_out_string(j, "input", path);
		if (plan_class_names(plan, &input, class_name))
			json_out_string(j, "class", class_name);
		else
			json_out_null(j, "class");
		json_out_u64(j, "ordinal", p->ordinal);
		json_out_string(j, "reason", facts_reason(p));
		json_out_string(j, "message", p->message);
		json_out_string(j, "how", how[p->how]);
		json_out_end(j);
	}
	json_out_end(j);
}

static void write_statistics(struct json_out *j, const struct shard_dataset *ds)
{
	struct fact_statistics s;
	for (unsigned which = 0; which < 2; which++) {
		if (!ds || !facts_statistics(ds, &s)) {
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

void report_json(const struct report *r, FILE *out, const struct shard_dataset *ds, const uint64_t *inputs)
{
	const struct plan *plan = r->job->plan;
	const struct account *a = r->job->account;
	const char *versions = plan->text.data + plan->versions_at, *versions_end = versions + plan->versions_bytes;
	struct text digest = {0};
	struct fact fact[FACTS_MAX];
	struct fact_list list[FACTS_LISTS];
	struct fact_text text[FACTS_TEXTS];
	struct json_out j;

	text_hex(&digest, plan->digest, sizeof(plan->digest));
	json_out_start(&j, out);
	json_out_object(&j, NULL);
	json_out_string(&j, "outcome", facts_outcome(r));
	json_out_u64(&j, "exit_code", (uint64_t)r->exit_code);
	json_out_string(&j, "plan", digest.data ? digest.data : "");
	write_recipe(&j, &plan->recipe);
	/* The first line is the bytes-version: nothing is built from a plan with any other one. */
	json_out_u64(&j, "bytes_version", SHARD_BYTES_VERSION);
	versions += strcspn(versions, "\n") + 1;
	write_lines(&j, "versions", versions, (size_t)(versions_end - versions), strlen("version "));
	write_facts(&j, fact, facts_account(a, fact));
	write_pack(&j, plan);
	if (recipe_is_images(&plan->recipe)) {
		write_facts(&j, fact, facts_fit(&a->fit, fact));
		write_dropped(&j, plan, &a->fit);
		write_field_values(&j, plan, &a->fit);
	}
	write_not_finite(&j, &r->job->schema, &a->not_finite);
	write_ignored(&j, r->scan);
	write_classes(&j, plan, ds, inputs);
	facts_lists(a, list);
	for (uint32_t i = 0; i < FACTS_LISTS; i++)
		write_list(&j, plan, &list[i]);
	write_statistics(&j, ds);
	json_out_double(&j, "seconds", (double)r->elapsed_ns / 1e9);
	facts_texts(r->scan, text);
	for (uint32_t i = 0; i < FACTS_TEXTS; i++)
		write_lines(&j, text[i].key, text[i].lines ? text[i].lines->data : NULL,
			    text[i].lines ? text[i].lines->bytes : 0, 0);
	json_out_end(&j);
	json_out_finish(&j); /* a memory stream: its one failure shows when it is closed */
	text_free(&digest);
}
