/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpu.h - which instructions this CPU has, and whether the system saves their registers
 *
 * Nobody else asks CPUID.  __builtin_cpu_supports() asks the compiler's runtime.  That of Zig, which
 * builds the wheel, always says no: all would be right, and slow.
 */
#ifndef SHARD_BASE_CPU_H
#define SHARD_BASE_CPU_H

#include <stdbool.h>

/* False on other machines than x86-64. */
bool cpu_has_avx2(void);
bool cpu_has_avx512f(void);
bool cpu_has_sha(void);	  /* of SHA-256, and SSSE3 and SSE4.1, which the code around them uses */
bool cpu_has_crc32(void); /* of CRC-32C, which came with SSE4.2 */

#endif
