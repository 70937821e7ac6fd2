/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine_uring.h - an engine's way through io_uring; a build without it has a stub
 *
 * As engine.h.  uring_open() returns NULL where io_uring is not to be had, and then nothing else is
 * called.
 */
#ifndef SHARD_IO_ENGINE_URING_H
#define SHARD_IO_ENGINE_URING_H

#include "libshard/io/engine_read.h"

struct uring;
struct uring *uring_open(uint32_t depth);
void uring_close(struct uring *u);
void uring_put(struct uring *u, struct engine_read *r);
struct engine_read *uring_get(struct uring *u, int *result); /* bytes, or -errno */

#endif
