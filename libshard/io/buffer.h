/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buffer.h - memory that disks read into
 */
#ifndef SHARD_IO_BUFFER_H
#define SHARD_IO_BUFFER_H

#include <stddef.h>

#define HUGE_PAGE_BYTES ((size_t)2 << 20)

/*
 * Aligned to 2 MiB, and made of huge pages where the system has them.  A direct read into small
 * pages is cut into requests of as many pages as the device takes segments, each a page; into huge
 * ones it is 2 to 3 times as fast (bench/common/bound_read.c: 0.7 and 2.2 GB/s).  Not zeroed; NULL
 * if there is no memory; mem_free() takes it back, or buffer_close().
 */
void *buffer_open(size_t bytes);

/*
 * The kernel clears a page when it is touched first.  This clears all pages of a buffer that were
 * not yet, and changes no other one, so that another thread that writes to it finds them cleared.
 */
void buffer_clear_pages(void *buffer, size_t bytes);

/*
 * Children of this process shall not have it: a device that writes to it while the process forks
 * would write into the copy of one of the two.  `bytes` are those of buffer_open(); such a buffer
 * goes back through buffer_close(), in this process.
 */
void buffer_keep(void *buffer, size_t bytes);
void buffer_close(void *buffer, size_t bytes);

#endif
