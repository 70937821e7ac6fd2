/* SPDX-License-Identifier: Apache-2.0 */
/*
 * account.c - what became of every input
 */
#include "tools/shardpack/make/make.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "shard_inspect.h"
#include "tools/common/cli.h"
#include "tools/common/exit_code.h"
#include "tools/common/message.h"
#include "tools/common/shelf.h"
#include "tools/shardpack/plan/plan.h"

void not_finite_add(struct not_finite *to, const struct not_finite *more)
{
	for (uint32_t f = 0; f < SHARD_FIELDS_MAX; f++) {
		to->nan[f] += more->nan[f];
		to->infinite[f] += more->infinite[f];
	}
	to->unknown += more->unknown;
}

bool account_miss_fits(const struct shard_miss *miss, uint64_t input_count)
{
	return miss->ordinal < input_count && miss->reason >= 1 && miss->reason <= UINT16_MAX &&
	       (miss->how == SHARD_SKIPPED || miss->how == SHARD_QUARANTINED);
}

enum problem_how account_how(uint32_t on_error, uint32_t reason)
{
	if (reason == SHARD_MISS_VANISHED || on_error == ON_ERROR_SKIP)
		return PROBLEM_SKIPPED;
	return on_error == ON_ERROR_QUARANTINE ? PROBLEM_QUARANTINED : PROBLEM_BAD;
}

int account_problem(struct account *a, uint64_t ordinal, uint32_t reason, enum problem_how how, const char *message)
{
	struct problem_list *l = how == PROBLEM_ACCEPTED ? &a->accepted_inputs
				 : how == PROBLEM_FIRST	 ? &a->first_inputs
							 : &a->problems;
	struct problem *p;

	if (!grow(&l->item, &l->capacity, l->count + 1, sizeof(*l->item)))
		return fail(EXIT_IO, "out of memory for a list of %" PRIu64 " bad inputs", l->count);
	p = &l->item[l->count];
	*p = (struct problem){.ordinal = ordinal, .reason = reason, .how = how, .message = strdup(message)};
	if (!p->message)
		return fail(EXIT_IO, "out of memory for a list of %" PRIu64 " bad inputs", l->count);
	l->count++;
	if (how == PROBLEM_UNREADABLE)
		a->unreadable++;
	else if (l == &a->problems)
		a->bad++;
	a->vanished += how == PROBLEM_SKIPPED && reason == SHARD_MISS_VANISHED;
	return EXIT_DONE;
}

void account_published(struct account *a, uint64_t records, uint64_t accepted, uint64_t skipped, uint64_t quarantined)
{
	a->written += records;
	a->accepted += accepted;
	a->skipped += skipped;
	a->quarantined += quarantined;
}

/* One line of many; behind the last that is printed, one says so. */
static void show(uint64_t *shown, const char *source, const char *path, const char *before, const char *message,
		 const char *which)
{
	++*shown;
	if (*shown <= PROBLEMS_SHOWN_MAX)
		warn("%s/%s: %s%s", source, path, before, message);
	else if (*shown == PROBLEMS_SHOWN_MAX + 1)
		warn("more than %d such %s; the others are only counted; --report FILE lists them", PROBLEMS_SHOWN_MAX,
		     which);
}

void account_show(struct account *a, const char *source, const char *path, const char *message)
{
	show(&a->shown, source, path, "", message, "inputs");
}

void account_show_accepted(struct account *a, const char *source, const char *path, const char *message)
{
	show(&a->accepted_shown, source, path, "accepted: ", message, "inputs that are accepted");
}

static int compare_ordinals(const void *a, const void *b)
{
	const struct problem *x = a, *y = b;

	return x->ordinal < y->ordinal ? -1 : x->ordinal > y->ordinal;
}

static void sort(struct problem_list *l)
{
	if (l->count)
		qsort(l->item, l->count, sizeof(*l->item), compare_ordinals);
}

void account_sort(struct account *a)
{
	sort(&a->problems);
	sort(&a->accepted_inputs);
	sort(&a->first_inputs);
}

int account_check_bad(const struct account *a, const struct cli_amount *max, uint64_t ordinal, uint64_t planned)
{
	uint64_t allowed;

	if (!max)
		return EXIT_DONE;
	/* The product of a count below 2^40 and parts of a million stays below 2^64. */
	allowed = max->is_percent ? a->input_count * max->parts_per_million / UINT64_C(1000000) : max->count;
	if (a->bad <= allowed)
		return EXIT_DONE;
	return fail(EXIT_BAD,
		    "--max-bad allows %" PRIu64 " bad input%s, and there are %" PRIu64 "; stopped at input %" PRIu64
		    " of %" PRIu64,
		    allowed, allowed == 1 ? "" : "s", a->bad, ordinal + 1, planned);
}

uint64_t account_failed(const struct account *a)
{
	uint64_t done = a->written + a->skipped + a->quarantined;

	return done <= a->input_count ? a->input_count - done : 0;
}

uint64_t account_not_done(const struct account *a)
{
	uint64_t failed = account_failed(a), wrong = a->unreadable;

	for (uint64_t i = 0; i < a->problems.count; i++)
		wrong += a->problems.item[i].how == PROBLEM_BAD;
	return failed > wrong ? failed - wrong : 0;
}

int account_judge(const struct account *a, bool bad_fails, const char *anew)
{
	if (a->changed && a->changed == a->unreadable)
		return fail(EXIT_MISMATCH,
			    "%" PRIu64
			    " input%s changed since the plan was made; shards that need one of them were not "
			    "published; bring back the files of then, or %s",
			    a->changed, a->changed == 1 ? "" : "s", anew);
	if (a->unreadable)
		return fail(EXIT_IO,
			    "%" PRIu64 " input%s could not be read; shards that need one of them were not "
			    "published",
			    a->unreadable, a->unreadable == 1 ? "" : "s");
	if (a->bad > a->vanished && bad_fails)
		return fail(EXIT_BAD, "%" PRIu64 " bad input%s; shards that need one of them were not published",
			    a->bad - a->vanished, a->bad - a->vanished == 1 ? "" : "s");
	return EXIT_DONE;
}

static void free_list(struct problem_list *l)
{
	for (uint64_t i = 0; i < l->count; i++)
		free(l->item[i].message);
	free(l->item);
}

void account_free(struct account *a)
{
	free_list(&a->problems);
	free_list(&a->accepted_inputs);
	free_list(&a->first_inputs);
	memset(a, 0, sizeof(*a));
}
