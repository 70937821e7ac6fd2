/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drain.c - two buffers and one thread
 */
#include "libshard/store/write/drain.h"

#include <pthread.h>
#include <stdbool.h>

#include "libshard/base/mem.h"
#include "libshard/io/buffer.h"

struct drain {
	drain_write *write;	/* const after open */
	void *context;		/* const after open */
	uint8_t *buffer[2];	/* const after open */
	unsigned current;	/* of the user: the buffer being filled */
	bool has_thread;	/* of the user */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t asked;	/* with lock: there is something to write, or stop was set */
	pthread_cond_t told;	/* with lock: it was written */
	const uint8_t *data;	/* lock: to be written; NULL: nothing */
	size_t bytes;		/* lock: of it */
	bool stop;		/* lock: set once */
	int rc;			/* lock: how the first write that failed did */
	struct shard_error why; /* lock: if rc is not 0 */
};

/* With lock, which it gives up meanwhile. */
static void write_it(struct drain *d)
{
	int rc;

	pthread_mutex_unlock(&d->lock);
	rc = d->write(d->context, d->data, d->bytes, &d->why);
	pthread_mutex_lock(&d->lock);
	d->rc = rc;
	d->data = NULL;
	pthread_cond_signal(&d->told);
}

static void *drain_main(void *context)
{
	struct drain *d = context;

	pthread_mutex_lock(&d->lock);
	while (!d->stop) {
		if (d->data)
			write_it(d);
		else
			pthread_cond_wait(&d->asked, &d->lock);
	}
	pthread_mutex_unlock(&d->lock);
	return NULL;
}

struct drain *drain_open(drain_write *write, void *context, size_t buffer_bytes)
{
	struct drain *d = mem_zalloc(sizeof(*d));

	if (!d)
		return NULL;
	d->write = write;
	d->context = context;
	pthread_mutex_init(&d->lock, NULL);
	pthread_cond_init(&d->asked, NULL);
	pthread_cond_init(&d->told, NULL);
	d->buffer[0] = buffer_open(buffer_bytes);
	d->buffer[1] = buffer_open(buffer_bytes);
	if (!d->buffer[0] || !d->buffer[1]) {
		drain_close(d);
		return NULL;
	}
	d->has_thread = !pthread_create(&d->thread, NULL, drain_main, d);
	return d;
}

void drain_close(struct drain *d)
{
	if (!d)
		return;
	pthread_mutex_lock(&d->lock);
	d->stop = true;
	pthread_cond_signal(&d->asked);
	pthread_mutex_unlock(&d->lock);
	if (d->has_thread)
		pthread_join(d->thread, NULL);
	pthread_cond_destroy(&d->told);
	pthread_cond_destroy(&d->asked);
	pthread_mutex_destroy(&d->lock);
	mem_free(d->buffer[0]);
	mem_free(d->buffer[1]);
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
		pthread_cond_wait(&d->told, &d->lock);
	if (d->rc && err)
		*err = d->why;
	return d->rc;
}

int drain_put(struct drain *d, size_t bytes, struct shard_error *err)
{
	int rc;

	pthread_mutex_lock(&d->lock);
	rc = wait_idle(d, err);
	if (!rc) {
		d->data = d->buffer[d->current];
		d->bytes = bytes;
		d->current ^= 1;
		if (d->has_thread) {
			pthread_cond_signal(&d->asked);
		} else {
			write_it(d);
			rc = wait_idle(d, err);
		}
	}
	pthread_mutex_unlock(&d->lock);
	return rc;
}

int drain_wait(struct drain *d, struct shard_error *err)
{
	int rc;

	pthread_mutex_lock(&d->lock);
	rc = wait_idle(d, err);
	pthread_mutex_unlock(&d->lock);
	return rc;
}
