/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_wait.c - waiting for a batch with a limit
 *
 * Filling stands still behind a gate until the test opens it, so that no answer depends on how fast
 * anything is.
 *
 * LDFLAGS: -Wl,--wrap=slot_fill
 */
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>

#include "libshard/base/clock.h"
#include "tests/load/inject.h"

static struct wanted wanted;

static struct shard_loader *open_loader(uint32_t threads)
{
	static const uint64_t sizes[] = {10, 10, 12};
	struct shard_loader *l;

	inject_nothing();
	inject.meanwhile = behind_gate;
	open_photos(8, SHARD_RAW, sizes, COUNT(sizes));
	wanted_open(&wanted, (struct shard_loader_options){
				     .batch_records = 4, .slot_count = 3, .thread_count = threads, .order.seed = 5});
	l = loader_of(&wanted);
	inject_watch(l);
	return l;
}

TEST(it_ends_when_its_time_is_over_and_loses_nothing)
{
	struct shard_loader *l = open_loader(2);
	struct shard_loader_stats stats;
	struct shard_batch b;
	uint64_t begin;

	set_gate(false);
	CHECK_EQ(shard_loader_wait(l, 0, &fixture_err), SHARD_E_TIMEOUT);
	shard_loader_stats(l, &stats);
	CHECK_EQ(stats.next_wait_ns, 0); /* a poll does not wait: it would be a system call, with a timer */
	begin = clock_now_ns();
	CHECK_EQ(shard_loader_wait(l, 30000000, &fixture_err), SHARD_E_TIMEOUT);
	CHECK(clock_now_ns() - begin >= 30000000);
	CHECK_STR(fixture_err.message, "no batch was ready within 30000000 ns");
	set_gate(true);
	CHECK_OK(shard_loader_wait(l, UINT64_MAX, &fixture_err));
	for (uint64_t i = 0; i < 8; i++) {
		CHECK_EQ(wanted_next(&wanted, l, &b), SHARD_OK);
		CHECK_OK(shard_loader_release(l, &b, &fixture_err));
	}
	CHECK_STR(wanted.complaint, "");

	/* However often it was asked for, one batch was waited for once. */
	shard_loader_stats(l, &stats);
	CHECK(stats.next_wait_count >= 1 && stats.next_wait_count <= 8);
	CHECK(stats.next_wait_ns >= 30000000);
	close_loader(l);
}

TEST(a_batch_that_was_there_is_not_counted_as_waited_for)
{
	struct shard_loader *l = open_loader(1);
	struct shard_loader_stats stats;
	struct shard_batch b;

	set_gate(false);
	CHECK_EQ(shard_loader_wait(l, 1000000, &fixture_err), SHARD_E_TIMEOUT);
	set_gate(true);
	for (uint64_t i = 0; i < 8; i++) {
		while (shard_loader_wait(l, 0, &fixture_err)) /* a poll, which never counts */
			sched_yield();
		CHECK_EQ(wanted_next(&wanted, l, &b), SHARD_OK);
		CHECK_OK(shard_loader_release(l, &b, &fixture_err));
	}
	shard_loader_stats(l, &stats);
	CHECK_EQ(stats.next_wait_count, 1);
	close_loader(l);
}

TEST(it_does_not_wait_for_what_next_says_at_once)
{
	struct shard_loader *l = open_loader(1);
	struct shard_batch b[3];

	set_gate(true);
	for (uint32_t i = 0; i < 3; i++)
		CHECK_EQ(wanted_next(&wanted, l, &b[i]), SHARD_OK);
	CHECK_OK(shard_loader_wait(l, 0, &fixture_err)); /* all slots are lent */
	CHECK_EQ(shard_loader_next(l, &b[0], &fixture_err), SHARD_E_ARGUMENT);
	for (uint32_t i = 0; i < 3; i++)
		CHECK_OK(shard_loader_release(l, &b[i], &fixture_err));
	for (uint32_t i = 3; i < 8; i++) {
		CHECK_EQ(wanted_next(&wanted, l, &b[0]), SHARD_OK);
		CHECK_OK(shard_loader_release(l, &b[0], &fixture_err));
	}
	set_gate(false); /* the next epoch's first batch may be there or not; its end is */
	CHECK_OK(shard_loader_wait(l, 0, &fixture_err));
	CHECK_EQ(wanted_next(&wanted, l, &b[0]), SHARD_END);
	set_gate(true);
	CHECK_STR(wanted.complaint, "");
	close_loader(l);
}

TEST(a_forked_child_is_refused)
{
	struct shard_loader *l = open_loader(1);
	int status;
	pid_t child;

	set_gate(true);
	CHECK_OK(shard_loader_wait(l, UINT64_MAX, &fixture_err));
	child = fork();
	if (!child)
		_exit(shard_loader_wait(l, UINT64_MAX, &fixture_err) == SHARD_E_ARGUMENT ? 0 : 1);
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	close_loader(l);
}

TEST_MAIN()
