/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_guard.c - a truncated map is an error inside the armed range, and everybody else's business
 * outside it
 *
 * What must end a process happens in a child.  A sanitizer's own handler would turn that into
 * another exit, so the children that must die by the signal put its default back first.
 */
#include "libshard/io/io.h"

#include "tests/unit/cut.h"

TEST(what_was_cut_off_is_an_error_and_the_rest_is_not)
{
	struct cut c;

	CHECK(guard_install());
	cut_make(&c);
	for (int i = 0; i < 3; i++) { /* again and again: the signal is not left blocked */
		CHECK(guard_run(c.map, BYTES, read_first_page, &c));
		CHECK_EQ(c.sum, 8);
		CHECK(!guard_run(c.map, BYTES, read_all, &c));
		CHECK_EQ(c.sum, 8); /* it came that far */
	}
	cut_end(&c);
}

TEST(the_last_byte_of_the_range_counts)
{
	struct cut c;

	cut_make(&c);
	CHECK(!guard_run(c.map + 4095, 2, read_all, &c));
	cut_end(&c);
}

static void *guarded_thread(void *arg)
{
	struct cut c;
	unsigned *failed = arg;

	c.map = (const uint8_t *)*(void **)arg;
	*failed = 0;
	for (int i = 0; i < 50; i++)
		*failed += !guard_run(c.map, BYTES, read_all, &c);
	return NULL;
}

TEST(each_thread_is_armed_by_itself)
{
	union {
		const void *map;
		unsigned failed;
	} arg[4];
	pthread_t thread[4];
	struct cut c;

	cut_make(&c);
	for (int i = 0; i < 4; i++) {
		arg[i].map = c.map;
		CHECK_EQ(pthread_create(&thread[i], NULL, guarded_thread, &arg[i]), 0);
	}
	for (int i = 0; i < 4; i++)
		CHECK_EQ(pthread_join(thread[i], NULL), 0);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(arg[i].failed, 50);
	cut_end(&c);
}

/* ---- threads that block the signal ---- */

static bool is_blocked(void)
{
	sigset_t now;

	CHECK_EQ(pthread_sigmask(SIG_BLOCK, NULL, &now), 0);
	return sigismember(&now, SIGBUS) == 1;
}

static void mask_bus(int how)
{
	sigset_t bus;

	sigemptyset(&bus);
	sigaddset(&bus, SIGBUS);
	CHECK_EQ(pthread_sigmask(how, &bus, NULL), 0);
}

static void *blocking_thread(void *arg)
{
	struct cut *c = arg;
	sigset_t all;

	sigfillset(&all);
	CHECK_EQ(pthread_sigmask(SIG_SETMASK, &all, NULL), 0);
	for (int i = 0; i < 3; i++) {
		CHECK(!guard_run(c->map, BYTES, read_all, c));
		CHECK(is_blocked()); /* as the thread wants it */
		CHECK(guard_run(c->map, BYTES, read_first_page, c));
		CHECK(is_blocked());
	}
	mask_bus(SIG_UNBLOCK);
	guard_ask();
	CHECK(!guard_run(c->map, BYTES, read_all, c));
	CHECK(!is_blocked());
	mask_bus(SIG_BLOCK); /* later than the first call: whoever asks again sees it */
	guard_ask();
	CHECK(!guard_run(c->map, BYTES, read_all, c));
	CHECK(is_blocked());
	return arg;
}

TEST(a_thread_that_blocks_the_signal_gets_the_error_too)
{
	pthread_t thread;
	struct cut c;
	void *end;

	cut_make(&c);
	CHECK_EQ(pthread_create(&thread, NULL, blocking_thread, &c), 0);
	CHECK_EQ(pthread_join(thread, &end), 0);
	CHECK(end == &c);
	cut_end(&c);
}

/* ---- several ranges ---- */

struct two {
	struct cut cut[2];
	int hit; /* which of them could not be read */
};

static bool is_of_two(void *context, uintptr_t at)
{
	struct two *t = context;

	for (int i = 0; i < 2; i++)
		if (at >= (uintptr_t)t->cut[i].map && at < (uintptr_t)t->cut[i].map + BYTES) {
			t->hit = i;
			return true;
		}
	return false;
}

static void read_first_of_two(void *context)
{
	read_all(&((struct two *)context)->cut[0]);
}

static void read_second_of_two(void *context)
{
	read_first_page(&((struct two *)context)->cut[0]);
	read_all(&((struct two *)context)->cut[1]);
}

static void read_start_of_two(void *context)
{
	read_first_page(&((struct two *)context)->cut[0]);
	read_first_page(&((struct two *)context)->cut[1]);
}

TEST(several_ranges_are_told_apart)
{
	struct two t = {.hit = -1};

	cut_make(&t.cut[0]);
	unlink(t.cut[0].path.text); /* both have the same name */
	cut_make(&t.cut[1]);
	CHECK(guard_run_where(is_of_two, read_start_of_two, &t));
	CHECK_EQ(t.hit, -1);
	CHECK(!guard_run_where(is_of_two, read_second_of_two, &t));
	CHECK_EQ(t.hit, 1);
	CHECK(!guard_run_where(is_of_two, read_first_of_two, &t));
	CHECK_EQ(t.hit, 0);
	munmap((void *)(uintptr_t)t.cut[0].map, BYTES);
	cut_end(&t.cut[1]);
}

/* ---- nobody is armed ---- */

static void disarmed(struct cut *c)
{
	read_all(c);
}

static void disarmed_without_guard(struct cut *c)
{
	fresh();
	read_all(c);
}

static void armed_elsewhere(struct cut *c)
{
	static uint8_t other[4096];

	guard_run(other, sizeof(other), read_all, c);
}

static bool died(int status)
{
	return WIFSIGNALED(status) ? WTERMSIG(status) == SIGBUS : WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != 42;
}

TEST(disarmed_it_is_the_end_of_the_process)
{
	int status = in_child(disarmed_without_guard);

	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS); /* so the file is cut, and reading it is deadly */
	CHECK(died(in_child(disarmed)));
	CHECK(died(in_child(armed_elsewhere)));
}

TEST_MAIN()
