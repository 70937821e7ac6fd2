/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine.h - many reads under way at once: io_uring where the system has and allows it, else one
 * after the other
 *
 * An engine belongs to one thread.  The reads that it is given belong to the caller, and must stay
 * where they are until they come back.
 */
#ifndef SHARD_IO_ENGINE_H
#define SHARD_IO_ENGINE_H

#include <stdbool.h>

#include "libshard/io/engine_read.h"

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

#endif
