/* SPDX-License-Identifier: Apache-2.0 */
/*
 * warm.c - the files of a plan read ahead in order, while their records are read in another
 */
#include "tools/shardpack/input/input.h"

#include <stdint.h>
#include <stdlib.h>

#include "libshard/base/thread.h"
#include "libshard/io/io.h"
#include "tools/shardpack/input/stored.h"
#include "tools/shardpack/plan/plan.h"

#define STEP_BYTES (UINT64_C(4) << 20)

struct warm {
	const struct plan *plan;
	const struct stored *stored;
	uint64_t file, at; /* the thread's: what comes next */
	struct task task;
};

static bool touch_next(void *context)
{
	struct warm *w = context;

	for (; w->file < w->plan->file_count && w->at >= w->plan->file[w->file].bytes; w->at = 0)
		w->file++;
	if (w->file == w->plan->file_count)
		return false;
	task_unlock(&w->task); /* the stop that comes meanwhile is seen after the step */
	stored_touch(w->stored, (uint32_t)w->file, w->at, STEP_BYTES);
	task_lock(&w->task);
	w->at += STEP_BYTES;
	return true;
}

struct warm *warm_start(const struct plan *plan, const struct stored *stored)
{
	struct warm *w;
	uint64_t sum = 0, available = available_memory_bytes();

	for (uint64_t i = 0; i < plan->file_count; i++)
		sum += plan->file[i].bytes;
	if (plan->recipe.order != SHARD_ORDER_SHUFFLE || available == UINT64_MAX || sum > available / 2)
		return NULL;
	w = calloc(1, sizeof(*w));
	if (!w)
		return NULL;
	w->plan = plan;
	w->stored = stored;
	if (task_start(&w->task, 1, touch_next, w))
		return w;
	task_stop(&w->task);
	free(w);
	return NULL;
}

void warm_stop(struct warm *w)
{
	if (!w)
		return;
	task_stop(&w->task);
	free(w);
}
