/* SPDX-License-Identifier: Apache-2.0 */
/*
 * no_memory.c - to be preloaded: the NO_MEMORY_AT-th allocation that NO_MEMORY_OF makes has none
 *
 * NO_MEMORY_OF is a part of the path of a library or program; without it everybody counts, the C
 * library too.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void *__libc_memalign(size_t align, size_t bytes);

static bool fails(const void *caller)
{
	static atomic_long count;
	const char *at = getenv("NO_MEMORY_AT"), *of = getenv("NO_MEMORY_OF");
	Dl_info info;

	if (!at || (of && (!dladdr(caller, &info) || !info.dli_fname || !strstr(info.dli_fname, of))) ||
	    atomic_fetch_add(&count, 1) + 1 != atol(at))
		return false;
	errno = ENOMEM;
	return true;
}

void *malloc(size_t bytes)
{
	return fails(__builtin_return_address(0)) ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
	return fails(__builtin_return_address(0)) ? NULL : __libc_calloc(count, bytes);
}

void *realloc(void *old, size_t bytes)
{
	return fails(__builtin_return_address(0)) ? NULL : __libc_realloc(old, bytes);
}

void *aligned_alloc(size_t align, size_t bytes)
{
	return fails(__builtin_return_address(0)) ? NULL : __libc_memalign(align, bytes);
}

int posix_memalign(void **out, size_t align, size_t bytes)
{
	void *at = fails(__builtin_return_address(0)) ? NULL : __libc_memalign(align, bytes);

	if (at)
		*out = at;
	return at ? 0 : ENOMEM;
}
