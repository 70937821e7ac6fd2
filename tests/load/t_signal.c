/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_signal.c - signals and a loader's threads: a shard that is cut while it is read, and signals
 * that are the program's
 *
 * What may end the process is tried in a child.  The controls are a dataset without the guard, and
 * threads that are started with the program's own mask.
 *
 * LDFLAGS: -Wl,--wrap=pthread_sigmask
 */
#include <signal.h>

#include "format/shard_format.h"
#include "tests/child.h"
#include "tests/load/batches.h"

static const uint64_t sizes[] = {30, 30, 30};
static struct wanted wanted;

static bool mask_nothing; /* the control: threads take what the program would have taken */

int __real_pthread_sigmask(int how, const sigset_t *set, sigset_t *old);
int __wrap_pthread_sigmask(int how, const sigset_t *set, sigset_t *old);

int __wrap_pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
	return __real_pthread_sigmask(how, mask_nothing && how == SIG_SETMASK ? NULL : set, old);
}

/* How a child ended that ran this. */
static int in_child(int (*story)(void))
{
	pid_t pid;

	if (child_begin(&pid, 120))
		_exit(story());
	return child_end(pid);
}

/* ---- a shard that is cut ---- */

static uint32_t guard, threads, way;
static uint64_t cut_at;

/*
 * The middle shard loses its records while they are read.  Exits with 0 if that was an error, and
 * the rest went on.
 */
static int cut_a_shard(void)
{
	/* hashes are needed */
	const struct shard_dataset_options d = {.size = sizeof(d), .guard = guard, .check = SHARD_CHECK_ALWAYS};
	struct shard_error err = {.message = ""};
	struct shard_loader *l;
	struct shard_batch b;
	struct path p;
	int rc;

	reopen(&d);
	wanted_open(&wanted, (struct shard_loader_options){.batch_records = 10,
							   .slot_count = 2,
							   .thread_count = threads,
							   .shuffle = SHARD_SEQUENTIAL,
							   .path = way});
	l = loader_of(&wanted);
	for (int i = 0; i < 4; i++) { /* the last of them opened the middle shard */
		if (wanted_next(&wanted, l, &b) || shard_loader_release(l, &b, NULL))
			return 2;
	}
	wait_until_full(l); /* two batches are ahead, and nobody reads */
	if (truncate(tmp(&p, "load.%d/1.shard", (int)getppid()), (off_t)cut_at))
		return 3;
	for (int i = 0; i < 3; i++) {
		rc = shard_loader_next(l, &b, &err);
		if (rc)
			break;
		shard_loader_release(l, &b, NULL);
		if (shard_loader_seek(l, 0, 30, NULL)) /* again, from what is there no more */
			return 4;
	}
	if (rc != SHARD_E_IO || !strstr(err.message, "1.shard: "))
		return 5;
	if (shard_loader_seek(l, 0, 60, NULL))
		return 6;
	wanted_seek(&wanted, 0, 60);
	if (wanted_next(&wanted, l, &b) || wanted.complaint[0])
		return 7;
	close_loader(l);
	return 0;
}

TEST(a_shard_that_is_cut_is_an_error_with_guard)
{
	struct path p;

	guard = 1;
	for (way = SHARD_PATH_AUTO; way <= SHARD_PATH_PREAD; way++)
		for (uint32_t type = SHARD_SECTION_DATA; type <= SHARD_SECTION_HASH; type++)
			for (threads = 1; threads <= 3; threads++) {
				STORY("%u threads, path %u, cut at section %u", threads, way, type);
				open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
				cut_at = section_of(tmp(&p, "load.%d/1.shard", (int)getpid()), type, 0).offset;
				CHECK_EQ(in_child(cut_a_shard), 0);
			}
	STORY("without guard");
	guard = 0;
	way = SHARD_PATH_MAP;
	CHECK(in_child(cut_a_shard) != 0); /* SIGBUS, or what a sanitizer makes of it */
}

/* ---- the program's own handlers ---- */

static void leave(int number)
{
	_exit(number == SIGBUS ? 42 : 43);
}

/* A library that prints a trace when the program crashes, for example. */
static int crash_with_a_handler(void)
{
	signal(SIGBUS, leave);
	return cut_a_shard();
}

TEST(a_crash_in_a_thread_reaches_the_programs_handler)
{
	int status;

	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	guard = 0;
	threads = 2;
	cut_at = 4096;
	way = SHARD_PATH_MAP;
	status = in_child(crash_with_a_handler);
	CHECK(WIFEXITED(status));
	CHECK_EQ(WEXITSTATUS(status), 42);
}

/* ---- signals to the process ---- */

static volatile sig_atomic_t handled;

static void count(int number)
{
	(void)number;
	handled++;
}

/*
 * The caller holds it back.  Nobody else may take it.  Exits with the number of times that it was
 * taken nevertheless.
 */
static int hold_a_signal_back(void)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD, SIGPROF, SIGWINCH, SIGQUIT};
	struct shard_loader *l;
	struct shard_batch b;
	sigset_t some, pending;

	sigemptyset(&some);
	for (size_t i = 0; i < COUNT(signals); i++)
		signal(signals[i], count);
	wanted_open(&wanted, (struct shard_loader_options){.batch_records = 10, .thread_count = 3});
	l = loader_of(&wanted);
	if (wanted_next(&wanted, l, &b))
		return 100;
	for (size_t i = 0; i < COUNT(signals); i++)
		sigaddset(&some, signals[i]);
	sigprocmask(SIG_BLOCK, &some, NULL);
	for (size_t i = 0; i < COUNT(signals); i++)
		kill(getpid(), signals[i]);
	usleep(20000);
	sigpending(&pending);
	for (size_t i = 0; i < COUNT(signals); i++)
		if (!sigismember(&pending, signals[i]) && !handled)
			return 101;
	close_loader(l);
	return handled;
}

TEST(signals_are_the_programs)
{
	open_photos(8, SHARD_RAW, sizes, COUNT(sizes));
	CHECK_EQ(in_child(hold_a_signal_back), 0);
	STORY("threads with the program's mask");
	mask_nothing = true;
	CHECK(in_child(hold_a_signal_back) != 0);
	mask_nothing = false;
}

TEST_MAIN()
