/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drain.h - a thread that writes one buffer to a file while its user fills another
 *
 * The counterpart of fill.h: a write past the page cache returns when the disk has the bytes, and
 * until then its thread can do nothing else.
 */
#ifndef SHARD_WRITE_DRAIN_H
#define SHARD_WRITE_DRAIN_H

#include <stddef.h>
#include <stdint.h>

#include "shard.h"

/*
 * Where the bytes go, in the drain's thread and in order.  After it failed it is not called again.
 */
typedef int drain_write(void *context, const void *data, size_t bytes, struct shard_error *err);

/* Belongs to one thread at a time. */
struct drain;

/*
 * The two buffers are lent until close.  Returns NULL if there is no memory.  Without a thread,
 * drain_put() writes by itself.
 */
struct drain *drain_open(drain_write *write, void *context, uint8_t *const buffer[2]);
void drain_close(struct drain *d); /* bytes that are not written yet may be left out; NULL is fine */

/* The buffer to fill; the other one after each drain_put(). */
uint8_t *drain_buffer(struct drain *d);

/*
 * Have the first `bytes` of that buffer written.  Waits for the write before it, and fails as an
 * earlier write did.
 */
int drain_put(struct drain *d, size_t bytes, struct shard_error *err);

/* Wait until all of it is written. */
int drain_wait(struct drain *d, struct shard_error *err);

#endif
