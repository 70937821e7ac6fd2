/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine.h - many reads under way at once: io_uring where the system has and allows it, else one after the other
 *
 * An engine belongs to one thread.  The reads that it is given belong to the caller, and must stay where they are until
 * they come back.
 */
#ifndef LIBSHARD_IO_ENGINE_H
#define LIBSHARD_IO_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct engine_read {
	int fd;		 /* open until the read comes back, or at least until it was started */
	uint64_t offset;
	size_t bytes;
	void *dst;
	int os_code;	 /* of one that came back: errno, 0 if all bytes are there, ENODATA if the file ended before */
};

struct engine;

/* At most `depth` reads will be under way.  NULL if there is no memory. */
struct engine *engine_open(uint32_t depth);
/* Nothing may be under way. */
void engine_close(struct engine *e);

bool engine_is_uring(const struct engine *e);
bool engine_is_full(const struct engine *e);

/* Start a read, now or with the next ones.  The engine is not full. */
void engine_put(struct engine *e, struct engine_read *r);

/* Wait for a read to come back, any of those under way; NULL if there are none. */
struct engine_read *engine_get(struct engine *e);

/* ---- engine_uring.c, or its stub: as above; NULL where io_uring is not to be had, and then nothing else is called ---- */

struct uring;
struct uring *uring_open(uint32_t depth);
void uring_close(struct uring *u);
void uring_put(struct uring *u, struct engine_read *r);
struct engine_read *uring_get(struct uring *u, int *result); /* bytes, or -errno */

#endif
