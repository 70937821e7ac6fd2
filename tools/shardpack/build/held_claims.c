/* SPDX-License-Identifier: Apache-2.0 */
/*
 * held_claims.c - the claims that this process holds, and the thread that renews them
 */
#include "tools/shardpack/build/held_claims.h"

#include <errno.h>
#include <stdlib.h>

#include "libshard/base/clock.h"
#include "tools/common/exit_code.h"
#include "tools/common/files.h"
#include "tools/common/grow.h"
#include "tools/common/message.h"

static void *renew(void *context)
{
	struct held_claims *l = context;
	struct timespec until;

	pthread_mutex_lock(&l->lock);
	while (!l->stop) {
		until = clock_after_ns(claim_times.beat);
		while (!l->stop && pthread_cond_clockwait(&l->stopped, &l->lock, CLOCK_MONOTONIC, &until) != ETIMEDOUT)
			;
		for (uint64_t i = 0; !l->stop && i < l->count; i++)
			claim_beat(&l->item[i]->claim);
	}
	pthread_mutex_unlock(&l->lock);
	return NULL;
}

int held_open(struct held_claims *l)
{
	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->stopped, NULL);
	l->has_thread = !pthread_create(&l->thread, NULL, renew, l);
	return l->has_thread ? EXIT_DONE : fail(EXIT_IO, "cannot start a thread");
}

bool held_add(struct held_claims *l, struct held *h)
{
	bool added;

	pthread_mutex_lock(&l->lock);
	added = grow(&l->item, &l->room, l->count + 1, sizeof(struct held *));
	if (added)
		l->item[l->count++] = h;
	pthread_mutex_unlock(&l->lock);
	return added;
}

struct held *held_of(const struct held_claims *l, uint64_t range)
{
	for (uint64_t i = 0; i < l->count; i++)
		if (l->item[i]->range == range)
			return l->item[i];
	return NULL;
}

void held_release(struct held_claims *l, struct held *h, const char *state_dir, bool is_built)
{
	char path[FILES_PATH_BYTES], built[FILES_PATH_BYTES];
	uint64_t i = 0;

	pthread_mutex_lock(&l->lock);
	while (l->item[i] != h)
		i++;
	l->item[i] = l->item[--l->count];
	pthread_mutex_unlock(&l->lock);
	if (claim_path(path, state_dir, h->range) == EXIT_DONE &&
	    claim_built_path(built, state_dir, h->range) == EXIT_DONE)
		claim_release(&h->claim, path, is_built ? built : NULL, h->failed);
	free(h);
}

void held_close(struct held_claims *l, const char *state_dir)
{
	if (!l->has_thread)
		return;
	pthread_mutex_lock(&l->lock);
	l->stop = true;
	pthread_cond_signal(&l->stopped);
	pthread_mutex_unlock(&l->lock);
	pthread_join(l->thread, NULL);
	while (l->count)
		held_release(l, l->item[0], state_dir, false);
	pthread_cond_destroy(&l->stopped);
	pthread_mutex_destroy(&l->lock);
	free(l->item);
	*l = (struct held_claims){0};
}
