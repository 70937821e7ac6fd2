/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpus.h - how many CPUs there are to work with
 */
#ifndef SHARD_COMMON_CPUS_H
#define SHARD_COMMON_CPUS_H

/* CPUs that this process may run on; 1 if the system does not say. */
unsigned cpus_allowed(void);

#endif
