/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guard.c - SIGBUS, turned into an answer for the thread that reads a map
 *
 * SA_NODEFER leaves SIGBUS unblocked in the handler, so that jumping out needs no system call to
 * restore the mask, and arming costs one sigsetjmp without one.
 */
#include "libshard/io/io.h"

#include <assert.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <ucontext.h>
#include <unistd.h>

#define HANDLERS_MAX 8u

static _Thread_local struct {
	sigjmp_buf back;
	bool (*volatile is_ours)(void *context, uintptr_t at); /* NULL: not armed */
	void *volatile context;
	bool blocked;		    /* does this thread block SIGBUS? */
	unsigned asked;		    /* how often, in this process */
	volatile sig_atomic_t owed; /* a signal came by raise() while work ran */
	unsigned brief;		    /* calls of guard_ask_at_times() */
} armed;

/*
 * The handlers that ours was put above, oldest first: const as soon as they are counted.  One that
 * came later may hand a signal on to ours, as to the one that was there before it.  So ours has an
 * entry for each, which knows the handler below it, and no signal goes round in a circle.
 */
static struct sigaction before[HANDLERS_MAX];
static atomic_uint before_count;
static atomic_flag installing = ATOMIC_FLAG_INIT;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool installed; /* const after `once` */

static void hand_on(const struct sigaction *theirs, int number, siginfo_t *info, void *machine)
{
	if (theirs->sa_flags & SA_SIGINFO) {
		theirs->sa_sigaction(number, info, machine);
	} else if (theirs->sa_handler == SIG_DFL || theirs->sa_handler == SIG_IGN) {
		/* the load is repeated and meets the default, with a core of the right place */
		sigaction(SIGBUS, theirs, NULL);
		if (info->si_code <= 0)
			raise(number);
	} else {
		theirs->sa_handler(number);
	}
}

static void on_bus(const struct sigaction *below, int number, siginfo_t *info, void *machine)
{
	bool sent = info->si_code <= 0; /* by a process: there is no address, and no load that will be repeated */

	if (!sent && armed.is_ours && armed.is_ours(armed.context, (uintptr_t)info->si_addr)) {
		const ucontext_t *there = machine;

		armed.is_ours = NULL;
		/* a handler before us may have blocked what it likes */
		pthread_sigmask(SIG_SETMASK, &there->uc_sigmask, NULL);
		siglongjmp(armed.back, 1);
	}
	if (sent && armed.is_ours && info->si_pid == getpid()) {
		/*
		 * Some handlers put back the one before them, and raise the signal again.  The load
		 * is repeated, and tells its address.  Else the signal is handed on after the work.
		 */
		armed.owed = 1;
		return;
	}
	hand_on(below, number, info, machine);
}

#define ENTRY(n_)                                                           \
	static void on_bus_##n_(int number, siginfo_t *info, void *machine) \
	{                                                                   \
		on_bus(&before[n_], number, info, machine);                 \
	}
ENTRY(0)
ENTRY(1)
ENTRY(2)
ENTRY(3)
ENTRY(4)
ENTRY(5)
ENTRY(6)
ENTRY(7)

static void (*const entry[])(int number, siginfo_t *info, void *machine) = {on_bus_0, on_bus_1, on_bus_2, on_bus_3,
									    on_bus_4, on_bus_5, on_bus_6, on_bus_7};

static_assert(sizeof(entry) / sizeof(entry[0]) == HANDLERS_MAX, "an entry for each handler");

static bool is_entry(const struct sigaction *action)
{
	for (unsigned i = 0; i < HANDLERS_MAX; i++)
		if (action->sa_flags & SA_SIGINFO && action->sa_sigaction == entry[i])
			return true;
	return false;
}

/* Put our handler above all others, if it is not there.  One thread at a time does so. */
static bool be_on_top(void)
{
	struct sigaction ours = {.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK}, now;
	unsigned count;
	bool good;

	if (sigaction(SIGBUS, NULL, &now))
		return false;
	if (is_entry(&now) || atomic_flag_test_and_set(&installing))
		return true;
	count = atomic_load(&before_count);
	good = count < HANDLERS_MAX;
	if (good) {
		before[count] = now; /* before it may be needed */
		atomic_store(&before_count, count + 1);
		ours.sa_sigaction = entry[count];
		sigemptyset(&ours.sa_mask);
		good = !sigaction(SIGBUS, &ours, NULL);
	}
	atomic_flag_clear(&installing);
	return good;
}

/* A child may have put a handler in the place of ours, as workers of PyTorch's DataLoader do. */
static void in_child(void)
{
	atomic_flag_clear(&installing);
	armed.asked = armed.brief = 0;
}

static void install(void)
{
	installed = !pthread_atfork(NULL, NULL, in_child) && be_on_top();
}

bool guard_install(void)
{
	pthread_once(&once, install);
	return installed;
}

static void change_mask(int how)
{
	sigset_t bus;

	sigemptyset(&bus);
	sigaddset(&bus, SIGBUS);
	pthread_sigmask(how, &bus, NULL);
}

static void ask(bool look)
{
	sigset_t now;

	sigemptyset(&now);
	pthread_sigmask(SIG_BLOCK, NULL, &now);
	armed.blocked = sigismember(&now, SIGBUS) == 1;
	if (look && installed)
		be_on_top();
}

void guard_ask(void)
{
	ask(armed.asked++ % GUARD_LOOK_EVERY == 0);
}

void guard_ask_at_times(void)
{
	if (armed.brief++ % GUARD_LOOK_EVERY == 0)
		ask(true);
}

static bool run(bool (*is_ours)(void *context, uintptr_t at), void *range, void (*work)(void *context), void *context)
{
	armed.owed = 0;
	if (sigsetjmp(armed.back, 0))
		return false;
	armed.context = range;
	armed.is_ours = is_ours;
	work(context);
	armed.is_ours = NULL;
	if (armed.owed)
		raise(SIGBUS);
	return true;
}

static bool run_unblocked(bool (*is_ours)(void *context, uintptr_t at), void *range, void (*work)(void *context),
			  void *context)
{
	bool whole;

	if (!armed.asked)
		guard_ask();
	if (armed.blocked)
		change_mask(SIG_UNBLOCK);
	whole = run(is_ours, range, work, context);
	/*
	 * a layer between us and the kernel may not have kept SA_NODEFER; a sanitizer does not
	 */
	if (armed.blocked || !whole)
		change_mask(armed.blocked ? SIG_BLOCK : SIG_UNBLOCK);
	return whole;
}

bool guard_run_where(bool (*is_ours)(void *context, uintptr_t at), void (*work)(void *context), void *context)
{
	return run_unblocked(is_ours, context, work, context);
}

struct range {
	uintptr_t begin, end;
};

static bool in_range(void *context, uintptr_t at)
{
	const struct range *range = context;

	return at >= range->begin && at < range->end;
}

bool guard_run(const void *begin, size_t bytes, void (*work)(void *context), void *context)
{
	/* a fault may be told by its page */
	struct range range = {(uintptr_t)begin & ~(uintptr_t)4095, (uintptr_t)begin + bytes};

	return run_unblocked(in_range, &range, work, context);
}
