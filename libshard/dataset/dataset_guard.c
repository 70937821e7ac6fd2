/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dataset_guard.c - a program's own reads of maps, under the guard
 */
#include "libshard/dataset/dataset.h"
#include "libshard/io/io.h"
#include "shard_pack.h"

struct guarded {
	void (*work)(void *context);
	void *context;
	const struct shard_dataset *ds;
	const struct shard_reader *of; /* whose map could not be read */
};

static void run_work(void *context)
{
	struct guarded *g = context;

	g->work(g->context);
}

/* Runs in the handler of SIGBUS.  A program has views only of readers that are kept. */
static bool is_of_dataset(void *context, uintptr_t at)
{
	struct guarded *g = context;

	for (uint64_t i = 0; i < g->ds->m.shard_count; i++) {
		const struct shard_reader *r = readers_kept(&g->ds->readers, i);

		if (r && at >= (uintptr_t)r->map && at < (uintptr_t)r->map + r->file_bytes) {
			g->of = r;
			return true;
		}
	}
	return false;
}

int shard_dataset_guarded(const struct shard_dataset *ds, void (*work)(void *context), void *context,
			  struct shard_error *err)
{
	struct guarded g = {work, context, ds, NULL};

	if (ds->o.guard == SHARD_GUARD_OFF) {
		work(context);
		return SHARD_OK;
	}
	guard_ask_at_times();
	return guard_run_where(is_of_dataset, run_work, &g) ? SHARD_OK : reader_cut(g.of, err);
}

int shard_reader_guarded(const struct shard_reader *r, void (*work)(void *context), void *context,
			 struct shard_error *err)
{
	if (r->guard)
		guard_ask_at_times();
	return reader_guarded_brief(r, work, context, err);
}
