/* SPDX-License-Identifier: Apache-2.0 */
/*
 * warm.c - the files of a plan read ahead in order, while their records are read in another
 */
#include "tools/shardpack/input/warm.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/exit_code.h"
#include "tools/common/files.h"

#define STEP_BYTES (UINT64_C(4) << 20)

struct warm {
	const struct plan *plan;
	const struct stored *stored;
	pthread_t thread;
	atomic_bool stop;
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

static void *run(void *context)
{
	struct warm *w = context;
	uint64_t i, at;

	for (i = 0; i < w->plan->file_count; i++)
		for (at = 0; at < w->plan->file[i].bytes && !w->stop; at += STEP_BYTES)
			stored_touch(w->stored, (uint32_t)i, at, STEP_BYTES);
	return NULL;
}

struct warm *warm_start(const struct plan *plan, const struct stored *stored)
{
	struct warm *w;
	uint64_t sum = 0, i;

	for (i = 0; i < plan->file_count; i++)
		sum += plan->file[i].bytes;
	if (plan->recipe.order != SHARD_ORDER_SHUFFLE || sum > available_bytes() / 2)
		return NULL;
	w = calloc(1, sizeof(*w));
	if (!w)
		return NULL;
	w->plan = plan;
	w->stored = stored;
	if (pthread_create(&w->thread, NULL, run, w) == 0)
		return w;
	free(w);
	return NULL;
}

void warm_stop(struct warm *w)
{
	if (!w)
		return;
	w->stop = true;
	pthread_join(w->thread, NULL);
	free(w);
}
