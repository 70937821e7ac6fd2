/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine_read.h - a read that an engine is given, and gives back
 */
#ifndef SHARD_IO_ENGINE_READ_H
#define SHARD_IO_ENGINE_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct engine_read {
	int fd; /* open until the read comes back, or at least until it was started */
	uint64_t offset;
	size_t bytes;
	void *dst;
	bool asks;   /* see first whether all bytes lie in the page cache */
	bool cached; /* of one that came back and asked: they did, and no device was read */
	bool there;  /* the engine's own: all bytes were delivered at once */
	/*
	 * of one that came back: errno, 0 if all bytes are there, ENODATA if the file ended before
	 */
	int os_code;
};

#endif
