/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drain.c - two buffers and one thread
 */
#include "libshard/write/write.h"

#include "libshard/base/mem.h"
#include "libshard/base/thread.h"

struct drain {
	drain_write *write;	/* const after open */
	void *context;		/* const after open */
	uint8_t *buffer[2];	/* const after open */
	unsigned current;	/* of the user: the buffer being filled */
	struct task task;	/* asked: there is a buffer to write; told: it was written */
	const uint8_t *data;	/* lock: to be written; NULL: nothing */
	size_t bytes;		/* lock: of it */
	int rc;			/* lock: how the first write that failed did */
	struct shard_error why; /* lock: if rc is not 0 */
};

/* With lock, which it gives up meanwhile. */
static bool write_it(void *context)
{
	struct drain *d = context;
	int rc;

	if (!d->data)
		return false;
	task_unlock(&d->task);
	rc = d->write(d->context, d->data, d->bytes, &d->why);
	task_lock(&d->task);
	d->rc = rc;
	d->data = NULL;
	task_tell(&d->task);
	return true;
}

struct drain *drain_open(drain_write *write, void *context, uint8_t *const buffer[2])
{
	struct drain *d = mem_zalloc(sizeof(*d));

	if (!d)
		return NULL;
	d->write = write;
	d->context = context;
	d->buffer[0] = buffer[0];
	d->buffer[1] = buffer[1];
	task_start(&d->task, 1, write_it, d);
	return d;
}

void drain_close(struct drain *d)
{
	if (!d)
		return;
	task_stop(&d->task);
	mem_free(d);
}

uint8_t *drain_buffer(struct drain *d)
{
	return d->buffer[d->current];
}

/* With lock. */
static int wait_idle(struct drain *d, struct shard_error *err)
{
	while (d->data)
		task_wait(&d->task);
	if (d->rc && err)
		*err = d->why;
	return d->rc;
}

int drain_put(struct drain *d, size_t bytes, struct shard_error *err)
{
	int rc;

	task_lock(&d->task);
	rc = wait_idle(d, err);
	if (!rc) {
		d->data = d->buffer[d->current];
		d->bytes = bytes;
		d->current ^= 1;
		task_ask(&d->task);
		if (!d->task.thread_count)
			rc = wait_idle(d, err);
	}
	task_unlock(&d->task);
	return rc;
}

int drain_wait(struct drain *d, struct shard_error *err)
{
	int rc;

	task_lock(&d->task);
	rc = wait_idle(d, err);
	task_unlock(&d->task);
	return rc;
}
