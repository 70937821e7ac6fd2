/* SPDX-License-Identifier: Apache-2.0 */
/*
 * facts.c - what both reports say, each fact once
 */
#include <math.h>
#include <string.h>

#include "tools/common/exit_code.h"
#include "tools/shardpack/report/report.h"
#include "tools/shardpack/scan/scan.h"

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
				 "an orientation in EXIF or XMP, and lie as in the file",
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
	return p->how == PROBLEM_UNREADABLE ? "unreadable" : shard_miss_reason_name(p->reason);
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
