/* SPDX-License-Identifier: Apache-2.0 */
/*
 * available_memory.h - how much memory this process can still have
 *
 * The tools link this file, too.
 */
#ifndef SHARD_IO_AVAILABLE_MEMORY_H
#define SHARD_IO_AVAILABLE_MEMORY_H

#include <stdint.h>

/*
 * The least of what the system has available and of what each limit of this process's control group
 * and of all its parents leaves, in versions 1 and 2.  Page cache that can be dropped counts as
 * available.  UINT64_MAX if nobody says.
 */
uint64_t available_memory_bytes(void);

#endif
