/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buffer.c - memory that disks read into, by advice to the kernel that it may leave untaken
 */
#include "libshard/io/io.h"

#include <sys/mman.h>

#include "libshard/base/mem.h"

void *buffer_open(size_t bytes)
{
	void *p = mem_aligned(HUGE_PAGE_BYTES, bytes);

	if (p)
		madvise(p, bytes, MADV_HUGEPAGE); /* small pages are slower, and no other difference */
	return p;
}

void buffer_clear_pages(void *buffer, size_t bytes)
{
#if defined(MADV_POPULATE_WRITE) /* Linux 5.14; without it pages are cleared when they are written to */
	madvise(buffer, bytes, MADV_POPULATE_WRITE);
#else
	(void)buffer;
	(void)bytes;
#endif
}

void buffer_keep(void *buffer, size_t bytes)
{
	madvise(buffer, bytes, MADV_DONTFORK); /* where it is not taken a child has a copy that it does not use */
}

void buffer_close(void *buffer, size_t bytes)
{
	if (buffer)
		madvise(buffer, bytes, MADV_DOFORK); /* its next owner knows nothing of buffer_keep() */
	mem_free(buffer);
}
