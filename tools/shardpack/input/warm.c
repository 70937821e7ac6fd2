/* SPDX-License-Identifier: Apache-2.0 */
/*
 * warm.c - the files of a plan read ahead in order, while their records are read in another
 */
#include "tools/shardpack/input/warm.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/background.h"
#include "tools/common/exit_code.h"
#include "tools/common/files.h"
#include "tools/shardpack/input/stored.h"
#include "tools/shardpack/plan/plan.h"

#define STEP_BYTES (UINT64_C(4) << 20)

struct warm {
	const struct plan *plan;
	const struct stored *stored;
	uint64_t file, at; /* the thread's: what comes next */
	struct background thread;
};

/* What the system could give without swapping; 0 if it does not say. */
static uint64_t available_bytes(void)
{
	static const char key[] = "\nMemAvailable:";
	struct text text = {0};
	bool found = false;
	uint64_t kib = 0;
	const char *at;

	if (files_read("/proc/meminfo", &text, &found) == EXIT_DONE && found && (at = strstr(text.data, key)) != NULL)
		kib = strtoull(at + strlen(key), NULL, 10);
	text_free(&text);
	return kib * 1024;
}

static bool touch_next(void *context)
{
	struct warm *w = context;

	for (; w->file < w->plan->file_count && w->at >= w->plan->file[w->file].bytes; w->at = 0)
		w->file++;
	if (w->file == w->plan->file_count)
		return false;
	background_unlock(&w->thread); /* the stop that comes meanwhile is seen after the step */
	stored_touch(w->stored, (uint32_t)w->file, w->at, STEP_BYTES);
	background_lock(&w->thread);
	w->at += STEP_BYTES;
	return true;
}

struct warm *warm_start(const struct plan *plan, const struct stored *stored)
{
	struct warm *w;
	uint64_t sum = 0;

	for (uint64_t i = 0; i < plan->file_count; i++)
		sum += plan->file[i].bytes;
	if (plan->recipe.order != SHARD_ORDER_SHUFFLE || sum > available_bytes() / 2)
		return NULL;
	w = calloc(1, sizeof(*w));
	if (!w)
		return NULL;
	w->plan = plan;
	w->stored = stored;
	if (background_start(&w->thread, 1, touch_next, w))
		return w;
	free(w);
	return NULL;
}

void warm_stop(struct warm *w)
{
	if (!w)
		return;
	background_stop(&w->thread);
	free(w);
}
