/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_lease.h - a lent batch, which goes back to its loader with the last array in it
 *
 * Nobody calls release in Python.  The large fields of a batch are arrays that hold the lease; when
 * the last of them dies, in whatever thread, the slot is free.
 *
 * A batch on a GPU comes on the loader's stream.  A library that takes an array says on which
 * stream it will use it (DLPack), or gets the loader's stream (__cuda_array_interface__, data_ptr).
 * Other streams are made to wait for the loader's, and are noted: the batch goes back behind all
 * work that these streams have queued by then.  Objects of streams are kept until then.
 */
#ifndef SHARD_ARRAY_PY_LEASE_H
#define SHARD_ARRAY_PY_LEASE_H

#include "python/core/array/py_lender.h"

struct lease {
	PyObject_HEAD struct lender *lender;
	struct late as; /* the batch, and the streams that use it */
	struct lease *older, *newer;
	uint32_t view_count[SHARD_FIELDS_MAX]; /* arrays of each field that live */
};

int lease_init(PyObject *module);
/* takes over the batch, also if it fails */
struct lease *lease_new(struct lender *l, const struct shard_batch *batch);

/*
 * The batch will be used on this stream, or on the loader's own.  The first sets an exception if
 * that cannot be.
 */
bool lease_use(struct lease *lease, const struct stream *s);
void lease_use_own(struct lease *lease);

#endif
