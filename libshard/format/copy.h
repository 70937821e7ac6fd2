/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy.h - copies of records to where a GPU will fetch them: forward, and past the caches
 *
 * libc's memcpy may run backwards, which meets pages that are not in memory in the worst order, and
 * it leaves the copy in the caches, at the price of reading each line of the target first: 1.7
 * times slower once the ring exceeds the cache.
 */
#ifndef SHARD_CODEC_COPY_H
#define SHARD_CODEC_COPY_H

#include <stddef.h>
#include <stdint.h>

/*
 * Copy `bytes` from src to dst, which do not overlap, line after line from the front to the back.
 * Another thread sees the whole copy only after this thread has called copy_fence() and then told
 * it, for example through a lock.
 */
void copy_stream(void *dst, const void *src, size_t bytes);

/* The same, and the XXH3-64 of the bytes, which are read from memory once. */
uint64_t copy_stream_hashed(void *dst, const void *src, size_t bytes);

/* Once, before another thread is told of this thread's copies. */
void copy_fence(void);

/* The twin that any machine can run, for tests: the same bytes at the same places. */
void copy_portable(void *dst, const void *src, size_t bytes);

#endif
