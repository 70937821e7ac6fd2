/* SPDX-License-Identifier: Apache-2.0 */
/*
 * claims.c - which shards are built next, where several processes share a plan
 */
#include "tools/shardpack/make/make.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libshard/base/clock.h"
#include "libshard/base/thread.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/shelf.h"
#include "tools/common/signals.h"

#define LIST_BYTES_MAX	 200
#define OWNERS_SHOWN_MAX 5
#define LOOK_RARELY	 12 /* times claim_times.look, in a long wait */
#define WAIT_SHARE	 5  /* looks become so rare that a wait lasts at most a fifth longer */
#define LIST_SHARE	 64 /* a list of all shards costs no more than a look at every 64th alone */

/* What was seen of a shard, for telling whether the one that builds it lives. */
struct watch {
	struct claim_watch claim;
	bool was_open;	   /* it was missing and not failed since we are here */
	bool failed;	   /* for us */
	bool is_elsewhere; /* a process of another machine had it */
};

/* A claim of this process. */
struct held {
	uint64_t shard_idx;
	struct claim claim; /* lock */
};

struct claims {
	const struct job *job; /* const after open, and so are the next two */
	struct claim_owner self;
	uint64_t begin;

	/* The main thread's own. */
	struct shard_list list;
	struct watch *watch;  /* [list.shard_count] */
	uint64_t walked;      /* shards that this round came by */
	uint64_t found_count; /* shards that others have built since all were listed, as we found one by one */
	bool is_vain;	      /* the round gave no shard */
	uint64_t built_count, said_ns;
	struct text said;

	/* What is held, and a thread that renews it; only the main thread changes the list. */
	pthread_t thread;
	bool has_thread;
	pthread_mutex_t lock;
	pthread_cond_t stopped;		/* with lock: stop was set */
	bool stop;			/* lock */
	struct held *held;		/* lock */
	uint64_t held_count, held_room; /* lock */
};

/* ---- what is held ---- */

static void *renew(void *context)
{
	struct claims *c = context;
	struct timespec until;

	pthread_mutex_lock(&c->lock);
	while (!c->stop) {
		until = clock_after_ns(claim_times.beat);
		while (!c->stop && pthread_cond_timedwait(&c->stopped, &c->lock, &until) != ETIMEDOUT)
			;
		for (uint64_t i = 0; !c->stop && i < c->held_count; i++)
			claim_beat(&c->held[i].claim);
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

/* NULL if it is not held. */
static const struct held *held_of(const struct claims *c, uint64_t shard_idx)
{
	for (uint64_t i = 0; i < c->held_count; i++)
		if (c->held[i].shard_idx == shard_idx)
			return &c->held[i];
	return NULL;
}

static void release(struct claims *c, uint64_t shard_idx, bool failed)
{
	const struct held *h = held_of(c, shard_idx);
	char path[FILES_PATH_BYTES];
	struct claim claim;

	if (!h)
		return;
	pthread_mutex_lock(&c->lock);
	claim = h->claim;
	c->held[h - c->held] = c->held[--c->held_count];
	pthread_mutex_unlock(&c->lock);
	if (!claim_path(path, c->job->state_dir, shard_idx))
		claim_release(&claim, path, failed);
}

const char *claims_temp_id(const struct claims *c, uint64_t shard_idx)
{
	const struct held *h = held_of(c, shard_idx);

	return h ? h->claim.nonce : NULL;
}

/* ---- one shard ---- */

bool claims_is_missing(const struct claims *c, uint64_t shard_idx)
{
	return !c->list.there[shard_idx];
}

static void mark_there(struct claims *c, uint64_t shard_idx)
{
	c->list.there_count += !c->list.there[shard_idx];
	c->list.there[shard_idx] = true;
}

/* Has somebody built it since it was looked for? */
static bool has_come(struct claims *c, uint64_t shard_idx)
{
	char path[FILES_PATH_BYTES];
	struct stat st;

	if (files_numbered(path, c->job->out_dir, "", shard_idx, ".shard") != EXIT_DONE || lstat(path, &st) != 0)
		return false;
	mark_there(c, shard_idx);
	c->found_count++;
	return true;
}

/* A claim is there, or none is: may we have the shard? */
static bool may_take(struct claims *c, uint64_t shard_idx, const struct claim_view *v)
{
	struct watch *w = &c->watch[shard_idx];
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
static void say_claim(const struct claims *c, uint64_t shard_idx, const struct claim_view *v, bool ours)
{
	const char *why = claim_is_dead(v, &c->self) ? "has exited" : "has given no sign of life";

	if (!ours)
		detail("shard %05" PRIu64 ": another process was faster", shard_idx);
	else if (v->there && !v->failed && v->owner.host[0])
		note("shard %05" PRIu64 ": taking over from %s (process %" PRIu64 "), which %s", shard_idx,
		     v->owner.host, v->owner.pid, why);
	else if (v->there && !v->failed)
		note("shard %05" PRIu64 ": taking over from an unknown process, which %s", shard_idx, why);
}

/* Claim it, if we may, and if nobody has built it since it was listed. */
static int try_shard(struct claims *c, uint64_t shard_idx, bool *got)
{
	struct held h = {.shard_idx = shard_idx};
	char path[FILES_PATH_BYTES];
	struct claim_view v;
	bool ours;
	int rc = claim_path(path, c->job->state_dir, shard_idx);

	if (!rc)
		rc = claim_look(path, &v);
	if (rc || !may_take(c, shard_idx, &v) || has_come(c, shard_idx))
		return rc;
	rc = claim_make(&h.claim, path, &c->self, v.there, &ours);
	if (!rc)
		say_claim(c, shard_idx, &v, ours);
	if (rc || !ours)
		return rc;
	claim_remove_begun(&v, c->job->out_dir, shard_idx);
	pthread_mutex_lock(&c->lock);
	grow(&c->held, &c->held_room, c->held_count + 1, sizeof(*c->held));
	c->held[c->held_count++] = h;
	pthread_mutex_unlock(&c->lock);
	*got = !has_come(c, shard_idx); /* and its claim was given back just now */
	if (!*got)
		release(c, shard_idx, false);
	return EXIT_DONE;
}

int claims_next(struct claims *c, uint64_t *shard_idx, bool *got)
{
	struct shard_list *l = &c->list;
	int rc = EXIT_DONE;

	*got = false;
	while (!rc && !*got && c->walked < l->shard_count) {
		*shard_idx = (c->begin + c->walked) % l->shard_count;
		if (interrupted()) {
			rc = EXIT_INTERRUPTED;
		} else if (l->there[*shard_idx]) {
			c->walked++;
		} else if (c->found_count <= l->shard_count / LIST_SHARE) {
			c->walked++;
			rc = try_shard(c, *shard_idx, got);
		} else { /* others have built many since they were listed */
			c->found_count = 0;
			rc = shard_list_look(l, c->job->out_dir, l->shard_count);
		}
	}
	c->is_vain = c->is_vain && !*got;
	return rc;
}

bool claims_ended(struct claims *c, uint64_t shard_idx, bool published)
{
	const struct held *h = held_of(c, shard_idx);
	char path[FILES_PATH_BYTES];
	bool still_ours =
		!published && h && !claim_path(path, c->job->state_dir, shard_idx) && claim_holds(&h->claim, path);

	if (published) {
		c->built_count++;
		mark_there(c, shard_idx);
	} else if (!still_ours) {
		detail("shard %05" PRIu64 ": another process took over", shard_idx);
	}
	release(c, shard_idx, false);
	return published || !still_ours;
}

void claims_failed(struct claims *c, uint64_t shard_idx)
{
	c->watch[shard_idx].failed = true;
	release(c, shard_idx, true);
}

/* ---- the others ---- */

int claims_mark_open(struct claims *c, bool *todo)
{
	bool *claimed = xcalloc(c->list.shard_count, sizeof(*claimed));
	char path[FILES_PATH_BYTES];
	int rc = claim_list(c->job->state_dir, c->list.shard_count, claimed);

	for (uint64_t k = 0; !rc && k < c->list.shard_count; k++) {
		struct claim_view v = {.there = false};

		if (claims_is_missing(c, k) && claimed[k]) {
			rc = claim_path(path, c->job->state_dir, k);
			if (!rc)
				rc = claim_look(path, &v);
		}
		todo[k] = claims_is_missing(c, k) && (!v.there || v.failed || claim_is_dead(&v, &c->self));
	}
	free(claimed);
	return rc;
}

/* How it stands with the shards that are missing. */
struct survey {
	bool open;		 /* one can be claimed */
	uint64_t busy, given_up; /* others build them, or could not */
	uint64_t shown;		 /* of which the owners are in `owners` */
	struct text owners;
};

static int survey(struct claims *c, struct survey *s)
{
	int rc = EXIT_DONE;

	for (uint64_t i = 0; !rc && i < c->list.shard_count && !s->open; i++) {
		uint64_t k = (c->begin + i) % c->list.shard_count;
		char path[FILES_PATH_BYTES];
		struct claim_view v;
		bool silent, open;

		if (!claims_is_missing(c, k))
			continue;
		rc = claim_path(path, c->job->state_dir, k);
		if (!rc)
			rc = claim_look(path, &v);
		if (rc)
			break;
		silent = claim_is_silent(&c->watch[k].claim, &v);
		open = may_take(c, k, &v);
		if ((silent || open) && has_come(c, k))
			continue;
		s->open = open;
		c->walked = i; /* the next round begins there */
		if (v.failed || c->watch[k].failed)
			s->given_up++;
		else
			s->busy++;
		if (s->open || c->watch[k].failed || s->shown++ >= OWNERS_SHOWN_MAX)
			continue;
		text_format(&s->owners, "%s%" PRIu64, s->owners.bytes ? ", " : "", k);
		if (v.owner.host[0])
			text_format(&s->owners, " on %s (process %" PRIu64 ")", v.owner.host, v.owner.pid);
	}
	return rc;
}

static void say_owners(struct claims *c, struct survey *s)
{
	uint64_t now_ns = clock_now_ns();

	if (c->said_ns && (now_ns - c->said_ns < claim_times.say || !strcmp(c->said.data, s->owners.data)))
		return;
	note("waiting for shards that others build: %s%s", s->owners.data, s->shown > OWNERS_SHOWN_MAX ? " ..." : "");
	text_free(&c->said);
	c->said = s->owners;
	s->owners = (struct text){0};
	c->said_ns = now_ns;
}

/* Not all workers look at the same moment, and workers that wait long look rarely. */
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
	struct shard_list *l = &c->list;
	int rc;

	if (l->there_count == l->shard_count || access(c->job->state_dir, F_OK) == 0)
		return EXIT_DONE;
	/* While we looked at other claims, others may have built all and sealed it. */
	rc = shard_list_look(l, c->job->out_dir, l->shard_count);
	if (rc || l->there_count == l->shard_count)
		return rc;
	errno = ENOENT;
	return fail(EXIT_IO, "%s: %s, and shards are missing; another process removed it", c->job->state_dir,
		    strerror(errno));
}

int claims_wait(struct claims *c, bool *more)
{
	uint64_t since_ns = clock_now_ns();
	int rc = c->is_vain ? pause_a_while(since_ns) : EXIT_DONE; /* others were faster every time */

	*more = false;
	while (!rc) {
		struct survey s = {0};

		rc = survey(c, &s);
		if (!rc)
			rc = check_folder(c);
		*more = !rc && s.open;
		if (!rc && !s.open && s.busy && !c->job->no_wait)
			say_owners(c, &s);
		text_free(&s.owners);
		if (!rc && asked_to_stop() && c->list.there_count < c->list.shard_count)
			rc = EXIT_STOPPED;
		if (*more || !s.busy || c->job->no_wait)
			break;
		rc = !rc ? pause_a_while(since_ns) : rc;
	}
	c->is_vain = *more;
	return rc;
}

int claims_tell(struct claims *c, bool *is_complete)
{
	struct shard_list *l = &c->list;
	struct survey s = {0};
	struct text list = {0};
	int rc = EXIT_DONE;
	uint64_t missing;

	if (l->there_count < l->shard_count)
		rc = shard_list_look(l, c->job->out_dir, l->shard_count);
	if (!rc && l->there_count < l->shard_count)
		rc = survey(c, &s);
	missing = l->shard_count - l->there_count; /* the survey may have found some */
	*is_complete = !missing;
	note("%s: built %" PRIu64 " shard%s; %" PRIu64 " of %" PRIu64 " %s missing", c->job->out_dir, c->built_count,
	     c->built_count == 1 ? "" : "s", missing, l->shard_count, missing == 1 ? "is" : "are");
	shard_list_missing(l, LIST_BYTES_MAX, &list);
	if (missing)
		note("missing: %s", list.data);
	if (!rc && s.given_up && s.owners.bytes && !s.busy)
		rc = fail(EXIT_BAD, "%s: shards could not be built by others, and their messages say why: %s",
			  c->job->out_dir, s.owners.data);
	text_free(&list);
	text_free(&s.owners);
	return rc;
}

/* ---- all of it ---- */

int claims_open(struct claims **out, const struct job *job)
{
	uint64_t shard_count = job->plan->shard_count;
	struct claims *c = xcalloc(1, sizeof(*c));
	int rc;

	*out = c;
	c->job = job;
	c->watch = xcalloc(shard_count, sizeof(*c->watch));
	c->begin = shard_count ? scheduler_begin(job->worker, shard_count) : 0;
	claim_self(&c->self, job->worker->job);
	pthread_mutex_init(&c->lock, NULL);
	thread_cond_init(&c->stopped);
	rc = shard_list_look(&c->list, job->out_dir, shard_count);
	if (rc)
		return rc;
	c->has_thread = !pthread_create(&c->thread, NULL, renew, c);
	return c->has_thread ? EXIT_DONE : fail(EXIT_IO, "cannot start a thread");
}

void claims_close(struct claims *c)
{
	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	c->stop = true;
	pthread_cond_signal(&c->stopped);
	pthread_mutex_unlock(&c->lock);
	if (c->has_thread)
		pthread_join(c->thread, NULL);
	while (c->held_count)
		release(c, c->held[0].shard_idx, false);
	pthread_cond_destroy(&c->stopped);
	pthread_mutex_destroy(&c->lock);
	shard_list_free(&c->list);
	text_free(&c->said);
	free(c->held);
	free(c->watch);
	free(c);
}
