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
#include <stdint.h>
#include <ucontext.h>

static _Thread_local struct {
	sigjmp_buf back;
	bool (*volatile is_ours)(void *context, uintptr_t at); /* NULL: not armed */
	void *volatile context;
	bool asked, blocked; /* does this thread block SIGBUS? */
} armed;

static struct sigaction before;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool installed;

static void on_bus(int number, siginfo_t *info, void *machine)
{
	uintptr_t at = (uintptr_t)info->si_addr;
	bool sent = info->si_code <= 0; /* by a process: there is no address, and no load that will be repeated */

	if (!sent && armed.is_ours && armed.is_ours(armed.context, at)) {
		const ucontext_t *there = machine;

		armed.is_ours = NULL;
		/* a handler before us may have blocked what it likes */
		pthread_sigmask(SIG_SETMASK, &there->uc_sigmask, NULL);
		siglongjmp(armed.back, 1);
	}
	if (before.sa_flags & SA_SIGINFO) {
		before.sa_sigaction(number, info, machine);
	} else if (before.sa_handler == SIG_DFL || before.sa_handler == SIG_IGN) {
		/* the load is repeated and meets the default, with a core of the right place */
		sigaction(SIGBUS, &before, NULL);
		if (sent)
			raise(number);
	} else {
		before.sa_handler(number);
	}
}

static void install(void)
{
	struct sigaction ours = {.sa_sigaction = on_bus, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};

	sigemptyset(&ours.sa_mask);
	installed = !sigaction(SIGBUS, &ours, &before);
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
	armed.asked = true;
}

static bool run(bool (*is_ours)(void *context, uintptr_t at), void *range, void (*work)(void *context), void *context)
{
	if (sigsetjmp(armed.back, 0))
		return false;
	armed.context = range;
	armed.is_ours = is_ours;
	work(context);
	armed.is_ours = NULL;
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
