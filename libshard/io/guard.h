/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guard.h - a map that was cut short or cannot be read is an error, not the end of the process
 *
 * The kernel answers a load from such a page with SIGBUS.  A guarded call arms the range that it
 * will read, for this thread; the handler jumps back if the fault lies in it, and hands every other
 * SIGBUS to the handler that was there before.
 */
#ifndef SHARD_IO_GUARD_H
#define SHARD_IO_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Put the handler in place, once per process.  False if the system refuses.  If somebody puts
 * another handler in its place later, guard_ask() puts ours above that one.
 */
bool guard_install(void);

/*
 * Run work(context), which reads [begin, begin + bytes) and may neither take locks nor allocate.
 * False if it was cut off by a fault in that range.  guard_install() came before.  Calls do not
 * nest.
 *
 * No handler runs in a thread that blocks SIGBUS: the kernel ends the process.  So SIGBUS is
 * unblocked while work runs, and blocked again.  Whether this thread blocks it is asked once, at
 * its first call in this process, because asking takes longer than copying a small record.
 */
bool guard_run(const void *begin, size_t bytes, void (*work)(void *context), void *context);

/*
 * The same for work that reads several ranges: is_ours() says whether an address lies in one of
 * them.  It runs in the handler, so it may only look at memory.
 */
bool guard_run_where(bool (*is_ours)(void *context, uintptr_t at), void (*work)(void *context), void *context);

/*
 * Ask again whether this thread blocks SIGBUS.  One system call.  The thread's first time, and each
 * time after so many, this also looks whether our handler is there, which takes longer.
 */
#define GUARD_LOOK_EVERY 16u
void guard_ask(void);
/* For short work: both, at the first call of a thread and at each call after so many. */
void guard_ask_at_times(void);

#endif
