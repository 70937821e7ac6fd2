/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_loader.c - an open loader: a lender, its dataset, and the next batch of it
 *
 * The interpreter's lock is released while a batch is waited for, a tenth of a second at a time, so
 * that ^C is heard.  A batch that is ready is taken without releasing it.
 */
#include "python/core/loader/py_loader.h"

#include <stdio.h>
#include <unistd.h>

#include "python/core/array/py_array.h"
#include "python/core/base/py_errors.h"
#include "shard_gpu.h"

#define SLICE_NS UINT64_C(100000000)

bool loader_choose_device(struct loader *l, PyObject *gpu, PyObject *stream, struct shard_loader_options *o)
{
	struct lender *lender = &l->lender;
	unsigned long number = gpu == Py_None ? 0 : PyLong_AsUnsignedLong(gpu);
	struct shard_error err;
	int rc;

	lender->on_device = true;
	if (PyErr_Occurred() || !stream_take(stream, &lender->stream))
		return false;
	if (number >= SHARD_GPU_OF_STREAM - SHARD_GPU(0)) {
		fail_argument("GPU %lu: no machine has so many", number);
		return false;
	}
	o->gpu = gpu == Py_None ? SHARD_GPU_OF_STREAM : SHARD_GPU(number);
	o->gpu_stream = lender->stream.handle;
	rc = shard_stream_gpu(lender->stream.handle, &lender->gpu, &err);
	if (gpu != Py_None)
		lender->gpu = (uint32_t)number; /* opening the loader checks the stream */
	if (rc == SHARD_E_UNSUPPORTED)
		fail_no_device(&err);
	else if (rc)
		fail(&err);
	return !rc;
}

/* Too many batches are held: say which, and by arrays of which fields. */
static void fail_held(const struct loader *l)
{
	const struct shard_schema *s = shard_dataset_schema(l->dataset->ds);
	const struct lease *lease = l->lender.held;
	char holders[256];
	size_t used = 0;

	holders[0] = '\0';
	for (uint32_t i = 0; i < l->lender.held_count && used < 160; i++, lease = lease->newer) {
		used += (size_t)snprintf(holders + used, sizeof(holders) - used, "%sstep %llu (", i ? ", " : "",
					 (unsigned long long)lease->as.batch.step);
		for (uint32_t f = 0, n = 0; f < s->field_count && used < 200; f++)
			if (lease->view_count[f])
				used += (size_t)snprintf(holders + used, sizeof(holders) - used, "%s%s",
							 n++ ? ", " : "", s->field[f].name);
		used += (size_t)snprintf(holders + used, sizeof(holders) - used, ")");
	}
	fail_argument("%u batches are still held, of %s; max_held is %u. Drop them, copy() the arrays to keep, "
		      "or open the loader with a greater max_held%s",
		      l->lender.held_count, holders, l->max_held,
		      l->lender.on_device ? ", at most 3 on a GPU" : " or copy=True");
}

/* What comes before the first wait on a GPU: memory, threads, reads. */
static int begin_device(struct lender *l, struct shard_error *err)
{
	int rc;

	l->busy = true;
	Py_BEGIN_ALLOW_THREADS rc = shard_loader_begin_device(l->l, l->stream.handle, err);
	Py_END_ALLOW_THREADS l->busy = false;
	return rc;
}

static int wait_for_batch(struct lender *l, struct shard_error *err)
{
	/*
	 * The first call makes ring and threads, which takes a while.  If something is wrong, the
	 * second call reports it.
	 */
	int rc = l->owner_pid && !shard_loader_wait(l->l, 0, NULL) ? SHARD_OK : SHARD_E_TIMEOUT;

	if (!l->owner_pid && l->on_device && begin_device(l, err))
		return err->status;
	while (rc == SHARD_E_TIMEOUT) {
		l->busy = true;
		Py_BEGIN_ALLOW_THREADS rc = shard_loader_wait(l->l, SLICE_NS, err);
		Py_END_ALLOW_THREADS l->busy = false;
		if (lender_flush(l, err))
			return err->status;
		if (PyErr_CheckSignals() < 0)
			return SHARD_E_CANCELLED;
	}
	if (!rc && !l->owner_pid)
		l->owner_pid = (long)getpid();
	return rc;
}

static int next_on_device(struct lender *l, struct shard_batch *b, struct shard_error *err)
{
	struct shard_error late;
	int rc;

	l->busy = true;
	Py_BEGIN_ALLOW_THREADS rc = shard_loader_next_device(l->l, l->stream.handle, b, err);
	Py_END_ALLOW_THREADS l->busy = false;
	(void)lender_flush(l, &late); /* the next call tells of arrays that are still late */
	return rc;
}

bool loader_end_left(struct loader *l)
{
	uint64_t epoch, position;
	struct shard_error err;

	shard_loader_tell(l->lender.l, &epoch, &position);
	/* Else the next epoch begins already: at 0, or of a mixture behind a step. */
	if (position && epoch == l->epoch) {
		epoch++;
		position = 0;
	}
	if (shard_loader_seek(l->lender.l, epoch, position, &err)) { /* also past the end, if nobody asked for it */
		fail(&err);
		return false;
	}
	l->placed = true;
	l->at_left = false;
	return true;
}

int loader_next_batch(struct loader *l, struct shard_batch *b)
{
	struct lender *lender = &l->lender;
	struct shard_error err;
	int rc;

	if (lender->held_count > l->max_held)
		PyGC_Collect(); /* batches may be held by a circle of objects that nobody needs */
	if (lender->held_count > l->max_held) {
		fail_held(l);
		return SHARD_E_ARGUMENT;
	}
	rc = lender_flush(lender, &err);
	if (!rc)
		rc = wait_for_batch(lender, &err);
	if (!rc)
		rc = lender->on_device ? next_on_device(lender, b, &err) : shard_loader_next(lender->l, b, &err);
	if (!rc) {
		l->epoch = b->epoch;
		l->step = b->step;
	}
	if (rc && rc != SHARD_END && lender->on_device)
		fail_device(&err);
	else if (rc && rc != SHARD_END)
		fail(&err);
	return rc;
}
