/* SPDX-License-Identifier: Apache-2.0 */
/*
 * summary.c - the counters of a loader as one line for a log: how fast it was, which side waited
 * for the other, and why
 *
 * This is arithmetic and text only.  Numbers are written with integers, so that no locale changes a
 * point or a comma.  docs/TRAINING.md, "Why is my GPU idle?", explains the last words of a line;
 * t_summary compares the two.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

#include "shard.h"

/* ---- text ---- */

struct line {
	char *text; /* SHARD_SUMMARY_BYTES, always with a NUL */
	size_t used;
};

__attribute__((format(printf, 2, 3))) static void put(struct line *line, const char *fmt, ...)
{
	size_t room = SHARD_SUMMARY_BYTES - line->used;
	va_list ap;
	int bytes;

	va_start(ap, fmt);
	bytes = vsnprintf(line->text + line->used, room, fmt, ap);
	va_end(ap);
	if (bytes > 0)
		line->used += (size_t)bytes < room ? (size_t)bytes : room - 1;
}

/* Write 82300 as 82,300. */
static void put_count(struct line *line, uint64_t n)
{
	uint64_t unit = 1;

	while (n / unit >= 1000)
		unit *= 1000;
	put(line, "%" PRIu64, n / unit);
	for (unit /= 1000; unit; unit /= 1000)
		put(line, ",%03" PRIu64, n / unit % 1000);
}

/*
 * Write a part of a whole, with one digit behind the point below 10 %.  The part may be larger: a
 * thread counts its time when it finishes, even if it began before the whole.
 */
static void put_percent(struct line *line, uint64_t part, uint64_t whole)
{
	uint64_t tenths = part >= whole ? 1000 : (uint64_t)(((unsigned __int128)part * 1000 + whole / 2) / whole);

	if (tenths < 100)
		put(line, "%" PRIu64 ".%" PRIu64 " %%", tenths / 10, tenths % 10);
	else
		put(line, "%" PRIu64 " %%", (tenths + 5) / 10);
}

/* Write amount / ns per second, with three digits: 7.25, 72.5, 725, 7,250. */
static void put_rate(struct line *line, uint64_t amount, unsigned __int128 ns)
{
	unsigned __int128 exact = (unsigned __int128)amount * 1000000000000u / ns;
	uint64_t thousandths = exact < UINT64_MAX / 2 ? (uint64_t)exact : UINT64_MAX / 2, unit = 1;

	while (thousandths / unit >= 1000)
		unit *= 10;
	thousandths = (thousandths + unit / 2) / unit * unit;
	put_count(line, thousandths / 1000);
	if (thousandths < 10000)
		put(line, ".%02" PRIu64, thousandths / 10 % 100);
	else if (thousandths < 100000)
		put(line, ".%" PRIu64, thousandths / 100 % 10);
}

static void put_bytes_rate(struct line *line, uint64_t bytes, uint64_t ns)
{
	static const char *const unit[] = {"B/s", "kB/s", "MB/s", "GB/s"};
	unsigned __int128 per_second = (unsigned __int128)bytes * 1000000000u / ns, scale = 1;
	unsigned i = 0;

	for (; i < 3 && per_second >= scale * 1000; i++)
		scale *= 1000;
	put_rate(line, bytes, ns * scale);
	put(line, " %s", unit[i]);
}

/* ---- what happened between two looks ---- */

/* Counters only grow.  Those of two different loaders do not, and must not become huge numbers. */
static uint64_t since(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

static struct shard_loader_stats difference(const struct shard_loader_stats *now,
					    const struct shard_loader_stats *before)
{
	struct shard_loader_stats d = *now;

	if (!before)
		return d;
	d.batch_count = since(now->batch_count, before->batch_count);
	d.record_count = since(now->record_count, before->record_count);
	d.bytes = since(now->bytes, before->bytes);
	d.filled_bytes = since(now->filled_bytes, before->filled_bytes);
	d.checked_unit_count = since(now->checked_unit_count, before->checked_unit_count);
	d.elapsed_ns = since(now->elapsed_ns, before->elapsed_ns);
	d.next_wait_ns = since(now->next_wait_ns, before->next_wait_ns);
	d.next_wait_count = since(now->next_wait_count, before->next_wait_count);
	d.fill_ns = since(now->fill_ns, before->fill_ns);
	d.fill_cpu_ns = since(now->fill_cpu_ns, before->fill_cpu_ns);
	d.slot_wait_ns = since(now->slot_wait_ns, before->slot_wait_ns);
	d.mapped_bytes = since(now->mapped_bytes, before->mapped_bytes);
	d.direct_bytes = since(now->direct_bytes, before->direct_bytes);
	d.pread_bytes = since(now->pread_bytes, before->pread_bytes);
	d.substituted_count = since(now->substituted_count, before->substituted_count);
	d.masked_count = since(now->masked_count, before->masked_count);
	d.decoded_chunk_count = since(now->decoded_chunk_count, before->decoded_chunk_count);
	d.unfinished_chunk_count = since(now->unfinished_chunk_count, before->unfinished_chunk_count);
	d.device_bytes = since(now->device_bytes, before->device_bytes);
	d.pageable_bytes = since(now->pageable_bytes, before->pageable_bytes);
	d.device_wait_ns = since(now->device_wait_ns, before->device_wait_ns);
	return d;
}

/* The time that all threads had together. */
static uint64_t thread_ns(const struct shard_loader_stats *d)
{
	return d->elapsed_ns * d->thread_count;
}

static const char *verdict(const struct shard_loader_stats *d, bool is_first)
{
	bool waited = d->next_wait_ns >= d->elapsed_ns / 100, slots_ran_out = d->slot_wait_ns >= thread_ns(d) / 10;

	if (!d->thread_count)
		return "no thread could be started: the thread that takes batches fills them itself";
	if (waited && is_first && slots_ran_out && d->next_wait_count <= 1) /* no thread could prepare that one */
		return "the trainer is the slower side since the first batch";
	if (!waited)
		return "the trainer is the slower side";
	if (slots_ran_out)
		return "each side waits for the other at times: add slots";
	if (d->fill_cpu_ns >= d->fill_ns / 5 * 4)
		return "the loader is the slower side, its threads are busy computing: add threads";
	if (d->direct_bytes + d->pread_bytes >= d->mapped_bytes)
		return "the loader is the slower side, its threads wait for the disk";
	return "the loader is the slower side, its threads wait for page faults or for a CPU";
}

/* ---- the line ---- */

/* Such as "; mapped 98 %, direct 2 %". */
static void put_paths(struct line *line, const struct shard_loader_stats *d)
{
	const struct {
		const char *name;
		uint64_t bytes;
	} path[] = {{"mapped", d->mapped_bytes}, {"direct", d->direct_bytes}, {"pread", d->pread_bytes}};
	const char *between = "; ";

	for (int i = 0; i < 3; i++) {
		if (!path[i].bytes)
			continue;
		put(line, "%s%s ", between, path[i].name);
		put_percent(line, path[i].bytes, d->filled_bytes);
		between = ", ";
	}
	if (d->direct_bytes && !d->has_uring)
		put(line, " without io_uring");
}

/* Such as "; decoded 1,200 chunks (400 made room too soon, stage_bytes is too small)". */
static void put_chunks(struct line *line, const struct shard_loader_stats *d)
{
	if (!d->decoded_chunk_count)
		return;
	put(line, "; decoded ");
	put_count(line, d->decoded_chunk_count);
	put(line, d->decoded_chunk_count == 1 ? " chunk" : " chunks");
	if (d->unfinished_chunk_count < d->decoded_chunk_count / 10)
		return; /* a few are normal: of runs that two shards share, or behind a seek */
	put(line, " (");
	put_count(line, d->unfinished_chunk_count);
	put(line, " were evicted before they were used up; raise stage_bytes)");
}

/* Such as "; hashed 300 units; damage: rows substituted 2, masked 1". */
static void put_checks(struct line *line, const struct shard_loader_stats *d)
{
	if (d->checked_unit_count) {
		put(line, "; hashed ");
		put_count(line, d->checked_unit_count);
		put(line, d->checked_unit_count == 1 ? " unit" : " units");
	}
	if (d->substituted_count + d->masked_count)
		put(line, "; damage: rows");
	if (d->substituted_count) {
		put(line, " substituted ");
		put_count(line, d->substituted_count);
	}
	if (d->masked_count) {
		put(line, d->substituted_count ? ", masked " : " masked ");
		put_count(line, d->masked_count);
	}
}

/* Such as "; to the GPU 12.4 GB/s (pageable 25 %), waited for it 40 %". */
static void put_device(struct line *line, const struct shard_loader_stats *d)
{
	if (!d->device_bytes)
		return;
	put(line, "; to the GPU ");
	put_bytes_rate(line, d->device_bytes, d->elapsed_ns);
	if (d->pageable_bytes) {
		put(line, " (pageable ");
		put_percent(line, d->pageable_bytes, d->device_bytes);
		put(line, ")");
	}
	put(line, ", waited for it ");
	put_percent(line, d->device_wait_ns, d->elapsed_ns);
}

void shard_stats_summary(const struct shard_loader_stats *now, const struct shard_loader_stats *before,
			 char text[SHARD_SUMMARY_BYTES])
{
	struct shard_loader_stats d = difference(now, before);
	struct line line = {text, 0};

	text[0] = 0;
	if (!d.batch_count || !d.elapsed_ns) {
		put(&line, "no batch was taken");
		return;
	}
	put_bytes_rate(&line, d.bytes, d.elapsed_ns);
	put(&line, ", ");
	put_rate(&line, d.record_count, d.elapsed_ns);
	put(&line, " records/s; next waited ");
	put_percent(&line, d.next_wait_ns, d.elapsed_ns);
	put(&line, " (");
	put_count(&line, d.next_wait_count);
	put(&line, " of ");
	put_count(&line, d.batch_count);
	put(&line, " times)");
	if (d.thread_count) {
		put(&line, "; threads filled ");
		put_percent(&line, d.fill_ns, thread_ns(&d));
		put(&line, " (on a CPU ");
		put_percent(&line, d.fill_cpu_ns, thread_ns(&d));
		put(&line, "), waited for slots ");
		put_percent(&line, d.slot_wait_ns, thread_ns(&d));
	}
	put_paths(&line, &d);
	put_chunks(&line, &d);
	put_checks(&line, &d);
	put_device(&line, &d);
	put(&line, ": %s", verdict(&d, !before || !before->batch_count));
}
