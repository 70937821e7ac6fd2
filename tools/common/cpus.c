/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpus.c - how many CPUs there are to work with
 */
#include "tools/common/cpus.h"

#include <sched.h>

unsigned cpus_allowed(void)
{
	cpu_set_t set;
	int count = sched_getaffinity(0, sizeof(set), &set) ? 0 : CPU_COUNT(&set);

	return count < 1 ? 1 : (unsigned)count;
}
