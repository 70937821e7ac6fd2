/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_module.c - libshard._core: the C library for the Python code on top of it
 *
 * The rooms below: base/ has errors, memory and numbers; array/ has arrays and the batches that
 * they keep lent; dataset/, loader/ and write/ have what their names say.
 */
#include "libshard/base/utf8.h"
#include "python/core/array/py_array.h"
#include "python/core/base/py_base.h"
#include "python/core/dataset/py_dataset.h"
#include "python/core/loader/py_loader.h"
#include "python/core/write/py_write.h"
#include "shard_pack.h"

static PyObject *version(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(unused))
{
	return Py_BuildValue("(ss)", shard_version(), shard_version_details());
}

/* HIDDEN, as libshard._errors wants it: pairs of the first and last code point of a range. */
static bool add_hidden(PyObject *module)
{
	PyObject *all = PyTuple_New(UTF8_HIDDEN_RANGES), *pair;
	bool good = all != NULL;

	for (Py_ssize_t i = 0; good && i < UTF8_HIDDEN_RANGES; i++) {
		pair = Py_BuildValue("(II)", utf8_hidden[i].first, utf8_hidden[i].last);
		good = pair && !PyTuple_SetItem(all, i, pair);
	}
	good = good && !PyModule_AddObjectRef(module, "HIDDEN", all);
	Py_XDECREF(all);
	return good;
}

PyMODINIT_FUNC PyInit__core(void);
PyMODINIT_FUNC PyInit__core(void)
{
	static int (*const inits[])(PyObject * module) = {memory_init, array_init,     lease_init,    dataset_init,
							  rows_init,   selection_init, mix_type_init, batch_init,
							  loader_init, layout_init,    writer_init};
	static PyMethodDef functions[] = {
		{"version", version, METH_NOARGS,
		 "version()\n--\n\nVersion of the C library, and of the libraries in it."},
		{"crc32c", crc32c, METH_VARARGS,
		 "crc32c(data, first=0, last=sys.maxsize, slow=False, /)\n--\n\n"
		 "CRC-32C of data[first:last]; `slow`: without the processor's instruction."},
		{"tfrecords", tfrecords, METH_VARARGS,
		 "tfrecords(data, first, base, without, /)\n--\n\n"
		 "The values of records of TFRecord, and where in `data` the first one begins that was not read."},
		{"_array", array_unpickle, METH_VARARGS,
		 "_array(dtype, shape, data, /)\n--\n\nAn array that was pickled."},
		{"describe", source_describe, METH_O,
		 "describe(value, /)\n--\n\ndtype and shape of an array of any library; None if it is none."},
		{"meaning", layout_meaning, METH_VARARGS,
		 "meaning(name, dtype, shape, /)\n--\n\ndtype, layout and semantic of a field of that name."},
		{NULL, NULL, 0, NULL},
	};
	static struct PyModuleDef definition = {
		PyModuleDef_HEAD_INIT, .m_name = "libshard._core", .m_doc = "The C library; use the package libshard.",
		.m_size = -1,	       .m_methods = functions,
	};
	PyObject *module = PyModule_Create(&definition);
	bool good = module && !errors_init() && !PyModule_AddFunctions(module, seal_functions);

	good = good && !PyModule_AddIntConstant(module, "BYTES_VERSION", SHARD_BYTES_VERSION) &&
	       !PyModule_AddObjectRef(module, "CRC32C_IS_FAST", crc32c_is_fast() ? Py_True : Py_False) &&
	       add_hidden(module);
	for (size_t i = 0; good && i < sizeof(inits) / sizeof(inits[0]); i++)
		good = !inits[i](module);
	if (!good)
		Py_CLEAR(module);
	return module;
}
