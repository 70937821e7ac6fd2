/* SPDX-License-Identifier: Apache-2.0 */
/*
 * claims.c - which shards are built next, where several processes share a plan
 */
#include "tools/shardpack/build/claims.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/common/exit_code.h"
#include "tools/common/files.h"
#include "tools/common/message.h"
#include "tools/common/monotonic.h"
#include "tools/common/signals.h"
#include "tools/shardpack/build/claim.h"
#include "tools/shardpack/build/held_claims.h"
#include "tools/shardpack/build/job.h"
#include "tools/shardpack/build/scheduler.h"
#include "tools/shardpack/build/shard_list.h"
#include "tools/shardpack/plan/plan.h"

#define RANGE_SHARDS_MAX 64
#define RANGES_ENOUGH	 4096 /* up to so many claims each one is for a single shard */
#define LOOK_ONE_BY_ONE	 1024 /* missing shards; more are found faster by a listing */
#define LIST_BYTES_MAX	 200
#define OWNERS_SHOWN_MAX 5

/* What was seen of a range, for telling whether its owner lives. */
struct watch {
	struct claim_watch claim;
	bool was_open; /* it was missing and not failed since we are here */
	bool failed;   /* for us */
};

struct claims {
	const struct job *job; /* const after open, and so are the next four */
	struct claim_owner self;
	uint64_t range_shards, range_count, begin;

	/* The main thread's own. */
	struct shard_list list;
	struct watch *watch; /* [range_count] */
	uint64_t walked;     /* ranges that this round came by */
	bool is_vain;	     /* it gave no shard */
	struct held *current;
	uint64_t built_count, said_ns;
	struct text said;
	struct held_claims held;
};

static uint64_t range_shards(uint64_t shard_count)
{
	uint64_t shards = (shard_count + RANGES_ENOUGH - 1) / RANGES_ENOUGH;

	return shards < 1 ? 1 : shards < RANGE_SHARDS_MAX ? shards : RANGE_SHARDS_MAX;
}

bool claims_range(uint64_t shard_count, struct claims_range *r)
{
	uint64_t shards = range_shards(shard_count);

	r->first = r->idx * shards;
	if (r->first >= shard_count)
		return false;
	r->count = shard_count - r->first < shards ? shard_count - r->first : shards;
	return true;
}

static uint64_t range_end(const struct claims *c, uint64_t range)
{
	uint64_t end = (range + 1) * c->range_shards;

	return end < c->list.shard_count ? end : c->list.shard_count;
}

bool claims_is_missing(const struct claims *c, uint64_t shard_idx)
{
	return !c->list.there[shard_idx];
}

static bool is_complete(const struct claims *c, uint64_t range)
{
	for (uint64_t k = range * c->range_shards; k < range_end(c, range); k++)
		if (!c->list.there[k])
			return false;
	return true;
}

static void mark_there(struct claims *c, uint64_t shard_idx)
{
	c->list.there_count += !c->list.there[shard_idx];
	c->list.there[shard_idx] = true;
}

/* Did another process publish it meanwhile? */
static bool is_there(struct claims *c, uint64_t shard_idx)
{
	char path[FILES_PATH_BYTES];
	struct stat st;

	if (!c->list.there[shard_idx] && files_numbered(path, c->job->out_dir, "", shard_idx, ".shard") == EXIT_DONE &&
	    lstat(path, &st) == 0)
		mark_there(c, shard_idx);
	return c->list.there[shard_idx];
}

static int look_again(struct claims *c)
{
	if (c->list.shard_count - c->list.there_count > LOOK_ONE_BY_ONE)
		return shard_list_look(&c->list, c->job->out_dir, c->list.shard_count);
	for (uint64_t k = 0; k < c->list.shard_count; k++)
		is_there(c, k);
	return EXIT_DONE;
}

/* ---- one range ---- */

/* A claim is there, or none is: may we have the range? */
static bool may_take(struct claims *c, uint64_t range, const struct claim_view *v)
{
	struct watch *w = &c->watch[range];
	bool same_job = c->self.job[0] && !strcmp(v->owner.job, c->self.job);

	if (w->failed)
		return false;
	/* An earlier run could not build it, but this one may: inputs can be mended. */
	if (v->there && v->failed)
		return !same_job && !w->was_open;
	w->was_open = true;
	return !v->there || claim_is_dead(v, &c->self) || claim_is_stale(&w->claim, v);
}

/* It was tried.  What was seen before is in `v`. */
static void tell_claim(const struct claims *c, uint64_t range, const struct claim_view *v, bool ours)
{
	uint64_t first = range * c->range_shards, last = range_end(c, range) - 1;
	const char *why = claim_is_dead(v, &c->self) ? "is there no more" : "has given no sign of life";

	if (!ours)
		detail("shards %" PRIu64 "-%" PRIu64 ": another process was faster", first, last);
	else if (v->there && !v->failed && v->owner.host[0])
		note("shards %" PRIu64 "-%" PRIu64 ": taking over from %s (process %" PRIu64 "), which %s", first, last,
		     v->owner.host, v->owner.pid, why);
	else if (v->there && !v->failed)
		note("shards %" PRIu64 "-%" PRIu64 ": taking over from an unknown process, which %s", first, last, why);
}

/* Claim it, if we may.  c->current is set then. */
static int try_range(struct claims *c, uint64_t range)
{
	char path[FILES_PATH_BYTES];
	struct claim_view v;
	struct held *h;
	bool ours;
	int code = claim_path(path, c->job->state_dir, range);

	if (code == EXIT_DONE)
		code = claim_look(path, &v);
	if (code != EXIT_DONE || !may_take(c, range, &v))
		return code;
	h = calloc(1, sizeof(*h));
	if (!h)
		return fail(EXIT_IO, "out of memory for claims");
	code = claim_make(&h->claim, path, &c->self, v.there, &ours);
	if (code == EXIT_DONE)
		tell_claim(c, range, &v, ours);
	if (code != EXIT_DONE || !ours) {
		free(h);
		return code;
	}
	h->range = range;
	h->next = range * c->range_shards;
	h->end = range_end(c, range);
	if (!held_add(&c->held, h)) {
		claim_release(&h->claim, path, false);
		free(h);
		return fail(EXIT_IO, "out of memory for claims");
	}
	c->current = h;
	return EXIT_DONE;
}

/* Nothing of it is left to do or being done. */
static void release_if_done(struct claims *c, struct held *h)
{
	if (h != c->current && h->next == h->end && !h->out_count)
		held_release(&c->held, h, c->job->state_dir);
}

/* The next shard of the current range; if there is none, the range is current no more. */
static int next_of_current(struct claims *c, uint64_t *shard_idx, bool *got)
{
	struct held *h = c->current;
	char path[FILES_PATH_BYTES];
	bool was_vain;
	int code = claim_path(path, c->job->state_dir, h->range);

	while (code == EXIT_DONE && h->next < h->end && is_there(c, h->next))
		h->next++;
	if (code == EXIT_DONE && h->next < h->end && claim_holds(&h->claim, path)) {
		*shard_idx = h->next++;
		h->out_count++;
		h->has_given = *got = true;
		c->is_vain = false;
		return EXIT_DONE;
	}
	if (h->next < h->end)
		detail("shards %" PRIu64 "-%" PRIu64 ": another process took over", h->next, h->end - 1);
	h->next = h->end;
	was_vain = !h->has_given;
	c->current = NULL;
	release_if_done(c, h);
	return code == EXIT_DONE && was_vain ? look_again(c) : code; /* what we know of the folder is old */
}

int claims_next(struct claims *c, uint64_t *shard_idx, bool *got)
{
	int code = EXIT_DONE;

	*got = false;
	while (code == EXIT_DONE && !*got) {
		if (interrupted()) {
			code = EXIT_INTERRUPTED;
		} else if (c->current) {
			code = next_of_current(c, shard_idx, got);
		} else if (c->walked == c->range_count) {
			break;
		} else {
			uint64_t range = (c->begin + c->walked++) % c->range_count;

			if (!is_complete(c, range))
				code = try_range(c, range);
		}
	}
	return code;
}

void claims_published(void *claims, uint64_t shard_idx)
{
	struct claims *c = claims;
	struct held *h = held_of(&c->held, shard_idx / c->range_shards);

	c->built_count++;
	mark_there(c, shard_idx);
	if (!h)
		return;
	h->out_count--;
	release_if_done(c, h);
}

void claims_failed(struct claims *c, uint64_t shard_idx)
{
	struct held *h = held_of(&c->held, shard_idx / c->range_shards);

	c->watch[shard_idx / c->range_shards].failed = true;
	if (!h)
		return;
	h->out_count--;
	h->failed = true;
	release_if_done(c, h);
}

/* ---- the others ---- */

int claims_mark_open(struct claims *c, bool *todo)
{
	int code = EXIT_DONE;

	for (uint64_t range = 0; code == EXIT_DONE && range < c->range_count; range++) {
		char path[FILES_PATH_BYTES];
		struct claim_view v = {0};

		if (is_complete(c, range))
			continue;
		code = claim_path(path, c->job->state_dir, range);
		if (code == EXIT_DONE)
			code = claim_look(path, &v);
		for (uint64_t k = range * c->range_shards; code == EXIT_DONE && k < range_end(c, range); k++)
			todo[k] = !c->list.there[k] && (!v.there || v.failed || claim_is_dead(&v, &c->self));
	}
	return code;
}

/* How it stands with the ranges that are not complete. */
struct survey {
	bool open;		 /* one can be claimed */
	uint64_t busy, given_up; /* ranges: others build them, or could not */
	struct text owners;
};

static void add_owner(const struct claims *c, struct survey *s, uint64_t range, const struct claim_view *v)
{
	uint64_t first = range * c->range_shards, last = range_end(c, range) - 1;

	if (s->busy + s->given_up > OWNERS_SHOWN_MAX)
		return;
	text_format(&s->owners, "%s%" PRIu64, s->owners.bytes ? ", " : "", first);
	if (last > first)
		text_format(&s->owners, "-%" PRIu64, last);
	if (v->owner.host[0])
		text_format(&s->owners, " on %s (process %" PRIu64 ")", v->owner.host, v->owner.pid);
}

static int survey(struct claims *c, struct survey *s)
{
	int code = EXIT_DONE;

	for (uint64_t range = 0; code == EXIT_DONE && range < c->range_count && !s->open; range++) {
		char path[FILES_PATH_BYTES];
		struct claim_view v;

		if (is_complete(c, range))
			continue;
		code = claim_path(path, c->job->state_dir, range);
		if (code == EXIT_DONE)
			code = claim_look(path, &v);
		if (code != EXIT_DONE)
			break;
		s->open = may_take(c, range, &v);
		if (v.failed || c->watch[range].failed)
			s->given_up++;
		else
			s->busy++;
		if (!s->open && !c->watch[range].failed)
			add_owner(c, s, range, &v);
	}
	return code;
}

static void say_whom(struct claims *c, struct survey *s)
{
	uint64_t now_ns = monotonic_ns();

	if (text_failed(&s->owners) ||
	    (c->said_ns && (now_ns - c->said_ns < claim_times.say || !strcmp(c->said.data, s->owners.data))))
		return;
	note("waiting for shards that others build: %s%s", s->owners.data,
	     s->busy + s->given_up > OWNERS_SHOWN_MAX ? " ..." : "");
	text_free(&c->said);
	c->said = s->owners;
	s->owners = (struct text){0};
	c->said_ns = now_ns;
}

/* Not all workers look at the same moment. */
static int pause_a_while(void)
{
	uint64_t now_ns = monotonic_ns(), until_ns = now_ns + claim_times.look / 2 + now_ns / 1000 % claim_times.look;

	while (monotonic_ns() < until_ns && !interrupted() && !asked_to_stop())
		nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
	return interrupted() ? EXIT_INTERRUPTED : EXIT_DONE;
}

/* A build that somebody gave up, or removed: there would be nothing to wait for. */
static int check_folder(const struct claims *c)
{
	if (c->list.there_count == c->list.shard_count || access(c->job->state_dir, F_OK) == 0)
		return EXIT_DONE;
	return fail(EXIT_IO, "%s: %s, and shards are missing; another process removed it", c->job->state_dir,
		    strerror(errno));
}

int claims_wait(struct claims *c, bool *more)
{
	int code = c->is_vain ? pause_a_while() : EXIT_DONE; /* others were faster every time */

	*more = false;
	while (code == EXIT_DONE) {
		struct survey s = {0};

		code = look_again(c);
		if (code == EXIT_DONE)
			code = check_folder(c);
		if (code == EXIT_DONE)
			code = survey(c, &s);
		*more = code == EXIT_DONE && s.open;
		if (code == EXIT_DONE && !s.open && s.busy && !c->job->no_wait)
			say_whom(c, &s);
		text_free(&s.owners);
		c->walked = 0;
		if (code == EXIT_DONE && asked_to_stop() && c->list.there_count < c->list.shard_count)
			code = EXIT_STOPPED;
		if (*more || !s.busy || c->job->no_wait)
			break;
		code = code == EXIT_DONE ? pause_a_while() : code;
	}
	c->is_vain = *more;
	return code;
}

int claims_tell(struct claims *c, bool *is_complete)
{
	uint64_t missing = c->list.shard_count - c->list.there_count;
	struct survey s = {0};
	struct text list = {0};
	int code = missing ? survey(c, &s) : EXIT_DONE;

	*is_complete = !missing;
	note("%s: built %" PRIu64 " shard%s; %" PRIu64 " of %" PRIu64 " %s missing", c->job->out_dir, c->built_count,
	     c->built_count == 1 ? "" : "s", missing, c->list.shard_count, missing == 1 ? "is" : "are");
	shard_list_missing(&c->list, LIST_BYTES_MAX, &list);
	if (missing && !text_failed(&list))
		note("missing: %s", list.data);
	if (code == EXIT_DONE && s.given_up && s.owners.bytes && !text_failed(&s.owners) && !s.busy)
		code = fail(EXIT_BAD, "%s: shards could not be built by others, and their messages say why: %s",
			    c->job->out_dir, s.owners.data);
	text_free(&list);
	text_free(&s.owners);
	return code;
}

/* ---- all of it ---- */

int claims_open(struct claims **out, const struct job *job)
{
	struct claims *c = calloc(1, sizeof(*c));
	int code;

	*out = c;
	if (!c)
		return fail(EXIT_IO, "out of memory for claims");
	c->job = job;
	c->range_shards = range_shards(job->plan->shard_count);
	c->range_count = (job->plan->shard_count + c->range_shards - 1) / c->range_shards;
	c->begin = c->range_count ? scheduler_begin(job->worker, c->range_count) : 0;
	c->watch = calloc(c->range_count + 1, sizeof(*c->watch));
	claim_self(&c->self, job->worker->job);
	if (!c->watch)
		return fail(EXIT_IO, "out of memory for %" PRIu64 " claims", c->range_count);
	code = shard_list_look(&c->list, job->out_dir, job->plan->shard_count);
	return code == EXIT_DONE ? held_open(&c->held) : code;
}

void claims_close(struct claims *c)
{
	if (!c)
		return;
	held_close(&c->held, c->job->state_dir);
	shard_list_free(&c->list);
	text_free(&c->said);
	free(c->watch);
	free(c);
}
