/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guard.c - see guard.h
 *
 * SA_NODEFER leaves SIGBUS unblocked in the handler, so that jumping out needs no system call to
 * restore the mask, and arming costs one sigsetjmp without one.
 */
#include "libshard/io/guard.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <ucontext.h>
#include <unistd.h>

#define HANDLERS_MAX 16u

static _Thread_local struct {
	sigjmp_buf back;
	bool (*volatile is_ours)(void *context, uintptr_t at); /* NULL: not armed */
	void *volatile context;
	bool blocked;		     /* does this thread block SIGBUS? */
	unsigned asked;		     /* how often, in this process */
	volatile sig_atomic_t owed;  /* a signal came by raise() while work ran */
	volatile sig_atomic_t depth; /* handlers that are under way for one signal */
} armed;

/* The handlers that ours was put above, oldest first: const as soon as they are counted. */
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

/*
 * A handler that ours was put above may hand the signal on to ours again, as to the one that was
 * there before it.  Then it is the turn of the next older one.
 */
static void on_bus(int number, siginfo_t *info, void *machine)
{
	static const struct sigaction none = {.sa_handler = SIG_DFL};
	bool sent = info->si_code <= 0; /* by a process: there is no address, and no load that will be repeated */
	unsigned depth = (unsigned)armed.depth, count = atomic_load(&before_count);

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
	armed.depth++;
	hand_on(depth < count ? &before[count - 1 - depth] : &none, number, info, machine);
	armed.depth = (sig_atomic_t)depth;
}

/* Put our handler above all others, if it is not there.  Not twice at a time. */
static bool be_on_top(void)
{
	struct sigaction ours = {.sa_sigaction = on_bus, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK}, now;
	unsigned count;
	bool good;

	if (sigaction(SIGBUS, NULL, &now))
		return false;
	if ((now.sa_flags & SA_SIGINFO && now.sa_sigaction == on_bus) || atomic_flag_test_and_set(&installing))
		return true;
	count = atomic_load(&before_count);
	good = count < HANDLERS_MAX;
	if (good) {
		before[count] = now; /* before it may be needed */
		atomic_store(&before_count, count + 1);
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
	armed.asked = 0;
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

void guard_ask(void)
{
	sigset_t now;

	sigemptyset(&now);
	pthread_sigmask(SIG_BLOCK, NULL, &now);
	armed.blocked = sigismember(&now, SIGBUS) == 1;
	if (armed.asked++ % GUARD_LOOK_EVERY == 0 && installed)
		be_on_top();
}

static bool run(bool (*is_ours)(void *context, uintptr_t at), void *range, void (*work)(void *context), void *context)
{
	armed.depth = armed.owed = 0;
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
