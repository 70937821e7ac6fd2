/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_lender.c - the part of a loader that the arrays of its batches need
 */
#include "python/core/array/py_lender.h"

#include "python/core/base/py_errors.h"
#include "shard_gpu.h"

bool lender_is_usable(const struct lender *l)
{
	if (l->closed)
		fail_closed("loader");
	else if (l->busy)
		fail_argument("another thread waits in this loader; a loader belongs to one thread at a time");
	return !l->closed && !l->busy;
}

static void give_back_on_device(struct lender *l, const struct late *late)
{
	void *behind = late->stream_count ? late->stream[0] : l->stream;
	struct shard_error err;
	int rc = SHARD_OK;

	for (uint32_t i = 1; !rc && i < late->stream_count; i++)
		rc = shard_loader_join(l->l, behind, late->stream[i], &err);
	/*
	 * If the driver fails, the next batch reports it.  A batch of which nothing is known is
	 * never used again.
	 */
	if (!rc)
		(void)shard_loader_release_after(l->l, &late->batch, behind, &err);
}

void lender_give_back(struct lender *l, const struct late *late)
{
	struct shard_error err;

	if (l->busy)
		l->late[l->late_count++] = *late;
	else if (l->on_device)
		give_back_on_device(l, late);
	else
		(void)shard_loader_release(l->l, &late->batch, &err); /* fails only in a forked child */
}

void lender_flush(struct lender *l)
{
	while (l->late_count)
		lender_give_back(l, &l->late[--l->late_count]);
}

void lender_let_go(struct lender *l)
{
	struct shard_loader *handle = l->l;

	l->l = NULL;
	Py_BEGIN_ALLOW_THREADS shard_loader_close(handle); /* waits for reads under way */
	Py_END_ALLOW_THREADS if (l->lent_memory) PyBuffer_Release(&l->lent_buffer);
	Py_CLEAR(l->lent_memory);
}
