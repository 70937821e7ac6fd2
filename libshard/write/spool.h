/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spool.h - bytes that go into the file later, in bounded memory
 *
 * A shard is written front to back, but its small groups and tables grow while the large group
 * streams out.  They wait here: in memory up to a limit, then in a file without a name.
 */
#ifndef SHARD_WRITE_SPOOL_H
#define SHARD_WRITE_SPOOL_H

#include <stddef.h>
#include <stdint.h>

#include "shard.h"

struct spool {
	uint8_t *buffer;
	size_t used, room;
	int fd;		  /* -1: all of it is in memory */
	uint64_t spilled; /* bytes in the file */
};
#define SPOOL_EMPTY ((struct spool){.fd = -1})

/* `beside` is a path in the folder where a file may be made. */
int spool_add(struct spool *s, const void *data, size_t bytes, const char *beside, struct shard_error *err);
uint64_t spool_bytes(const struct spool *s);

/* Hand all bytes to on_bytes, in order, in pieces. */
int spool_play(struct spool *s,
	       int (*on_bytes)(void *context, const uint8_t *data, size_t bytes, struct shard_error *err),
	       void *context, const char *beside, struct shard_error *err);
void spool_free(struct spool *s);

#endif
