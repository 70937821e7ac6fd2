/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_module.c - libshard._core: the C library for the Python code on top of it
 */
#include "python/core/base/py_core.h"

PyTypeObject *add_type(PyObject *module, const char *name, PyType_Spec *spec)
{
	PyObject *type = PyType_FromModuleAndSpec(module, spec, NULL);

	if (type && name && PyModule_AddObjectRef(module, name, type) < 0)
		Py_CLEAR(type);
	return (PyTypeObject *)type;
}

static PyObject *version(PyObject *self, PyObject *unused)
{
	(void)self;
	(void)unused;
	return Py_BuildValue("(ss)", shard_version(), shard_version_details());
}

PyMODINIT_FUNC PyInit__core(void);
PyMODINIT_FUNC PyInit__core(void)
{
	static PyMethodDef functions[] = {
		{"version", version, METH_NOARGS, "version()\n--\n\nVersion of the C library, and of the libraries in it."},
		{"describe", source_describe, METH_O, "describe(value, /)\n--\n\ndtype and shape of an array of any library; None if it is none."},
		{"meaning", layout_meaning, METH_VARARGS, "meaning(name, dtype, shape, /)\n--\n\ndtype, layout and semantic of a field of that name."},
		{NULL, NULL, 0, NULL},
	};
	static struct PyModuleDef definition = {
		PyModuleDef_HEAD_INIT, .m_name = "libshard._core", .m_doc = "The C library; use the package libshard.", .m_size = -1,
		.m_methods = functions,
	};
	PyObject *module = PyModule_Create(&definition);

	if (module && !errors_init() && !memory_init(module) && !array_init(module) && !lease_init(module) && !dataset_init(module) &&
	    !batch_init(module) && !loader_init(module) && !layout_init(module) && !writer_init(module) && !PyModule_AddFunctions(module, seal_functions))
		return module;
	Py_XDECREF(module);
	return NULL;
}
