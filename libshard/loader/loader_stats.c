/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader_stats.c - what a loader did: each part fills in what it counts
 */
#include "libshard/base/clock.h"
#include "libshard/gpu/device_copy.h"
#include "libshard/loader/loader.h"

void shard_loader_stats(struct shard_loader *l, struct shard_loader_stats *out)
{
	struct device_copy *copy = loader_device_copy(l);

	memset(out, 0, sizeof(*out));
	if (!l->cursor.owner || cursor_is_inherited(&l->cursor))
		return;
	feed_stats(loader_feed(l), out);
	if (copy)
		device_copy_stats(copy, out);
	out->batch_count = l->batch_count;
	out->record_count = l->record_count;
	out->bytes = l->bytes;
	out->elapsed_ns = clock_now_ns() - l->start_ns;
}

int shard_loader_last_damage(struct shard_loader *l, struct shard_error *out)
{
	return feed_last_damage(loader_feed(l), out) ? SHARD_OK : SHARD_END;
}
