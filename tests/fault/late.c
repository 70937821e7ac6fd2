/* SPDX-License-Identifier: Apache-2.0 */
/*
 * late.c - threads that come late, as on a busy machine; preloaded by `make check-late`
 *
 * Whoever takes or gives a lock, wakes others, opens a file, or changes a folder or a disk does
 * nothing for a while now and then, and so do threads before their first step.  A thread keeps its pace for some hundred calls, and loses at
 * most three quarters of its time.  A test whose verdict depends on who is first fails sooner or
 * later.  Time is spent and not slept, since sleeping is a system call, which decoders in a sandbox
 * may not make.
 *
 * Draws begin with the clock: no seed could repeat which thread came when.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "libshard/base/clock.h"
#include "tests/pack/prng.h"

#define CALLS_AT_A_PACE 500

static const struct pace {
	uint64_t one_in, us_below; /* one call in so many takes up to so long */
} paces[] = {{100000, 200}, {100000, 200}, {300, 5000}, {50, 5000}, {10, 200}};

static const struct pace file_pace = {20, 50000}; /* such calls are rare, and disks are slow */
static const struct pace begin_pace = {2, 30000};

static __thread uint64_t begin_ns, draws, calls, lost_ns;
static __thread struct pace pace;

static uint64_t draw(uint64_t below)
{
	if (!begin_ns)
		begin_ns = clock_now_ns();
	return prng_at(begin_ns, draws++) % below;
}

static void come_late_at(const struct pace *p)
{
	uint64_t late_ns, until_ns;

	if (draw(p->one_in))
		return;
	late_ns = 1000 * draw(p->us_below);
	until_ns = clock_now_ns() + late_ns;
	if (p != &begin_pace && 4 * (lost_ns + late_ns) > 3 * (until_ns - begin_ns))
		return;
	lost_ns += late_ns;
	while (clock_now_ns() < until_ns)
		;
}

static void come_late(void)
{
	if (calls++ % CALLS_AT_A_PACE == 0)
		pace = paces[draw(sizeof(paces) / sizeof(*paces))];
	come_late_at(&pace);
}

static void file_late(void)
{
	come_late_at(&file_pace);
}

/* Before the C library's function of this name, and behind it. */
#define LATE(late_, name_, parameters_, ...)                                            \
	int name_ parameters_                                                           \
	{                                                                               \
		static int(*_Atomic real) parameters_;                                  \
		int rc;                                                                 \
                                                                                        \
		if (!real)                                                              \
			real = (int(*) parameters_)(uintptr_t)dlsym(RTLD_NEXT, #name_); \
		late_();                                                                \
		rc = real(__VA_ARGS__);                                                 \
		late_();                                                                \
		return rc;                                                              \
	}
LATE(come_late, pthread_mutex_lock, (pthread_mutex_t * m), m)
LATE(come_late, pthread_mutex_unlock, (pthread_mutex_t * m), m)
LATE(come_late, pthread_cond_signal, (pthread_cond_t * c), c)
LATE(come_late, pthread_cond_broadcast, (pthread_cond_t * c), c)
LATE(file_late, fsync, (int fd), fd)
LATE(file_late, fdatasync, (int fd), fd)
LATE(file_late, unlinkat, (int dir_fd, const char *path, int flags), dir_fd, path, flags)
LATE(file_late, renameat, (int from_fd, const char *from, int to_fd, const char *to), from_fd, from, to_fd, to)
LATE(file_late, renameat2, (int from_fd, const char *from, int to_fd, const char *to, unsigned flags), from_fd, from,
     to_fd, to, flags)
LATE(file_late, linkat, (int from_fd, const char *from, int to_fd, const char *to, int flags), from_fd, from, to_fd, to,
     flags)

#define LATE_OPEN(name_)                                                                                  \
	int name_(int dir_fd, const char *path, int flags, ...)                                           \
	{                                                                                                 \
		static int (*_Atomic real)(int, const char *, int, ...);                                  \
		mode_t mode = 0;                                                                          \
		va_list ap;                                                                               \
		int fd;                                                                                   \
                                                                                                          \
		va_start(ap, flags);                                                                      \
		if (flags & (O_CREAT | O_TMPFILE))                                                        \
			mode = va_arg(ap, mode_t);                                                        \
		va_end(ap);                                                                               \
		if (!real)                                                                                \
			real = (int (*)(int, const char *, int, ...))(uintptr_t)dlsym(RTLD_NEXT, #name_); \
		file_late();                                                                              \
		fd = real(dir_fd, path, flags, mode);                                                     \
		file_late();                                                                              \
		return fd;                                                                                \
	}
LATE_OPEN(openat)
LATE_OPEN(openat64)

struct thread {
	void *(*function)(void *);
	void *argument;
};

static void *begin_late(void *argument)
{
	struct thread t = *(struct thread *)argument;

	free(argument);
	come_late_at(&begin_pace);
	return t.function(t.argument);
}

int pthread_create(pthread_t *id, const pthread_attr_t *how, void *(*function)(void *), void *argument)
{
	static int (*_Atomic real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
	struct thread *t;
	int rc;

	if (!real)
		real = (int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))(uintptr_t)dlsym(
			RTLD_NEXT, "pthread_create");
	t = malloc(sizeof(*t));
	if (!t)
		return EAGAIN;
	*t = (struct thread){function, argument};
	rc = real(id, how, begin_late, t);
	if (rc)
		free(t);
	return rc;
}
