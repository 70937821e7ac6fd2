/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_record.c - records as dicts of values
 *
 * One record has numbers for scalars, text for strings, the used part of ragged fields, and arrays
 * for all others.  Several records have an array for each field, with the records on its first axis
 * and padding as it is stored.  If the records are neighbours in one shard and not compressed,
 * arrays lie in the shard's map; else they are copies.
 */
#include "python/core/dataset/py_record.h"

#include "python/core/array/py_array.h"
#include "python/core/base/py_errors.h"
#include "python/core/base/py_map.h"
#include "python/core/base/py_memory.h"
#include "shard_pack.h"

/* ---- one record ---- */

/* The used part of a string or ragged field: [lengths...] of its shape. */
static PyObject *ragged_value(PyObject *const *owner, const struct shard_schema *s, const struct shard_field *f,
			      const char *const *group)
{
	const struct shard_field *lengths = &s->field[f->length_field];
	const char *data = group[f->group] + f->offset;
	uint32_t n[SHARD_DIMS_MAX], used = 0; /* lengths: one for each ragged axis */
	struct array *a;

	if (!map_copy(owner[lengths->group], group[lengths->group] + lengths->offset, lengths->bytes, n))
		return NULL;
	if (f->kind == SHARD_STRING) {
		Py_ssize_t bytes = n[0] < f->shape[0] ? n[0] : f->shape[0]; /* the hash was checked, but not this */

		return f->semantic == SHARD_TEXT ? map_text(owner[f->group], data, bytes)
						 : map_bytes(owner[f->group], data, bytes);
	}
	a = array_of_field(owner[f->group], -1, f, data, -1, 0);
	for (uint32_t i = 0; a && i < f->ndim; i++)
		if (f->ragged_axes >> i & 1) {
			a->v.shape[i] = n[used] < f->shape[i] ? n[used] : f->shape[i];
			used++;
		}
	return (PyObject *)a;
}

static PyObject *value_of(PyObject *const *owner, const struct shard_schema *s, const struct shard_field *f,
			  const char *const *group)
{
	const char *data = group[f->group] + f->offset;

	if (f->kind != SHARD_TENSOR)
		return ragged_value(owner, s, f, group);
	return f->ndim ? (PyObject *)array_of_field(owner[f->group], -1, f, data, -1, 0)
		       : map_number(owner[f->group], f->dtype, data);
}

static PyObject *record_dict(struct dataset *d, PyObject *const *owner, const char *const *group)
{
	const struct shard_schema *s = shard_dataset_schema(d->ds);
	PyObject *dict = PyDict_New(), *value;

	for (uint32_t f = 0; dict && f < s->field_count; f++) {
		if (s->field[f].semantic == SHARD_LENGTH)
			continue; /* it is the length of another value */
		value = value_of(owner, s, &s->field[f], group);
		if (!value || PyDict_SetItem(dict, d->name[f], value) < 0)
			Py_CLEAR(dict);
		Py_XDECREF(value);
	}
	return dict;
}

PyObject *record_at(struct dataset *d, uint64_t idx)
{
	const struct shard_schema *s = shard_dataset_schema(d->ds);
	PyObject *owner[SHARD_GROUPS_MAX] = {NULL}, *dict = NULL;
	const char *group[SHARD_GROUPS_MAX];
	struct shard_reader *reader;
	struct shard_error err;
	struct shard_view view;
	uint64_t within, end;
	uint32_t g;
	int rc = dataset_find(d, idx, &reader, &within, &end, &err);

	for (g = 0; !rc && g < s->group_count; g++) {
		if (s->group[g].codec == SHARD_RAW) {
			rc = shard_reader_view(reader, g, within, &view, &err);
			owner[g] = rc ? NULL : ref(d);
			group[g] = rc ? NULL : view.data;
			continue;
		}
		owner[g] = (PyObject *)memory_new(s->group[g].stride);
		if (!owner[g])
			break;
		rc = shard_reader_read(reader, g, within, 1, ((struct memory *)owner[g])->data, &err);
		group[g] = ((struct memory *)owner[g])->data;
	}
	if (rc)
		fail(&err);
	else if (g == s->group_count)
		dict = record_dict(d, owner, group);
	for (g = 0; g < s->group_count; g++)
		unref(owner[g]);
	return dict;
}

/* ---- several ---- */

/* Records that lie one `stride` apart from `data` on, in each group. */
static PyObject *rows_dict(struct dataset *d, PyObject *const *owner, const char *const *data, const Py_ssize_t *stride,
			   size_t count)
{
	const struct shard_schema *s = shard_dataset_schema(d->ds);
	PyObject *dict = PyDict_New(), *value;

	for (uint32_t f = 0; dict && f < s->field_count; f++) {
		uint32_t g = s->field[f].group;

		value = (PyObject *)array_of_field(owner[g], -1, &s->field[f], data[g] + s->field[f].offset,
						   (Py_ssize_t)count, stride[g]);
		if (!value || PyDict_SetItem(dict, d->name[f], value) < 0)
			Py_CLEAR(dict);
		Py_XDECREF(value);
	}
	return dict;
}

#define GATHER_BYTES (UINT64_C(64) << 20) /* between two looks for ^C */

static int gather(struct dataset *d, const uint64_t *idx, size_t count, void *const *dst, struct shard_error *err)
{
	const struct shard_schema *s = shard_dataset_schema(d->ds);
	uint64_t record_bytes = 1;
	void *at[SHARD_GROUPS_MAX];
	size_t piece, n;
	int rc = SHARD_OK;

	for (uint32_t g = 0; g < s->group_count; g++)
		record_bytes += s->group[g].stride;
	piece = (size_t)(GATHER_BYTES / record_bytes) + 1;
	for (size_t i = 0; !rc && i < count; i += n) {
		n = count - i < piece ? count - i : piece;
		for (uint32_t g = 0; g < s->group_count; g++)
			at[g] = (char *)dst[g] + i * s->group[g].stride;
		Py_BEGIN_ALLOW_THREADS rc = shard_dataset_read(d->ds, idx + i, n, at, err);
		Py_END_ALLOW_THREADS if (!rc && PyErr_CheckSignals() < 0) rc = SHARD_E_CANCELLED;
	}
	return rc;
}

PyObject *record_gather(struct dataset *d, const uint64_t *idx, size_t count)
{
	const struct shard_schema *s = shard_dataset_schema(d->ds);
	PyObject *owner[SHARD_GROUPS_MAX] = {NULL}, *dict = NULL;
	Py_ssize_t stride[SHARD_GROUPS_MAX];
	const char *data[SHARD_GROUPS_MAX];
	void *dst[SHARD_GROUPS_MAX];
	struct shard_error err;
	uint32_t g;
	int rc = SHARD_OK;

	for (g = 0; g < s->group_count; g++) {
		bool fits = count <= SIZE_MAX / 2 / s->group[g].stride;

		stride[g] = (Py_ssize_t)s->group[g].stride;
		/* SIZE_MAX fails */
		owner[g] = (PyObject *)memory_new(fits ? count * s->group[g].stride : SIZE_MAX);
		if (!owner[g])
			break;
		dst[g] = ((struct memory *)owner[g])->data;
		data[g] = dst[g];
	}
	if (g == s->group_count) {
		rc = gather(d, idx, count, dst, &err);
		dict = rc ? fail(&err) : rows_dict(d, owner, data, stride, count);
	}
	for (g = 0; g < s->group_count; g++)
		unref(owner[g]);
	return dict;
}

/* Arrays in the map of one shard, over neighbours that are all checked. */
static PyObject *view_slice(struct dataset *d, struct shard_reader *reader, uint64_t within, int64_t step,
			    uint64_t count)
{
	const struct shard_schema *s = shard_dataset_schema(d->ds);
	PyObject *owner[SHARD_GROUPS_MAX];
	Py_ssize_t stride[SHARD_GROUPS_MAX];
	const char *data[SHARD_GROUPS_MAX];
	struct shard_error err;
	struct shard_view view;
	int rc = SHARD_OK;

	Py_BEGIN_ALLOW_THREADS for (uint32_t g = 0; !rc && g < s->group_count; g++)
	{
		owner[g] = (PyObject *)d;
		stride[g] = (Py_ssize_t)(step * (int64_t)s->group[g].stride);
		for (uint64_t i = 0; !rc && i < count; i++) {
			rc = shard_reader_view(reader, g, (uint64_t)((int64_t)within + step * (int64_t)i), &view, &err);
			if (!rc && !i)
				data[g] = view.data;
		}
	}
	Py_END_ALLOW_THREADS return rc ? fail(&err) : rows_dict(d, owner, data, stride, (size_t)count);
}

PyObject *record_slice(struct dataset *d, uint64_t first, int64_t step, uint64_t count)
{
	const struct shard_schema *s = shard_dataset_schema(d->ds);
	struct shard_reader *reader;
	uint64_t within, end, last, *idx;
	struct shard_error err;
	PyObject *dict;
	bool raw = count > 0;

	if (count < 2)
		step = 1; /* a step that is not taken may be any number */
	last = (uint64_t)((int64_t)first + step * (int64_t)(count ? count - 1 : 0));
	for (uint32_t g = 0; g < s->group_count; g++)
		raw = raw && s->group[g].codec == SHARD_RAW;
	if (raw) {
		if (dataset_find(d, first, &reader, &within, &end, &err))
			return fail(&err);
		if (last < end && within + last >= first) /* in the same shard, in either direction */
			return view_slice(d, reader, within, step, count);
	}
	idx = count > SIZE_MAX / sizeof(*idx) - 1 ? NULL : PyMem_Malloc((size_t)(count + 1) * sizeof(*idx));
	if (!idx)
		return PyErr_NoMemory();
	for (uint64_t i = 0; i < count; i++)
		idx[i] = (uint64_t)((int64_t)first + step * (int64_t)i);
	dict = record_gather(d, idx, (size_t)count);
	PyMem_Free(idx);
	return dict;
}
