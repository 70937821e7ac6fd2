/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.c - what all reports say, each fact once; the lines on stderr; the file that --report names
 */
#include "tools/shardpack/report/report.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/human.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/shelf.h"
#include "tools/shardpack/images/images.h"
#include "tools/shardpack/plan/plan.h"
#include "tools/shardpack/scan/scan.h"

/* ---- facts ---- */

uint32_t facts_account(const struct account *a, struct fact out[FACTS_MAX])
{
	const char *why = "failed_because";
	uint64_t failed = account_failed(a), not_done = account_not_done(a), bad = 0;

	for (uint64_t i = 0; i < a->problems.count; i++)
		bad += a->problems.item[i].how == PROBLEM_BAD;
	const struct fact all[] = {
		{NULL, "inputs", "inputs", a->input_count},
		{NULL, "written", "written", a->written},
		{NULL, "accepted_with_warnings", a->accepted ? "of these accepted with warnings" : NULL, a->accepted},
		{NULL, "skipped", "skipped", a->skipped},
		{NULL, "quarantined", "quarantined", a->quarantined},
		{NULL, "failed", NULL, failed},
		{NULL, NULL, "failed", failed - not_done},
		{why, "bad", NULL, bad},
		{why, "unreadable", NULL, a->unreadable},
		{why, "not_published", "not done", not_done},
	};
	memcpy(out, all, sizeof(all));
	return sizeof(all) / sizeof(all[0]);
}

uint32_t facts_fit(const struct fit_count *f, struct fact out[FACTS_MAX])
{
	const char *fit = "fit";
	const struct fact all[] = {
		{fit, "images", "images", f->images},
		{fit, "enlarged", "of these enlarged by the resize", f->enlarged},
		{fit, "padded", "of these with a border of zeros", f->padded},
		{fit, "boxes", "boxes", f->boxes},
		{fit, "boxes_without_area", "of these without area in their record", f->empty_boxes},
		{fit, "boxes_below_a_pixel", "of these less than a pixel wide or high", f->narrow_boxes},
		{fit, "records_not_counted", "records that are not counted here", f->unknown},
	};
	memcpy(out, all, sizeof(all));
	return sizeof(all) / sizeof(all[0]);
}

const struct fact_dropped facts_dropped[DROPPED_COUNT] = {
	[DROPPED_ORIENTATION] = {"orientation", "an orientation in EXIF or XMP that is not applied",
				 "an orientation in EXIF or XMP, which is not applied",
				 "; --exif apply turns them upright", true},
	[DROPPED_ALPHA] = {"alpha", "an alpha channel or a transparent colour",
			   "an alpha channel or a transparent colour, which is left out", "", false},
	[DROPPED_PROFILE] = {"profile", "a colour profile or gamma other than sRGB",
			     "a colour profile or gamma other than sRGB, which is not applied", "", false},
	[DROPPED_CMYK] = {"cmyk", "CMYK", "CMYK, which became RGB without a profile", "", false},
	[DROPPED_BITS] = {"bits", "more than 8 bits a sample",
			  "more than 8 bits a sample, of which the upper 8 are packed", "; --dtype u16 packs all of 16",
			  false},
};

void facts_lists(const struct account *a, struct fact_list out[FACTS_LISTS])
{
	out[0] = (struct fact_list){"bad_inputs", "Bad inputs", "bad", &a->problems};
	out[1] = (struct fact_list){"accepted_inputs", "Accepted with warnings", "accepted", &a->accepted_inputs};
	out[2] = (struct fact_list){"first_of_several", "The first frame or page is packed", "first",
				    a->firsts_unknown ? NULL : &a->first_inputs};
}

const char *facts_reason(const struct problem *p)
{
	return p->how == PROBLEM_UNREADABLE ? "unreadable" : reason_name(p->reason);
}

void facts_texts(const struct scan *scan, struct fact_text out[FACTS_TEXTS])
{
	out[0] = (struct fact_text){"warnings", "Warnings", scan ? &scan->warnings : NULL};
	out[1] = (struct fact_text){"notes", "Notes", scan ? &scan->notes : NULL};
}

void facts_class(const struct plan *plan, const struct shard_dataset *ds, const uint64_t *inputs, uint64_t class_idx,
		 struct fact_class *out)
{
	const struct shard_schema *schema = ds ? shard_dataset_schema(ds) : NULL;
	const struct shard_field *label = schema ? shard_schema_label(schema) : NULL;
	struct shard_error err;

	plan_class_name(plan, class_idx, out->name);
	out->has_inputs = plan_has_labels(plan);
	out->inputs = inputs[class_idx];
	out->has_records = label && shard_dataset_class_records(ds, (uint32_t)(label - schema->field), class_idx,
								&out->records, &err) == SHARD_OK;
}

size_t facts_path(const struct plan *plan, uint64_t input_idx, char path[PLAN_PATH_BYTES_MAX])
{
	struct plan_input input;

	plan_input(plan, input_idx, &input);
	return plan_input_path(plan, &input, path);
}

const char *facts_outcome(const struct report *r)
{
	return r->exit_code == EXIT_INTERRUPTED || r->exit_code == EXIT_STOPPED ? "interrupted"
	       : r->exit_code != EXIT_DONE					? "failed"
	       : r->sealed							? "sealed"
	       : r->planned							? "planned"
										: "built";
}

bool facts_statistics(const struct shard_dataset *ds, struct fact_statistics *out)
{
	struct shard_moments m;
	struct shard_error err;
	uint32_t field = 0;
	const struct shard_schema *schema = shard_dataset_schema(ds);

	while (field < schema->field_count && !shard_field_channels(&schema->field[field]))
		field++;
	out->channels = field < schema->field_count ? shard_field_channels(&schema->field[field]) : 0;
	for (uint32_t i = 0; i < out->channels; i++) {
		long double mean, square;

		if (shard_dataset_moments(ds, field, i, &m, &err) != SHARD_OK || !m.count)
			return false;
		/* The sums are exact; this is the only rounding. */
		mean = (long double)m.sum / m.count;
		square = ((long double)m.sum_squares_high * 18446744073709551616.0L + m.sum_squares_low) / m.count;
		out->mean[i] = (double)(mean / 255);
		out->deviation[i] = square > mean * mean ? (double)(sqrtl(square - mean * mean) / 255) : 0;
	}
	return out->channels > 0;
}

/* ---- how it went, in a few lines on stderr ---- */

static void tell_dataset(const struct report *r, struct shard_dataset *ds)
{
	char records[HUMAN_CHARS], shards[HUMAN_CHARS], bytes[HUMAN_CHARS], time[HUMAN_CHARS];
	struct shard_dataset_info info;
	struct fact_statistics s;

	shard_dataset_info(ds, &info);
	note("%s: %s records in %s shard%s, %s, in %s", r->job->out_dir, human_count(records, info.record_count),
	     human_count(shards, info.shard_count), info.shard_count == 1 ? "" : "s",
	     human_bytes(bytes, info.data_bytes), human_duration(time, r->elapsed_ns));
	if (facts_statistics(ds, &s) && s.channels == IMAGE_CHANNELS)
		note("mean %.4f %.4f %.4f, standard deviation %.4f %.4f %.4f (red, green, blue, scaled to 0..1)",
		     s.mean[0], s.mean[1], s.mean[2], s.deviation[0], s.deviation[1], s.deviation[2]);
	else if (facts_statistics(ds, &s) && s.channels == 1)
		note("mean %.4f, standard deviation %.4f (scaled to 0..1)", s.mean[0], s.deviation[0]);
}

void report_ignored(const struct scan *scan)
{
	struct text list = {0};

	if (!scan->ignored.count)
		return;
	ignored_list(&scan->ignored, &list);
	note("%" PRIu64 " other file%s in the source: ignored (%s)", scan->ignored.count,
	     scan->ignored.count == 1 ? "" : "s", list.data);
	text_free(&list);
}

/* What may be a mistake in the options.  A border is what --fit pad and long are for. */
static void tell_fit(const struct recipe *recipe, const struct fit_count *f)
{
	const struct transform_options *t = &recipe->transform;
	char some[HUMAN_CHARS], all[HUMAN_CHARS], narrow[HUMAN_CHARS];
	bool counts = f->enlarged || f->padded || f->boxes; /* is anything said of records? */

	human_count(all, f->images);
	if (f->enlarged)
		note("%s of %s images %s enlarged: smaller than --resize %" PRIu32, human_count(some, f->enlarged), all,
		     f->enlarged == 1 ? "was" : "were", t->resize);
	if (f->padded && (t->fit == FIT_SHORT || t->fit == FIT_STRETCH))
		note("%s of %s images %s a border of zeros: smaller than --crop %" PRIu32, human_count(some, f->padded),
		     all, f->padded == 1 ? "has" : "have", t->crop);
	if (f->empty_boxes || f->narrow_boxes)
		note("%s of %s boxes have no area in their records, because they lie outside of the image or of the "
		     "crop, or had none; %s more are less than a pixel wide or high",
		     human_count(some, f->empty_boxes), human_count(all, f->boxes),
		     human_count(narrow, f->narrow_boxes));
	for (uint32_t i = 0; i < recipe->field_count; i++)
		counts = counts || f->field[i].without;
	if (f->unknown && counts)
		note("%s record%s of shards that were there before %s not among these", human_count(some, f->unknown),
		     f->unknown == 1 ? "" : "s", f->unknown == 1 ? "is" : "are");
}

static void tell_not_finite(const struct shard_schema *s, const struct not_finite *n)
{
	char nan[HUMAN_CHARS], infinite[HUMAN_CHARS], some[HUMAN_CHARS];
	bool real = false;

	for (uint32_t f = 0; f < s->field_count; f++) {
		real = real || (s->field[f].dtype >= SHARD_F16 && s->field[f].dtype <= SHARD_F64);
		if (n->nan[f] || n->infinite[f])
			warn("field %s has %s NaN and %s infinite values; they are stored as they are",
			     s->field[f].name, human_count(nan, n->nan[f]), human_count(infinite, n->infinite[f]));
	}
	if (real && n->unknown)
		note("%s record%s of shards that were there before %s not looked through for NaN and infinite values; "
		     "`shardcat stats` counts them",
		     human_count(some, n->unknown), n->unknown == 1 ? "" : "s", n->unknown == 1 ? "is" : "are");
}

/* Files may have more than their records.  Nobody sees later what was left out. */
static void tell_dropped(const struct plan *plan, const struct fit_count *f, bool exif_said)
{
	char path[PLAN_PATH_BYTES_MAX], some[HUMAN_CHARS], all[HUMAN_CHARS];

	for (uint32_t i = 0; i < DROPPED_COUNT; i++) {
		if (!f->dropped[i] || f->dropped_first[i] >= plan->input_count)
			continue;
		facts_path(plan, plan_input_at(plan, f->dropped_first[i]), path);
		(facts_dropped[i].is_odd && !exif_said ? warn : note)(
			"%s of %s images %s %s (the first is %s)%s", human_count(some, f->dropped[i]),
			human_count(all, f->images), f->dropped[i] == 1 ? "has" : "have", facts_dropped[i].text, path,
			facts_dropped[i].remedy);
	}
}

/*
 * Inputs without a value, which `optional` allows.  And values that do not differ: what is the same in
 * all records says nothing; the wrong file or option is likelier.
 */
static void tell_fields(const struct plan *plan, const struct fit_count *fit)
{
	char without[HUMAN_CHARS], all[HUMAN_CHARS], path[PLAN_PATH_BYTES_MAX];

	for (uint32_t i = 0; i < plan->recipe.field_count; i++) {
		const struct field_source *source = &plan->recipe.from[i];
		const char *name = plan->recipe.field[i].name;
		const char *key = field_coco_key(source), *from = key ? key : source->from;
		const struct fit_field *f = &fit->field[i];

		if (f->without && f->first < plan->input_count) {
			facts_path(plan, f->first, path);
			note("%s of %s record%s %s no value for field %s: the first is %s",
			     human_count(without, f->without), human_count(all, f->records), f->records == 1 ? "" : "s",
			     f->without == 1 ? "has" : "have", name, path);
		}
		if (f->least != f->most || fit_count_with(f) < 2)
			continue;
		human_count(all, fit_count_with(f));
		if (source->kind == FIELD_MASK)
			warn("field %s: all pixels of its %s masks are %" PRIu32 "; does from=%s name what was meant?",
			     name, all, f->most, from);
		else if (!f->most)
			warn("field %s: is empty in all %s records%s; does from=%s name what was meant?", name, all,
			     f->without ? " that have a value" : "", from);
	}
}

void report_tell(const struct report *r)
{
	const struct account *a = r->job->account;
	struct shard_dataset *ds = NULL;
	struct shard_error err;
	struct text words = {0};
	uint64_t not_done = account_not_done(a);
	bool has_image = false;
	char last[40] = "", accepted[60] = "";

	if (r->sealed && shard_dataset_open(&ds, r->job->out_dir, NULL, &err) == SHARD_OK)
		tell_dataset(r, ds);
	else if (r->sealed)
		warn("%s", err.message);
	shard_dataset_close(ds);
	if (r->sealed) {
		text_shell_word(&words, r->job->out_dir);
		for (uint32_t f = 0; f < r->job->schema.field_count; f++)
			has_image = has_image || r->job->schema.field[f].semantic == SHARD_IMAGE;
		note("next: shardcat %s %s", has_image ? "show" : "info", words.data);
		text_free(&words);
	}
	if (r->scan)
		report_ignored(r->scan);
	tell_not_finite(&r->job->schema, &a->not_finite);
	if (recipe_is_images(&r->job->plan->recipe)) {
		tell_fit(&r->job->plan->recipe, &a->fit);
		tell_dropped(r->job->plan, &a->fit, r->job->exif_said);
		tell_fields(r->job->plan, &a->fit);
	}
	if (not_done)
		snprintf(last, sizeof(last), " + %" PRIu64 " not done", not_done);
	if (a->accepted) {
		snprintf(accepted, sizeof(accepted), " (%" PRIu64 " accepted with warnings)", a->accepted);
		warn("%" PRIu64 " of %" PRIu64
		     " record%s come%s from damaged images, accepted with warnings; there the "
		     "field " RECIPE_DAMAGE " is not 0",
		     a->accepted, a->written, a->written == 1 ? "" : "s", a->accepted == 1 ? "s" : "");
	}
	if (a->first_inputs.count)
		warn("%" PRIu64
		     " input%s more frames, pages or pictures than one: the first is packed; --report FILE lists them",
		     a->first_inputs.count, a->first_inputs.count == 1 ? " has" : "s have");
	if (a->vanished)
		warn("%" PRIu64 " of the skipped inputs vanished: their files were there when the plan was made",
		     a->vanished);
	note("%" PRIu64 " input%s = %" PRIu64 " written%s + %" PRIu64 " skipped + %" PRIu64 " quarantined + %" PRIu64
	     " failed%s",
	     a->input_count, a->input_count == 1 ? "" : "s", a->written, accepted, a->skipped, a->quarantined,
	     account_failed(a) - not_done, last);
}

/* ---- the report that --report asks for ---- */

static bool is_html(const char *path)
{
	const char *dot = strrchr(path, '.');

	return dot && (!strcmp(dot, ".html") || !strcmp(dot, ".htm"));
}

int report_file_write(const struct report *r, const char *path)
{
	const struct plan *plan = r->job->plan;
	uint64_t *inputs = xcalloc(plan->class_count + 1, sizeof(*inputs));
	struct shard_dataset *ds = NULL;
	struct shard_error err;
	struct memory_file out;
	int rc = EXIT_DONE, written = EXIT_DONE;

	memory_file_open(&out);
	if (plan_has_labels(plan))
		plan_count_classes(plan, inputs);
	if (r->sealed && shard_dataset_open(&ds, r->job->out_dir, NULL, &err) != SHARD_OK)
		rc = fail_of_library(&err);
	if (is_html(path) && !rc)
		rc = report_html(r, out.stream, ds, inputs);
	else if (is_html(path))
		report_html(r, out.stream, NULL, inputs);
	else
		report_json(r, out.stream, ds, inputs);
	memory_file_close(&out);
	if (files_is_device_or_pipe(path))
		written = files_write_in_place(path, out.data, out.bytes);
	else if (files_publish(path, out.data, out.bytes, &err) != SHARD_OK)
		written = fail(exit_code_of_status(err.status), "--report %s", err.message);
	if (!rc) /* the first failure counts */
		rc = written;
	shard_dataset_close(ds);
	free(out.data);
	free(inputs);
	return rc;
}
