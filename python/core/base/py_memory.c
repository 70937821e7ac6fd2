/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_memory.c - memory in which arrays lie: aligned memory of our own, and the maps of shards
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "python/core/base/py_base.h"
#include "shard_inspect.h"

/* ---- aligned memory that lives as long as an array in it ---- */

#define SPARE_BYTES_MAX ((size_t)1 << 20)
#define HUGE_PAGE_BYTES ((size_t)2 << 20)
#define HUGE_BYTES_MIN	((size_t)4 << 20)

static PyTypeObject *memory_type;

/*
 * The piece that died last.  It serves the next batch, which is as long.  The interpreter's lock
 * protects it.
 */
static void *spare;
static size_t spare_bytes;

/* The first write to each small page takes longer than the copy of its bytes. */
static void ask_for_huge_pages(void *data, size_t bytes)
{
	uintptr_t begin = ((uintptr_t)data + HUGE_PAGE_BYTES - 1) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
	uintptr_t end = ((uintptr_t)data + bytes) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;

	madvise((char *)data + (begin - (uintptr_t)data), end - begin, MADV_HUGEPAGE);
}

struct memory *memory_new(size_t bytes)
{
	struct memory *m;
	void *data;

	if (bytes > SIZE_MAX / 2) {
		fail_memory("no memory for 8 EiB and more; ask for fewer records");
		return NULL;
	}
	bytes = (bytes + MEMORY_ALIGN_BYTES) / MEMORY_ALIGN_BYTES * MEMORY_ALIGN_BYTES;
	data = bytes == spare_bytes ? spare : aligned_alloc(MEMORY_ALIGN_BYTES, bytes);
	if (data && bytes >= HUGE_BYTES_MIN)
		ask_for_huge_pages(data, bytes);
	if (bytes == spare_bytes) {
		spare = NULL;
		spare_bytes = 0;
	}
	m = data ? PyObject_New(struct memory, memory_type) : NULL;
	if (!m) {
		free(data);
		if (!PyErr_Occurred())
			fail_memory("no memory for an array of %zu bytes; ask for fewer records, or free some", bytes);
		return NULL;
	}
	m->data = data;
	m->bytes = bytes;
	m->object = NULL;
	return m;
}

struct memory *memory_of(PyObject *object, void *data, size_t bytes)
{
	struct memory *m = PyObject_New(struct memory, memory_type);

	if (m) {
		m->data = data;
		m->bytes = bytes;
		m->object = ref(object);
	}
	return m;
}

static void dealloc(PyObject *self)
{
	struct memory *m = (struct memory *)self;
	void *data = m->object ? NULL : m->data;

	unref(m->object);
	if (data && m->bytes <= SPARE_BYTES_MAX) { /* it takes the place of the one before */
		data = spare;
		spare = m->data;
		spare_bytes = m->bytes;
	}
	free(data);
	object_free(self);
}

bool memory_is(PyObject *object)
{
	return Py_TYPE(object) == memory_type;
}

int memory_init(PyObject *module)
{
	static PyType_Slot slots[] = {
		{Py_tp_dealloc, dealloc},
		{Py_tp_doc, "Bytes that arrays share."},
		{0, NULL},
	};
	static PyType_Spec spec = {
		.name = "libshard._core._Memory",
		.basicsize = sizeof(struct memory),
		.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
		.slots = slots,
	};

	return add_type(&memory_type, module, NULL, &spec);
}

/* ---- maps: a file that was cut or a disk that fails is an exception ---- */

struct copy_job {
	const struct view *v;
	char *to;
};

static void copy_view(void *context)
{
	struct copy_job *j = context;

	view_copy_out(j->v, j->to);
}

bool map_copy_view(PyObject *owner, const struct view *v, char *to)
{
	struct copy_job job = {v, to};
	struct shard_error err;

	if (memory_is(owner)) {
		copy_view(&job);
		return true;
	}
	if (!shard_dataset_guarded(((struct map_owner *)owner)->ds, copy_view, &job, &err))
		return true;
	fail(&err);
	return false;
}

bool map_copy(PyObject *owner, const void *from, size_t bytes, void *to)
{
	struct view v = {.data = from, .dtype = SHARD_U8, .axis_count = 1, .shape = {(Py_ssize_t)bytes}, .stride = {1}};

	return map_copy_view(owner, &v, to);
}

PyObject *map_bytes(PyObject *owner, const void *from, Py_ssize_t bytes)
{
	PyObject *out = PyBytes_FromStringAndSize(NULL, bytes);

	if (out && bytes && !map_copy(owner, from, (size_t)bytes, PyBytes_AsString(out)))
		Py_CLEAR(out);
	return out;
}

PyObject *map_text(PyObject *owner, const void *from, Py_ssize_t bytes)
{
	PyObject *copy = map_bytes(owner, from, bytes);
	PyObject *text = copy ? PyUnicode_DecodeUTF8(PyBytes_AsString(copy), bytes, "strict") : NULL;

	Py_XDECREF(copy);
	return text;
}

PyObject *texts_of_rows(const char *rows, uint32_t count, uint32_t row_bytes)
{
	PyObject *list = PyList_New(count), *text;

	for (uint32_t i = 0; list && i < count; i++, rows += row_bytes) {
		text = PyUnicode_DecodeUTF8(rows, (Py_ssize_t)strnlen(rows, row_bytes), "strict");
		if (!text || PyList_SetItem(list, i, text) < 0)
			Py_CLEAR(list);
	}
	return list;
}

PyObject *map_texts(PyObject *owner, const void *rows, uint32_t count, uint32_t row_bytes)
{
	PyObject *copy = map_bytes(owner, rows, (Py_ssize_t)count * row_bytes);
	PyObject *list = copy ? texts_of_rows(PyBytes_AsString(copy), count, row_bytes) : NULL;

	Py_XDECREF(copy);
	return list;
}

PyObject *map_number(PyObject *owner, uint32_t dtype, const void *from)
{
	char bytes[8];

	return map_copy(owner, from, shard_dtype_bytes(dtype), bytes) ? number_scalar(dtype, bytes) : NULL;
}
