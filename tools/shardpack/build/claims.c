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
#include <unistd.h>

#include "libshard/base/clock.h"
#include "tools/common/exit_code.h"
#include "tools/common/files.h"
#include "tools/common/message.h"
#include "tools/common/signals.h"
#include "tools/shardpack/build/claim.h"
#include "tools/shardpack/build/held_claims.h"
#include "tools/shardpack/build/job.h"
#include "tools/shardpack/build/scheduler.h"
#include "tools/shardpack/build/shard_list.h"
#include "tools/shardpack/build/shard_ranges.h"
#include "tools/shardpack/plan/plan.h"

#define LIST_BYTES_MAX	 200
#define OWNERS_SHOWN_MAX 5
#define LOOK_RARELY	 12 /* times claim_times.look, in a long wait */
#define WAIT_SHARE	 5  /* looks become so rare that a wait lasts at most a fifth longer */

/* What was seen of a range, for telling whether its owner lives. */
struct watch {
	struct claim_watch claim;
	bool was_open;	   /* it was missing and not failed since we are here */
	bool failed;	   /* for us */
	bool is_elsewhere; /* a process of another machine had it */
};

struct claims {
	const struct job *job; /* const after open, and so are the next two */
	struct claim_owner self;
	uint64_t begin;

	/* The main thread's own. */
	struct shard_ranges ranges;
	struct watch *watch; /* [ranges.count] */
	uint64_t walked;     /* ranges that this round came by */
	bool is_vain;	     /* it gave no shard */
	struct held *current;
	uint64_t built_count, said_ns;
	struct text said;
	struct held_claims held;
};

bool claims_is_missing(const struct claims *c, uint64_t shard_idx)
{
	return !c->ranges.list.there[shard_idx];
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
	if (v->there)
		w->is_elsewhere = strcmp(v->owner.boot, c->self.boot) != 0;
	else if (!w->is_elsewhere)
		return true;
	return claim_is_dead(v, &c->self) || claim_is_stale(&w->claim, v);
}

/* It was tried.  What was seen before is in `v`. */
static void tell_claim(const struct claims *c, uint64_t range, const struct claim_view *v, bool ours)
{
	uint64_t first = range * c->ranges.shards, last = shard_ranges_end(&c->ranges, range) - 1;
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
	h->next = range * c->ranges.shards;
	h->end = shard_ranges_end(&c->ranges, range);
	claim_remove_begun(&v, c->job->out_dir, h->next, h->end);
	if (!held_add(&c->held, h)) {
		claim_release(&h->claim, path, NULL, false);
		free(h);
		return fail(EXIT_IO, "out of memory for claims");
	}
	c->current = h;
	return EXIT_DONE;
}

/* Nothing of it is left to do or being done. */
static void release_if_done(struct claims *c, struct held *h)
{
	if (h == c->current || h->next != h->end || h->out_count)
		return;
	held_release(&c->held, h, c->job->state_dir,
		     shard_ranges_is_marked(&c->ranges) && shard_ranges_is_there(&c->ranges, h->range));
}

/* The next shard of the current range; if there is none, the range is current no more. */
static int next_of_current(struct claims *c, uint64_t *shard_idx, bool *got)
{
	struct held *h = c->current;
	char path[FILES_PATH_BYTES];
	int code = claim_path(path, c->job->state_dir, h->range);

	while (code == EXIT_DONE && h->next < h->end && shard_ranges_has(&c->ranges, h->next))
		h->next++;
	if (code == EXIT_DONE && h->next < h->end && claim_holds(&h->claim, path)) {
		*shard_idx = h->next++;
		h->out_count++;
		*got = true;
		c->is_vain = false;
		return EXIT_DONE;
	}
	if (h->next < h->end)
		detail("shards %" PRIu64 "-%" PRIu64 ": another process took over", h->next, h->end - 1);
	h->next = h->end;
	c->current = NULL;
	release_if_done(c, h);
	return code;
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
		} else if (c->walked == c->ranges.count) {
			break;
		} else {
			uint64_t range = (c->begin + c->walked++) % c->ranges.count;

			/* What others completed meanwhile is left to the next look at all. */
			if (!shard_ranges_is_complete(&c->ranges, range) && !shard_ranges_has_come(&c->ranges, range))
				code = try_range(c, range);
		}
	}
	return code;
}

const char *claims_temp_id(const struct claims *c, uint64_t shard_idx)
{
	const struct held *h = held_of(&c->held, shard_idx / c->ranges.shards);

	return h ? h->claim.nonce : NULL;
}

static bool is_taken_over(const struct claims *c, const struct held *h, uint64_t shard_idx)
{
	char path[FILES_PATH_BYTES];

	if (h && claim_path(path, c->job->state_dir, h->range) == EXIT_DONE && claim_holds(&h->claim, path))
		return false;
	detail("shard %05" PRIu64 ": another process took over", shard_idx);
	return true;
}

bool claims_ended(void *claims, uint64_t shard_idx, bool published)
{
	struct claims *c = claims;
	struct held *h = held_of(&c->held, shard_idx / c->ranges.shards);
	bool well = published || is_taken_over(c, h, shard_idx);

	c->built_count += published;
	if (published)
		shard_ranges_see(&c->ranges, shard_idx);
	if (!h)
		return well;
	h->out_count--;
	release_if_done(c, h);
	return well;
}

void claims_failed(struct claims *c, uint64_t shard_idx)
{
	struct held *h = held_of(&c->held, shard_idx / c->ranges.shards);

	c->watch[shard_idx / c->ranges.shards].failed = true;
	if (!h)
		return;
	h->out_count--;
	h->failed = true;
	release_if_done(c, h);
}

/* ---- the others ---- */

static int mark_range(struct claims *c, uint64_t range, bool may_be_claimed, bool *todo)
{
	char path[FILES_PATH_BYTES];
	struct claim_view v = {0};
	int code = may_be_claimed ? claim_path(path, c->job->state_dir, range) : EXIT_DONE;

	if (code == EXIT_DONE && may_be_claimed)
		code = claim_look(path, &v);
	for (uint64_t k = range * c->ranges.shards; code == EXIT_DONE && k < shard_ranges_end(&c->ranges, range); k++)
		todo[k] = claims_is_missing(c, k) && (!v.there || v.failed || claim_is_dead(&v, &c->self));
	return code;
}

int claims_mark_open(struct claims *c, bool *todo)
{
	int code = EXIT_DONE;

	for (uint64_t range = 0; code == EXIT_DONE && range < c->ranges.count; range++)
		if (!shard_ranges_is_complete(&c->ranges, range))
			code = mark_range(c, range, c->ranges.files[range].claim, todo);
	return code;
}

/* How it stands with the ranges that are not complete. */
struct survey {
	bool open;		 /* one can be claimed */
	uint64_t busy, given_up; /* ranges: others build them, or could not */
	uint64_t shown;		 /* of which the owners are in `owners` */
	struct text owners;
};

static void add_owner(const struct claims *c, struct survey *s, uint64_t range, const struct claim_view *v)
{
	uint64_t first = range * c->ranges.shards, last = shard_ranges_end(&c->ranges, range) - 1;

	if (s->shown++ >= OWNERS_SHOWN_MAX)
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

	for (uint64_t range = 0; code == EXIT_DONE && range < c->ranges.count && !s->open; range++) {
		char path[FILES_PATH_BYTES];
		struct claim_view v;
		bool silent, open;

		if (shard_ranges_is_complete(&c->ranges, range))
			continue;
		code = claim_path(path, c->job->state_dir, range);
		if (code == EXIT_DONE)
			code = claim_look(path, &v);
		if (code != EXIT_DONE)
			break;
		silent = claim_is_silent(&c->watch[range].claim, &v);
		open = may_take(c, range, &v);
		if ((silent || open) && shard_ranges_look_at(&c->ranges, range))
			continue;
		s->open = open;
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
	uint64_t now_ns = clock_now_ns();

	if (text_failed(&s->owners) ||
	    (c->said_ns && (now_ns - c->said_ns < claim_times.say || !strcmp(c->said.data, s->owners.data))))
		return;
	note("waiting for shards that others build: %s%s", s->owners.data, s->shown > OWNERS_SHOWN_MAX ? " ..." : "");
	text_free(&c->said);
	c->said = s->owners;
	s->owners = (struct text){0};
	c->said_ns = now_ns;
}

/* Not all workers look at the same moment, and those who wait long look rarely. */
static int pause_a_while(uint64_t since_ns)
{
	uint64_t now_ns = clock_now_ns(), look = (now_ns - since_ns) / WAIT_SHARE, until_ns;

	look = look < claim_times.look ? claim_times.look : look;
	look = look < LOOK_RARELY * claim_times.look ? look : LOOK_RARELY * claim_times.look;
	until_ns = now_ns + look / 2 + now_ns / 1000 % look;
	while (clock_now_ns() < until_ns && !interrupted() && !asked_to_stop())
		nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
	return interrupted() ? EXIT_INTERRUPTED : EXIT_DONE;
}

/* A build that somebody gave up, or removed: there would be nothing to wait for. */
static int check_folder(struct claims *c)
{
	struct shard_list *l = &c->ranges.list;
	int code;

	if (l->there_count == l->shard_count || access(c->job->state_dir, F_OK) == 0)
		return EXIT_DONE;
	/* While we looked at other claims, others may have built all and sealed it. */
	code = shard_ranges_list(&c->ranges);
	if (code != EXIT_DONE || l->there_count == l->shard_count)
		return code;
	errno = ENOENT;
	return fail(EXIT_IO, "%s: %s, and shards are missing; another process removed it", c->job->state_dir,
		    strerror(errno));
}

int claims_wait(struct claims *c, bool *more)
{
	uint64_t since_ns = clock_now_ns();
	int code = c->is_vain ? pause_a_while(since_ns) : EXIT_DONE; /* others were faster every time */

	*more = false;
	while (code == EXIT_DONE) {
		struct survey s = {0};

		code = shard_ranges_look(&c->ranges);
		if (code == EXIT_DONE)
			code = survey(c, &s);
		if (code == EXIT_DONE)
			code = check_folder(c);
		*more = code == EXIT_DONE && s.open;
		if (code == EXIT_DONE && !s.open && s.busy && !c->job->no_wait)
			say_whom(c, &s);
		text_free(&s.owners);
		c->walked = 0;
		if (code == EXIT_DONE && asked_to_stop() && c->ranges.list.there_count < c->ranges.list.shard_count)
			code = EXIT_STOPPED;
		if (*more || !s.busy || c->job->no_wait)
			break;
		code = code == EXIT_DONE ? pause_a_while(since_ns) : code;
	}
	c->is_vain = *more;
	return code;
}

int claims_tell(struct claims *c, bool *is_complete)
{
	struct shard_list *l = &c->ranges.list;
	struct survey s = {0};
	struct text list = {0};
	int code = l->there_count < l->shard_count ? shard_ranges_list(&c->ranges) : EXIT_DONE;
	uint64_t missing;

	if (code == EXIT_DONE && l->there_count < l->shard_count)
		code = survey(c, &s);
	missing = l->shard_count - l->there_count; /* the survey may have found some */
	*is_complete = !missing;
	note("%s: built %" PRIu64 " shard%s; %" PRIu64 " of %" PRIu64 " %s missing", c->job->out_dir, c->built_count,
	     c->built_count == 1 ? "" : "s", missing, l->shard_count, missing == 1 ? "is" : "are");
	shard_list_missing(l, LIST_BYTES_MAX, &list);
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
	claim_self(&c->self, job->worker->job);
	code = shard_ranges_open(&c->ranges, job->out_dir, job->state_dir, job->plan->shard_count);
	if (code != EXIT_DONE)
		return code;
	c->begin = c->ranges.count ? scheduler_begin(job->worker, c->ranges.count) : 0;
	c->watch = calloc(c->ranges.count + 1, sizeof(*c->watch));
	if (!c->watch)
		return fail(EXIT_IO, "out of memory for %" PRIu64 " claims", c->ranges.count);
	return held_open(&c->held);
}

void claims_close(struct claims *c)
{
	struct held *current = c ? c->current : NULL;

	if (!c)
		return;
	c->current = NULL;
	if (current)
		release_if_done(c, current);
	held_close(&c->held, c->job->state_dir);
	shard_ranges_close(&c->ranges);
	text_free(&c->said);
	free(c->watch);
	free(c);
}
