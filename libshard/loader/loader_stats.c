/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader_stats.c - what a loader did: each part fills in what it counts; and a line of it for a log
 */
#include <inttypes.h>
#include <stdio.h>

#include "libshard/base/bytes.h"
#include "libshard/base/clock.h"
#include "libshard/gpu/gpu.h"
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

/* Counters only grow; those of two different loaders must not become huge numbers. */
static uint64_t since(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

/* Tenths of part x scale / whole, rounded. */
static uint64_t tenths(uint64_t part, uint64_t scale, uint64_t whole)
{
	unsigned __int128 n = ((unsigned __int128)part * scale * 10 + whole / 2) / whole;

	return n < UINT64_MAX ? (uint64_t)n : UINT64_MAX;
}

/* Integers, so that no locale changes a point to a comma. */
void shard_stats_summary(const struct shard_loader_stats *now, const struct shard_loader_stats *before,
			 char text[SHARD_SUMMARY_BYTES])
{
	static const struct shard_loader_stats none;
	const struct shard_loader_stats *b = before ? before : &none;
	uint64_t batches = since(now->batch_count, b->batch_count), ns = since(now->elapsed_ns, b->elapsed_ns);
	uint64_t records_s, megabytes_s, seconds, waited;

	if (!batches || !ns) {
		snprintf(text, SHARD_SUMMARY_BYTES, "no batch was taken");
		return;
	}
	seconds = tenths(ns, 1, 1000000000);
	records_s = tenths(since(now->record_count, b->record_count), 1000000000, ns);
	megabytes_s = tenths(since(now->bytes, b->bytes), 1000, ns);
	waited = min_u64(tenths(since(now->next_wait_ns, b->next_wait_ns), 100, ns), 1000);
	snprintf(text, SHARD_SUMMARY_BYTES,
		 "%" PRIu64 " batch%s in %" PRIu64 ".%" PRIu64 " s, %" PRIu64 ".%" PRIu64 " records/s, %" PRIu64
		 ".%" PRIu64 " MB/s; next waited %" PRIu64 ".%" PRIu64 " %% of the time",
		 batches, batches == 1 ? "" : "es", seconds / 10, seconds % 10, records_s / 10, records_s % 10,
		 megabytes_s / 10, megabytes_s % 10, waited / 10, waited % 10);
}

int shard_loader_last_damage(struct shard_loader *l, struct shard_error *out)
{
	return feed_last_damage(loader_feed(l), out) ? SHARD_OK : SHARD_END;
}
