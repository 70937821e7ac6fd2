/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify_run.c - verify a shard or a dataset with threads, progress and a list of what is wrong
 *
 * Threads claim pieces of some MiB under one lock, shard after shard; the one that claims a shard's
 * first piece opens it and checks its tables.  A thread that reads claims its next pieces before it
 * checks one, so that the disk has work meanwhile.  Each tells what it finds in the order of its
 * claims.  Callbacks run in the caller's thread, which otherwise sleeps.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "libshard/base/bytes.h"
#include "libshard/base/clock.h"
#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/base/options.h"
#include "libshard/base/thread.h"
#include "libshard/base/turns.h"
#include "libshard/dataset/dataset.h"
#include "libshard/format/format.h"
#include "libshard/io/io.h"
#include "libshard/verify/verify.h"
#include "shard_inspect.h"

#define PROBLEMS_QUEUED 32u

/*
 * A shard at work.  A dataset keeps its readers as long as it is open.  Each is a map, and a process
 * may have only a certain number (vm.max_map_count, 65,530).  So verify opens readers of its own, and closes
 * each when its last user has released it.
 */
struct open_shard {
	struct shard_reader *r;
	uint64_t users; /* lock of the run: the cursor, and each thread with a piece of it */
};

/* Units of all groups. */
static uint64_t unit_count(const struct shard_reader *r)
{
	uint64_t units = 0;

	for (uint32_t g = 0; g < r->schema->group_count; g++)
		units += reader_unit_count(r, g);
	return units;
}

/*
 * How much of a group's DATA lies before `unit`, as if all units were equally long: ends exactly at
 * its length.
 */
static uint64_t bytes_before(const struct shard_reader *r, uint32_t group, uint64_t unit)
{
	const struct section *data = pages_find(r->pages, SHARD_SECTION_DATA, group);
	uint64_t units = reader_unit_count(r, group);

	return data && units ? (uint64_t)((unsigned __int128)data->bytes * unit / units) : 0;
}

/* ---- the run ---- */

/* Where the next piece is. */
struct cursor {
	uint64_t shard;
	struct open_shard *open; /* that shard; NULL: not opened yet */
	uint32_t group;
	uint64_t unit;
	bool is_new;	 /* no piece of it was claimed yet */
	uint64_t ragged; /* the next record to be checked for I57 to I59 */
	bool sha256_due;
};

struct run {
	struct shard_verify_options o;
	struct shard_dataset *ds;   /* NULL: a single shard */
	struct verify_whole *whole; /* const; NULL, or what else is asked of a single shard */
	struct open_shard single;   /* its reader is the caller's, and left open; NULL with `ds` */
	uint64_t shard_count, units_total, bytes_total;

	pthread_mutex_t lock;
	pthread_cond_t told;			   /* with lock: a problem was queued or taken, or a thread ended */
	struct cursor at;			   /* lock */
	uint64_t units_before;			   /* lock: units of the shards before `at`, for the sample */
	struct shard_error queue[PROBLEMS_QUEUED]; /* lock */
	uint32_t queued, threads_ended;		   /* lock */
	struct shard_error worst;		   /* lock: the gravest so far */
	struct shard_verify_report report;	   /* lock */
	uint64_t bytes_passed;			   /* lock: of bytes_total, checked or passed over */
	bool stop;				   /* lock: cancelled, or the first problem without a callback */
};

/* Damage before IO before UNSUPPORTED before MISMATCH. */
static uint32_t gravity(int status)
{
	static const int rising[] = {SHARD_OK, SHARD_E_MISMATCH, SHARD_E_UNSUPPORTED, SHARD_E_IO, SHARD_E_CORRUPT};
	uint32_t i = 0;

	while (i < sizeof(rising) / sizeof(rising[0]) && rising[i] != status)
		i++;
	return i;
}

/* With lock. */
static void note_problem(struct run *run, const struct shard_error *problem)
{
	run->report.problem_count++;
	if (gravity(problem->status) > gravity(run->worst.status))
		run->worst = *problem;
	if (!run->o.problem) {
		run->stop = true;
		return;
	}
	while (run->queued == PROBLEMS_QUEUED && !run->stop)
		pthread_cond_wait(&run->told, &run->lock);
	if (run->queued < PROBLEMS_QUEUED)
		run->queue[run->queued++] = *problem;
	pthread_cond_broadcast(&run->told);
}

static void on_piece_problem(void *context, const struct shard_error *problem)
{
	struct run *run = context;

	pthread_mutex_lock(&run->lock);
	note_problem(run, problem);
	pthread_mutex_unlock(&run->lock);
}

enum piece_kind { PIECE_NONE, PIECE_SHARD, PIECE_UNITS, PIECE_RAGGED, PIECE_SHA256 };

struct piece {
	enum piece_kind kind;
	bool is_first;		 /* of its shard */
	struct open_shard *open; /* NULL: it could not be opened, or its tables are bad */
	uint64_t shard;
	uint32_t group;
	uint64_t unit, count; /* or records, of PIECE_RAGGED */
	uint64_t passes;      /* bytes that are behind us with it */
	struct verify_place place;
	struct shard_error problem; /* of PIECE_SHARD that is not open */
};

/* With lock.  One user of the shard less. */
static void release(const struct run *run, struct open_shard *s)
{
	if (--s->users || s == &run->single)
		return;
	shard_reader_close(s->r);
	mem_free(s);
}

/* With lock.  Open the shard at the cursor and check its tables. */
static int open_shard(struct run *run, struct shard_error *err)
{
	const struct verify_whole *whole = run->whole;
	const struct shard_turns *turns = whole ? whole->turns : NULL;
	struct open_shard *s = run->ds ? mem_zalloc(sizeof(*s)) : &run->single;
	int rc = SHARD_OK;

	if (!s)
		return error_set(err, SHARD_E_MEMORY, "no memory to verify");
	s->users = 1;
	if (run->ds)
		rc = dataset_open_shard(run->ds, run->at.shard, &s->r, err);
	if (!rc) {
		turns_give(turns);
		verify_fetch_tables(s->r, whole ? whole->path : s->r->path);
		turns_take(turns);
		rc = verify_tables(s->r, err);
	}
	if (rc)
		release(run, s);
	else
		run->at.open = s;
	return rc;
}

/*
 * With lock.  Begin with the shard at the cursor; if that fails the cursor has moved on to the next,
 * and `out` is the piece that says why.
 */
static bool begin_shard(struct run *run, struct piece *out)
{
	struct cursor *at = &run->at;
	const struct shard_reader *r;

	at->group = 0;
	at->unit = 0;
	at->sha256_due = run->ds && run->o.sha256;
	*out = (struct piece){.kind = PIECE_SHARD, .shard = at->shard};
	if (open_shard(run, &out->problem)) {
		struct shard_entry entry = {.file_bytes = run->ds ? 0 : run->single.r->file_bytes};

		if (run->ds) /* cannot fail: it is one of the dataset's */
			shard_dataset_entry(run->ds, at->shard, &entry, NULL);
		/* its units are passed over, so that the sample goes on where it would have */
		for (uint32_t g = 0; run->ds && g < run->ds->m.schema.group_count; g++)
			run->units_before +=
				ceil_div(run->ds->first_record[at->shard + 1] - run->ds->first_record[at->shard],
					 run->ds->m.schema.group[g].unit_records);
		run->bytes_passed += entry.file_bytes * (1 + run->o.sha256);
		at->shard++;
		return false;
	}
	r = at->open->r;
	at->ragged = verify_has_ragged(r->schema) && !run->o.sample_units ? 0 : r->pages->record_count;
	run->bytes_passed += r->file_bytes;
	for (uint32_t g = 0; g < r->schema->group_count; g++) /* DATA is passed with its pieces */
		run->bytes_passed -= bytes_before(r, g, reader_unit_count(r, g));
	at->is_new = true;
	return true;
}

/*
 * With lock.  Is the unit at the cursor one of the sample?  Unit u of U is, if a multiple of U/N
 * falls into it.
 */
static bool in_sample(const struct run *run, uint64_t unit_in_shard)
{
	unsigned __int128 n = run->o.sample_units, u = run->units_before + unit_in_shard;

	return !n || n >= run->units_total || (u * n) / run->units_total != ((u + 1) * n) / run->units_total;
}

/* With lock.  The next units of the shard at the cursor; false if there are none. */
static bool claim_units(struct run *run, struct piece *out)
{
	struct cursor *at = &run->at;
	const struct shard_reader *r = at->open->r;
	uint64_t before = 0;

	for (uint32_t g = 0; g < at->group; g++)
		before += reader_unit_count(r, g);
	for (; at->group < r->schema->group_count; before += reader_unit_count(r, at->group), at->group++, at->unit = 0)
		while (at->unit < reader_unit_count(r, at->group)) {
			uint64_t unit = at->unit;
			uint64_t count = run->o.sample_units ? 1 : verify_piece(r, run->whole, at->group, unit);
			uint64_t passes = bytes_before(r, at->group, unit + count) - bytes_before(r, at->group, unit);

			at->unit += count;
			if (!in_sample(run, before + unit)) {
				run->bytes_passed += passes;
				continue;
			}
			*out = (struct piece){.kind = PIECE_UNITS,
					      .open = at->open,
					      .shard = at->shard,
					      .group = at->group,
					      .unit = unit,
					      .count = count,
					      .passes = passes};
			return true;
		}
	return false;
}

/* With lock.  The next piece of the shard at the cursor; false if there is none. */
static bool claim_of_shard(struct run *run, struct piece *out)
{
	struct cursor *at = &run->at;
	const struct shard_reader *r = at->open->r;

	if (claim_units(run, out))
		return true;
	*out = (struct piece){.open = at->open, .shard = at->shard};
	if (at->ragged < r->pages->record_count) {
		out->kind = PIECE_RAGGED;
		out->unit = at->ragged;
		out->count = verify_ragged_piece(r, at->ragged);
		at->ragged += out->count;
	} else if (at->sha256_due) {
		out->kind = PIECE_SHA256;
		out->passes = r->file_bytes;
		at->sha256_due = false;
	} else if (at->is_new) { /* it is counted */
		out->kind = PIECE_SHARD;
	}
	return out->kind != PIECE_NONE;
}

/* With lock.  The next piece, which is one user more of its shard; PIECE_NONE if there is none. */
static void claim(struct run *run, struct piece *out)
{
	struct cursor *at = &run->at;

	for (; !run->stop && at->shard < run->shard_count; at->open = NULL, at->shard++) {
		if (!at->open && !begin_shard(run, out))
			return;
		if (claim_of_shard(run, out)) {
			out->is_first = at->is_new;
			at->is_new = false;
			at->open->users++;
			return;
		}
		run->units_before += unit_count(at->open->r);
		release(run, at->open);
	}
	*out = (struct piece){.kind = PIECE_NONE};
}

/* D6 of format/SHARD.md. */
static int check_sha256(const struct run *run, const struct piece *p, struct shard_error *err)
{
	const char *path = p->open->r->path;
	struct shard_entry entry;
	uint8_t digest[SHA256_BYTES];
	int rc = shard_dataset_entry(run->ds, p->shard, &entry, err);

	if (!rc)
		rc = verify_hash_file(path, digest, err);
	return rc ? rc : dataset_check_sha256(path, digest, entry.sha256, err);
}

/* ---- threads ---- */

/* Pieces that a thread has claimed; those behind the head are ones that it reads ahead, and short ones between. */
#define PIECES_MOST 4u

struct line {
	struct run *run;
	struct verify_room room;
	struct piece piece[PIECES_MOST];
	uint32_t head, count;
};

/*
 * Nothing is claimed behind a head that is not read ahead: another thread may check it meanwhile.
 * Nor behind a piece that needs the whole buffer.
 * All pieces but the last one belong to one shard, so that two are open at most.
 */
static bool wants_piece(const struct line *l)
{
	const struct piece *head = &l->piece[l->head], *last = &l->piece[(l->head + l->count - 1) % PIECES_MOST];

	return !l->count || (l->count < PIECES_MOST && head->place.half != VERIFY_NO_HALF && !last->place.needs_both &&
			     !(l->room.is_taken[0] && l->room.is_taken[1]) && head->shard == last->shard);
}

/* With lock, which is given up meanwhile.  False if there is no piece. */
static bool add_piece(struct line *l)
{
	struct piece *p = &l->piece[(l->head + l->count) % PIECES_MOST];

	claim(l->run, p);
	if (p->kind == PIECE_NONE)
		return false;
	l->count++;
	p->place.half = VERIFY_NO_HALF;
	if (p->kind == PIECE_SHARD)
		return true;
	pthread_mutex_unlock(&l->run->lock);
	verify_begin(&l->room, p->open->r, p->shard, p->group, p->unit, p->kind == PIECE_UNITS ? p->count : 0,
		     &p->place);
	pthread_mutex_lock(&l->run->lock);
	return true;
}

/* With lock.  The piece at the head is done with, and nothing is being read for it. */
static void remove_piece(struct line *l)
{
	const struct piece *p = &l->piece[l->head];

	if (p->open)
		release(l->run, p->open);
	l->head = (l->head + 1) % PIECES_MOST;
	l->count--;
}

static int check_piece(struct line *l, struct piece *p, uint64_t *bytes, struct shard_error *problem)
{
	struct run *run = l->run;
	verify_on_problem *on_problem = run->o.problem ? on_piece_problem : NULL;
	struct shard_reader *r = p->open->r;
	int rc = verify_enter(&l->room, &p->place, r, problem);

	if (!rc && p->kind == PIECE_UNITS)
		rc = verify_units(r, &l->room, p->group, p->unit, p->count, bytes, on_problem, run, problem);
	else if (!rc && p->kind == PIECE_RAGGED)
		rc = verify_ragged(r, p->unit, p->count, on_problem, run, problem);
	else if (!rc)
		rc = check_sha256(run, p, problem);
	verify_end(&l->room, &p->place);
	return rc;
}

/* With lock, which is given up meanwhile.  Check the piece at the head, and count it. */
static void work_piece(struct line *l)
{
	struct run *run = l->run;
	struct piece *p = &l->piece[l->head];
	struct shard_error problem = p->problem;
	int found = p->open ? SHARD_OK : problem.status;
	uint64_t bytes = 0;

	if (p->kind != PIECE_SHARD) {
		pthread_mutex_unlock(&run->lock);
		found = check_piece(l, p, &bytes, &problem);
		pthread_mutex_lock(&run->lock);
	}
	if (p->is_first) {
		run->report.shard_count++;
		run->report.record_count += p->open->r->pages->record_count;
	}
	run->report.unit_count += p->kind == PIECE_UNITS ? p->count : 0;
	run->report.bytes += bytes;
	run->bytes_passed += p->passes;
	/* those of units and ragged fields were told already */
	if (found &&
	    !((p->kind == PIECE_UNITS || p->kind == PIECE_RAGGED) && run->o.problem && found == SHARD_E_CORRUPT))
		note_problem(run, &problem);
}

static void work(void *context, uint32_t thread)
{
	struct run *run = context;
	struct line l = {.run = run};
	struct shard_error problem;
	int rc = verify_room_init(&l.room, run->whole, &problem);

	(void)thread;
	pthread_mutex_lock(&run->lock);
	if (rc)
		note_problem(run, &problem);
	while (!rc) {
		while (wants_piece(&l) && add_piece(&l))
			;
		if (!l.count || run->stop)
			break;
		work_piece(&l);
		remove_piece(&l);
	}
	pthread_mutex_unlock(&run->lock);
	verify_room_free(&l.room); /* which ends what is being read for pieces that are left */
	pthread_mutex_lock(&run->lock);
	while (l.count)
		remove_piece(&l);
	run->threads_ended++;
	pthread_cond_broadcast(&run->told);
	pthread_mutex_unlock(&run->lock);
}

/* With lock, which it gives up meanwhile. */
static void tell_progress(struct run *run)
{
	uint64_t done = run->bytes_passed;
	int rc;

	if (!run->o.progress || run->stop)
		return;
	pthread_mutex_unlock(&run->lock);
	rc = run->o.progress(run->o.context, done, run->bytes_total);
	pthread_mutex_lock(&run->lock);
	if (rc && !run->stop) {
		run->stop = true;
		error_set(&run->worst, SHARD_E_CANCELLED, "verification was cancelled");
	}
}

/*
 * The caller's thread: hands problems and progress to the callbacks until all threads have ended.
 */
static void watch(void *context, uint32_t running)
{
	struct run *run = context;

	pthread_mutex_lock(&run->lock);
	for (;;) {
		struct timespec until;

		/* only these: then progress, and so cancelling, has its turn */
		for (uint32_t n = run->queued; n; n--) {
			struct shard_error problem = run->queue[0];

			run->queued--;
			memmove(run->queue, run->queue + 1, run->queued * sizeof(run->queue[0]));
			pthread_cond_broadcast(&run->told);
			pthread_mutex_unlock(&run->lock);
			run->o.problem(run->o.context, &problem);
			pthread_mutex_lock(&run->lock);
		}
		if (run->threads_ended == running && !run->queued)
			break;
		tell_progress(run);
		until = clock_after_ns(100000000);
		if (run->threads_ended < running && !run->queued)
			pthread_cond_timedwait(&run->told, &run->lock, &until);
	}
	if (run->bytes_passed == run->bytes_total)
		tell_progress(run); /* all of it */
	pthread_mutex_unlock(&run->lock);
}

static int run_all(struct run *run, struct shard_verify_report *report, struct shard_error *err)
{
	uint32_t threads = run->o.thread_count ? run->o.thread_count : thread_cpu_count();
	uint64_t start = clock_now_ns();

	pthread_mutex_init(&run->lock, NULL);
	thread_cond_init(&run->told);
	if (threads == 1 && !run->o.progress && !run->o.problem)
		work(run, 0);
	else if (!threads_run(threads, work, watch, run))
		error_set(&run->worst, SHARD_E_MEMORY, "no thread could be started");
	pthread_cond_destroy(&run->told);
	pthread_mutex_destroy(&run->lock);
	if (run->at.open) /* after an early end */
		release(run, run->at.open);
	run->report.elapsed_ns = clock_now_ns() - start;
	if (report)
		*report = run->report;
	if (run->worst.status && err)
		*err = run->worst;
	return run->worst.status;
}

static int take_options(struct run *run, const struct shard_verify_options *opt, struct shard_error *err)
{
	int rc = options_take(&run->o, sizeof(run->o), opt, err);

	if (rc)
		return rc;
	return run->o.sha256 > 1
		       ? error_set(err, SHARD_E_ARGUMENT, "options: sha256 is %u; must be 0 or 1", run->o.sha256)
		       : SHARD_OK;
}

static int verify_single(struct shard_reader *r, const struct shard_verify_options *opt, struct verify_whole *whole,
			 struct shard_verify_report *report, struct shard_error *err)
{
	struct run *run = mem_zalloc(sizeof(*run));
	int rc = run ? take_options(run, opt, err) : error_set(err, SHARD_E_MEMORY, "no memory to verify");

	if (!rc) {
		run->single.r = r;
		run->shard_count = 1;
		run->units_total = unit_count(r);
		run->bytes_total = r->file_bytes;
		run->whole = whole;
		rc = run_all(run, report, err);
	}
	mem_free(run);
	return rc;
}

int shard_reader_verify(struct shard_reader *r, const struct shard_verify_options *opt,
			struct shard_verify_report *report, struct shard_error *err)
{
	int rc = reader_need_map(r, err);

	return rc ? rc : verify_single(r, opt, NULL, report, err);
}

int verify_whole(struct shard_reader *r, struct verify_whole *whole, struct shard_error *err)
{
	const struct shard_verify_options one = {.size = sizeof(one), .thread_count = 1};
	int rc = verify_single(r, &one, whole, NULL, err);

	return rc ? rc : verify_hash_map(r, whole, r->file_bytes, err);
}

static uint64_t count_units(const struct shard_dataset *ds)
{
	uint64_t units = 0;

	for (uint64_t i = 0; i < ds->m.shard_count; i++)
		for (uint32_t g = 0; g < ds->m.schema.group_count; g++)
			units += ceil_div(ds->first_record[i + 1] - ds->first_record[i],
					  ds->m.schema.group[g].unit_records);
	return units;
}

int shard_dataset_verify(struct shard_dataset *ds, const struct shard_verify_options *opt,
			 struct shard_verify_report *report, struct shard_error *err)
{
	struct run *run = mem_zalloc(sizeof(*run));
	struct shard_error problem;
	int rc = run ? take_options(run, opt, err) : error_set(err, SHARD_E_MEMORY, "no memory to verify");

	if (!rc && ds->part_count)
		rc = error_set(err, SHARD_E_ARGUMENT, "%s has no manifest of its own; verify each of its parts",
			       ds->dir);
	if (!rc) {
		run->ds = ds;
		run->shard_count = ds->m.shard_count;
		run->units_total = count_units(ds);
		run->bytes_total = ds->data_bytes * (1 + run->o.sha256);
		rc = dataset_verify_manifest(ds, &problem);
		if (rc) {
			run->report.problem_count++;
			run->worst = problem;
			if (run->o.problem)
				run->o.problem(run->o.context, &problem);
			else
				run->shard_count = 0;
		}
		rc = run_all(run, report, err);
	}
	mem_free(run);
	return rc;
}
