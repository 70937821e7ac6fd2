/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_object.c - types of our own
 */
#include "python/core/base/py_object.h"

PyTypeObject *add_type(PyObject *module, const char *name, PyType_Spec *spec)
{
	PyObject *type = PyType_FromModuleAndSpec(module, spec, NULL);

	if (type && name && PyModule_AddObjectRef(module, name, type) < 0)
		Py_CLEAR(type);
	return (PyTypeObject *)type;
}
