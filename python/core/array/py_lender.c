/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_lender.c - the part of a loader that the arrays of its batches need
 */
#include "python/core/array/py_array.h"

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

static int give_back_on_device(struct lender *l, const struct late *late, struct shard_error *err)
{
	void *behind = late->stream_count ? late->stream[0].handle : l->stream.handle;
	int rc = SHARD_OK;

	for (uint32_t i = 1; !rc && i < late->stream_count; i++)
		rc = shard_loader_join(l->l, behind, late->stream[i].handle, err);
	return rc ? rc : shard_loader_release_after(l->l, &late->batch, behind, err);
}

static int give_back(struct lender *l, const struct late *late, struct shard_error *err)
{
	if (l->on_device)
		return give_back_on_device(l, late, err);
	(void)shard_loader_release(l->l, &late->batch, err); /* fails only in a forked child */
	return SHARD_OK;
}

/* May run any code of Python, as that of an object that destroys its stream. */
static void drop_streams(struct late *late)
{
	for (uint32_t i = 0; i < late->stream_count; i++)
		stream_drop(&late->stream[i]);
}

void lender_give_back(struct lender *l, struct late *late)
{
	struct shard_error err;

	if (l->busy || give_back(l, late, &err)) /* an error is told by the next batch, which tries again */
		l->late[l->late_count++] = *late;
	else
		drop_streams(late);
}

int lender_flush(struct lender *l, struct shard_error *err)
{
	int rc = SHARD_OK;

	for (uint32_t i = 0; i < l->late_count;) {
		struct late late = l->late[i];
		struct shard_error why;
		int got = give_back(l, &late, &why);

		if (got && !rc)
			*err = why;
		rc = rc ? rc : got;
		if (got) {
			i++;
			continue;
		}
		l->late[i] = l->late[--l->late_count];
		drop_streams(&late);
	}
	return rc;
}

void lender_let_go(struct lender *l)
{
	struct shard_loader *handle = l->l;
	struct shard_error err;

	if (handle)
		(void)lender_flush(l, &err); /* close waits for what goes back, and frees the rest */
	l->l = NULL;
	Py_BEGIN_ALLOW_THREADS shard_loader_close(handle); /* waits for reads under way */
	Py_END_ALLOW_THREADS if (l->lent_memory) PyBuffer_Release(&l->lent_buffer);
	Py_CLEAR(l->lent_memory);
	while (l->late_count)
		drop_streams(&l->late[--l->late_count]);
}
