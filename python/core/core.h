/* SPDX-License-Identifier: Apache-2.0 */
/*
 * core.h - what the files of the extension module libshard._core share
 *
 * CPython's stable ABI of 3.11 only, so that one build serves every later version.  The types here are plain: they own
 * handles and memory, and say what is wrong.  What a Python user would rather have is written in Python, on top.
 *
 *   module.c   the module, and types
 *   errors.c   shard_error to an exception of libshard._errors
 *   memory.c   aligned memory of our own
 *   array.c    read-only n-dimensional views, with the buffer protocol and __array_interface__
 *   dlpack.c   the same views for who speaks DLPack
 *   record.c   records as dicts: one, a slice of neighbours, or any indices
 *   dataset.c  struct shard_dataset
 *   loader.c   struct shard_loader; lease.c a lent batch, that goes back with its last view
 *
 * Lifetimes: a view holds its owner (memory, lease or dataset), a lease its loader, a loader its dataset.  So close()
 * only marks; the handle goes when nothing points into it any more.
 */
#ifndef LIBSHARD_PYTHON_CORE_H
#define LIBSHARD_PYTHON_CORE_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#include <stdbool.h>
#include <stdint.h>

#include "shard.h"

/* References to what has a type of our own; the macros of the stable ABI want PyObject. */
static inline void *ref(void *object)
{
	return Py_NewRef((PyObject *)object);
}

static inline void unref(void *object) /* or NULL */
{
	Py_XDECREF((PyObject *)object);
}

/* ---- module.c ---- */

PyTypeObject *add_type(PyObject *module, const char *name, PyType_Spec *spec); /* with no name it is ours alone */

/* ---- errors.c: all return NULL or -1 with an exception set ---- */

int errors_init(void);
PyObject *fail(const struct shard_error *err);
PyObject *fail_closed(const char *what);
PyObject *fail_argument(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* ---- memory.c ---- */

#define MEMORY_ALIGN_BYTES 64 /* what arrays of other libraries have; JAX copies what has less */

struct memory {
	PyObject_HEAD
	void *data;
};
int memory_init(PyObject *module);
struct memory *memory_new(size_t bytes); /* not zeroed */

/* ---- array.c ---- */

#define AXES_MAX (SHARD_DIMS_MAX + 1)

struct array {
	PyObject_HEAD
	PyObject *owner; /* of the bytes */
	const char *data;
	uint32_t dtype;	 /* enum shard_dtype */
	int axis_count;
	int field;	 /* of a lease, else -1 */
	Py_ssize_t shape[AXES_MAX], stride[AXES_MAX]; /* strides in bytes */
};
extern PyTypeObject *array_type;
int array_init(PyObject *module);

/* `field` is -1 unless the owner is a lease.  Takes no reference that the caller has. */
struct array *array_new(PyObject *owner, int field, const void *data, uint32_t dtype, int axis_count, const Py_ssize_t *shape,
			const Py_ssize_t *stride);

/* A field of neighbouring rows: [count, ...shape] if count is not -1, else the field of one record. */
struct array *array_of_field(PyObject *owner, int field, const struct shard_field *f, const void *data, Py_ssize_t count,
			     Py_ssize_t row_stride);
struct array *array_copy(const struct array *a); /* dense, in memory of its own */
bool array_is_dense(const struct array *a);
Py_ssize_t array_item_count(const struct array *a);
PyObject *array_scalar(uint32_t dtype, const void *at); /* as int, float or bool */
PyObject *array_numpy_name(uint32_t dtype);		 /* "uint8", "bfloat16", ... */
bool array_is_reachable(const struct array *a);		 /* else an exception is set: its memory stayed in another process */

/* ---- dlpack.c ---- */

PyObject *array_dlpack(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *array_dlpack_device(PyObject *self, PyObject *unused);

/* ---- dataset.c, record.c ---- */

struct dataset {
	PyObject_HEAD
	struct shard_dataset *ds;
	PyObject *path;
	PyObject *name[SHARD_FIELDS_MAX]; /* of fields */
	bool closed;
};
extern PyTypeObject *dataset_type;
int dataset_init(PyObject *module);
bool dataset_is_open(const struct dataset *d); /* else ClosedError is set */

PyObject *record_at(struct dataset *d, uint64_t idx);
PyObject *record_slice(struct dataset *d, uint64_t first, int64_t step, uint64_t count);
PyObject *record_gather(struct dataset *d, const uint64_t *idx, size_t count);

/* ---- lease.c, loader.c ---- */

struct loader {
	PyObject_HEAD
	struct dataset *dataset;
	struct shard_loader *l;
	PyObject *lent_memory; /* of a ring that is the caller's, or NULL */
	Py_buffer lent_buffer;
	struct lease *held;    /* the leases that live, oldest first */
	uint32_t held_count, max_held;
	bool busy;	       /* a call runs without the interpreter's lock: what dies meanwhile waits in `late` */
	struct shard_batch *late;
	uint32_t late_count, slot_count;
	long owner_pid; /* of the process that took the first batch, as memory and threads are; 0: nobody did */
	bool closed;
};
extern PyTypeObject *loader_type;
int loader_init(PyObject *module);
void loader_let_go(struct loader *l); /* no view lives: close the handle */

struct lease {
	PyObject_HEAD
	struct loader *loader;
	struct shard_batch batch;
	struct lease *older, *newer;
	uint32_t view_count[SHARD_FIELDS_MAX];
};
extern PyTypeObject *lease_type;
int lease_init(PyObject *module);
struct lease *lease_new(struct loader *l, const struct shard_batch *batch); /* takes over the batch, also if it fails */
void lease_flush(struct loader *l);	    /* give back what died meanwhile */
PyObject *lease_fail_held(const struct loader *l); /* too many are held: who holds them */

#endif /* LIBSHARD_PYTHON_CORE_H */
