/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_cpu.c - what we ask the CPU is what gcc's runtime asks it, and what the kernel lists
 */
#include "libshard/base/cpu.h"
#include "tests/test.h"

TEST(the_compilers_runtime_says_the_same)
{
#if defined(__x86_64__)
	for (int turn = 0; turn < 2; turn++) { /* asked, and kept */
		CHECK_EQ(cpu_has_avx2(), !!__builtin_cpu_supports("avx2"));
		CHECK_EQ(cpu_has_avx512f(), !!__builtin_cpu_supports("avx512f"));
		CHECK_EQ(cpu_has_crc32(), !!__builtin_cpu_supports("sse4.2"));
	}
#else
	CHECK(!cpu_has_avx2() && !cpu_has_avx512f() && !cpu_has_sha() && !cpu_has_crc32());
#endif
}

#if defined(__x86_64__)
/* gcc 12 cannot be asked for SHA.  The kernel lists all four under names of its own. */
TEST(the_kernel_says_the_same)
{
	static char line[8192];
	FILE *f = fopen("/proc/cpuinfo", "r");
	char *end;

	while (f && fgets(line, sizeof(line), f) && strncmp(line, "flags", 5) != 0)
		;
	if (f)
		fclose(f);
	if (strncmp(line, "flags", 5) != 0)
		SKIP("/proc/cpuinfo lists no flags");
	end = line + strcspn(line, "\n");
	*end = ' '; /* behind the last word, as behind others */
	CHECK_EQ(cpu_has_avx2(), strstr(line, " avx2 ") != NULL);
	CHECK_EQ(cpu_has_avx512f(), strstr(line, " avx512f ") != NULL);
	CHECK_EQ(cpu_has_sha(), strstr(line, " sha_ni ") && strstr(line, " ssse3 ") && strstr(line, " sse4_1 "));
	CHECK_EQ(cpu_has_crc32(), strstr(line, " sse4_2 ") != NULL);
}
#endif

TEST_MAIN()
