/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signals.c - Ctrl-C asks a tool to stop
 *
 * The handlers use lock-free atomics, clock_gettime(), sigaction(), alarm() and _exit() only, all
 * of which a handler may.  The work asks interrupted() often enough, except in a call that waits
 * for somebody else: a read of stdin, the open of a FIFO, a write to a pipe that nobody reads.  So
 * the system does not restart calls that one of these signals interrupts: they fail with EINTR, and
 * fail() knows why.  A signal can also come just before such a call.  Therefore an alarm follows,
 * again and again; its pauses grow, so that a long call of another kind gets done between two.
 */
#include "tools/common/signals.h"

#include <assert.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include "libshard/base/clock.h"
#include "tools/common/message.h"

/*
 * timeout(1) and some shells signal the process and then its group, so one request can
 * arrive twice.  A person needs longer than this to press Ctrl-C again.
 */
#define SAME_REQUEST_NS INT64_C(250000000)

static_assert(ATOMIC_LLONG_LOCK_FREE == 2 && sizeof(long long) == sizeof(int64_t), "used in a signal handler");

static _Atomic int64_t first_signal_ns; /* 0: none came */

static void on_alarm(int number)
{
	static atomic_uint count; /* used by one signal, which is blocked meanwhile */

	(void)number;
	alarm(1 + atomic_fetch_add(&count, 1) / 4);
}

static void on_signal(int number)
{
	const struct sigaction again = {.sa_handler = on_alarm};
	int64_t now_ns = (int64_t)clock_now_ns() + 1; /* never the 0 that means none */
	int64_t first_ns = 0;

	if (atomic_compare_exchange_strong(&first_signal_ns, &first_ns, now_ns)) {
		sigaction(SIGALRM, &again, NULL);
		on_alarm(SIGALRM);
	} else if (number != SIGHUP && now_ns - first_ns > SAME_REQUEST_NS) {
		_exit(EXIT_INTERRUPTED);
	}
}

/* Stop at this signal, unless it was ignored from outside. */
static void stop_at(int number, const struct sigaction *stop)
{
	struct sigaction old;

	if (sigaction(number, NULL, &old) == 0 && old.sa_handler != SIG_IGN)
		sigaction(number, stop, NULL);
}

void signals_start(void)
{
	struct sigaction stop = {.sa_handler = on_signal};
	struct sigaction ignore = {.sa_handler = SIG_IGN};

	sigemptyset(&stop.sa_mask);
	sigaddset(&stop.sa_mask, SIGINT);
	sigaddset(&stop.sa_mask, SIGTERM);
	sigaddset(&stop.sa_mask, SIGHUP);
	sigemptyset(&ignore.sa_mask);
	sigaction(SIGTERM, &stop, NULL);
	stop_at(SIGINT, &stop);
	stop_at(SIGHUP, &stop);
	sigaction(SIGPIPE, &ignore, NULL);
	sigaction(SIGXFSZ, &ignore, NULL);
}

static _Atomic int64_t first_grace_ns; /* 0: none came */

static void on_grace(int number)
{
	int64_t now_ns = (int64_t)clock_now_ns() + 1;
	int64_t first_ns = 0;

	if (!atomic_compare_exchange_strong(&first_grace_ns, &first_ns, now_ns) && number == SIGTERM &&
	    now_ns - first_ns > SAME_REQUEST_NS)
		on_signal(number);
}

void signals_grace(bool term)
{
	struct sigaction grace = {.sa_handler = on_grace, .sa_flags = SA_RESTART};

	sigemptyset(&grace.sa_mask);
	sigaction(SIGUSR1, &grace, NULL);
	if (term)
		sigaction(SIGTERM, &grace, NULL);
}

bool asked_to_stop(void)
{
	return atomic_load_explicit(&first_grace_ns, memory_order_relaxed) != 0;
}

bool interrupted(void)
{
	return atomic_load_explicit(&first_signal_ns, memory_order_relaxed) != 0;
}
