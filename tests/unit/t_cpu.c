/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_cpu.c - what we ask the CPU is what gcc's runtime asks it
 */
#include "libshard/base/cpu.h"
#include "tests/test.h"

TEST(the_compilers_runtime_says_the_same)
{
#if defined(__x86_64__)
	for (int turn = 0; turn < 2; turn++) { /* asked, and kept */
		CHECK_EQ(cpu_has_avx2(), !!__builtin_cpu_supports("avx2"));
		CHECK_EQ(cpu_has_avx512f(), !!__builtin_cpu_supports("avx512f"));
	}
#else
	CHECK(!cpu_has_avx2() && !cpu_has_avx512f());
#endif
}

TEST_MAIN()
