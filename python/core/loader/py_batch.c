/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_batch.c - a batch as Python has it: a dict of arrays, and where the records come from
 *
 * Batches are made once a step, when the trainer's work has filled all caches.  So one is made with
 * few allocations and without a line of Python.  Large fields are arrays in the slot; small ones
 * are copied out of it, to one piece of memory. On a GPU all fields are arrays in the slot.
 */
#include "python/core/loader/py_batch.h"

#include <stddef.h>
#include <string.h>
#include <structmember.h>

#include "python/core/array/py_array.h"
#include "python/core/base/py_memory.h"

#define VIEW_STRIDE_MIN 4096 /* fields of smaller groups are copied out of the slot: 256 labels are 2 KiB */

static PyTypeObject *batch_type;

/* They stand behind the dict, whose size depends on the interpreter. */
enum { INDEX, FLAGS, EPOCH, STEP, POSITION, COMPONENT, PARTS };
static Py_ssize_t tail_at;

static newfunc dict_new;
static traverseproc dict_traverse;
static inquiry dict_clear;
static destructor dict_dealloc;

static PyObject **tail(PyObject *batch)
{
	return (PyObject **)(void *)((char *)batch + tail_at);
}

/* ---- the type ---- */

static int init(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"fields", "index", "flags", "epoch", "step", "position", "component", NULL};
	PyObject *fields, *part[PARTS] = {NULL};

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OOOOOO:Batch", names, &fields, &part[INDEX], &part[FLAGS],
					 &part[EPOCH], &part[STEP], &part[POSITION], &part[COMPONENT]) ||
	    PyDict_Update(self, fields) < 0)
		return -1;
	for (int i = 0; i < PARTS; i++) {
		PyObject *old = tail(self)[i];

		Py_XINCREF(part[i]);
		tail(self)[i] = part[i];
		Py_XDECREF(old);
	}
	return 0;
}

static int traverse(PyObject *self, visitproc visit, void *arg)
{
	Py_VISIT(Py_TYPE(self));
	for (int i = 0; i < PARTS; i++)
		Py_VISIT(tail(self)[i]);
	return dict_traverse(self, visit, arg);
}

static int clear(PyObject *self)
{
	for (int i = 0; i < PARTS; i++)
		Py_CLEAR(tail(self)[i]);
	return dict_clear(self);
}

static void dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);

	PyObject_GC_UnTrack(self);
	for (int i = 0; i < PARTS; i++)
		Py_CLEAR(tail(self)[i]);
	dict_dealloc(self);
	Py_DECREF(type);
}

static PyObject *reduce(PyObject *self, PyObject *unused)
{
	(void)self;
	(void)unused;
	PyErr_SetString(
		PyExc_TypeError,
		"a batch is a part of its loader's memory and cannot be pickled; copy() the arrays that are wanted");
	return NULL;
}

/* ---- making them ---- */

/* Memory for the small fields, and how much of it is taken. */
struct pocket {
	struct memory *memory;
	size_t used;
};

static size_t aligned(size_t bytes)
{
	return (bytes + MEMORY_ALIGN_BYTES - 1) / MEMORY_ALIGN_BYTES * MEMORY_ALIGN_BYTES;
}

static bool is_view(const struct loader *l, const struct shard_schema *s, uint32_t f)
{
	return l->lender.on_device || s->group[s->field[f].group].stride >= VIEW_STRIDE_MIN;
}

static bool pocket_open(struct pocket *p, const struct loader *l, const struct shard_batch *b)
{
	const struct shard_schema *s = shard_dataset_schema(l->dataset->ds);
	size_t bytes = aligned(b->record_count * sizeof(*b->record)) + aligned(b->record_count);

	if (b->component)
		bytes += aligned(b->record_count * sizeof(int64_t));

	for (uint32_t f = 0; f < s->field_count; f++)
		if (!is_view(l, s, f))
			bytes += aligned(b->record_count * (size_t)b->field[f].stride);
	p->memory = memory_new(bytes);
	p->used = 0;
	return p->memory;
}

static const void *put(struct pocket *p, const void *data, size_t bytes)
{
	void *to = (char *)p->memory->data + p->used;

	memcpy(to, data, bytes);
	p->used += aligned(bytes);
	return to;
}

static PyObject *row_array(struct pocket *p, uint32_t dtype, const void *data, uint32_t count)
{
	const void *numbers = put(p, data, count * shard_dtype_bytes(dtype));

	return (PyObject *)array_of_numbers((PyObject *)p->memory, numbers, dtype, count);
}

/* In the type of `index`, because it is used as an index, too. */
static PyObject *component_array(struct pocket *p, const struct shard_batch *b)
{
	int64_t *to = (int64_t *)(void *)((char *)p->memory->data + p->used);

	for (uint32_t i = 0; i < b->record_count; i++)
		to[i] = b->component[i];
	p->used += aligned(b->record_count * sizeof(*to));
	return (PyObject *)array_of_numbers((PyObject *)p->memory, to, SHARD_I64, b->record_count);
}

static PyObject *field_array(struct pocket *p, const struct loader *l, struct lease *lease, uint32_t f)
{
	const struct shard_schema *s = shard_dataset_schema(l->dataset->ds);
	const struct shard_rows *rows = &lease->as.batch.field[f];
	uint32_t count = lease->as.batch.record_count;

	if (is_view(l, s, f))
		return (PyObject *)array_of_field((PyObject *)lease, (int)f, &s->field[f], rows->data, count,
						  (Py_ssize_t)rows->stride);
	return (PyObject *)array_of_field((PyObject *)p->memory, -1, &s->field[f],
					  put(p, rows->data, count * (size_t)rows->stride), count,
					  (Py_ssize_t)rows->stride);
}

/* If this returns False, an exception is set and `batch` is incomplete. */
static bool fill(PyObject *batch, struct pocket *p, const struct loader *l, struct lease *lease)
{
	const struct shard_schema *s = shard_dataset_schema(l->dataset->ds);
	const struct shard_batch *b = &lease->as.batch;
	PyObject **part = tail(batch), *value;
	bool good = true;

	for (uint32_t f = 0; good && f < s->field_count; f++) {
		if (!b->field[f].data) /* nobody wants it */
			continue;
		value = field_array(p, l, lease, f);
		good = value && !PyDict_SetItem(batch, l->dataset->name[f], value);
		Py_XDECREF(value);
	}
	return good && (part[INDEX] = row_array(p, SHARD_I64, b->record, b->record_count)) &&
	       (part[FLAGS] = row_array(p, SHARD_U8, b->row_flags, b->record_count)) &&
	       (!b->component || (part[COMPONENT] = component_array(p, b))) &&
	       (part[EPOCH] = PyLong_FromUnsignedLongLong(b->epoch)) &&
	       (part[STEP] = PyLong_FromUnsignedLongLong(b->step)) &&
	       (part[POSITION] = PyLong_FromUnsignedLongLong(b->position));
}

PyObject *batch_new(struct loader *l, const struct shard_batch *b)
{
	struct lease *lease = lease_new(&l->lender, b);
	struct pocket p = {NULL, 0};
	PyObject *batch = NULL, *nothing = PyTuple_New(0); /* the interpreter has only one empty tuple */

	if (lease && nothing && pocket_open(&p, l, b))
		batch = dict_new(batch_type, nothing, NULL);
	if (batch && !fill(batch, &p, l, lease))
		Py_CLEAR(batch);
	unref(p.memory);
	unref(lease);
	Py_XDECREF(nothing);
	return batch;
}

int batch_init(PyObject *module)
{
	static PyMemberDef members[] = {
		{"index", T_OBJECT, INDEX, 0, "The record of each row: its number in the dataset."},
		{"flags", T_OBJECT, FLAGS, 0, "Of each row: 0, or bits of PADDED, SUBSTITUTED and MASKED."},
		{"epoch", T_OBJECT, EPOCH, 0, "Counts from 0."},
		{"step", T_OBJECT, STEP, 0, "Of the epoch; counts from 0."},
		{"position", T_OBJECT, POSITION, 0, "Where the step begins in the epoch's order."},
		{"component", T_OBJECT, COMPONENT, 0, "Of a mixture: the number of each row's source; else None."},
		{NULL, 0, 0, 0, NULL},
	};
	static PyMethodDef methods[] = {
		{"__reduce__", reduce, METH_NOARGS, NULL},
		{NULL, NULL, 0, NULL},
	};
	static PyType_Slot slots[] = {
		{Py_tp_init, init},
		{Py_tp_traverse, traverse},
		{Py_tp_clear, clear},
		{Py_tp_dealloc, dealloc},
		{Py_tp_methods, methods},
		{Py_tp_members, members},
		{Py_tp_base, &PyDict_Type},
		{Py_tp_doc,
		 "Batch(fields, index=None, flags=None, epoch=None, step=None, position=None, component=None)\n--\n\n"
		 "Field name to array, with the records on the first axis; and where they come from.\n\n"
		 "``index`` has the number of each row's record in the dataset; ``flags`` is 0 for ordinary rows,\n"
		 "else bits of ``libshard.PADDED``, ``SUBSTITUTED`` and ``MASKED``; ``epoch`` and ``step`` count from "
		 "0;\n"
		 "``position`` is where the step begins in the epoch's order, the same on all ranks.  Of a mixture,\n"
		 "``component`` has the number of each row's source, and ``index`` is the number in its dataset.\n\n"
		 "Frameworks that move batches to a device make another one of the fields alone: ``Batch({...})``;\n"
		 "these are then None."},
		{0, NULL},
	};
	static PyType_Spec spec = {
		.name = "libshard.Batch",
		.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
		.slots = slots,
	};
	PyObject *bytes = PyObject_GetAttrString((PyObject *)&PyDict_Type, "__basicsize__");

	dict_new = (newfunc)PyType_GetSlot(&PyDict_Type, Py_tp_new);
	dict_traverse = (traverseproc)PyType_GetSlot(&PyDict_Type, Py_tp_traverse);
	dict_clear = (inquiry)PyType_GetSlot(&PyDict_Type, Py_tp_clear);
	dict_dealloc = (destructor)PyType_GetSlot(&PyDict_Type, Py_tp_dealloc);
	tail_at = bytes ? PyLong_AsSsize_t(bytes) : -1;
	Py_XDECREF(bytes);
	if (tail_at < 0)
		return -1;
	for (int i = 0; i < PARTS; i++)
		members[i].offset = tail_at + i * (Py_ssize_t)sizeof(PyObject *);
	spec.basicsize = (int)(tail_at + PARTS * (Py_ssize_t)sizeof(PyObject *));
	batch_type = add_type(module, "Batch", &spec);
	return batch_type ? 0 : -1;
}
