/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_record.c - records as dicts: of values for one record, of arrays for several
 */
#include <stdio.h>

#include "python/core/array/py_array.h"
#include "python/core/base/py_base.h"
#include "python/core/dataset/py_dataset.h"
#include "shard_inspect.h"

/* ---- one record ---- */

/*
 * It has numbers for scalars, text for strings, the used part of ragged fields, whole images in
 * their shape, and arrays for all others.  If a group is not compressed, its arrays lie in the
 * shard's map; else they are copies.
 */

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
	int rc;

	if (d->parts) { /* which may store their records in different ways */
		d = dataset_part(d, &idx);
		return dataset_is_open(d) ? record_at(d, idx) : NULL;
	}
	rc = dataset_is_copied(d, &copied, &err);
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

/* ---- several records, which are read when they are looked into ---- */

/*
 * There is an array for each field, with the records on its first axis and padding as it is stored.
 * Each group is read on its own, so that labels can be had without images.  If the records are
 * neighbours in one shard and the group is not compressed, its arrays lie in the shard's map; else
 * they are copies.
 */

static PyTypeObject *rows_type;

/* The records `idx`; or if `reader` is not NULL, neighbours in its shard. */
struct rows {
	struct promise promise;
	struct dataset *dataset;
	uint64_t *idx;
	struct shard_reader *reader;
	uint64_t within; /* the number of the first one in the shard */
	int64_t step;
	size_t count;
};

/* ---- reading a group ---- */

static bool is_view(const struct rows *r, uint32_t group)
{
	return r->reader && shard_dataset_schema(r->dataset->ds)->group[group].codec == SHARD_RAW;
}

#define GATHER_BYTES (UINT64_C(64) << 20) /* between two looks for ^C */

static int read_group(const struct rows *r, int group, char *to, struct shard_error *err)
{
	struct shard_dataset *ds = r->dataset->ds;
	uint64_t stride = shard_dataset_schema(ds)->group[group].stride;
	size_t piece = (size_t)(GATHER_BYTES / stride) + 1, n;
	void *at[SHARD_GROUPS_MAX] = {NULL};
	int rc = SHARD_OK;

	for (size_t i = 0; !rc && i < r->count; i += n) {
		n = r->count - i < piece ? r->count - i : piece;
		at[group] = to + i * stride;
		Py_BEGIN_ALLOW_THREADS rc = shard_dataset_read(ds, r->idx + i, n, at, err);
		Py_END_ALLOW_THREADS if (!rc && PyErr_CheckSignals() < 0) rc = SHARD_E_CANCELLED;
	}
	return rc;
}

/* Find records in the map of their shard, and check all of them: neighbours in pieces, others one by one. */
static int check_mapped(const struct rows *r, int group, const char **data, struct shard_error *err)
{
	uint32_t g = (uint32_t)group;
	uint64_t stride = shard_dataset_schema(r->dataset->ds)->group[group].stride;
	size_t piece = (size_t)(GATHER_BYTES / stride) + 1, n;
	bool is_run = r->step == 1 || r->step == -1;
	struct shard_view view;
	int rc = SHARD_OK;

	for (size_t i = 0; !rc && i < r->count; i += n) {
		int64_t at = (int64_t)r->within + r->step * (int64_t)i;

		n = r->count - i < piece ? r->count - i : piece;
		Py_BEGIN_ALLOW_THREADS if (is_run)
		{
			uint64_t first = (uint64_t)(r->step > 0 ? at : at - (int64_t)(n - 1));

			rc = shard_reader_read(r->reader, g, first, n, NULL, err);
		}
		for (size_t k = 0; !rc && k < (is_run ? 1 : n); k++) {
			rc = shard_reader_view(r->reader, g, (uint64_t)(at + r->step * (int64_t)k), &view, err);
			if (!rc && !i && !k)
				*data = view.data;
		}
		Py_END_ALLOW_THREADS if (!rc && PyErr_CheckSignals() < 0) rc = SHARD_E_CANCELLED;
	}
	return rc;
}

static bool keep(struct promise *p, int group)
{
	struct rows *r = (struct rows *)p;
	uint64_t stride = shard_dataset_schema(r->dataset->ds)->group[group].stride;
	PyObject *owner;
	const char *data = NULL;
	struct shard_error err;
	int rc;

	if (p->data[group])
		return true;
	if (is_view(r, (uint32_t)group)) {
		owner = ref(r->dataset);
		rc = check_mapped(r, group, &data, &err);
	} else { /* SIZE_MAX fails */
		owner = (PyObject *)memory_new(r->count <= SIZE_MAX / 2 / stride ? r->count * stride : SIZE_MAX);
		if (!owner)
			return false;
		data = ((struct memory *)owner)->data;
		rc = read_group(r, group, ((struct memory *)owner)->data, &err);
	}
	if (rc)
		fail(&err);
	if (rc || p->data[group]) { /* another thread was faster */
		Py_DECREF(owner);
		return !rc;
	}
	p->owner[group] = owner;
	p->data[group] = data;
	return true;
}

/* ---- promising ---- */

/* Takes over `idx`, which may be NULL if there is a reader. */
static struct rows *rows_new(struct dataset *d, uint64_t *idx, size_t count)
{
	struct rows *r = PyObject_New(struct rows, rows_type);

	if (!r) {
		PyMem_Free(idx);
		return NULL;
	}
	r->promise.keep = keep;
	for (uint32_t g = 0; g < SHARD_GROUPS_MAX; g++) {
		r->promise.data[g] = NULL;
		r->promise.owner[g] = NULL;
	}
	r->dataset = ref(d);
	r->idx = idx;
	r->reader = NULL;
	r->within = 0;
	r->step = 1;
	r->count = count;
	return r;
}

static void dealloc(PyObject *self)
{
	struct rows *r = (struct rows *)self;

	for (uint32_t g = 0; g < SHARD_GROUPS_MAX; g++)
		Py_XDECREF(r->promise.owner[g]);
	unref(r->dataset);
	PyMem_Free(r->idx);
	object_free(self);
}

/* Takes over the reference to `r`, which may be NULL. */
static PyObject *rows_dict(struct rows *r)
{
	const struct shard_schema *s = r ? shard_dataset_schema(r->dataset->ds) : NULL;
	PyObject *dict = r ? PyDict_New() : NULL, *value;

	for (uint32_t f = 0; dict && f < s->field_count; f++) {
		uint32_t g = s->field[f].group;
		int64_t stride = (is_view(r, g) ? r->step : 1) * (int64_t)s->group[g].stride;

		value = (PyObject *)array_promised(&r->promise, &s->field[f], (Py_ssize_t)r->count, (Py_ssize_t)stride);
		if (!value || PyDict_SetItem(dict, r->dataset->name[f], value) < 0)
			Py_CLEAR(dict);
		Py_XDECREF(value);
	}
	unref(r);
	return dict;
}

PyObject *rows_gather(struct dataset *d, uint64_t *idx, size_t count)
{
	return rows_dict(rows_new(d, idx, count));
}

PyObject *rows_slice(struct dataset *d, uint64_t first, int64_t step, uint64_t count)
{
	struct shard_reader *reader;
	uint64_t within, end, last, *idx;
	struct shard_error err;
	struct rows *r;
	bool copied;

	if (count < 2)
		step = 1; /* a step that is not taken may be any number */
	last = (uint64_t)((int64_t)first + step * (int64_t)(count ? count - 1 : 0));
	if (dataset_is_copied(d, &copied, &err) ||
	    (count && !copied && dataset_find(d, first, &reader, &within, &end, &err)))
		return fail(&err);
	idx = count > SIZE_MAX / sizeof(*idx) - 1 ? NULL : PyMem_Malloc((size_t)(count + 1) * sizeof(*idx));
	if (!idx)
		return fail_memory("no memory for the numbers of %llu records; ask for fewer at a time, as ds[0:1000]",
				   (unsigned long long)count);
	for (uint64_t i = 0; i < count; i++)
		idx[i] = (uint64_t)((int64_t)first + step * (int64_t)i);
	r = rows_new(d, idx, (size_t)count);
	/* In the same shard, in either direction.  Of a concatenation that may be stored in another way. */
	if (r && count && !copied && !d->parts && last < end && within + last >= first) {
		r->reader = reader;
		r->within = within;
		r->step = step;
	}
	return rows_dict(r);
}

int rows_init(PyObject *module)
{
	static PyType_Slot slots[] = {
		{Py_tp_dealloc, dealloc},
		{Py_tp_doc, "Records that are read when one of their arrays is looked into."},
		{0, NULL},
	};
	static PyType_Spec spec = {
		.name = "libshard._core._Rows",
		.basicsize = sizeof(struct rows),
		.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
		.slots = slots,
	};

	return add_type(&rows_type, module, NULL, &spec);
}
