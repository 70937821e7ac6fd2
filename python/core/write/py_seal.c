/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_seal.c - shards become a dataset, and the folder gets its name
 */
#include "python/core/write/py_write.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "python/core/array/py_array.h"
#include "python/core/base/py_errors.h"
#include "shard_pack.h"

/* Borrowed pointers into a list of str; NULL with an exception set if it holds anything else. */
static const char **take_texts(PyObject *list)
{
	Py_ssize_t count = PyList_Size(list);
	const char **text = count < 0 ? NULL : PyMem_Malloc(((size_t)count + 1) * sizeof(*text));
	Py_ssize_t bytes;

	if (!text && count >= 0)
		PyErr_NoMemory();
	for (Py_ssize_t i = 0; text && i < count; i++) {
		text[i] = PyUnicode_AsUTF8AndSize(PyList_GetItem(list, i), &bytes);
		if (text[i] && strlen(text[i]) != (size_t)bytes) {
			fail_argument("class %zd: its name has a NUL", i);
			text[i] = NULL;
		}
		if (!text[i]) {
			PyMem_Free(text);
			return NULL;
		}
	}
	return text;
}

/* Adding a shard reads two pages of it; its hash is known. */
static int add_shards(struct shard_seal *seal, PyObject *shards, struct shard_error *err)
{
	Py_ssize_t bytes;
	const char *file, *sha256;
	int rc = 0;

	for (Py_ssize_t i = 0; !rc && i < PyList_Size(shards); i++) {
		if (!PyArg_ParseTuple(PyList_GetItem(shards, i), "sy#", &file, &sha256, &bytes))
			return -1;
		if (bytes != 32) {
			fail_argument("a SHA-256 has 32 bytes, not %zd", bytes);
			return -1;
		}
		rc = shard_seal_add(seal, file, (const uint8_t *)sha256, err);
	}
	return rc;
}

/* seal(dir, shards, classes, order, seed): shards is a list of (file, sha256) */
static PyObject *seal(PyObject *self, PyObject *args)
{
	struct shard_seal_options o = {.size = sizeof(o)};
	PyObject *dir = NULL, *shards, *classes;
	struct shard_seal *s = NULL;
	unsigned long long seed;
	struct shard_error err;
	const char **names;
	int rc;

	(void)self;
	if (!PyArg_ParseTuple(args, "O&O!O!IK", PyUnicode_FSConverter, &dir, &PyList_Type, &shards, &PyList_Type,
			      &classes, &o.order, &seed))
		return NULL;
	names = take_texts(classes);
	if (!names) {
		Py_DECREF(dir);
		return NULL;
	}
	o.class_names = names;
	o.class_count = (uint64_t)PyList_Size(classes);
	o.seed = seed;
	rc = shard_seal_open(&s, PyBytes_AsString(dir), &o, &err);
	if (!rc)
		rc = add_shards(s, shards, &err);
	if (!rc) {
		Py_BEGIN_ALLOW_THREADS rc = shard_seal_finish(s, &err);
		Py_END_ALLOW_THREADS
	}
	shard_seal_close(s);
	PyMem_Free(names);
	Py_DECREF(dir);
	return rc ? fail(&err) : Py_NewRef(Py_None);
}

static PyObject *remove_temps(PyObject *self, PyObject *args)
{
	struct shard_error err;
	PyObject *dir = NULL;
	uint64_t count = 0;
	int rc;

	(void)self;
	if (!PyArg_ParseTuple(args, "O&", PyUnicode_FSConverter, &dir))
		return NULL;
	rc = shard_remove_temps(PyBytes_AsString(dir), &count, &err);
	Py_DECREF(dir);
	return rc ? fail(&err) : PyLong_FromUnsignedLongLong(count);
}

/* shuffle(seed, n, first, count): the numbers at these places */
static PyObject *shuffle(PyObject *self, PyObject *args)
{
	unsigned long long seed, n, first, count;
	struct shard_error err;
	struct array *a;
	void *idx;

	(void)self;
	if (!PyArg_ParseTuple(args, "KKKK", &seed, &n, &first, &count))
		return NULL;
	a = array_alloc(SHARD_I64, count, &idx);
	if (!a || !shard_shuffle(seed, n, first, count, idx, &err))
		return (PyObject *)a;
	unref(a);
	return fail(&err);
}

/* Swap the names of two folders at once.  Returns False if the file system cannot. */
static PyObject *exchange(PyObject *self, PyObject *args)
{
	PyObject *a = NULL, *b = NULL, *out;
	int code;

	(void)self;
	if (!PyArg_ParseTuple(args, "O&O&", PyUnicode_FSConverter, &a, PyUnicode_FSConverter, &b)) {
		Py_XDECREF(a);
		return NULL;
	}
	code = renameat2(AT_FDCWD, PyBytes_AsString(a), AT_FDCWD, PyBytes_AsString(b), RENAME_EXCHANGE) ? errno : 0;
	if (code && code != EINVAL && code != ENOSYS && code != EOPNOTSUPP) {
		errno = code;
		out = PyErr_SetFromErrnoWithFilenameObject(PyExc_OSError, b);
	} else {
		out = PyBool_FromLong(!code);
	}
	Py_DECREF(a);
	Py_DECREF(b);
	return out;
}

PyMethodDef seal_functions[] = {
	{"seal", seal, METH_VARARGS,
	 "seal(dir, shards, classes, order, seed, /)\n--\n\nWrite the manifest of shards, which makes them a dataset."},
	{"remove_temps", remove_temps, METH_VARARGS,
	 "remove_temps(dir, /)\n--\n\nRemove temporary files that no living writer holds."},
	{"shuffle", shuffle, METH_VARARGS,
	 "shuffle(seed, n, first, count, /)\n--\n\n"
	 "Places [first, first + count) of a shuffle of n, as shardpack has it."},
	{"exchange", exchange, METH_VARARGS,
	 "exchange(a, b, /)\n--\n\nSwap two folders; False if the file system cannot."},
	{NULL, NULL, 0, NULL},
};
