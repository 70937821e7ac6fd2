/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signals.h - Ctrl-C asks a tool to stop; the tool stops at a clean place
 *
 * SIGINT, SIGTERM and SIGHUP set a flag, which long work looks at between records.  Calls that wait
 * for somebody else fail with EINTR from then on.  The work removes its temporary files and returns
 * EXIT_INTERRUPTED.  A second signal ends the process at once with that code.  SIGHUP never does:
 * when a terminal is closed, the kernel and the shell both send it.  SIGPIPE and SIGXFSZ are ignored:
 * the write that met them fails with EPIPE or EFBIG and is reported like any other.
 */
#ifndef SHARD_COMMON_SIGNALS_H
#define SHARD_COMMON_SIGNALS_H

#include <stdbool.h>

/*
 * Called once by main, before threads.  A SIGHUP or SIGINT that was ignored from outside (`nohup`,
 * `&` in a script) stays so.
 */
void signals_start(void);

/* True once one of these signals came.  Any thread may ask; it costs a load. */
bool interrupted(void);

/*
 * From now on SIGUSR1 asks to stop at a place from which little is lost, and not at once; and so
 * does the first SIGTERM if `term`.  A second one stops as above.  Called once, before threads.
 */
void signals_grace(bool term);

/* True once one of these came. */
bool asked_to_stop(void);

#endif
