/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.c - aligned memory, alive as long as a view of it
 */
#include "core.h"

#include <stdlib.h>

static PyTypeObject *memory_type;

struct memory *memory_new(size_t bytes)
{
	struct memory *m;
	void *data;

	if (bytes > SIZE_MAX / 2) {
		PyErr_NoMemory();
		return NULL;
	}
	data = aligned_alloc(MEMORY_ALIGN_BYTES, (bytes + MEMORY_ALIGN_BYTES) / MEMORY_ALIGN_BYTES * MEMORY_ALIGN_BYTES);
	m = data ? PyObject_New(struct memory, memory_type) : NULL;
	if (!m) {
		free(data);
		if (!PyErr_Occurred())
			PyErr_NoMemory();
		return NULL;
	}
	m->data = data;
	return m;
}

static void dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);

	free(((struct memory *)self)->data);
	PyObject_Free(self);
	Py_DECREF(type);
}

int memory_init(PyObject *module)
{
	static PyType_Slot slots[] = {
		{Py_tp_dealloc, dealloc},
		{Py_tp_doc, "Bytes that views share."},
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
