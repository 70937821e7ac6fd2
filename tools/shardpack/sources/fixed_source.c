/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fixed_source.c - the way through a source of fixed records, one file after the other
 */
#include "tools/shardpack/sources/sources.h"

#include <inttypes.h>

#include "tools/common/exit_code.h"
#include "tools/common/message.h"
#include "tools/shardpack/input/place.h"
#include "tools/shardpack/plan/classes.h"
#include "tools/shardpack/plan/classes_list.h"
#include "tools/shardpack/plan/plan.h"
#include "tools/shardpack/plan/plan_write.h"
#include "tools/shardpack/scan/pack_options.h"
#include "tools/shardpack/scan/request.h"
#include "tools/shardpack/scan/scan.h"

bool fixed_source_is_folder(const struct request *r)
{
	return r->place->item_count == 1 && r->place->item[0].is_dir;
}

/* One folder, if the source has a way through it, or files. */
static int check_named(const struct request *r, const struct fixed_source *steps)
{
	if (fixed_source_is_folder(r))
		return steps->add_folder ? EXIT_DONE : fail(EXIT_USAGE, "%s: a folder; name its files", r->place->root);
	for (uint64_t i = 0; i < r->place->item_count; i++)
		if (r->place->item[i].is_dir)
			return fail(EXIT_USAGE, "%s/%s: a folder; name its files%s", r->place->root,
				    r->place->item[i].path, steps->add_folder ? ", or one folder alone" : "");
	return EXIT_DONE;
}

static int begin_counted(const struct request *r, const struct classes *classes, uint64_t count)
{
	int code;

	if (!count)
		return scan_refuse_barren(r->scan, r->place->root, "records", "");
	scan_warn_of_barren(r->scan, "record");
	if (count >= PLAN_INPUTS_MAX)
		return fail(EXIT_BAD, "%s: %" PRIu64 " records; the limit is %" PRIu64, r->place->root, count,
			    PLAN_INPUTS_MAX - 1);
	code = plan_begin(r->plan, r->recipe, classes);
	r->plan->input_count = count;
	return code;
}

/* Every field has its slices. */
static int begin_plan(const struct request *r, const struct classes *classes)
{
	struct plan *p = r->plan;
	uint64_t count[SHARD_FIELDS_MAX] = {0};
	uint32_t lead = SHARD_FIELDS_MAX;

	if (p->pack) /* windows have no slices */
		return begin_counted(r, classes, p->pack->window_count);

	for (uint64_t i = 0; i < p->slice_count; i++)
		count[p->slice[i].field] += p->slice[i].count;
	for (uint32_t f = 0; f < r->recipe->field_count; f++) {
		if (r->recipe->field[f].semantic == SHARD_LENGTH)
			continue;
		if (lead == SHARD_FIELDS_MAX)
			lead = f;
		if (count[f] != count[lead])
			return fail(EXIT_BAD,
				    "%s: field '%s' has %" PRIu64 " records and field '%s' has %" PRIu64 "; "
				    "the numbers must be equal%s",
				    r->place->root, r->recipe->field[lead].name, count[lead], r->recipe->field[f].name,
				    count[f],
				    r->recipe->source == SOURCE_ARRAY && r->recipe->field_count > 4
					    ? "; each file is a field: if it is a record, join them with numpy.stack"
					    : "");
	}
	return begin_counted(r, classes, lead == SHARD_FIELDS_MAX ? 0 : count[lead]);
}

static int scan_named(const struct request *r, const struct fixed_source *steps, void *context, struct classes *classes)
{
	int code = EXIT_DONE;

	if (steps->begin)
		code = steps->begin(r, context, classes);
	else if (r->o->classes)
		code = classes_from_list(classes, r->o->classes);
	if (code == EXIT_DONE && fixed_source_is_folder(r))
		return steps->add_folder(r, context);
	for (uint64_t i = 0; code == EXIT_DONE && i < r->place->item_count; i++)
		code = steps->add_file(r, context, r->place->item[i].path);
	return code;
}

int fixed_source_scan(const struct request *r, const struct fixed_source *steps, void *context)
{
	struct classes classes = {0};
	int code = check_named(r, steps);

	if (code == EXIT_DONE)
		code = scan_named(r, steps, context, &classes);
	if (code == EXIT_DONE && steps->end)
		code = steps->end(r, context, &classes);
	if (code == EXIT_DONE)
		code = begin_plan(r, &classes);
	classes_free(&classes);
	return code;
}
