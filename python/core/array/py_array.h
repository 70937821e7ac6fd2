/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_array.h - arrays that lend the memory of batches, for NumPy and DLPack
 */
#ifndef SHARD_PYTHON_CORE_ARRAY_PY_ARRAY_H
#define SHARD_PYTHON_CORE_ARRAY_PY_ARRAY_H

#include "python/core/base/py_base.h"

/* ---- py_exchange.c: streams ---- */

struct stream {
	void *handle;
	PyObject *object; /* it owns the stream; NULL: the caller who gave the number keeps it */
};

/*
 * None is the legacy default stream.  Else it is a number, or an object with __cuda_stream__,
 * cuda_stream or ptr.  For the number of CuPy's current stream its object is found.  If this
 * returns false, an exception is set.
 */
bool stream_take(PyObject *from, struct stream *out);
void stream_drop(struct stream *s);

/*
 * py_lease.c: the lender
 *
 * A loader belongs to one thread at a time, but arrays die in any thread.  A batch whose last array
 * dies while another thread is inside the loader waits in a list, and goes back when that thread
 * leaves.  So does a batch that the driver does not take back, until the next batch is asked for.
 */

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
	bool pins; /* the ring is page-locked, and batches go back behind what `stream` has queued */
	/*
	 * A function of bytes that makes memory, (object, address).  Each batch is then in memory that
	 * belongs to its arrays alone: nothing is lent.  NULL: batches are lent.
	 */
	PyObject *make_memory;
	struct memory **slot; /* [slot_count + 1] memory of each slot, and of the one that takes its place */
	uint32_t slot_count;
	bool has_slots;	   /* the loader has them */
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

bool lender_is_usable(const struct lender *l); /* may a call be made now?  Else an exception is set */
/* Give back the batches that are late.  Batches that the driver refuses stay late, and the call fails. */
int lender_flush(struct lender *l, struct shard_error *err);
void lender_let_go(struct lender *l); /* no array lives: close the handle */

/*
 * py_lease.c: the lease
 *
 * Nobody calls release in Python.  The large fields of a batch are arrays that hold the lease; when
 * the last of them dies, in whatever thread, the slot is free.
 *
 * A batch on a GPU comes on the loader's stream.  A library that takes an array says on which
 * stream it will use it (DLPack), or gets the loader's stream (__cuda_array_interface__, data_ptr).
 * Other streams are made to wait for the loader's, and are noted: the batch goes back behind all
 * work that these streams have queued by then.  Objects of streams are kept until then.
 */

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

/* ---- py_array.c ---- */

struct array {
	PyObject_HEAD PyObject *owner; /* of the bytes, or a promise of them */
	int field;		       /* the field of a batch, if the owner is a lease; else -1 */
	int group;		       /* of a promise, in which `v.data` is an offset; else -1 */
	struct view v;
};

/* Records that will be read, group by group, when one of their arrays is looked into. */
struct promise {
	PyObject_HEAD bool (*keep)(struct promise *p, int group); /* else an exception is set */
	const char *data[SHARD_GROUPS_MAX];			  /* NULL: not yet */
	PyObject *owner[SHARD_GROUPS_MAX];
};
extern PyTypeObject *array_type; /* set by array_init() */

/* The array takes a reference to its owner.  NULL with an exception set if there is no memory. */
struct array *array_new(PyObject *owner, int field, const struct view *v);

/* A field of neighbouring rows, [count, ...shape], or that of one record if `count` is -1. */
struct array *array_of_field(PyObject *owner, int field, const struct shard_field *f, const void *data,
			     Py_ssize_t count, Py_ssize_t row_stride);

/* As array_of_field(), in rows that are promised. */
struct array *array_promised(struct promise *p, const struct shard_field *f, Py_ssize_t count, Py_ssize_t row_stride);

/* Numbers that lie one behind the other. */
struct array *array_of_numbers(PyObject *owner, const void *data, uint32_t dtype, Py_ssize_t count);

/* In memory of its own: a copy, which is dense, and numbers that the caller will write to *data. */
struct array *array_copy(const struct array *a);
struct array *array_alloc(uint32_t dtype, uint64_t count, void **data);

/*
 * Some libraries write to read-only arrays.  A write to the map of a file would end the process.
 * So an array is moved to memory of its own before another library gets it.  An array above 64 MiB
 * stays on the map, because the copy may not fit memory.  Returns false with an exception set if
 * there is no memory, or if the file cannot be read any more.
 */
bool array_own(struct array *a);
bool array_is_mapped(const struct array *a);

struct lease *array_lease_on_device(const struct array *a); /* NULL: the array is in the memory of the CPU */

/*
 * Can this process follow the array's pointer?  And can the CPU?  Else an exception is set.  All
 * that look into an array ask first, so what was promised is read here.
 */
bool array_is_reachable(struct array *a);
bool array_is_readable(struct array *a);

int array_init(PyObject *module);
PyObject *array_unpickle(PyObject *self, PyObject *args); /* _array(dtype, shape, bytes) of the module */

/*
 * py_exchange.c: the buffer protocol, __array_interface__, __cuda_array_interface__
 */

int array_buffer(PyObject *self, Py_buffer *view, int flags);
PyObject *array_interface(PyObject *self, void *unused);
PyObject *array_to_numpy(PyObject *self, PyObject *args, PyObject *kwargs); /* its method __array__ */
PyObject *array_cuda_interface(PyObject *self, void *unused);

/* ---- py_exchange.c: DLPack ---- */

PyObject *array_dlpack(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *array_dlpack_device(PyObject *self, PyObject *unused);

#endif
