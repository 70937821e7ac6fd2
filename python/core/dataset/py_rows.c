/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_rows.c - several records as a dict of arrays, which are read when they are looked into
 *
 * There is an array for each field, with the records on its first axis and padding as it is stored.
 * Each group is read on its own, so that labels can be had without images.  If the records are
 * neighbours in one shard and the group is not compressed, its arrays lie in the shard's map; else
 * they are copies.
 */
#include "python/core/dataset/py_dataset.h"

#include "python/core/array/py_array.h"
#include "python/core/base/py_errors.h"
#include "python/core/base/py_memory.h"
#include "shard_pack.h"

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

static int gather(const struct rows *r, int group, char *to, struct shard_error *err)
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

/* Find records in the map of their shard, and check all of them. */
static int look(const struct rows *r, int group, const char **data, struct shard_error *err)
{
	uint32_t g = (uint32_t)group;
	int64_t within = (int64_t)r->within;
	struct shard_view view;
	int rc = SHARD_OK;

	Py_BEGIN_ALLOW_THREADS for (size_t i = 0; !rc && i < r->count; i++)
	{
		rc = shard_reader_view(r->reader, g, (uint64_t)(within + r->step * (int64_t)i), &view, err);
		if (!rc && !i)
			*data = view.data;
	}
	Py_END_ALLOW_THREADS return rc;
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
		rc = look(r, group, &data, &err);
	} else { /* SIZE_MAX fails */
		owner = (PyObject *)memory_new(r->count <= SIZE_MAX / 2 / stride ? r->count * stride : SIZE_MAX);
		if (!owner)
			return false;
		data = ((struct memory *)owner)->data;
		rc = gather(r, group, ((struct memory *)owner)->data, &err);
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
	PyTypeObject *type = Py_TYPE(self);

	for (uint32_t g = 0; g < SHARD_GROUPS_MAX; g++)
		Py_XDECREF(r->promise.owner[g]);
	unref(r->dataset);
	PyMem_Free(r->idx);
	PyObject_Free(self);
	Py_DECREF(type);
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
	if (r && count && !copied && last < end &&
	    within + last >= first) { /* in the same shard, in either direction */
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

	rows_type = add_type(module, NULL, &spec);
	return rows_type ? 0 : -1;
}
