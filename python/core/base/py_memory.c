/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_memory.c - aligned memory that lives as long as an array in it
 */
#include "python/core/base/py_memory.h"

#include <stdlib.h>

#include "python/core/base/py_errors.h"

#define SPARE_BYTES_MAX ((size_t)1 << 20)

static PyTypeObject *memory_type;

/*
 * The piece that died last.  It serves the next batch, which is as long.  The interpreter's lock
 * protects it.
 */
static void *spare;
static size_t spare_bytes;

static void *take(size_t bytes)
{
	void *data = spare;

	if (bytes != spare_bytes)
		return aligned_alloc(MEMORY_ALIGN_BYTES, bytes);
	spare = NULL;
	spare_bytes = 0;
	return data;
}

static void give(void *data, size_t bytes)
{
	if (bytes <= SPARE_BYTES_MAX) {
		void *old = spare;

		spare = data;
		spare_bytes = bytes;
		data = old;
	}
	free(data);
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
	data = take(bytes);
	m = data ? PyObject_New(struct memory, memory_type) : NULL;
	if (!m) {
		free(data);
		if (!PyErr_Occurred())
			fail_memory("no memory for an array of %zu bytes; ask for fewer records, or free some", bytes);
		return NULL;
	}
	m->data = data;
	m->bytes = bytes;
	return m;
}

static void dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);

	give(((struct memory *)self)->data, ((struct memory *)self)->bytes);
	PyObject_Free(self);
	Py_DECREF(type);
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

	memory_type = add_type(module, NULL, &spec);
	return memory_type ? 0 : -1;
}
