/* SPDX-License-Identifier: Apache-2.0 */
/*
 * account.c - what became of every input
 */
#include "tools/shardpack/account.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/exit_code.h"
#include "tools/common/message.h"

bool account_miss_fits(const struct shard_miss *miss, uint64_t input_count)
{
	return miss->ordinal < input_count && miss->reason >= 1 && miss->reason <= UINT16_MAX &&
	       (miss->how == SHARD_SKIPPED || miss->how == SHARD_QUARANTINED);
}

int account_problem(struct account *a, uint64_t ordinal, uint32_t reason, enum problem_how how, const char *message)
{
	struct problem *p;

	if (a->problem_count == a->problem_capacity) {
		uint64_t capacity = a->problem_capacity ? 2 * a->problem_capacity : 64;
		struct problem *grown = realloc(a->problem, capacity * sizeof(*grown));

		if (!grown)
			return fail(EXIT_IO, "out of memory for a list of %" PRIu64 " bad inputs", capacity);
		a->problem = grown;
		a->problem_capacity = capacity;
	}
	p = &a->problem[a->problem_count];
	*p = (struct problem){.ordinal = ordinal, .reason = reason, .how = how, .message = strdup(message)};
	if (!p->message)
		return fail(EXIT_IO, "out of memory for a list of %" PRIu64 " bad inputs", a->problem_count);
	a->problem_count++;
	if (how == PROBLEM_UNREADABLE)
		a->unreadable++;
	else
		a->bad++;
	return EXIT_DONE;
}

void account_published(struct account *a, uint64_t records, uint64_t skipped, uint64_t quarantined)
{
	a->written += records;
	a->skipped += skipped;
	a->quarantined += quarantined;
}

void account_show(struct account *a, const char *source, const char *path, const char *message)
{
	a->shown++;
	if (a->shown <= PROBLEMS_SHOWN_MAX)
		warn("%s/%s: %s", source, path, message);
	else if (a->shown == PROBLEMS_SHOWN_MAX + 1)
		warn("more than %d such inputs; the others are counted, and listed by --report FILE",
		     PROBLEMS_SHOWN_MAX);
}

static int compare_ordinals(const void *a, const void *b)
{
	const struct problem *x = a, *y = b;

	return x->ordinal < y->ordinal ? -1 : x->ordinal > y->ordinal;
}

void account_sort(struct account *a)
{
	if (a->problem_count)
		qsort(a->problem, a->problem_count, sizeof(*a->problem), compare_ordinals);
}

bool account_exceeds(const struct account *a, const struct cli_amount *max)
{
	if (!max)
		return false;
	if (!max->is_percent)
		return a->bad > max->count;
	/* The product of a count below 2^40 and parts of a million stays below 2^64. */
	return a->bad * UINT64_C(1000000) > a->input_count * max->parts_per_million;
}

uint64_t account_failed(const struct account *a)
{
	uint64_t done = a->written + a->skipped + a->quarantined;

	return done <= a->input_count ? a->input_count - done : 0;
}

uint64_t account_not_done(const struct account *a)
{
	uint64_t failed = account_failed(a), wrong = a->unreadable, i;

	for (i = 0; i < a->problem_count; i++)
		wrong += a->problem[i].how == PROBLEM_BAD;
	return failed > wrong ? failed - wrong : 0;
}

void account_free(struct account *a)
{
	uint64_t i;

	for (i = 0; i < a->problem_count; i++)
		free(a->problem[i].message);
	free(a->problem);
	memset(a, 0, sizeof(*a));
}
