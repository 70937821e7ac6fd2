/* SPDX-License-Identifier: Apache-2.0 */
/*
 * damage.c - see damage.h
 */
#include "libshard/load/damage.h"

void damage_open(struct damage *d)
{
	pthread_mutex_init(&d->lock, NULL);
	d->last.status = SHARD_OK;
}

void damage_close(struct damage *d)
{
	pthread_mutex_destroy(&d->lock);
}

void damage_note(struct damage *d, const struct shard_error *problem)
{
	if (!problem)
		return;
	pthread_mutex_lock(&d->lock);
	d->last = *problem;
	pthread_mutex_unlock(&d->lock);
}

int damage_set_aside(struct damage *d, uint8_t *row_flags, const struct shard_error *problem)
{
	damage_note(d, problem);
	*row_flags |= ROW_DAMAGED;
	return SHARD_OK;
}

bool damage_last(struct damage *d, struct shard_error *out)
{
	bool has;

	pthread_mutex_lock(&d->lock);
	has = d->last.status != SHARD_OK;
	if (has)
		*out = d->last;
	pthread_mutex_unlock(&d->lock);
	return has;
}
