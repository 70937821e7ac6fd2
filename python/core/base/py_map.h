/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_map.h - reading the maps of shards, where a file that was cut or a disk that fails is an
 * exception
 *
 * Nobody else in this module follows a pointer into a map.
 */
#ifndef SHARD_BASE_PY_MAP_H
#define SHARD_BASE_PY_MAP_H

#include "python/core/base/py_view.h"

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
 * The rows are no part of a map.
 */
PyObject *texts_of_rows(const char *rows, uint32_t count, uint32_t row_bytes);

#endif
