/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libc_calls.h - each file of a wheel includes it: these functions are those of glibc
 *
 * The compiler's own runtime has them, too, and where a file needs anything of that, such as a
 * division of 128 bits, the linker would take them from there.  They know nothing newer than SSE2,
 * and short records would be copied slower than by glibc.  A name with a version is glibc's alone.
 */
#if defined(__ASSEMBLER__)
#elif defined(__x86_64__)
__asm__(".symver memcpy, memcpy@GLIBC_2.14\n"
	".symver memmove, memmove@GLIBC_2.2.5\n"
	".symver memset, memset@GLIBC_2.2.5\n"
	".symver memcmp, memcmp@GLIBC_2.2.5\n"
	".symver bcmp, bcmp@GLIBC_2.2.5\n"
	".symver strlen, strlen@GLIBC_2.2.5\n");
#elif defined(__aarch64__)
__asm__(".symver memcpy, memcpy@GLIBC_2.17\n"
	".symver memmove, memmove@GLIBC_2.17\n"
	".symver memset, memset@GLIBC_2.17\n"
	".symver memcmp, memcmp@GLIBC_2.17\n"
	".symver bcmp, bcmp@GLIBC_2.17\n"
	".symver strlen, strlen@GLIBC_2.17\n");
#endif
