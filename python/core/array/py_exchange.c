/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_exchange.c - arrays for other libraries: DLPack, the buffer protocol, NumPy's and CUDA's interfaces
 */
#include <string.h>

#include "python/core/array/py_array.h"
#include "python/core/base/py_base.h"

/* ---- streams of a GPU, as the numbers and objects that users and DLPack have for them ---- */

/*
 * Libraries destroy a stream with its object, and a handle of a stream that is gone must not reach
 * the driver.  So the object is kept where there is one.
 */

#define LEGACY	   1 /* the legacy default stream; the driver also takes 0 for it */
#define PER_THREAD 2 /* CU_STREAM_PER_THREAD */

/* The stream with this handle, if it is CuPy's current one: a new reference, or NULL. */
static PyObject *find_owner(void *handle)
{
	PyObject *name = PyUnicode_FromString("cupy.cuda"), *cuda = name ? PyImport_GetModule(name) : NULL;
	PyObject *current = cuda ? PyObject_CallMethod(cuda, "get_current_stream", NULL) : NULL;
	PyObject *number = current ? PyObject_GetAttrString(current, "ptr") : NULL;
	unsigned long long n = number ? PyLong_AsUnsignedLongLong(number) : 0;

	if (!number || PyErr_Occurred() || (void *)(uintptr_t)n != handle)
		Py_CLEAR(current);
	PyErr_Clear(); /* another CuPy than the one we know: then its user keeps the stream */
	Py_XDECREF(number);
	Py_XDECREF(cuda);
	Py_XDECREF(name);
	return current;
}

/* The number that an object has for its stream: a new reference, or NULL with an exception. */
static PyObject *number_of(PyObject *object)
{
	PyObject *pair, *number;

	if (PyObject_HasAttrString(object, "__cuda_stream__")) { /* a version, and the number */
		pair = PyObject_CallMethod(object, "__cuda_stream__", NULL);
		number = pair ? PySequence_GetItem(pair, 1) : NULL;
		Py_XDECREF(pair);
		return number;
	}
	if (PyObject_HasAttrString(object, "cuda_stream")) /* PyTorch */
		return PyObject_GetAttrString(object, "cuda_stream");
	if (PyObject_HasAttrString(object, "ptr")) /* CuPy */
		return PyObject_GetAttrString(object, "ptr");
	PyErr_SetString(PyExc_TypeError, "stream must be None, a number, or an object with __cuda_stream__, "
					 "cuda_stream or ptr");
	return NULL;
}

bool stream_take(PyObject *from, struct stream *out)
{
	bool is_number = from == Py_None || PyIndex_Check(from);
	PyObject *number = from == Py_None ? PyLong_FromLong(0) : is_number ? PyNumber_Index(from) : number_of(from);
	unsigned long long n = number ? PyLong_AsUnsignedLongLong(number) : 0;

	Py_XDECREF(number);
	if (PyErr_Occurred())
		return false;
	if (n == PER_THREAD) {
		PyErr_SetString(PyExc_BufferError, "stream 2 is another stream in each thread, and any thread may free "
						   "arrays; use 1, the legacy default stream, or a stream of your own");
		return false;
	}
	out->handle = n == LEGACY ? NULL : (void *)(uintptr_t)n;
	out->object = !out->handle ? NULL : is_number ? find_owner(out->handle) : Py_NewRef(from);
	return true;
}

void stream_drop(struct stream *s)
{
	Py_CLEAR(s->object);
}

/* never 0 */
static unsigned long long stream_number(const struct stream *s)
{
	return s->handle ? (unsigned long long)(uintptr_t)s->handle : LEGACY;
}

/* ---- DLPack ---- */

enum { DL_READ_ONLY = 1, DL_IS_COPIED = 2 };

static const uint8_t codes[] = {
	[SHARD_U8] = DL_UINT,	[SHARD_I8] = DL_INT,	  [SHARD_U16] = DL_UINT,  [SHARD_I16] = DL_INT,
	[SHARD_U32] = DL_UINT,	[SHARD_I32] = DL_INT,	  [SHARD_U64] = DL_UINT,  [SHARD_I64] = DL_INT,
	[SHARD_F16] = DL_FLOAT, [SHARD_BF16] = DL_BFLOAT, [SHARD_F32] = DL_FLOAT, [SHARD_F64] = DL_FLOAT,
	[SHARD_BOOL] = DL_BOOL,
};

/* A tensor that was given away, in one of the two forms. */
struct export
{
	union {
		struct dl_managed old;
		struct dl_managed_versioned new;
	} as;
	PyObject *array;
	int64_t shape[VIEW_AXES_MAX], strides[VIEW_AXES_MAX];
};

/*
 * Any thread of the other library may drop the tensor, also when the interpreter is gone and
 * nothing is left to free.
 */
static void drop(struct export *e)
{
	PyGILState_STATE state;

	if (!Py_IsInitialized())
		return;
	state = PyGILState_Ensure();
	Py_DECREF(e->array);
	PyMem_Free(e);
	PyGILState_Release(state);
}

static void drop_old(struct dl_managed *m)
{
	drop(m->context);
}

static void drop_new(struct dl_managed_versioned *m)
{
	drop(m->context);
}

static const char *const capsule_names[] = {"dltensor", "dltensor_versioned"};

/*
 * If a library took the tensor out of the capsule, the capsule has another name now, and the
 * library drops the tensor.
 */
static void drop_capsule(PyObject *capsule)
{
	for (int i = 0; i < 2; i++)
		if (PyCapsule_IsValid(capsule, capsule_names[i])) {
			void *managed = PyCapsule_GetPointer(capsule, capsule_names[i]);

			drop(i ? ((struct dl_managed_versioned *)managed)->context
			       : ((struct dl_managed *)managed)->context);
		}
}

static void describe(struct export *e, const struct array *a, struct dl_tensor *t)
{
	Py_ssize_t item_bytes = view_item_bytes(&a->v);
	const struct lease *lease = array_lease_on_device(a);

	for (int i = 0; i < a->v.axis_count; i++) {
		e->shape[i] = a->v.shape[i];
		e->strides[i] = a->v.stride[i] / item_bytes; /* strides of groups are multiples of 16 */
	}
	*t = (struct dl_tensor){
		.data = (void *)(uintptr_t)a->v.data,
		.device = lease ? (struct dl_device){DL_CUDA, (int32_t)lease->lender->gpu}
				: (struct dl_device){DL_CPU, 0},
		.ndim = a->v.axis_count,
		.dtype = {.code = codes[a->v.dtype], .bits = (uint8_t)(8 * item_bytes), .lanes = 1},
		.shape = e->shape,
		.strides = e->strides,
	};
}

/* Takes over the reference to `a`. */
static PyObject *capsule_of(struct array *a, bool versioned, bool copied)
{
	struct export *e = PyMem_Malloc(sizeof(*e));
	PyObject *capsule;

	if (!e) {
		unref(a);
		return PyErr_NoMemory();
	}
	memset(e, 0, sizeof(*e));
	e->array = (PyObject *)a;
	if (versioned) {
		e->as.new = (struct dl_managed_versioned){.major = 1,
							  .context = e,
							  .deleter = drop_new,
							  .flags = copied ? DL_IS_COPIED
								   : array_lease_on_device(a)
									   ? 0 /* see array_cuda_interface() */
									   : DL_READ_ONLY};
		describe(e, a, &e->as.new.tensor);
	} else {
		e->as.old = (struct dl_managed){.context = e, .deleter = drop_old};
		describe(e, a, &e->as.old.tensor);
	}
	capsule = PyCapsule_New(&e->as, capsule_names[versioned], drop_capsule);
	if (!capsule)
		drop(e);
	return capsule;
}

/*
 * The numbers are those of the array API: None and 1 are the legacy default stream; -1 is a library
 * that synchronizes by itself.
 */
static bool take_on_device(struct lease *lease, PyObject *number, bool in_place)
{
	long which = PyLong_Check(number) ? PyLong_AsLong(number) : 1; /* None, or an object */
	struct stream stream;
	bool good;

	if (which == -1 && PyErr_Occurred())
		return false;
	if (!in_place || !which || which < -1) {
		PyErr_Format(PyExc_BufferError,
			     in_place ? "stream is %ld; must be -1, 1 or a handle"
				      : "this array is in the memory of GPU %ld: dl_device must "
					"be None or that, and copy not True; the library that takes it can copy it",
			     in_place ? which : (long)lease->lender->gpu);
		return false;
	}
	if (which == -1) {
		lease_use_own(lease);
		return true;
	}
	if (!stream_take(number, &stream))
		return false;
	good = lease_use(lease, &stream);
	stream_drop(&stream);
	return good;
}

/*
 * Shall the tensor be a copy of the array?  That of a map must be: PyTorch passes over the flag
 * READ_ONLY, and capsules of the old form have none.  Returns -1 with an exception set if it cannot
 * be.
 */
static int take_copy(struct array *a, PyObject *copy)
{
	int wanted = PyObject_IsTrue(copy);

	if (wanted)
		return wanted;
	if (!array_own(a))
		return -1;
	if (!array_is_mapped(a))
		return 0;
	if (copy == Py_None)
		return 1;
	PyErr_SetString(PyExc_BufferError, "this array lies in a read-only file of the dataset, and is too long to be "
					   "moved: copy must be None or True; numpy.asarray() takes it as it is");
	return -1;
}

static bool take_pair(const char *name, PyObject *pair, int *first, int *second)
{
	if (pair == Py_None)
		return true;
	if (PyTuple_Check(pair))
		return PyArg_ParseTuple(pair, "ii", first, second);
	PyErr_Format(PyExc_TypeError, "%s must be None or a tuple of two integers, not %R", name, pair);
	return false;
}

PyObject *array_dlpack(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"stream", "max_version", "dl_device", "copy", NULL};
	PyObject *stream = Py_None, *max_version = Py_None, *device = Py_None, *copy = Py_None;
	struct array *a = (struct array *)self;
	struct lease *lease = array_lease_on_device(a);
	int home = lease ? DL_CUDA : DL_CPU, home_id = lease ? (int)lease->lender->gpu : 0;
	int major = 0, minor = 0, type = home, id = home_id, copied;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOO", names, &stream, &max_version, &device, &copy) ||
	    !take_pair("max_version", max_version, &major, &minor) || !take_pair("dl_device", device, &type, &id) ||
	    !array_is_reachable(a))
		return NULL;
	if (!lease && (stream != Py_None || type != home || id)) {
		PyErr_SetString(
			PyExc_BufferError,
			"this array is in the memory of the CPU: stream must be None, dl_device None or (1, 0)");
		return NULL;
	}
	copied = take_copy(a, copy);
	if (copied < 0 || (lease && !take_on_device(lease, stream, type == home && id == home_id && !copied)))
		return NULL;
	a = copied ? array_copy(a) : ref(self);
	return a ? capsule_of(a, major >= 1, copied) : NULL;
}

PyObject *array_dlpack_device(PyObject *self, PyObject *Py_UNUSED(unused))
{
	const struct lease *lease = array_lease_on_device((struct array *)self);

	return lease ? Py_BuildValue("(iI)", DL_CUDA, lease->lender->gpu) : Py_BuildValue("(ii)", DL_CPU, 0);
}

/* ---- the buffer protocol, __array_interface__, __array__ and __cuda_array_interface__ ---- */

int array_buffer(PyObject *self, Py_buffer *view, int flags)
{
	struct array *a = (struct array *)self;
	bool strided = flags & PyBUF_STRIDES & ~PyBUF_ND;
	const char *why = NULL;

	if (array_lease_on_device(a))
		why = "this array is in the memory of a GPU; use __dlpack__ or __cuda_array_interface__";
	else if (flags & PyBUF_WRITABLE)
		why = "datasets are read-only: copy() it, or ask for a read-only buffer";
	else if (!number_format(a->v.dtype))
		why = "the buffer protocol has no bfloat16; use __dlpack__";
	else if (!strided && !view_is_dense(&a->v))
		why = "its rows are apart; ask for a buffer with strides, or copy() it";
	view->obj = NULL;
	if (why)
		PyErr_SetString(PyExc_BufferError, why);
	if (why || !array_is_reachable(a) || !array_own(a))
		return -1;
	view->buf = (void *)(uintptr_t)a->v.data;
	view->obj = Py_NewRef(self);
	view->itemsize = view_item_bytes(&a->v);
	view->len = view_item_count(&a->v) * view->itemsize;
	view->readonly = 1;
	view->ndim = a->v.axis_count;
	view->format = flags & PyBUF_FORMAT ? (char *)(uintptr_t)number_format(a->v.dtype) : NULL;
	view->shape = flags & PyBUF_ND ? a->v.shape : NULL;
	view->strides = strided ? a->v.stride : NULL;
	view->suboffsets = NULL;
	view->internal = NULL;
	return 0;
}

/* The part that __array_interface__ and __cuda_array_interface__ share. */
static PyObject *describe_memory(const struct view *v, PyObject *read_only)
{
	return Py_BuildValue("{s:s,s:N,s:N,s:(KO),s:i}", "typestr", number_typestr(v->dtype), "shape", view_shape(v),
			     "strides", view_strides(v), "data", (unsigned long long)(uintptr_t)v->data, read_only,
			     "version", 3);
}

PyObject *array_interface(PyObject *self, void *Py_UNUSED(unused))
{
	struct array *a = (struct array *)self;

	if (array_lease_on_device(a)) {
		PyErr_SetString(PyExc_AttributeError,
				"this array is in the memory of a GPU: it has no __array_interface__");
		return NULL;
	}
	return array_is_reachable(a) && array_own(a) ? describe_memory(&a->v, Py_True) : NULL;
}

/*
 * NumPy itself takes one of the two above.  Other libraries look for this method to know an array
 * when they see one: without it, Hugging Face stores our attributes in the place of our numbers.
 */
PyObject *array_to_numpy(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"dtype", "copy", NULL};
	PyObject *dtype = Py_None, *copy = Py_None, *numpy, *out = NULL;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O$O", names, &dtype, &copy) ||
	    !array_is_readable((struct array *)self))
		return NULL;
	numpy = PyImport_ImportModule("numpy");
	if (numpy && copy == Py_None)
		out = PyObject_CallMethod(numpy, "asarray", "OO", self, dtype);
	else if (numpy) {
		PyObject *array = PyObject_GetAttrString(numpy, "array"), *pair = Py_BuildValue("(OO)", self, dtype);
		PyObject *option = Py_BuildValue("{s:O}", "copy", copy);

		out = array && pair && option ? PyObject_Call(array, pair, option) : NULL;
		Py_XDECREF(option);
		Py_XDECREF(pair);
		Py_XDECREF(array);
	}
	Py_XDECREF(numpy);
	return out;
}

PyObject *array_cuda_interface(PyObject *self, void *Py_UNUSED(unused))
{
	struct array *a = (struct array *)self;
	struct lease *lease = array_lease_on_device(a);
	PyObject *dict, *stream;

	if (!lease) {
		PyErr_SetString(PyExc_AttributeError,
				"this array is in the memory of the CPU: it has no __cuda_array_interface__");
		return NULL;
	}
	if (!array_is_reachable(a))
		return NULL;
	lease_use_own(lease);
	/*
	 * Libraries refuse arrays that are read-only.  A batch on a GPU is a copy, which belongs to
	 * anyone who holds it: kernels may write there, and the next batch overwrites it.
	 */
	dict = describe_memory(&a->v, Py_False);
	stream = dict ? PyLong_FromUnsignedLongLong(stream_number(&lease->lender->stream)) : NULL;
	if (dict && (!stream || PyDict_SetItemString(dict, "stream", stream) < 0))
		Py_CLEAR(dict);
	Py_XDECREF(stream);
	return dict;
}
