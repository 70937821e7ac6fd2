/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file.h - files: opened, read, mapped, written
 *
 * With guard.h the only caller of file system calls.  Every error names the request and the file.
 */
#ifndef SHARD_IO_FILE_H
#define SHARD_IO_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shard.h"

/*
 * Open a regular file for reading, following links; never waits for a FIFO.  `bytes` and `inode`
 * (may be NULL) are its.
 */
int file_open(const char *path, int *fd, uint64_t *bytes, uint64_t *inode, struct shard_error *err);
void file_close(int fd); /* -1 is fine */

/* The errno says that a file cannot get a name, or another's blocks, this way; another may do. */
bool file_is_refusal(int code);

/* Exactly `bytes` bytes, or an error: the end of the file counts as one. */
int file_read_at(int fd, void *out, size_t bytes, uint64_t offset, const char *path, struct shard_error *err);

/*
 * A shared read-only map that lives until unmapped.  The kernel does not read ahead around a
 * touched page: on a machine set up for streaming that can be 8 MiB for one record.  So call
 * file_will_need() before touching pages that may not be in memory.
 */
int file_map(int fd, uint64_t bytes, const char *path, const void **out, struct shard_error *err);
/* starts reading that part of a map; costs a microsecond if it is there */
void file_will_need(const void *begin, size_t bytes);
/*
 * Wait until that part of a map is in memory, and can be touched without a fault.  Where the kernel
 * cannot do this (before Linux 5.14), or the file cannot be read, touching shows it.
 */
void file_await(const void *begin, size_t bytes);
/*
 * Have the kernel read whole huge pages into that part of a map, 2 MiB at a time, each with one
 * request to the disk and one entry in the page table (0.015 CPU seconds for a GB; small pages take
 * 0.3 to 0.5).  It does so where file system and kernel know large folios: XFS since Linux 5.18,
 * ext4 since 6.16.  Others read as many small pages, or take no notice.
 */
void file_ask_for_huge_pages(const void *begin, size_t bytes);
void file_unmap(const void *map, uint64_t bytes);

/* Open the file again for reads past the page cache.  Returns -1 if the file system has none. */
int file_open_direct(const char *path);
/* Are samples of [offset, offset + bytes) in the page cache? */
bool file_is_cached(int fd, uint64_t offset, uint64_t bytes);

/*
 * Do the first `bytes` bytes of a file lie in the page cache?  Up to one sixteenth of them may be
 * missing: reading that is cheaper than giving up the rest.  *whole says whether no sample was
 * missing; `whole` may be NULL.  The answer can be too good: in a file of another user, a sample
 * that is missing is read to examine it, and a fast disk may deliver it before the answer.  So
 * callers that rely on this also watch file_major_faults().
 */
bool file_seems_cached(int fd, uint64_t bytes, bool *whole);

/*
 * Read bytes that all lie in the page cache.  Returns false if not all of them were read.  Bytes
 * that were missing may be there all the same, if the kernel fetched them before it answered; then
 * file_blocks_read() has grown.
 */
bool file_read_cached(int fd, void *out, size_t bytes, uint64_t offset);

/*
 * When the file last changed.  It is open as `fd`; if that is -1, it still has this path.  Returns
 * 0 if it cannot be examined.
 */
uint64_t file_changed_ns(int fd, const char *path, uint64_t inode);

/*
 * How often this thread has waited for the disk because a page that it touched was not in memory.
 */
uint64_t file_major_faults(void);
/* What this thread has read from devices, in 512 bytes; 0 where the kernel counts none. */
uint64_t file_blocks_read(void);
void file_drop_cache(int fd);

int file_write_at(int fd, const void *data, size_t bytes, uint64_t offset, const char *path, struct shard_error *err);

/* Call on_name for each regular file of a folder whose name ends in `suffix`. */
int file_list(const char *dir, const char *suffix, int (*on_name)(void *context, const char *name), void *context,
	      struct shard_error *err);

#endif
