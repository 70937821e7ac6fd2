/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_guard_others.c - the guard beside other handlers of SIGBUS, which came before it or later
 *
 * Each story is a process of its own, because the first guard_install() of a process is the one
 * that counts.
 */
#include "libshard/io/io.h"

#include <setjmp.h>

#include "tests/unit/cut.h"

/* ---- who was there before: a process of its own, in which install comes second ---- */

static void foreign(int number)
{
	_exit(number == SIGBUS ? 42 : 43);
}

static void foreign_info(int number, siginfo_t *info, void *machine)
{
	_exit(number == SIGBUS && info->si_addr && machine ? 42 : 43);
}

static struct sigaction ours;

static void later(int number, siginfo_t *info, void *machine)
{
	ours.sa_sigaction(number, info, machine);
}

/*
 * A handler that came after ours, blocks everything while it runs, and hands on to us: each fault
 * is still an error.
 */
static void first_of_two(void)
{
	struct sigaction theirs = {.sa_sigaction = later, .sa_flags = SA_SIGINFO};
	struct cut c;

	if (!guard_install())
		_exit(44);
	sigfillset(&theirs.sa_mask);
	sigaction(SIGBUS, &theirs, &ours);
	cut_make(&c);
	unlink(c.path.text);
	for (int i = 0; i < 3; i++)
		if (guard_run(c.map, BYTES, read_all, &c))
			_exit(45);
	sigset_t now;

	sigprocmask(SIG_SETMASK, NULL, &now);
	_exit(sigismember(&now, SIGBUS) || sigismember(&now, SIGTERM) ? 46 : 42);
}

#define CAUGHT_FD 9 /* where the program that is run tells each fault that became an error */

/* The wait status.  `caught` may be NULL, or is how many faults became errors. */
static int exec_self(const char *who, int *caught)
{
	int status, ends[2];
	char byte;
	pid_t pid;

	CHECK_EQ(pipe(ends), 0);
	if (child_begin(&pid, 60)) {
		dup2(ends[1], CAUGHT_FD);
		setenv("T_GUARD", who, 1);
		execl("/proc/self/exe", "t_guard", (char *)NULL);
		_exit(48);
	}
	status = child_end(pid);
	close(ends[1]);
	for (int i = 0; read(ends[0], &byte, 1) == 1; i++)
		if (caught)
			*caught = i + 1;
	close(ends[0]);
	return status;
}

/* ---- who came later, and put another handler in the place of ours ---- */

/* As Python's faulthandler: put the one before back, and raise the signal again. */
static void raises_again(int number)
{
	sigaction(number, &ours, NULL);
	raise(number);
}

static const struct {
	const char *who;
	int caught; /* how many of three faults are errors */
	int ends;   /* with the next, which is not ours: an exit, or minus a signal */
	bool look_again, in_child;
	struct sigaction theirs;
} later_ones[] = {
	{"a handler, and nobody looks", 0, 42, false, false, {.sa_handler = foreign}},
	{"a handler, and a look", 3, 42, true, false, {.sa_handler = foreign}},
	{"a handler, in a child", 3, 42, false, true, {.sa_handler = foreign}},
	{"the default, and nobody looks", 0, -SIGBUS, false, false, {.sa_handler = SIG_DFL}},
	{"the default, and a look", 3, -SIGBUS, true, false, {.sa_handler = SIG_DFL}},
	{"the default, in a child", 3, -SIGBUS, false, true, {.sa_handler = SIG_DFL}},
	{"one that hands on", 3, -SIGBUS, false, false, {.sa_sigaction = later, .sa_flags = SA_SIGINFO}},
	{"one that hands on, and a look", 3, -SIGBUS, true, false, {.sa_sigaction = later, .sa_flags = SA_SIGINFO}},
	{"one that raises again", 3, -SIGBUS, false, false, {.sa_handler = raises_again, .sa_flags = SA_NODEFER}},
};

static void read_under_another(size_t one)
{
	struct cut c;

	fresh();
	if (!guard_install())
		_exit(44);
	cut_make(&c);
	unlink(c.path.text);
	if (guard_run(c.map, BYTES, read_all, &c))
		_exit(45);
	if (later_ones[one].in_child) {
		pid_t pid;
		int status;

		if (!child_begin(&pid, 60)) { /* ends as the child did */
			status = child_end(pid);
			fresh();
			if (WIFSIGNALED(status))
				raise(WTERMSIG(status));
			_exit(WEXITSTATUS(status));
		}
	}
	sigaction(SIGBUS, &later_ones[one].theirs, &ours);
	for (unsigned i = 0; later_ones[one].look_again && i < GUARD_LOOK_EVERY; i++)
		guard_ask();
	for (int i = 0; i < 3; i++)
		if (guard_run(c.map, BYTES, read_all, &c) || write(CAUGHT_FD, "", 1) != 1)
			_exit(46);
	read_all(&c);
	_exit(47);
}

TEST(a_handler_that_came_later_does_not_take_what_is_ours)
{
	for (size_t i = 0; i < COUNT(later_ones); i++) {
		int status, caught = 0;
		char who[8];

		snprintf(who, sizeof(who), "%zu", i);
		status = exec_self(who, &caught);
		STORY("%s: status 0x%x", later_ones[i].who, (unsigned)status);
		CHECK_EQ(caught, later_ones[i].caught);
		if (later_ones[i].ends < 0)
			CHECK(WIFSIGNALED(status) && WTERMSIG(status) == -later_ones[i].ends);
		else
			CHECK(WIFEXITED(status) && WEXITSTATUS(status) == later_ones[i].ends);
	}
}

static void raise_and_read(void *context)
{
	raise(SIGBUS);
	read_first_page(context);
}

static void raise_while_armed(struct cut *c)
{
	struct sigaction theirs = {.sa_handler = foreign};

	fresh();
	sigaction(SIGBUS, &theirs, NULL);
	if (!guard_install())
		_exit(44);
	guard_run(c->map, BYTES, raise_and_read, c);
	_exit(48); /* it was swallowed */
}

TEST(a_signal_that_was_raised_meanwhile_is_handed_on)
{
	int status = in_child(raise_while_armed);

	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 42);
}

static sigjmp_buf out_of;

static void jumps_out(int number)
{
	(void)number;
	siglongjmp(out_of, 1);
}

/* A handler below ours or above it that leaves by a jump: it is called at each fault of its own. */
static void jump_at_each(bool above)
{
	struct sigaction theirs = {.sa_handler = jumps_out};
	volatile int jumps = 0;
	struct cut c;

	fresh();
	if (!above)
		sigaction(SIGBUS, &theirs, NULL);
	if (!guard_install())
		_exit(44);
	if (above)
		sigaction(SIGBUS, &theirs, NULL);
	for (unsigned i = 0; i < 2 * GUARD_LOOK_EVERY; i++) /* ours goes above it */
		guard_ask();
	cut_make(&c);
	unlink(c.path.text);
	for (int i = 0; i < 3; i++) {
		if (guard_run(c.map, BYTES, read_all, &c))
			_exit(45);
		if (sigsetjmp(out_of, 1))
			jumps++;
		else
			read_all(&c);
	}
	_exit(jumps == 3 ? 42 : 46);
}

static void second_after(const char *who)
{
	struct sigaction theirs = {.sa_handler = SIG_DFL};
	struct cut c;

	if (!strcmp(who, "later"))
		first_of_two();
	if (!strncmp(who, "jumps", 5))
		jump_at_each(!strcmp(who, "jumps, above"));
	if (!strcmp(who, "handler"))
		theirs.sa_handler = foreign;
	if (!strcmp(who, "info")) {
		theirs.sa_sigaction = foreign_info;
		theirs.sa_flags = SA_SIGINFO;
	}
	if (!strcmp(who, "ignore"))
		theirs.sa_handler = SIG_IGN;
	sigaction(SIGBUS, &theirs, NULL);
	if (!guard_install())
		_exit(44);
	cut_make(&c);
	unlink(c.path.text);
	if (guard_run(c.map, BYTES, read_all, &c))
		_exit(45); /* ours must still work */
	if (!strcmp(who, "kill")) {
		raise(SIGBUS);
		_exit(46);
	}
	read_all(&c);
	_exit(47);
}

TEST(other_handlers_are_got_along_with)
{
	static const char *const with_code[] = {"handler", "info", "later", "jumps", "jumps, above"},
				 *const deadly[] = {"default", "ignore", "kill"};

	for (size_t i = 0; i < COUNT(with_code); i++) {
		int status = exec_self(with_code[i], NULL);

		STORY("%s: status 0x%x", with_code[i], (unsigned)status);
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 42);
	}
	for (size_t i = 0; i < COUNT(deadly); i++) {
		int status = exec_self(deadly[i], NULL);

		STORY("%s: status 0x%x", deadly[i], (unsigned)status);
		CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
	}
}

int main(int argc, char **argv)
{
	const char *who = getenv("T_GUARD");

	if (who && *who >= '0' && *who <= '9')
		read_under_another((size_t)atoi(who));
	if (who)
		second_after(who);
	return test_main(argc, argv);
}
