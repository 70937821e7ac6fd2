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
	volatile uintptr_t begin, end; /* empty: not armed */
} armed;

static struct sigaction before;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool installed;

static void on_bus(int number, siginfo_t *info, void *machine)
{
	uintptr_t at = (uintptr_t)info->si_addr;
	bool sent = info->si_code <= 0; /* by a process: there is no address, and no load that will be repeated */

	if (!sent && at >= armed.begin && at < armed.end) {
		const ucontext_t *there = machine;

		armed.begin = armed.end = 0;
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

bool guard_run(const void *begin, size_t bytes, void (*work)(void *context), void *context)
{
	uintptr_t first = (uintptr_t)begin & ~(uintptr_t)4095; /* a fault may be told by its page */

	if (sigsetjmp(armed.back, 0)) {
		/*
		 * a layer between us and the kernel may not have kept SA_NODEFER; a sanitizer does
		 * not
		 */
		sigset_t bus;

		sigemptyset(&bus);
		sigaddset(&bus, SIGBUS);
		pthread_sigmask(SIG_UNBLOCK, &bus, NULL);
		return false;
	}
	armed.end = (uintptr_t)begin + bytes;
	armed.begin = first;
	work(context);
	armed.begin = armed.end = 0;
	return true;
}
