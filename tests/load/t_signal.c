/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_signal.c - signals and a loader's threads: a shard that is cut while it is read, and signals
 * that are the program's
 *
 * What may end the process is tried in a child.  The controls are a dataset without the guard, and
 * threads that are started with the program's own mask.
 *
 * LDFLAGS: -Wl,--wrap=pthread_sigmask,--wrap=pthread_create
 */
#include <errno.h>
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

static bool no_threads; /* the system refuses them, so the caller does the work */

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *context);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *context);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *context)
{
	return no_threads ? EAGAIN : __real_pthread_create(thread, attr, run, context);
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

static uint32_t guard, threads, way, check;
static uint64_t cut_at;

/* All records once, so that all are hashed; then to the start. */
static int warm_up(struct shard_loader *l)
{
	struct shard_batch b;
	int rc;

	while (!(rc = shard_loader_next(l, &b, NULL)))
		shard_loader_release(l, &b, NULL);
	return rc == SHARD_END ? shard_loader_seek(l, 0, 0, NULL) : rc;
}

/*
 * The middle shard loses its records while they are read.  Exits with 0 if that was an error, and
 * the rest went on.
 */
static int cut_a_shard(void)
{
	const struct shard_dataset_options d = {.size = sizeof(d), .guard = guard, .check = check};
	sigset_t bus;
	struct shard_error err = {.message = ""};
	struct shard_loader *l;
	struct shard_batch b;
	struct path p;
	int rc;

	reopen(&d);
	wanted_open(&wanted, (struct shard_loader_options){.batch_records = 10,
							   .slot_count = 2,
							   .thread_count = threads,
							   .order.shuffle = SHARD_SEQUENTIAL,
							   .path = way});
	l = loader_of(&wanted);
	if (check == SHARD_CHECK_FIRST && warm_up(l))
		return 8;
	for (int i = 0; i < 4; i++) { /* the last of them opened the middle shard */
		if (wanted_next(&wanted, l, &b) || shard_loader_release(l, &b, NULL))
			return 2;
	}
	if (!no_threads)
		wait_until_full(l); /* two batches are ahead, and nobody reads */
	sigemptyset(&bus);
	sigaddset(&bus, SIGBUS);
	if (no_threads && sigprocmask(SIG_BLOCK, &bus, NULL)) /* later than this thread's first read */
		return 9;
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

	guard = SHARD_GUARD_ON;
	check = SHARD_CHECK_ALWAYS; /* hashes are needed */
	for (way = SHARD_PATH_AUTO; way <= SHARD_PATH_PREAD; way++)
		for (uint32_t type = SHARD_SECTION_DATA; type <= SHARD_SECTION_HASH; type++)
			for (threads = 0; threads <= 3; threads++) {
				STORY("%u threads, path %u, cut at section %u", threads, way, type);
				open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
				cut_at = section_of(tmp(&p, "load.%d/1.shard", (int)getpid()), type, 0).offset;
				no_threads = !threads;
				CHECK_EQ(in_child(cut_a_shard), 0);
			}
	no_threads = false;
	STORY("without guard");
	guard = SHARD_GUARD_OFF;
	way = SHARD_PATH_MAP;
	CHECK(in_child(cut_a_shard) != 0); /* SIGBUS, or what a sanitizer makes of it */
}

/* These rows take the loader's shortest way, a block of them under one guard. */
TEST(records_that_were_checked_before_are_guarded_too)
{
	static const uint32_t edges[] = {4, 20, 40}; /* 48, 1,200 and 4,800 bytes a record */
	struct path p;

	guard = SHARD_GUARD_ON;
	check = SHARD_CHECK_FIRST;
	threads = 2;
	for (size_t i = 0; i < COUNT(edges); i++)
		for (way = SHARD_PATH_AUTO; way <= SHARD_PATH_PREAD; way++)
			for (uint32_t group = 0; group < 2; group++) {
				STORY("%u pixels, path %u, cut at group %u", edges[i], way, group);
				open_photos(edges[i], SHARD_RAW, sizes, COUNT(sizes));
				cut_at =
					section_of(tmp(&p, "load.%d/1.shard", (int)getpid()), SHARD_SECTION_DATA, group)
						.offset;
				CHECK_EQ(in_child(cut_a_shard), 0);
			}
	STORY("without guard");
	guard = SHARD_GUARD_OFF;
	way = SHARD_PATH_MAP;
	CHECK(in_child(cut_a_shard) != 0);
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
	guard = SHARD_GUARD_OFF;
	check = SHARD_CHECK_ALWAYS;
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
