/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fixed_parts.c - which files of two fields hold the same records
 */
#include "tools/shardpack/sources/sources.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/exit_code.h"
#include "tools/common/message.h"
#include "tools/common/shelf.h"
#include "tools/shardpack/plan/plan.h"
#include "tools/shardpack/scan/request.h"
#include "tools/shardpack/scan/scan.h"

int fixed_parts_add(struct fixed_parts *p, const struct request *r, const char *name, uint64_t number,
		    const char *where)
{
	struct fixed_part *part;

	if (!r->plan->slice_count || (p->count && p->part[p->count - 1].slice == r->plan->slice_count - 1))
		return EXIT_DONE;
	if (!grow(&p->part, &p->capacity, p->count + 1, sizeof(*p->part)))
		return fail(EXIT_IO, "out of memory for a list of %" PRIu64 " files", p->count);
	part = &p->part[p->count++];
	*part = (struct fixed_part){
		.name = strdup(name), .where = strdup(where), .number = number, .slice = r->plan->slice_count - 1};
	return part->name && part->where ? EXIT_DONE
					 : fail(EXIT_IO, "out of memory for a list of %" PRIu64 " files", p->count);
}

void fixed_parts_free(struct fixed_parts *p)
{
	for (uint64_t i = 0; i < p->count; i++) {
		free(p->part[i].name);
		free(p->part[i].where);
	}
	free(p->part);
	*p = (struct fixed_parts){0};
}

static uint16_t field_of(const struct request *r, const struct fixed_part *part)
{
	return r->plan->slice[part->slice].field;
}

static int compare_names(const void *a, const void *b)
{
	const struct fixed_part *x = a, *y = b;
	int order = strcmp(x->name, y->name);

	return order ? order : x->slice < y->slice ? -1 : x->slice > y->slice;
}

/* By folder, as these came first, and number; 0 if both are the same. */
static int compare_places(const struct fixed_part *x, const struct fixed_part *y)
{
	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

static int compare_parts(const void *a, const void *b, void *context)
{
	const struct request *r = context;
	const struct fixed_part *x = a, *y = b;
	int order = (int)field_of(r, x) - (int)field_of(r, y);

	order = order ? order : compare_places(x, y);
	return order ? order : x->slice < y->slice ? -1 : x->slice > y->slice;
}

/* Each name gets the place where it came first. */
static void find_groups(struct fixed_parts *p)
{
	if (p->count)
		qsort(p->part, p->count, sizeof(*p->part), compare_names);
	for (uint64_t i = 0; i < p->count; i++)
		p->part[i].group =
			i && !strcmp(p->part[i].name, p->part[i - 1].name) ? p->part[i - 1].group : p->part[i].slice;
}

/* The parts of one field, in their order; how many. */
static uint64_t parts_of_field(const struct request *r, const struct fixed_part *first, const struct fixed_part *end)
{
	uint64_t n = 0;

	while (first + n < end && field_of(r, first + n) == field_of(r, first))
		n++;
	return n;
}

/* Two parts that nothing tells apart: which of them has the records of another field's part? */
static int refuse_twins(const struct request *r, const struct fixed_part *a, const char *remedy)
{
	return fail(EXIT_BAD, "%s and %s are parts of field '%s', and have one name; %s", a[0].where, a[1].where,
		    r->recipe->field[field_of(r, a)].name, remedy);
}

/* Parts of one field follow each other; those of the others begin where theirs do. */
static int place_field(const struct request *r, const struct fixed_part *lead, uint64_t lead_count,
		       const struct fixed_part *part, uint64_t count, const char *remedy)
{
	const struct fixed_part *alone = NULL;
	uint64_t first = 0;
	uint16_t other = 0;

	for (uint64_t i = 0; i < count || i < lead_count; i++) {
		int order = i == count ? -1 : i == lead_count ? 1 : compare_places(&lead[i], &part[i]);
		uint64_t records;

		if (order) {
			alone = order < 0 ? &lead[i] : &part[i];
			other = field_of(r, order < 0 ? part : lead);
			return fail(EXIT_BAD, "%s: has no partner among the files of field '%s'; %s", alone->where,
				    r->recipe->field[other].name, remedy);
		}
		records = r->plan->slice[part[i].slice].count;
		if (records != r->plan->slice[lead[i].slice].count)
			return fail(EXIT_BAD,
				    "%s has %" PRIu64 " records, and %s has %" PRIu64
				    "; files that belong together must have equally many",
				    lead[i].where, r->plan->slice[lead[i].slice].count, part[i].where, records);
		r->plan->slice[part[i].slice].first = first;
		first += records;
	}
	return EXIT_DONE;
}

/* Fields that are one file have all records, in an order that only the command line tells. */
static void set_whole_apart(struct fixed_parts *p, const struct request *r, struct fixed_part *whole)
{
	uint64_t count[SHARD_FIELDS_MAX] = {0}, kept = 0;

	for (uint64_t i = 0; i < p->count; i++)
		count[field_of(r, &p->part[i])]++;
	for (uint64_t i = 0; i < p->count; i++) {
		struct fixed_part part = p->part[i];
		bool is_whole = count[field_of(r, &part)] == 1;

		if (!is_whole) {
			p->part[kept++] = part;
		} else if (!whole->name) {
			*whole = part;
		} else {
			free(part.name);
			free(part.where);
		}
	}
	p->count = kept;
}

static void warn_of_whole(const struct fixed_part *lead, uint64_t count, const struct request *r,
			  const struct fixed_part *whole)
{
	scan_warn(r->scan,
		  "%s holds field '%s' of all records; those of field '%s' follow each other in this order: %s, %s%s",
		  whole->where, r->recipe->field[field_of(r, whole)].name, r->recipe->field[field_of(r, lead)].name,
		  lead[0].where, lead[1].where, count > 2 ? ", ..." : "");
}

int fixed_parts_pair(struct fixed_parts *p, const struct request *r, const char *remedy)
{
	const struct fixed_part *end;
	struct fixed_part whole = {.name = NULL};
	uint64_t n, lead_count;
	int code = EXIT_DONE;

	set_whole_apart(p, r, &whole);
	find_groups(p);
	if (p->count)
		qsort_r(p->part, p->count, sizeof(*p->part), compare_parts, (void *)(uintptr_t)r);
	end = p->part + p->count;
	lead_count = parts_of_field(r, p->part, end);
	/* Of one field without numbers, files follow each other as they were named. */
	for (const struct fixed_part *at = p->part; code == EXIT_DONE && at < end; at += n) {
		n = parts_of_field(r, at, end);
		if (n == p->count && !at->number)
			break;
		for (uint64_t i = 1; code == EXIT_DONE && i < n; i++)
			if (!compare_places(&at[i - 1], &at[i]))
				code = refuse_twins(r, &at[i - 1], remedy);
		if (code == EXIT_DONE)
			code = place_field(r, p->part, lead_count, at, n, remedy);
	}
	if (code == EXIT_DONE && whole.name && p->count)
		warn_of_whole(p->part, lead_count, r, &whole);
	free(whole.name);
	free(whole.where);
	return code;
}
