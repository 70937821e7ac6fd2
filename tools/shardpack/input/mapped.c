/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mapped.c - the signal that comes for bytes that a mapped file does not have, as an answer
 *
 * SIGBUS comes in the thread that reads.  Its handler jumps out of the copy, and does nothing else.
 * A signal that comes elsewhere goes to the handler that was there before, such as the library's.
 */
#include "tools/shardpack/input/input.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct sigaction before;			  /* const after once */
static bool catches;				  /* const after once */
static _Thread_local sigjmp_buf *volatile out_of; /* the copy that this thread is in; NULL: none */

static void on_bus(int number, siginfo_t *info, void *context)
{
	const ucontext_t *there = context;

	if (out_of) { /* with the signals that were blocked there */
		pthread_sigmask(SIG_SETMASK, &there->uc_sigmask, NULL);
		siglongjmp(*out_of, 1);
	}
	if (before.sa_flags & SA_SIGINFO)
		before.sa_sigaction(number, info, context);
	else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
		before.sa_handler(number);
	else
		signal(SIGBUS, SIG_DFL); /* the instruction runs again, and ends the program */
}

static void catch_bus(void)
{
	struct sigaction action = {.sa_sigaction = on_bus, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};

	sigemptyset(&action.sa_mask);
	catches = sigaction(SIGBUS, &action, &before) == 0;
}

const uint8_t *mapped_open(int fd, uint64_t bytes)
{
	void *map;

	pthread_once(&once, catch_bus);
	if (!catches || !bytes || bytes > SIZE_MAX)
		return NULL;
	map = mmap(NULL, (size_t)bytes, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return NULL;
	madvise(map, (size_t)bytes, MADV_RANDOM); /* or the system would read what is around, too */
	return map;
}

void mapped_close(const uint8_t *map, uint64_t bytes)
{
	if (map)
		munmap((void *)(uintptr_t)map, (size_t)bytes);
}

bool mapped_copy(void *out, const uint8_t *from, size_t bytes)
{
	sigjmp_buf here;
	volatile bool whole = false;

	if (!sigsetjmp(here, 0)) {
		out_of = &here;
		atomic_signal_fence(memory_order_seq_cst);
		memcpy(out, from, bytes);
		atomic_signal_fence(memory_order_seq_cst);
		whole = true;
	}
	out_of = NULL;
	return whole;
}
