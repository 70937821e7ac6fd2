/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_base.h - what all rooms of the core use: references, exceptions, views, memory
 *
 * CPython's ABI is the stable one of 3.11, so that one build serves every later version.  The types
 * of this module are plain: they own handles and memory, and report errors.  What a Python user
 * sees is written in Python on top of them, in libshard/.
 *
 * Lifetimes: an array holds its owner, which is memory, a lease or a dataset.  A lease holds its
 * loader, and a loader its dataset.  So close() only marks an object as closed; its handle goes
 * when nothing points into its memory any more.
 */
#ifndef SHARD_PYTHON_CORE_BASE_PY_BASE_H
#define SHARD_PYTHON_CORE_BASE_PY_BASE_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "shard.h"

/* The macros of the stable ABI take a PyObject; these take a pointer to any object. */
static inline void *ref(void *object)
{
	return Py_NewRef((PyObject *)object);
}

static inline void unref(void *object) /* or NULL */
{
	Py_XDECREF((PyObject *)object);
}

/*
 * Make a type, and enter it in the module under this name.  If `name` is NULL, only this module
 * knows the type.  Returns 0, or -1 with an exception set.
 */
int add_type(PyTypeObject **type, PyObject *module, const char *name, PyType_Spec *spec);

/* An object of a type, or of one below it, all zero; and the end of what it is made of. */
void *object_alloc(PyTypeObject *type);
void object_free(PyObject *self);

/* ---- py_errors.c ---- */

/* Every fail function sets an exception and returns NULL. */

int errors_init(void);

/* The library's error.  If an exception is set already, such as that of a callback, it stays. */
PyObject *fail(const struct shard_error *err);

/*
 * The same for calls that need a GPU.  Where the library says UNSUPPORTED, a Python user gets a
 * DeviceError too.  The second is for a machine without a driver or GPU, and adds what to do in
 * Python.
 */
PyObject *fail_device(const struct shard_error *err);
PyObject *fail_no_device(const struct shard_error *err);

PyObject *fail_closed(const char *what);
PyObject *fail_memory(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
PyObject *fail_argument(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* TypeError: `what` must be so and so, and the value is of another type. */
PyObject *fail_type(const char *what, PyObject *value);

/*
 * An AttributeError is set: `owner` has no such attribute.  If people know it from other libraries,
 * the exception says what is there instead.
 */
PyObject *fail_attribute(PyObject *owner, PyObject *name);

/* RecordError of a record, and of a field of it unless `field` is NULL. */
PyObject *fail_record(unsigned long long record, const char *field, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * py_view.c
 *
 * A view owns nothing.  It is what arrays of ours and those of other libraries have in common.
 */

#define VIEW_AXES_MAX (SHARD_DIMS_MAX + 1)

struct view {
	const char *data;
	uint32_t dtype; /* enum shard_dtype */
	int axis_count;
	Py_ssize_t shape[VIEW_AXES_MAX], stride[VIEW_AXES_MAX]; /* strides in bytes */
};

Py_ssize_t view_item_bytes(const struct view *v); /* of one element */
Py_ssize_t view_item_count(const struct view *v);
bool view_is_dense(const struct view *v);

/* Strides of elements that lie one behind the other, for the axes from `axis` on. */
void view_set_dense_strides(struct view *v, int axis);

struct view view_row(const struct view *v, Py_ssize_t i); /* without its first axis */
void view_copy_out(const struct view *v, char *to);	  /* all elements, one behind the other */

/* For Python: tuples of the shape and the strides, and the elements as nested lists. */
PyObject *view_shape(const struct view *v);
PyObject *view_strides(const struct view *v);
PyObject *view_list(const struct view *v);

/* ---- py_view.c: dtypes and numbers ---- */

const char *number_name(uint32_t dtype);    /* as NumPy has it: "uint8", "bfloat16", ... */
uint32_t number_named(const char *name);    /* the dtype of that name, or 0 */
const char *number_format(uint32_t dtype);  /* of the buffer protocol; NULL for bfloat16, which it does not have */
const char *number_typestr(uint32_t dtype); /* of __array_interface__ */

/* The numbers of a slice, as PySlice_Unpack has them; else an exception is set that says what it must be. */
bool number_slice(PyObject *slice, Py_ssize_t *first, Py_ssize_t *stop, Py_ssize_t *step);

PyObject *number_scalar(uint32_t dtype, const void *at); /* an int, float or bool */

/* Are the items of a buffer whole numbers, or bools, in native bytes?  It was asked for with its format. */
bool number_is_whole(const Py_buffer *b);
bool number_is_signed(const Py_buffer *b);

/* One of these items, with its sign in all 64 bits. */
static inline uint64_t number_of_item(const char *at, Py_ssize_t bytes, bool is_signed)
{
	uint64_t number = 0, sign = is_signed ? UINT64_C(1) << (8 * bytes - 1) : 0;

	if (bytes == 8) /* most arrays of numbers; the compiler knows the length */
		memcpy(&number, at, 8);
	else
		memcpy(&number, at, (size_t)bytes);
	return (number ^ sign) - sign;
}

/* ---- py_crc32c.c: crc32c(data, first, last, slow) of the module ---- */

PyObject *crc32c(PyObject *self, PyObject *args);
bool crc32c_is_fast(void); /* by the processor's instruction; CRC32C_IS_FAST of the module */
uint32_t crc32c_of(const uint8_t *at, size_t bytes);

/* ---- py_tfrecord.c: tfrecords(data, first, base, without) of the module ---- */

PyObject *tfrecords(PyObject *self, PyObject *args);

/* ---- py_view.c: a schema, described to Python ---- */

PyObject *schema_fields(const struct shard_schema *s); /* a list with a dict for each field */

/* ---- py_memory.c: aligned memory that lives as long as an array in it ---- */

#define MEMORY_ALIGN_BYTES 64 /* what arrays of other libraries have; JAX copies an array that has less */

struct memory {
	PyObject_HEAD void *data;
	size_t bytes;	  /* rounded up */
	PyObject *object; /* it owns the bytes; NULL: they are ours */
};

int memory_init(PyObject *module);
bool memory_is(PyObject *object);
struct memory *memory_new(size_t bytes);			      /* not zeroed; else NULL with an exception set */
struct memory *memory_of(PyObject *object, void *data, size_t bytes); /* the object's; or NULL as above */

/*
 * py_memory.c: the maps of shards
 *
 * Every pointer into a map is followed here, because the file may have been cut or its disk may
 * fail.  Then StorageError is set.
 */

/* A dataset, as far as its maps are concerned.  The struct of a dataset begins like this. */
struct map_owner {
	PyObject_HEAD struct shard_dataset *ds;
};

/*
 * Copy out of memory that belongs to `owner`: a dataset, or an object whose memory is its own.
 * False with StorageError set if the map cannot be read.
 */
bool map_copy(PyObject *owner, const void *from, size_t bytes, void *to);
bool map_copy_view(PyObject *owner, const struct view *v, char *to); /* as view_copy_out() */

/* Objects of Python that are made of such bytes.  NULL with an exception set if that fails. */
PyObject *map_bytes(PyObject *owner, const void *from, Py_ssize_t bytes);
PyObject *map_text(PyObject *owner, const void *from, Py_ssize_t bytes);
PyObject *map_texts(PyObject *owner, const void *rows, uint32_t count, uint32_t row_bytes); /* as texts_of_rows() */
PyObject *map_number(PyObject *owner, uint32_t dtype, const void *from);

/*
 * A list of `count` texts.  Each is a row of row_bytes bytes, and ends before the first zero byte.
 * The rows are not part of a map.
 */
PyObject *texts_of_rows(const char *rows, uint32_t count, uint32_t row_bytes);

/*
 * What DLPack's capsules hold
 *
 * Structures and constants are those of DLPack 1.0 (dmlc.github.io/dlpack, C API), and of the older
 * form without a version.  The older form cannot say that memory is read-only: a library that asks
 * for it has to know.
 */

struct dl_device {
	int32_t type, id;
};
struct dl_type {
	uint8_t code, bits;
	uint16_t lanes;
};
struct dl_tensor {
	void *data;
	struct dl_device device;
	int32_t ndim;
	struct dl_type dtype;
	int64_t *shape, *strides; /* strides in elements */
	uint64_t byte_offset;
};
struct dl_managed {
	struct dl_tensor tensor;
	void *context;
	void (*deleter)(struct dl_managed *);
};
struct dl_managed_versioned {
	uint32_t major, minor;
	void *context;
	void (*deleter)(struct dl_managed_versioned *);
	uint64_t flags;
	struct dl_tensor tensor;
};

enum { DL_CPU = 1, DL_CUDA = 2, DL_CUDA_HOST = 3 };
enum { DL_INT = 0, DL_UINT = 1, DL_FLOAT = 2, DL_BFLOAT = 4, DL_BOOL = 6 };

#endif
