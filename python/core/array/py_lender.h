/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_lender.h - the part of a loader that the arrays of its batches need
 *
 * A loader belongs to one thread at a time, but arrays die in any thread.  A batch whose last array
 * dies while another thread is inside the loader waits in a list, and goes back when that thread
 * leaves.  So does a batch that the driver does not take back, until the next batch is asked for.
 */
#ifndef SHARD_ARRAY_PY_LENDER_H
#define SHARD_ARRAY_PY_LENDER_H

#include "python/core/array/py_stream.h"

#define LENDER_STREAMS_MAX 8

/*
 * A batch that is to go back.  If it is on a GPU, it goes back behind the work that is queued on
 * these streams.
 */
struct late {
	struct shard_batch batch;
	struct stream stream[LENDER_STREAMS_MAX + 1];
	uint32_t stream_count;
};

struct lease;

struct lender {
	PyObject_HEAD struct shard_loader *l; /* NULL: closed, and nothing is lent any more */
	struct lease *held;		      /* the leases that live, oldest first */
	uint32_t held_count;
	bool on_device; /* batches are in the memory of GPU number `gpu`, and come on `stream` */
	uint32_t gpu;
	struct stream stream;
	bool busy;	   /* a call runs without the interpreter's lock */
	struct late *late; /* batches that died and are still lent; there is room for every slot */
	uint32_t late_count;
	PyObject *lent_memory; /* of a ring that is the caller's, or NULL */
	Py_buffer lent_buffer;
	/*
	 * of the process that took the first batch, to which memory and threads belong; 0: none did
	 */
	long owner_pid;
	bool closed;
};

bool lender_is_usable(const struct lender *l);		    /* may a call be made now?  Else an exception is set */
void lender_give_back(struct lender *l, struct late *late); /* takes over the streams */
/* Give back the batches that are late.  Those that the driver refuses stay late, and it fails. */
int lender_flush(struct lender *l, struct shard_error *err);
void lender_let_go(struct lender *l); /* no array lives: close the handle */

#endif
