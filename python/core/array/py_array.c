/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_array.c - read-only arrays: a view, and the object that keeps its memory alive
 */
#include "python/core/array/py_array.h"

#include <unistd.h>

#include "python/core/base/py_errors.h"
#include "python/core/base/py_map.h"
#include "python/core/base/py_memory.h"

#define OWN_BYTES_MAX (64 << 20)

PyTypeObject *array_type;

struct array *array_new(PyObject *owner, int field, const struct view *v)
{
	struct array *a = PyObject_New(struct array, array_type);

	if (!a)
		return NULL;
	a->owner = Py_NewRef(owner);
	a->field = field;
	a->group = -1;
	a->v = *v;
	if (field >= 0)
		((struct lease *)owner)->view_count[field]++;
	return a;
}

struct array *array_of_field(PyObject *owner, int field, const struct shard_field *f, const void *data,
			     Py_ssize_t count, Py_ssize_t row_stride)
{
	struct view v = {.data = data, .dtype = f->dtype, .axis_count = (int)f->ndim + (count >= 0)};
	int rows = count >= 0;

	if (rows) {
		v.shape[0] = count;
		v.stride[0] = row_stride;
	}
	for (uint32_t i = 0; i < f->ndim; i++)
		v.shape[rows + (int)i] = f->shape[i];
	view_set_dense_strides(&v, rows);
	return array_new(owner, field, &v);
}

struct array *array_promised(struct promise *p, const struct shard_field *f, Py_ssize_t count, Py_ssize_t row_stride)
{
	struct array *a = array_of_field((PyObject *)p, -1, f, (const char *)(uintptr_t)f->offset, count, row_stride);

	if (a)
		a->group = (int)f->group;
	return a;
}

bool array_settle(struct array *a)
{
	struct promise *p = a->group < 0 ? NULL : (struct promise *)a->owner;

	if (!p)
		return true;
	p = ref(p); /* another thread may settle the array meanwhile */
	if (!p->keep(p, a->group)) {
		unref(p);
		return false;
	}
	if (a->group >= 0) {
		a->v.data = p->data[a->group] + (uintptr_t)a->v.data;
		a->owner = ref(p->owner[a->group]);
		a->group = -1;
		unref(p); /* the array's */
	}
	unref(p);
	return true;
}

struct array *array_of_numbers(PyObject *owner, const void *data, uint32_t dtype, Py_ssize_t count)
{
	struct view v = {.data = data, .dtype = dtype, .axis_count = 1, .shape = {count}};

	view_set_dense_strides(&v, 0);
	return array_new(owner, -1, &v);
}

bool array_read(const struct array *a, const struct view *v, char *to)
{
	if (a->field < 0)
		return map_copy_view(a->owner, v, to);
	view_copy_out(v, to);
	return true;
}

struct array *array_copy(const struct array *a)
{
	struct memory *m = memory_new((size_t)(view_item_count(&a->v) * view_item_bytes(&a->v)));
	struct view v = a->v;
	struct array *copy;

	if (!m)
		return NULL;
	if (!array_read(a, &a->v, m->data)) {
		unref(m);
		return NULL;
	}
	v.data = m->data;
	view_set_dense_strides(&v, 0);
	copy = array_new((PyObject *)m, -1, &v);
	unref(m);
	return copy;
}

bool array_is_mapped(const struct array *a)
{
	return a->field < 0 && !memory_is(a->owner); /* then the owner is a dataset */
}

bool array_own(struct array *a)
{
	struct array *copy;

	if (!array_is_mapped(a) || view_item_count(&a->v) * view_item_bytes(&a->v) > OWN_BYTES_MAX)
		return true;
	copy = array_copy(a);
	if (!copy)
		return false;
	unref(a->owner);
	a->owner = ref(copy->owner);
	a->v = copy->v;
	unref(copy);
	return true;
}

struct array *array_alloc(uint32_t dtype, uint64_t count, void **data)
{
	struct memory *m = memory_new(count > SIZE_MAX / 16 ? SIZE_MAX : (size_t)count * shard_dtype_bytes(dtype));
	struct array *a = m ? array_of_numbers((PyObject *)m, m->data, dtype, (Py_ssize_t)count) : NULL;

	if (a)
		*data = m->data;
	unref(m);
	return a;
}

/* ---- where the bytes are ---- */

bool array_is_reachable(struct array *a)
{
	const struct lender *l = a->field < 0 ? NULL : ((struct lease *)a->owner)->lender;

	if (!l || l->owner_pid == (long)getpid())
		return array_settle(a);
	fail_argument("this batch belongs to process %ld; open a loader in this process after fork", l->owner_pid);
	return false;
}

struct lease *array_lease_on_device(const struct array *a)
{
	struct lease *lease = a->field < 0 ? NULL : (struct lease *)a->owner;

	return lease && lease->lender->on_device ? lease : NULL;
}

bool array_is_readable(struct array *a)
{
	const struct lease *lease = array_lease_on_device(a);

	if (!lease)
		return array_is_reachable(a);
	fail_argument("this array is in the memory of GPU %u; give it to a library that reads GPU memory "
		      "with __dlpack__ or __cuda_array_interface__",
		      lease->lender->gpu);
	return false;
}
