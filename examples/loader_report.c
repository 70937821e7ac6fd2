/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader_report.c - how fast a loader is, which side waits for the other, and why
 *
 *   cc -O2 loader_report.c -o loader_report $(pkg-config --cflags --libs libshard)
 *   ./loader_report ds/train [STEP_MS [BATCH_RECORDS]]
 *
 * Takes the batches of one epoch, and spends STEP_MS on each, as a trainer would.  To see this of
 * your own trainer, copy report(): docs/TRAINING.md, "Why is my GPU idle?", says what to do about
 * its last line.
 */
#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "shard.h"

static double percent(double part, double whole)
{
	return part < whole ? 100 * part / whole : 100; /* a thread counts its time when it is done */
}

static const char *slower_side(const struct shard_loader_stats *d, int is_first)
{
	double elapsed_ns = (double)d->elapsed_ns;
	int waited = (double)d->next_wait_ns >= elapsed_ns / 100;
	int slots_ran_out = (double)d->slot_wait_ns >= elapsed_ns * d->thread_count / 10;

	if (!d->thread_count)
		return "no thread could be started: the thread that takes batches fills them itself";
	if (!waited)
		return "the trainer is the slower side";
	if (slots_ran_out && is_first && d->next_wait_count <= 1) /* no thread could prepare that batch */
		return "the trainer is the slower side since the first batch";
	if (slots_ran_out)
		return "each side waits for the other at times: add slots";
	if ((double)d->fill_cpu_ns >= 0.8 * (double)d->fill_ns)
		return "the loader is the slower side, its threads are busy computing: add threads";
	if (d->direct_bytes + d->pread_bytes >= d->mapped_bytes)
		return "the loader is the slower side, its threads wait for the disk";
	return "the loader is the slower side, its threads wait for page faults or for a CPU";
}

/* Is there a file of such a name that this process may use so? */
static int has_file(const char *pattern, int how)
{
	glob_t found;
	int has = 0;

	if (glob(pattern, 0, NULL, &found))
		return 0;
	for (size_t i = 0; i < found.gl_pathc; i++)
		has |= !access(found.gl_pathv[i], how);
	globfree(&found);
	return has;
}

/*
 * May this process use a GPU of NVIDIA?  A call of CUDA would start it in this process, and then it
 * would not work in forked children.  So this looks at the driver's files.
 */
static int gpu_is_here(void)
{
	const char *visible = getenv("CUDA_VISIBLE_DEVICES"); /* "", -1 and other words hide all of them */

	if (visible && (*visible < '0' || *visible > '9') && strncmp(visible, "GPU-", 4) && strncmp(visible, "MIG-", 4))
		return 0;
	return has_file("/proc/driver/nvidia/gpus/*", F_OK) && has_file("/dev/nvidia[0-9]*", R_OK | W_OK);
}

/* What the loader did between two calls of shard_loader_stats().  `before` is zero for the first. */
static void report(const struct shard_loader_stats *now, const struct shard_loader_stats *before)
{
	struct shard_loader_stats d = *now; /* the difference */
	double seconds, thread_ns;

#define SINCE(counter_) d.counter_ -= before->counter_
	SINCE(batch_count), SINCE(record_count), SINCE(bytes), SINCE(filled_bytes), SINCE(checked_unit_count);
	SINCE(elapsed_ns), SINCE(next_wait_ns), SINCE(next_wait_count), SINCE(device_wait_ns);
	SINCE(fill_ns), SINCE(fill_cpu_ns), SINCE(slot_wait_ns);
	SINCE(mapped_bytes), SINCE(direct_bytes), SINCE(pread_bytes), SINCE(device_bytes), SINCE(pageable_bytes);
	SINCE(cached_bytes), SINCE(device_checked_count), SINCE(check_wait_count), SINCE(recopied_count);
	SINCE(substituted_count), SINCE(masked_count), SINCE(decoded_chunk_count), SINCE(unfinished_chunk_count);
	if (!d.batch_count || !d.elapsed_ns) {
		printf("no batch was taken\n");
		return;
	}
	seconds = (double)d.elapsed_ns / 1e9;
	thread_ns = (double)d.elapsed_ns * d.thread_count;
	printf("%.1f MB/s, %.1f records/s\n", (double)d.bytes / 1e6 / seconds, (double)d.record_count / seconds);
	printf("next waited %.1f %% (%" PRIu64 " of %" PRIu64 " times)\n",
	       percent((double)d.next_wait_ns, (double)d.elapsed_ns), d.next_wait_count, d.batch_count);
	if (d.thread_count)
		printf("threads filled %.1f %% (on a CPU %.1f %%), waited for slots %.1f %%\n",
		       percent((double)d.fill_ns, thread_ns), percent((double)d.fill_cpu_ns, thread_ns),
		       percent((double)d.slot_wait_ns, thread_ns));
	if (d.filled_bytes)
		printf("mapped %.1f %%, direct %.1f %%%s, pread %.1f %%\n",
		       percent((double)d.mapped_bytes, (double)d.filled_bytes),
		       percent((double)d.direct_bytes, (double)d.filled_bytes),
		       d.direct_bytes && !d.has_uring ? " without io_uring" : "",
		       percent((double)d.pread_bytes, (double)d.filled_bytes));
	if (d.decoded_chunk_count)
		printf("decoded %" PRIu64 " chunks\n", d.decoded_chunk_count);
	/* A few are normal: of runs that two shards share, or behind a seek. */
	if (d.unfinished_chunk_count && d.unfinished_chunk_count >= d.decoded_chunk_count / 10)
		printf("%" PRIu64 " of them were evicted before they were used up; raise stage_bytes\n",
		       d.unfinished_chunk_count);
	if (d.checked_unit_count)
		printf("hashed %" PRIu64 " units\n", d.checked_unit_count);
	if (d.device_checked_count)
		printf("the GPU hashed %" PRIu64 " units (next waited for that %" PRIu64 " times)\n",
		       d.device_checked_count, d.check_wait_count);
	if (d.recopied_count)
		printf("%" PRIu64 " rows arrived damaged and went to the GPU again\n", d.recopied_count);
	if (d.substituted_count || d.masked_count)
		printf("damage: rows substituted %" PRIu64 ", masked %" PRIu64 "\n", d.substituted_count,
		       d.masked_count);
	if (d.device_bytes)
		printf("to the GPU %.1f MB/s (out of the page cache %.1f %%, pageable %.1f %%), waited for it %.1f "
		       "%%\n",
		       (double)d.device_bytes / 1e6 / seconds, percent((double)d.cached_bytes, (double)d.device_bytes),
		       percent((double)d.pageable_bytes, (double)d.device_bytes),
		       percent((double)d.device_wait_ns, (double)d.elapsed_ns));
	if (!d.device_bytes && !d.pinned_bytes && gpu_is_here()) /* unless you lent memory that is page-locked */
		printf("this machine has a GPU, and copies of these batches to it are slow, because their memory is "
		       "not page-locked: call shard_loader_next_device() or shard_loader_pin()\n");
	printf("%s\n", slower_side(&d, !before->batch_count));
}

int main(int argc, char **argv)
{
	struct shard_loader_options o = {.size = sizeof(o), .batch_records = 32, .order.seed = 1};
	struct shard_loader_stats before = {0}, now;
	struct timespec step = {0};
	struct shard_dataset *ds;
	struct shard_loader *loader;
	struct shard_batch batch;
	struct shard_error err;
	int rc;

	if (argc < 2 || argc > 4) {
		fprintf(stderr, "usage: loader_report DATASET [STEP_MS [BATCH_RECORDS]]\n");
		return 2;
	}
	if (argc > 2) {
		long ms = atol(argv[2]);

		step = (struct timespec){ms / 1000, ms % 1000 * 1000000};
	}
	if (argc > 3)
		o.batch_records = (uint32_t)strtoul(argv[3], NULL, 10);
	rc = shard_dataset_open(&ds, argv[1], NULL, &err);
	if (!rc)
		rc = shard_loader_open(&loader, ds, &o, &err);
	while (!rc) {
		rc = shard_loader_next(loader, &batch, &err);
		if (rc)
			break;
		nanosleep(&step, NULL); /* the training step */
		rc = shard_loader_release(loader, &batch, &err);
	}
	if (rc != SHARD_END) {
		fprintf(stderr, "loader_report: %s\n", err.message);
		return 1;
	}
	shard_loader_stats(loader, &now);
	report(&now, &before);
	shard_loader_close(loader);
	shard_dataset_close(ds);
	return 0;
}
