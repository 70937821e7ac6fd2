/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rot.h - a disk that forgets: bytes change on it, and what the page cache held of them is gone
 */
#ifndef TESTS_STORE_ROT_H
#define TESTS_STORE_ROT_H

#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/mman.h>

#include "tests/store/fixture.h"

#define ROT_BYTES 4096u /* a page, and what O_DIRECT takes everywhere */

enum rot { ROT_BIT, ROT_HOLE, ROT_IN_MEMORY /* written as files are: the page cache has it */ };

/* Is the page in memory? */
static inline bool rot_is_cached(const char *path, uint64_t page)
{
	unsigned char there = 1;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *map = mmap(NULL, ROT_BYTES, PROT_READ, MAP_SHARED, fd, (off_t)page);

	CHECK(fd >= 0 && map != MAP_FAILED);
	CHECK_EQ(mincore(map, ROT_BYTES, &there), 0);
	munmap(map, ROT_BYTES);
	close(fd);
	return there & 1;
}

/* Returns false if the file system has no direct writes or no holes. */
static inline bool rot(const char *path, uint64_t offset, enum rot how)
{
	uint64_t page = offset / ROT_BYTES * ROT_BYTES;
	uint8_t *bytes = aligned_alloc(ROT_BYTES, ROT_BYTES);
	int fd = open(path, O_RDWR | O_CLOEXEC | (how == ROT_BIT ? O_DIRECT : 0));
	bool done = fd >= 0;

	if (how == ROT_IN_MEMORY)
		file_flip(path, offset, 1);
	if (done && how == ROT_BIT) {
		CHECK_EQ(fsync(fd), 0); /* direct writes leave dirty pages where they are */
		done = pread(fd, bytes, ROT_BYTES, (off_t)page) == ROT_BYTES;
		bytes[offset % ROT_BYTES] ^= 1;
	}
	/* A page that another CPU has just touched stays; DONTNEED makes all CPUs forget it. */
	for (int tries = 0; done && how != ROT_IN_MEMORY && tries < 100; tries++) {
		done = how == ROT_BIT
			       ? pwrite(fd, bytes, ROT_BYTES, (off_t)page) == ROT_BYTES
			       : !fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)page, ROT_BYTES);
		if (!rot_is_cached(path, page))
			break;
		CHECK_EQ(fsync(fd) | posix_fadvise(fd, (off_t)page, ROT_BYTES, POSIX_FADV_DONTNEED), 0);
	}
	close(fd);
	free(bytes);
	return done && (how == ROT_IN_MEMORY || !rot_is_cached(path, page));
}

/* Another process reads the file. */
static inline void rot_bring_back(const char *path)
{
	size_t bytes;

	free(file_bytes(path, &bytes));
}

#endif
