/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_core.h - what the files of the extension module libshard._core share
 *
 * CPython's stable ABI of 3.11 only, so that one build serves every later version.  The types here are plain: they own
 * handles and memory, and say what is wrong.  What a Python user would rather have is written in Python, on top.
 *
 *   py_module.c   the module, and types
 *   py_errors.c   shard_error to an exception of libshard._errors
 *   py_memory.c   aligned memory of our own
 *   py_array.c    read-only n-dimensional views; py_number.c their elements
 *   py_buffer.c   the same views for the buffer protocol and __array_interface__
 *   py_dlpack.c   the same views for who speaks DLPack
 *   py_record.c   records as dicts: one, a slice of neighbours, or any indices
 *   py_dataset.c  struct shard_dataset
 *   py_loader.c   struct shard_loader, and its epochs; py_loader_methods.c its methods
 *   py_device.c   batches on a GPU, and the streams that use them
 *   py_batch.c    batches as dicts; py_lease.c a lent batch, that goes back with its last view
 *   py_layout.c   struct shard_schema of records that are to be written
 *   py_source.c   arrays of other libraries, as memory that can be read
 *   py_value.c    what a Python user has, as bytes of a field
 *   py_columns.c  the same of many records at once
 *   py_writer.c   struct shard_writer: one shard; py_seal.c what makes a dataset of them
 *
 * Lifetimes: a view holds its owner (memory, lease or dataset), a lease its loader, a loader its dataset.  So close()
 * only marks; the handle goes when nothing points into it any more.
 */
#ifndef SHARD_BASE_PY_CORE_H
#define SHARD_BASE_PY_CORE_H

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

/* ---- py_module.c ---- */

PyTypeObject *add_type(PyObject *module, const char *name, PyType_Spec *spec); /* with no name it is ours alone */

/* ---- py_errors.c: all return NULL or -1 with an exception set ---- */

int errors_init(void);
PyObject *fail(const struct shard_error *err);
PyObject *fail_closed(const char *what);
PyObject *fail_argument(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* RecordError of a record, and of a field of it unless `field` is NULL. */
PyObject *fail_record(unsigned long long record, const char *field, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* ---- py_memory.c ---- */

#define MEMORY_ALIGN_BYTES 64 /* what arrays of other libraries have; JAX copies what has less */

struct memory {
	PyObject_HEAD
	void *data;
	size_t bytes; /* with the rounding */
};
int memory_init(PyObject *module);
struct memory *memory_new(size_t bytes); /* not zeroed */

/* ---- py_array.c ---- */

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
void array_copy_out(const struct array *a, char *to); /* its elements, one behind the other */
bool array_is_dense(const struct array *a);
Py_ssize_t array_item_count(const struct array *a);
bool array_is_reachable(const struct array *a);		 /* else an exception is set: its memory stayed in another process */
bool array_is_readable(const struct array *a);		 /* the same, also for what is in the memory of a GPU */
struct lease *array_lease_on_device(const struct array *a); /* NULL: it is in the memory of the CPU */
PyObject *array_shape(PyObject *self, void *unused);
PyObject *array_strides(PyObject *self, void *unused);

/* ---- py_number.c ---- */

const char *array_name(uint32_t dtype);	   /* as NumPy has it: "uint8", "bfloat16", ... */
PyObject *array_numpy_name(uint32_t dtype);
const char *array_format(uint32_t dtype);  /* of the buffer protocol; NULL: it has none */
const char *array_typestr(uint32_t dtype); /* of __array_interface__ */
PyObject *array_scalar(uint32_t dtype, const void *at); /* as int, float or bool */
PyObject *array_list(const struct array *a);		 /* its elements, as nested lists */

/* ---- py_buffer.c, py_dlpack.c ---- */

int array_buffer(PyObject *self, Py_buffer *view, int flags);
PyObject *array_interface(PyObject *self, void *unused);
PyObject *array_dlpack(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *array_dlpack_device(PyObject *self, PyObject *unused);

/* ---- py_dataset.c, py_record.c ---- */

struct dataset {
	PyObject_HEAD
	struct shard_dataset *ds;
	PyObject *path;
	PyObject *name[SHARD_FIELDS_MAX]; /* of fields */
	uint64_t *first_record, shard_count; /* of each shard, and of the end; NULL before they are needed */
	bool closed;
};
extern PyTypeObject *dataset_type;
int dataset_init(PyObject *module);
bool dataset_is_open(const struct dataset *d); /* else ClosedError is set */

PyObject *record_at(struct dataset *d, uint64_t idx);
PyObject *record_slice(struct dataset *d, uint64_t first, int64_t step, uint64_t count);
PyObject *record_gather(struct dataset *d, const uint64_t *idx, size_t count);

/* ---- py_lease.c, py_loader.c, py_loader_methods.c ---- */

#define LEASE_STREAMS_MAX 8

/* A batch that is to go back, behind what is queued on streams of the GPU if it is there. */
struct late {
	struct shard_batch batch;
	void *stream[LEASE_STREAMS_MAX + 1];
	uint32_t stream_count;
};

struct loader {
	PyObject_HEAD
	struct dataset *dataset;
	struct shard_loader *l;
	PyObject *lent_memory; /* of a ring that is the caller's, or NULL */
	Py_buffer lent_buffer;
	struct lease *held;    /* the leases that live, oldest first */
	uint32_t held_count, max_held;
	bool on_device;	       /* batches are in the memory of GPU number `gpu`, and come on `stream` */
	uint32_t gpu;
	void *stream;
	bool busy;	       /* a call runs without the interpreter's lock: what dies meanwhile waits in `late` */
	struct late *late;
	uint32_t late_count, slot_count;
	long owner_pid; /* of the process that took the first batch, as memory and threads are; 0: nobody did */
	bool placed;   /* the next loop begins where the loader stands: none was left early since */
	bool closed;
};
extern PyTypeObject *loader_type;
int loader_init(PyObject *module);
extern PyMethodDef loader_methods[];
bool loader_is_usable(const struct loader *l); /* may a call be made now?  Else an exception is set */
void loader_let_go(struct loader *l);	       /* no view lives: close the handle */
PyObject *loader_close(PyObject *self, PyObject *unused);

struct lease {
	PyObject_HEAD
	struct loader *loader;
	struct late as; /* the batch, and who uses it */
	struct lease *older, *newer;
	uint32_t view_count[SHARD_FIELDS_MAX];
};
extern PyTypeObject *lease_type;
int lease_init(PyObject *module);
struct lease *lease_new(struct loader *l, const struct shard_batch *batch); /* takes over the batch, also if it fails */
void lease_flush(struct loader *l);	    /* give back what died meanwhile */
PyObject *lease_fail_held(const struct loader *l); /* too many are held: who holds them */

/* ---- py_device.c ---- */

bool device_open(struct loader *l, PyObject *stream);
PyObject *device_fail(const struct shard_error *err); /* an exception that says what to do in Python */
bool device_take_stream(PyObject *number, void **stream); /* else an exception is set */
unsigned long long device_stream_number(const struct loader *l); /* as DLPack has it: never 0 */
int device_begin(struct loader *l, struct shard_error *err); /* what comes before the first wait */
int device_next(struct loader *l, struct shard_batch *b, struct shard_error *err);
void device_give_back(struct loader *l, const struct late *late);
/* The batch will be used on this stream, which then waits for it.  Else an exception is set. */
bool device_use(struct lease *lease, void *stream);
void device_use_own(struct lease *lease); /* on the loader's, as far as we know */
PyObject *array_cuda_interface(PyObject *self, void *unused);

/* ---- py_batch.c ---- */

int batch_init(PyObject *module);
PyObject *batch_new(struct loader *l, const struct shard_batch *b); /* takes over the batch, also if it fails */

/* ---- py_layout.c ---- */

struct layout {
	PyObject_HEAD
	struct shard_schema schema;
	PyObject *name[SHARD_FIELDS_MAX];
};
extern PyTypeObject *layout_type;
int layout_init(PyObject *module);
PyObject *schema_fields(const struct shard_schema *s); /* a list of dicts */
PyObject *layout_meaning(PyObject *self, PyObject *args); /* for Python: what a field is by its name */

/* ---- py_source.c ---- */

/* Memory of another library, read-only: the part of a struct array that says what and where. */
struct source {
	struct array as;
	Py_buffer buffer; /* holds it, if it has an obj; else `holder` does */
	PyObject *holder;
	char why[128];	  /* if dtype is 0: what is wrong with it */
};
int source_open(struct source *s, PyObject *value); /* 1, or 0 if that is no array, or -1 with an exception set */
void source_close(struct source *s);
bool source_is(const struct source *s, const struct shard_field *f, int axis); /* has dtype, and shape behind the first axes */
PyObject *source_describe(PyObject *self, PyObject *value); /* for Python: dtype and shape */

/* ---- py_value.c ---- */

/* Write a value to its place in the group buffers.  Else RecordError is set. */
bool value_put(const struct shard_schema *s, uint32_t field, PyObject *value, char *const *group, unsigned long long record);

/* ---- py_columns.c ---- */

/* Of a mapping, what it has for a field.  Else RecordError is set, which says what there is. */
PyObject *layout_item(const struct layout *l, PyObject *record, uint32_t field, unsigned long long number);

struct columns {
	PyObject *value[SHARD_FIELDS_MAX];
	struct source source[SHARD_FIELDS_MAX];
	bool is_open[SHARD_FIELDS_MAX], all_fit; /* the columns are arrays of the fields' dtypes and shapes */
	bool whole[SHARD_GROUPS_MAX];		 /* a record of the group lies in its column as it is to be written */
	uint32_t lead[SHARD_GROUPS_MAX];	 /* the field that is it */
};
/* Of so many records from row `first` on, the first of which is `number`.  Else an exception is set; close it all the same. */
bool columns_open(struct columns *c, const struct layout *l, PyObject *dict, uint64_t first, uint64_t count, unsigned long long number);
void columns_close(struct columns *c);
/* If all_fit: where a row is, in place or put together in `room`, which has that of a record for each group.  Needs no lock. */
void columns_gather(const struct columns *c, const struct layout *l, uint64_t row, char *const *room, const char **group);

/* ---- py_writer.c, py_seal.c ---- */

int writer_init(PyObject *module);
extern PyMethodDef seal_functions[];

#endif
