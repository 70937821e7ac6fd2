/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandbox_filter.h - which calls of the system a locked-up process may make
 */
#ifndef SHARD_SANDBOX_SANDBOX_FILTER_H
#define SHARD_SANDBOX_SANDBOX_FILTER_H

#include <stdbool.h>

/*
 * From here on this thread can compute, take and give back memory that is not executable, read and
 * write `fd`, and end.  Any other call raises SIGSYS.  False with errno if the system refuses the
 * filter, and with ENOSYS on a kind of processor that this file has no numbers for.
 */
bool sandbox_filter_load(int fd);

/* The name of a call, or NULL. */
const char *sandbox_filter_name(unsigned number);

#endif
