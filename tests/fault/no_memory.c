/* SPDX-License-Identifier: Apache-2.0 */
/*
 * no_memory.c - to be preloaded: allocations that fail, as NO_MEMORY_HOW says
 *
 *   once     the NO_MEMORY_AT-th allocation that NO_MEMORY_OF makes; none if that is 0
 *   on       the same one, and from then on those of everybody
 *   always   all that NO_MEMORY_OF makes, as if a file asked for too much
 *   says     none of those, but each leaves ENOMEM, as malloc() does that looked in two places
 *
 * NO_MEMORY_OF is a part of the path of a library or program; without it everybody counts, the C
 * library too.  Their count is added to the eight
 * bytes in the file NO_MEMORY_COUNT, but not in a sandbox, which shares nothing.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void *__libc_memalign(size_t align, size_t bytes);

static atomic_long *all; /* const after open_all(); or NULL */

__attribute__((constructor)) static void open_all(void)
{
	const char *path = getenv("NO_MEMORY_COUNT");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;

	if (fd < 0)
		return;
	all = mmap(NULL, sizeof(*all), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
}

static bool is_meant(const void *caller)
{
	const char *of = getenv("NO_MEMORY_OF");
	Dl_info info;

	return !of || (dladdr(caller, &info) && info.dli_fname && strstr(info.dli_fname, of));
}

static bool fails(const void *caller)
{
	static atomic_long count;
	static atomic_bool is_out;
	const char *how = getenv("NO_MEMORY_HOW"), *at = getenv("NO_MEMORY_AT");

	if (!how)
		return false;
	if (!is_out) {
		if (!is_meant(caller))
			return false;
		if (all)
			++*all;
		if (at && atomic_fetch_add(&count, 1) + 1 != atol(at))
			return false;
		is_out = !strcmp(how, "on");
	}
	errno = ENOMEM;
	return strcmp(how, "says") != 0;
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
