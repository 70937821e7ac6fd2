/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_thread.c - each number runs once, the caller watches, tasks do what they are asked for, and all
 * get along with a system that refuses threads
 *
 * LDFLAGS: -Wl,--wrap=pthread_create
 */
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>

#include "libshard/base/clock.h"
#include "libshard/base/thread.h"
#include "tests/test.h"

static int allowed = -1; /* threads that may still be started; -1: any number */

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg)
{
	if (!allowed)
		return EAGAIN;
	allowed -= allowed > 0;
	return __real_pthread_create(thread, attr, start, arg);
}

struct seen {
	atomic_uint runs[THREADS_MAX + 8];
	atomic_bool may_end;
	uint32_t running; /* as wait was told; 0: it was not called */
	bool wait_in_caller;
	pthread_t caller;
};

static void work(void *context, uint32_t thread)
{
	struct seen *s = context;

	atomic_fetch_add(&s->runs[thread], 1);
	while (!atomic_load(&s->may_end))
		sched_yield();
}

/* The workers do not end before this has run: so it runs while they do. */
static void watch(void *context, uint32_t running)
{
	struct seen *s = context;

	s->running = running;
	s->wait_in_caller = pthread_equal(s->caller, pthread_self());
	atomic_store(&s->may_end, true);
}

TEST(every_number_runs_once)
{
	static const struct {
		uint32_t count;
		int allowed;
		uint32_t want;
	} rows[] = {{1, -1, 1},
		    {2, -1, 2},
		    {7, -1, 7},
		    {THREADS_MAX, -1, THREADS_MAX},
		    {THREADS_MAX + 5, -1, THREADS_MAX},
		    {8, 3, 3},
		    {8, 1, 1},
		    {8, 0, 0},
		    {0, -1, 0}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct seen s = {.caller = pthread_self()};
		uint32_t got;

		STORY("%u threads asked for, %d allowed", rows[i].count, rows[i].allowed);
		allowed = rows[i].allowed;
		got = threads_run(rows[i].count, work, watch, &s);
		allowed = -1;
		CHECK_EQ(got, rows[i].want);
		CHECK_EQ(s.running, rows[i].want);
		CHECK(s.wait_in_caller == (rows[i].want > 0));
		for (uint32_t t = 0; t < THREADS_MAX + 8; t++)
			CHECK_EQ(atomic_load(&s.runs[t]), t < rows[i].want);
	}
}

TEST(nobody_has_to_watch)
{
	struct seen s = {.may_end = true};

	CHECK_EQ(threads_run(3, work, NULL, &s), 3);
	CHECK_EQ(s.running, 0);
}

TEST(the_cpus_are_those_of_this_process)
{
	cpu_set_t before, one;
	uint32_t all = thread_cpu_count();
	int first = 0;

	CHECK(all >= 1 && all <= THREADS_MAX);
	CHECK_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
	while (!CPU_ISSET(first, &before))
		first++;
	CPU_ZERO(&one);
	CPU_SET(first, &one);
	CHECK_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
	CHECK_EQ(thread_cpu_count(), 1);
	CHECK_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
	CHECK_EQ(thread_cpu_count(), all);
}

/* ---- tasks ---- */

struct pile {
	struct task task;
	unsigned waiting, working, most_working, done; /* lock */
};

static bool take_one(void *context)
{
	struct pile *p = context;

	if (!p->waiting)
		return false;
	p->waiting--;
	p->working++;
	if (p->working > p->most_working)
		p->most_working = p->working;
	task_unlock(&p->task);
	task_lock(&p->task);
	p->working--;
	p->done++;
	task_tell(&p->task);
	return true;
}

TEST(what_is_asked_for_in_the_task_is_done_once)
{
	for (unsigned count = 1; count <= TASK_THREADS_MAX; count++) {
		struct pile p = {.waiting = 0};

		CHECK(task_start(&p.task, count, take_one, &p));
		task_lock(&p.task);
		for (unsigned i = 0; i < 1000; i++) {
			p.waiting++;
			task_ask(&p.task);
			while (i % 10 == 9 && p.done <= i)
				task_wait(&p.task);
		}
		CHECK_EQ(p.done, 1000);
		CHECK(p.most_working <= count);
		task_unlock(&p.task);
		task_stop(&p.task);
		CHECK_EQ(p.working, 0);
	}
}

TEST(without_a_thread_the_owner_takes_the_steps)
{
	struct pile p = {.waiting = 0};

	allowed = 0;
	CHECK(!task_start(&p.task, 3, take_one, &p));
	allowed = -1;
	task_lock(&p.task);
	p.waiting = 7;
	task_ask(&p.task);
	CHECK_EQ(p.done, 7);
	task_unlock(&p.task);
	task_stop(&p.task);
}

TEST(a_stop_ends_the_step_and_begins_none)
{
	for (unsigned turn = 0; turn < 200; turn++) {
		struct pile p = {.waiting = 0};

		CHECK(task_start(&p.task, 3, take_one, &p));
		task_lock(&p.task);
		p.waiting = turn;
		task_ask(&p.task);
		task_unlock(&p.task);
		task_stop(&p.task);
		CHECK_EQ(p.waiting + p.done, turn);
	}
}

/* glibc 2.30 can wait by a named clock; a condition that has the clock need not be told. */
TEST(a_wait_ends_by_the_clock_that_only_goes_forward)
{
	static const struct {
		const char *story;
		uint64_t ns;
		bool ours;
		int want;
	} rows[] = {
		{"over already", 0, true, ETIMEDOUT},
		{"a while", 20000000, true, ETIMEDOUT},
		{"over already, twin", 0, false, ETIMEDOUT},
		{"a while, twin", 20000000, false, ETIMEDOUT},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
		struct timespec until = clock_after_ns(rows[i].ns);
		pthread_cond_t c;
		int rc;

		if (rows[i].ours)
			thread_cond_init(&c);
		else
			pthread_cond_init(&c, NULL);
		pthread_mutex_lock(&lock);
		do
			rc = rows[i].ours ? pthread_cond_timedwait(&c, &lock, &until)
					  : pthread_cond_clockwait(&c, &lock, CLOCK_MONOTONIC, &until);
		while (!rc);
		pthread_mutex_unlock(&lock);
		CHECK_EQ(rc, rows[i].want);
		/* By the other clock the time was over in 1970, and the wait would end too early. */
		CHECK(clock_now_ns() >= (uint64_t)until.tv_sec * 1000000000u + (uint64_t)until.tv_nsec);
		pthread_cond_destroy(&c);
	}
}

TEST_MAIN()
