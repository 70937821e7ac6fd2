/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spool.c - bytes that go into the file later, in bounded memory
 *
 * A shard is written front to back, but its small groups and tables grow while the large group
 * streams out.  They wait here: in memory up to a limit, then in a file without a name.
 */
#include "libshard/write/write.h"

#include <string.h>

#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/io/io.h"

#define ROOM_MAX (4u << 20) /* a dozen spools at most: some 50 MiB, whatever the dataset */

static int spill(struct spool *s, const char *beside, struct shard_error *err)
{
	int rc = s->fd < 0 ? file_unnamed(beside, &s->fd, err) : SHARD_OK;

	if (!rc)
		rc = file_write_at(s->fd, s->buffer, s->used, s->spilled, beside, err);
	if (rc)
		return rc;
	s->spilled += s->used;
	s->used = 0;
	return SHARD_OK;
}

int spool_add(struct spool *s, const void *data, size_t bytes, const char *beside, struct shard_error *err)
{
	const uint8_t *at = data;
	int rc;

	while (bytes) {
		size_t n = bytes < ROOM_MAX - s->used ? bytes : ROOM_MAX - s->used;

		if (!mem_grow(&s->buffer, &s->room, s->used + n, 1))
			return error_set(err, SHARD_E_MEMORY, "no memory for a table of the shard (%zu bytes)",
					 s->used + n);
		memcpy(s->buffer + s->used, at, n);
		s->used += n;
		at += n;
		bytes -= n;
		if (s->used == ROOM_MAX) {
			rc = spill(s, beside, err);
			if (rc)
				return rc;
		}
	}
	return SHARD_OK;
}

uint64_t spool_bytes(const struct spool *s)
{
	return s->spilled + s->used;
}

int spool_play(struct spool *s,
	       int (*on_bytes)(void *context, const uint8_t *data, size_t bytes, struct shard_error *err),
	       void *context, const char *beside, struct shard_error *err)
{
	int rc = s->fd >= 0 && s->used ? spill(s, beside, err) : SHARD_OK;

	for (uint64_t at = 0; !rc && at < s->spilled;) { /* the buffer is free now and serves for reading back */
		size_t n = s->spilled - at < s->room ? (size_t)(s->spilled - at) : s->room;

		rc = file_read_at(s->fd, s->buffer, n, at, beside, err);
		if (!rc)
			rc = on_bytes(context, s->buffer, n, err);
		at += n;
	}
	if (!rc && s->used)
		rc = on_bytes(context, s->buffer, s->used, err);
	return rc;
}

void spool_free(struct spool *s)
{
	mem_free(s->buffer);
	file_close(s->fd);
	*s = SPOOL_EMPTY;
}
