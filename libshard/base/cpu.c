/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpu.c - CPUID, asked once
 *
 * A virtual machine answers it slowly, so the answer is kept.  Threads that ask at the same time
 * keep the same one.
 */
#include "libshard/base/cpu.h"

#if defined(__x86_64__)

#include <cpuid.h>
#include <stdatomic.h>
#include <stdint.h>

#define ASKED  1u
#define AVX2   2u
#define AVX512 4u
#define SHA    8u
#define CRC32  16u

/* What XGETBV says the system saves when it changes threads: bits of XCR0. */
#define SAVES_AVX    0x06u
#define SAVES_AVX512 0xe6u

static unsigned ask(void)
{
	uint32_t a, b, c, d, basic, saved = 0, high;
	unsigned found = ASKED;

	if (!__get_cpuid(1, &a, &b, &basic, &d))
		return found;
	if (basic & bit_SSE4_2)
		found |= CRC32;
	if (basic & bit_OSXSAVE)
		__asm__("xgetbv" : "=a"(saved), "=d"(high) : "c"(0));
	if (!__get_cpuid_count(7, 0, &a, &b, &c, &d))
		return found;
	if (b & bit_SHA && basic & bit_SSSE3 && basic & bit_SSE4_1)
		found |= SHA; /* in registers of SSE, which each system for x86-64 saves */
	if (b & bit_AVX2 && (saved & SAVES_AVX) == SAVES_AVX)
		found |= AVX2;
	if (b & bit_AVX512F && (saved & SAVES_AVX512) == SAVES_AVX512)
		found |= AVX512;
	return found;
}

static bool has(unsigned what)
{
	static atomic_uint known;
	unsigned found = atomic_load_explicit(&known, memory_order_relaxed);

	if (!found) {
		found = ask();
		atomic_store_explicit(&known, found, memory_order_relaxed);
	}
	return found & what;
}

bool cpu_has_avx2(void)
{
	return has(AVX2);
}

bool cpu_has_avx512f(void)
{
	return has(AVX512);
}

bool cpu_has_sha(void)
{
	return has(SHA);
}

bool cpu_has_crc32(void)
{
	return has(CRC32);
}

#else

bool cpu_has_avx2(void)
{
	return false;
}

bool cpu_has_avx512f(void)
{
	return false;
}

bool cpu_has_sha(void)
{
	return false;
}

bool cpu_has_crc32(void)
{
	return false;
}

#endif
