/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_map.c - reading the maps of shards, where a file that was cut or a disk that fails is an
 * exception
 */
#include "python/core/base/py_map.h"

#include <string.h>

#include "python/core/base/py_errors.h"
#include "python/core/base/py_memory.h"
#include "python/core/base/py_number.h"
#include "shard_pack.h"

static bool guarded(PyObject *owner, void (*work)(void *context), void *context)
{
	struct shard_error err;

	if (memory_is(owner)) {
		work(context);
		return true;
	}
	if (!shard_dataset_guarded(((struct map_owner *)owner)->ds, work, context, &err))
		return true;
	fail(&err);
	return false;
}

struct bytes_job {
	const void *from;
	size_t bytes;
	void *to;
};

static void copy_bytes(void *context)
{
	struct bytes_job *j = context;

	memcpy(j->to, j->from, j->bytes);
}

bool map_copy(PyObject *owner, const void *from, size_t bytes, void *to)
{
	return guarded(owner, copy_bytes, &(struct bytes_job){from, bytes, to});
}

struct view_job {
	const struct view *v;
	char *to;
};

static void copy_view(void *context)
{
	struct view_job *j = context;

	view_copy_out(j->v, j->to);
}

bool map_copy_view(PyObject *owner, const struct view *v, char *to)
{
	return guarded(owner, copy_view, &(struct view_job){v, to});
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
