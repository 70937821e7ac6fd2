/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_record.c - a record as a dict of values
 *
 * It has numbers for scalars, text for strings, the used part of ragged fields, whole images in
 * their shape, and arrays for all others.  If a group is not compressed, its arrays lie in the
 * shard's map; else they are copies.
 */
#include "python/core/dataset/py_dataset.h"

#include <stdio.h>

#include "python/core/array/py_array.h"
#include "python/core/base/py_errors.h"
#include "python/core/base/py_map.h"
#include "python/core/base/py_memory.h"
#include "shard_pack.h"

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
	if (shard_field_is_texts(f))
		return map_texts(owner[f->group], data, n[0] < f->shape[0] ? n[0] : f->shape[0], f->shape[1]);
	a = array_of_field(owner[f->group], -1, f, data, -1, 0);
	for (uint32_t i = 0; a && i < f->ndim; i++)
		if (f->ragged_axes >> i & 1) {
			a->v.shape[i] = n[used] < f->shape[i] ? n[used] : f->shape[i];
			used++;
		}
	return (PyObject *)a;
}

/* [height, width, channels] of a whole image: its pixels, as long as its size is right. */
static PyObject *whole_value(PyObject *const *owner, const struct shard_schema *s, const struct shard_field *f,
			     const struct shard_field *of, const char *const *group)
{
	const struct shard_field *length = &s->field[f->length_field];
	struct shard_error err = {.status = SHARD_E_CORRUPT};
	struct view v = {.data = group[f->group] + f->offset, .dtype = f->dtype, .axis_count = 3};
	uint32_t pixels, size[2];

	if (!map_copy(owner[length->group], group[length->group] + length->offset, sizeof(pixels), &pixels) ||
	    !map_copy(owner[of->group], group[of->group] + of->offset, sizeof(size), size))
		return NULL;
	if (!pixels || pixels > f->shape[0] || (uint64_t)size[0] * size[1] != pixels) {
		snprintf(err.message, sizeof(err.message),
			 "field %s: height %u and width %u, but %u pixels of at most %u; the dataset is damaged, see "
			 "'shardcat verify'",
			 f->name, size[0], size[1], pixels, f->shape[0]);
		return fail(&err);
	}
	v.shape[0] = size[0];
	v.shape[1] = size[1];
	v.shape[2] = f->shape[1];
	view_set_dense_strides(&v, 0);
	return (PyObject *)array_new(owner[f->group], -1, &v);
}

static PyObject *value_of(PyObject *const *owner, const struct shard_schema *s, const struct shard_field *f,
			  const char *const *group)
{
	const char *data = group[f->group] + f->offset;
	uint32_t size = shard_image_size_field(s, (uint32_t)(f - s->field));

	if (size < s->field_count)
		return whole_value(owner, s, f, &s->field[size], group);
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
	void *to[SHARD_GROUPS_MAX] = {NULL};
	bool copied;
	int rc = dataset_is_copied(d, &copied, &err);

	if (!rc && !copied)
		rc = dataset_find(d, idx, &reader, &within, &end, &err);
	for (g = 0; !rc && g < s->group_count; g++) {
		if (!copied && s->group[g].codec == SHARD_RAW) {
			rc = shard_reader_view(reader, g, within, &view, &err);
			owner[g] = rc ? NULL : ref(d);
			group[g] = rc ? NULL : view.data;
			continue;
		}
		owner[g] = (PyObject *)memory_new(s->group[g].stride);
		if (!owner[g])
			break;
		group[g] = to[g] = ((struct memory *)owner[g])->data;
		if (!copied)
			rc = shard_reader_read(reader, g, within, 1, to[g], &err);
	}
	if (!rc && copied && g == s->group_count)
		rc = shard_dataset_read(d->ds, &idx, 1, to, &err);
	if (rc)
		fail(&err);
	else if (g == s->group_count)
		dict = record_dict(d, owner, group);
	for (g = 0; g < s->group_count; g++)
		unref(owner[g]);
	return dict;
}
