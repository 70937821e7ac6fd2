/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpu.h - which vectors this CPU has, and the system saves
 *
 * __builtin_cpu_supports() asks the compiler's runtime.  That of Zig, which builds the wheel, always
 * says no: all would be right, and slow.
 */
#ifndef SHARD_BASE_CPU_H
#define SHARD_BASE_CPU_H

#include <stdbool.h>

/* False on other machines than x86-64. */
bool cpu_has_avx2(void);
bool cpu_has_avx512f(void);

#endif
