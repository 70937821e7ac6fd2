/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_batch.c - a batch as Python has it: a dict of arrays, and where the records come from
 *
 * The latter are its parts: `index`, `flags` and others.  All of them are attributes.  A part may
 * also be an item of the dict, behind the fields; then it is that item and nothing else.
 *
 * Batches are made once a step, when the trainer's work has filled all caches.  So one is made with
 * few allocations and without a line of Python.  Large fields are arrays in the slot.  Small ones
 * are copied out of it, to one piece of memory.  Lengths become int64 on the way, and strings a
 * list if that is wanted.  On a GPU all fields are arrays in the slot.
 *
 * A slot is lent to its arrays, or they keep its memory and the slot goes on in other memory.
 */
#include <stddef.h>
#include <string.h>

#include "python/core/base/py_base.h"
#include "python/core/loader/py_loader.h"
#include "shard.h"

/* ---- the fields, and what a batch knows of each row ---- */

#define VIEW_STRIDE_MIN 4096 /* fields of smaller rows are copied out of the slot: 256 labels are 2 KiB */

static size_t aligned(size_t bytes)
{
	return (bytes + MEMORY_ALIGN_BYTES - 1) / MEMORY_ALIGN_BYTES * MEMORY_ALIGN_BYTES;
}

static bool is_view(const struct loader *l, uint32_t f)
{
	const struct shard_field *field = &l->schema->field[f];

	return l->lender.on_device || field->stride >= VIEW_STRIDE_MIN || field->bytes * l->window >= VIEW_STRIDE_MIN;
}

/*
 * Lengths are delivered in the type of an index, where the CPU can read them.  So are tokens, if
 * that is wanted.
 */
static bool is_wide(const struct loader *l, uint32_t f)
{
	const struct shard_field *field = &l->schema->field[f];

	return !l->lender.on_device && (field->dtype == SHARD_U16 || field->dtype == SHARD_U32) &&
	       (field->semantic == SHARD_LENGTH || (l->wide_tokens && field->semantic == SHARD_TOKENS));
}

/* Delivered in a list if that is wanted. */
static bool is_string(const struct shard_field *f)
{
	return f->kind == SHARD_STRING || shard_field_is_texts(f);
}

/* Is the field delivered?  A string that is a list has no use for its length. */
static bool pocket_wants(const struct loader *l, const struct shard_batch *b, uint32_t f)
{
	bool wanted = b->field[f].data;

	for (uint32_t i = 0; wanted && l->strings && i < l->schema->field_count; i++)
		wanted = !is_string(&l->schema->field[i]) || l->schema->field[i].length_field != f || !b->field[i].data;
	return wanted;
}

/* Memory for the small fields, and how much of it is taken. */
struct pocket {
	struct memory *memory;
	size_t used;
};

static bool pocket_open(struct pocket *p, const struct loader *l, const struct shard_batch *b)
{
	const struct shard_schema *s = l->schema;
	size_t bytes = aligned(b->record_count * sizeof(*b->record)) + 2 * aligned(b->record_count);

	if (b->component)
		bytes += aligned(b->record_count * sizeof(int64_t));

	for (uint32_t f = 0; f < s->field_count; f++)
		if (is_wide(l, f))
			bytes += aligned(b->record_count * (size_t)s->field[f].bytes /
					 shard_dtype_bytes(s->field[f].dtype) * sizeof(int64_t));
		else if (!is_view(l, f))
			bytes += aligned(b->record_count * (size_t)b->field[f].stride);
	p->memory = memory_new(bytes);
	p->used = 0;
	return p->memory;
}

static void *pocket_take(struct pocket *p, size_t bytes)
{
	void *at = (char *)p->memory->data + p->used;

	p->used += aligned(bytes);
	return at;
}

/*
 * Of windows, rows become [windows, rows of a window] on two axes.  Takes over the array, which may
 * be NULL, and is then the caller's again.
 */
static PyObject *in_windows(const struct loader *l, struct array *a)
{
	struct view *v = a ? &a->v : NULL;

	if (!a || !l->window)
		return (PyObject *)a;
	if (v->axis_count == (int)(sizeof(v->shape) / sizeof(v->shape[0]))) {
		unref(a);
		return fail_argument("a field has %d axes, and an array cannot have one more for windows; leave the "
				     "field out",
				     v->axis_count - 1);
	}
	memmove(v->shape + 1, v->shape, (size_t)v->axis_count * sizeof(v->shape[0]));
	memmove(v->stride + 1, v->stride, (size_t)v->axis_count * sizeof(v->stride[0]));
	v->axis_count++;
	v->shape[0] /= l->window;
	v->shape[1] = l->window;
	v->stride[0] *= l->window;
	return (PyObject *)a;
}

/* Of windows, a list of all rows becomes one with a list for each window.  As in_windows(). */
static PyObject *list_in_windows(const struct loader *l, PyObject *rows)
{
	Py_ssize_t count = rows && l->window ? PyList_Size(rows) / (Py_ssize_t)l->window : 0;
	PyObject *list, *window;

	if (!rows || !l->window)
		return rows;
	list = PyList_New(count);
	for (Py_ssize_t i = 0; list && i < count; i++) {
		window = PyList_GetSlice(rows, i * l->window, (i + 1) * l->window);
		if (!window || PyList_SetItem(list, i, window) < 0)
			Py_CLEAR(list);
	}
	Py_DECREF(rows);
	return list;
}

/* As int64.  A length is a number for each row, unless several axes vary. */
static struct array *wide_array(struct pocket *p, const struct shard_rows *rows, const struct shard_field *f,
				uint32_t count)
{
	struct shard_field wide = *f;
	size_t item_bytes = shard_dtype_bytes(f->dtype), per_row = f->bytes / item_bytes;
	int64_t *to = pocket_take(p, count * per_row * sizeof(*to));
	const int64_t *begin = to;

	for (uint32_t i = 0; i < count; i++, to += per_row) {
		const void *row = (const char *)rows->data + i * rows->stride; /* aligned: so are fields and strides */

		for (size_t k = 0; k < per_row; k++)
			to[k] = item_bytes == 2 ? ((const uint16_t *)row)[k] : ((const uint32_t *)row)[k];
	}
	wide.dtype = SHARD_I64;
	wide.ndim = f->semantic == SHARD_LENGTH && per_row == 1 ? 0 : f->ndim;
	return array_of_field((PyObject *)p->memory, -1, &wide, begin, count, (Py_ssize_t)(per_row * sizeof(*to)));
}

/* Strings as such, in a list; of a list of texts, a list for each record. */
static PyObject *string_list(const struct shard_batch *b, const struct shard_field *f, const struct shard_rows *rows)
{
	const struct shard_rows *lengths = &b->field[f->length_field];
	PyObject *list = PyList_New(b->record_count), *string;
	uint32_t length;

	for (uint32_t i = 0; list && i < b->record_count; i++) {
		const char *at = (const char *)rows->data + i * rows->stride;

		memcpy(&length, (const char *)lengths->data + i * lengths->stride, sizeof(length));
		length = length < f->shape[0] ? length : f->shape[0]; /* the hash was checked, but not this */
		string = f->kind == SHARD_RAGGED     ? texts_of_rows(at, length, f->shape[1])
			 : f->semantic == SHARD_TEXT ? PyUnicode_DecodeUTF8(at, length, "strict")
						     : PyBytes_FromStringAndSize(at, length);
		if (!string || PyList_SetItem(list, i, string) < 0)
			Py_CLEAR(list);
	}
	return list;
}

/* `home` is the lease of the batch, or the memory that it is in. */
static PyObject *pocket_field(struct pocket *p, const struct loader *l, const struct shard_batch *b, PyObject *home,
			      uint32_t f)
{
	const struct shard_schema *s = l->schema;
	const struct shard_rows *rows = &b->field[f];
	uint32_t count = b->record_count;
	const void *data = rows->data;

	if (is_wide(l, f))
		return in_windows(l, wide_array(p, rows, &s->field[f], count));
	if (l->strings && is_string(&s->field[f]))
		return list_in_windows(l, string_list(b, &s->field[f], rows));
	if (is_view(l, f)) {
		struct array *a = array_of_field(home, l->lender.make_memory ? -1 : (int)f, &s->field[f], rows->data,
						 count, (Py_ssize_t)rows->stride);

		if (a && s->field[f].semantic == SHARD_LENGTH && a->v.axis_count == 2 && a->v.shape[1] == 1)
			a->v.axis_count = 1; /* on a GPU, where they stay as they are */
		return in_windows(l, a);
	}
	data = memcpy(pocket_take(p, count * (size_t)rows->stride), data, count * (size_t)rows->stride);
	return in_windows(
		l, array_of_field((PyObject *)p->memory, -1, &s->field[f], data, count, (Py_ssize_t)rows->stride));
}

/* ---- the dict ---- */

static PyTypeObject *batch_type;

enum { INDEX, FLAGS, VALID, COMPONENT, EPOCH, STEP, POSITION, PARTS };
static const char *const part_names[PARTS] = {"index", "flags", "valid", "component", "epoch", "step", "position"};
static PyObject *part_key[PARTS];

/* It stands behind the dict, whose size depends on the interpreter. */
struct tail {
	PyObject *part[PARTS]; /* the ones that are not items */
	unsigned int items;    /* a bit for each part that is an item */
};
static Py_ssize_t tail_at;

static newfunc dict_new;
static traverseproc dict_traverse;
static inquiry dict_clear;
static destructor dict_dealloc;

static struct tail *tail(PyObject *batch)
{
	return (struct tail *)(void *)((char *)batch + tail_at);
}

/* ---- parts ---- */

/* Takes over the reference to `value`, which may be NULL: then an exception is set. */
static bool set_part(PyObject *batch, int i, PyObject *value)
{
	struct tail *t = tail(batch);
	bool good = value;

	if (good && t->items >> i & 1) {
		good = !PyDict_SetItem(batch, part_key[i], value);
		Py_DECREF(value);
	} else if (good) {
		PyObject *old = t->part[i];

		t->part[i] = value;
		Py_XDECREF(old);
	}
	return good;
}

/* `which` points to the part's name in part_names. */
static PyObject *get_part(PyObject *self, void *which)
{
	const char *const *name = which;
	ptrdiff_t i = name - part_names;
	PyObject *value = tail(self)->items >> i & 1 ? PyDict_GetItemWithError(self, part_key[i]) : tail(self)->part[i];

	if (!value && !PyErr_Occurred())
		PyErr_Format(
			PyExc_AttributeError,
			"this batch has no %s: it was made again of the items of another one, as frameworks do, or "
			"the item is gone; batch['%s'] is there if the loader's items= name it",
			*name, *name);
	return Py_XNewRef(value);
}

static int set_attribute(PyObject *self, PyObject *value, void *which)
{
	const char *const *name = which;

	if (value)
		return set_part(self, (int)(name - part_names), Py_NewRef(value)) ? 0 : -1;
	PyErr_Format(PyExc_AttributeError, "%s of a batch cannot be deleted", *name);
	return -1;
}

static PyObject *item_names(PyObject *self, void *Py_UNUSED(unused))
{
	unsigned int items = tail(self)->items;
	PyObject *list = PyList_New(0), *names = NULL;

	for (int i = 0; list && i < PARTS; i++)
		if (items >> i & 1 && PyList_Append(list, part_key[i]) < 0)
			Py_CLEAR(list);
	if (list)
		names = PyList_AsTuple(list);
	Py_XDECREF(list);
	return names;
}

/* ---- the type ---- */

/* A miss only costs more: an attribute that is known from tensors, or that is an item. */
static PyObject *attribute(PyObject *self, PyObject *name)
{
	PyObject *found = PyObject_GenericGetAttr(self, name);

	return found ? found : fail_attribute(self, name);
}

static void fail_item(PyObject *name)
{
	PyObject *shown = PyUnicode_Check(name) ? PyUnicode_FromFormat("%.60A", name) : PyType_GetName(Py_TYPE(name));
	const char *text = shown ? PyUnicode_AsUTF8AndSize(shown, NULL) : NULL;

	PyErr_Clear();
	fail_argument("items: %s%s is not a part of a batch, or not in it",
		      PyUnicode_Check(name) ? "" : "a value of type ", text ? text : "?");
	Py_XDECREF(shown);
}

/* Which parts have these names?  False with an exception if one is not a part, or not an item. */
static bool take_items(PyObject *batch, PyObject *names)
{
	PyObject *list = PySequence_List(names);
	Py_ssize_t count = list ? PyList_Size(list) : 0;
	bool good = list;

	for (Py_ssize_t k = 0; good && k < count; k++) {
		PyObject *name = PyList_GetItem(list, k);
		int i = PyUnicode_Check(name) ? 0 : PARTS;

		while (i < PARTS && PyUnicode_Compare(part_key[i], name))
			i++;
		good = i < PARTS && PyDict_Contains(batch, name) == 1;
		if (good)
			tail(batch)->items |= 1U << i;
		else
			fail_item(name);
	}
	if (!list && PyErr_ExceptionMatches(PyExc_TypeError))
		fail_type("items must be names of parts of a batch", names);
	Py_XDECREF(list);
	return good;
}

static int init(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"fields", "index", "flags",    "valid", "component",
				"epoch",  "step",  "position", "items", NULL};
	PyObject *fields, *part[PARTS] = {NULL}, *items = NULL;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OOOOOOOO:Batch", names, &fields, &part[INDEX], &part[FLAGS],
					 &part[VALID], &part[COMPONENT], &part[EPOCH], &part[STEP], &part[POSITION],
					 &items))
		return -1;
	if (!PyObject_HasAttrString(fields, "keys"))
		fail_type("the fields of a batch must be a dict of name to array", fields);
	if (PyErr_Occurred() || PyDict_Update(self, fields) || (items && !take_items(self, items)))
		return -1;
	/* Only a batch of a loader's making has an index, and can say that it is of no mixture. */
	if (!part[COMPONENT] && ((part[INDEX] && part[INDEX] != Py_None) || tail(self)->items >> INDEX & 1))
		part[COMPONENT] = Py_None;
	for (int i = 0; i < PARTS; i++)
		if (part[i] && !(tail(self)->items >> i & 1) && (i == COMPONENT || part[i] != Py_None))
			(void)set_part(self, i, Py_NewRef(part[i]));
	return 0;
}

static int traverse(PyObject *self, visitproc visit, void *arg)
{
	Py_VISIT(Py_TYPE(self));
	for (int i = 0; i < PARTS; i++)
		Py_VISIT(tail(self)->part[i]);
	return dict_traverse(self, visit, arg);
}

static int clear(PyObject *self)
{
	for (int i = 0; i < PARTS; i++)
		Py_CLEAR(tail(self)->part[i]);
	return dict_clear(self);
}

static void dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);

	PyObject_GC_UnTrack(self);
	for (int i = 0; i < PARTS; i++)
		Py_CLEAR(tail(self)->part[i]);
	dict_dealloc(self);
	Py_DECREF(type);
}

/* As what it holds: arrays are copied then, and no part of a loader's memory any more. */
static PyObject *reduce(PyObject *self, PyObject *Py_UNUSED(unused))
{
	PyObject *part[PARTS], *fields = PyDict_New(), *items = item_names(self, NULL), *out = NULL;

	for (int i = 0; i < PARTS; i++)
		part[i] = tail(self)->part[i] ? tail(self)->part[i] : Py_None;
	if (fields && items && !PyDict_Update(fields, self))
		out = Py_BuildValue("(O(OOOOOOOOO))", Py_TYPE(self), fields, part[INDEX], part[FLAGS], part[VALID],
				    part[COMPONENT], part[EPOCH], part[STEP], part[POSITION], items);
	Py_XDECREF(items);
	Py_XDECREF(fields);
	return out;
}

/* ---- making them ---- */

/* If this returns False, an exception is set and `batch` is incomplete. */
static bool fill(PyObject *batch, struct pocket *p, const struct loader *l, const struct shard_batch *b, PyObject *home)
{
	const struct shard_schema *s = l->schema;
	PyObject *value, *part[PARTS] = {NULL};
	uint32_t count = b->record_count;
	int64_t *component;
	bool good = true, *valid;
	void *numbers;

	for (uint32_t f = 0; good && f < s->field_count; f++) {
		if (!pocket_wants(l, b, f))
			continue;
		value = pocket_field(p, l, b, home, f);
		good = value && !PyDict_SetItem(batch, l->dataset->name[f], value);
		Py_XDECREF(value);
	}
	if (!good)
		return false;
	numbers = memcpy(pocket_take(p, count * sizeof(*b->record)), b->record, count * sizeof(*b->record));
	part[INDEX] = in_windows(l, array_of_numbers((PyObject *)p->memory, numbers, SHARD_I64, count));
	numbers = memcpy(pocket_take(p, count), b->row_flags, count);
	part[FLAGS] = in_windows(l, array_of_numbers((PyObject *)p->memory, numbers, SHARD_U8, count));
	valid = pocket_take(p, count);
	for (uint32_t i = 0; i < count; i++)
		valid[i] = !b->row_flags[i];
	part[VALID] = in_windows(l, array_of_numbers((PyObject *)p->memory, valid, SHARD_BOOL, count));
	if (b->component) {
		component = pocket_take(p, count * sizeof(*component));
		for (uint32_t i = 0; i < count; i++)
			component[i] = b->component[i];
		part[COMPONENT] = (PyObject *)array_of_numbers((PyObject *)p->memory, component, SHARD_I64, count);
	} else {
		part[COMPONENT] = Py_NewRef(Py_None);
	}
	part[EPOCH] = PyLong_FromUnsignedLongLong(b->epoch);
	part[STEP] = PyLong_FromUnsignedLongLong(b->step);
	part[POSITION] = PyLong_FromUnsignedLongLong(b->position);
	for (int i = 0; i < PARTS; i++)
		if (good)
			good = set_part(batch, i, part[i]);
		else
			Py_XDECREF(part[i]);
	return good;
}

static PyObject *make(struct loader *l, const struct shard_batch *b, PyObject *home)
{
	struct pocket p = {NULL, 0};
	PyObject *batch = NULL, *nothing = PyTuple_New(0); /* the interpreter has only one empty tuple */

	if (nothing && pocket_open(&p, l, b))
		batch = dict_new(batch_type, nothing, NULL);
	if (batch)
		tail(batch)->items = l->items;
	if (batch && !fill(batch, &p, l, b, home))
		Py_CLEAR(batch);
	unref(p.memory);
	Py_XDECREF(nothing);
	return batch;
}

/* The batch keeps the memory that it is in, and its slot goes on in the other one. */
static PyObject *make_and_swap(struct loader *l, const struct shard_batch *b)
{
	struct lender *lender = &l->lender;
	struct memory *home = lender->slot[b->slot], *other = lender->slot[lender->slot_count];
	struct shard_error err;
	PyObject *batch;

	lender->slot[lender->slot_count] = NULL;
	lender->busy = true; /* code that the collector runs meanwhile must not close it: no lease holds the batch */
	batch = make(l, b, (PyObject *)home);
	lender->busy = false;
	if (batch && shard_loader_swap(lender->l, b, other->data, &err)) {
		Py_CLEAR(batch);
		fail(&err);
	}
	if (batch) {
		lender->slot[b->slot] = other;
		unref(home);
	} else {
		unref(other);
		(void)shard_loader_release(lender->l, b, NULL); /* no array looks into it */
	}
	return batch;
}

PyObject *batch_new(struct loader *l, const struct shard_batch *b)
{
	struct lease *lease;
	PyObject *batch;

	if (l->lender.make_memory)
		return make_and_swap(l, b);
	lease = lease_new(&l->lender, b);
	batch = lease ? make(l, b, (PyObject *)lease) : NULL;
	unref(lease);
	return batch;
}

static const char doc[] =
	"Batch(fields, index=None, flags=None, valid=None, component=None, epoch=None, step=None, "
	"position=None, items=())\n--\n\n"
	"Field name to array, with the records on the first axis; and where they come from.\n\n"
	"``index`` has the number of each row's record in the dataset.  ``flags`` is 0 for ordinary rows,\n"
	"else bits of ``libshard.PADDED``, ``SUBSTITUTED``, ``MASKED`` and ``EDGE``.  ``valid`` is True for ordinary\n"
	"rows, and False for rows that must not count.  ``epoch`` and ``step`` count from 0.\n"
	"``position`` is where the step begins in the epoch's order, the same on all ranks.  Of a mixture,\n"
	"``component`` has the number of each row's source, and ``index`` is the number in its dataset.\n\n"
	"Those that the loader's ``items=`` name are items of the dict as well, behind the fields, and\n"
	"``item_names`` are their names.  Frameworks that move batches to a device make another one of the\n"
	"items alone, ``Batch({...})``: there ``batch['index']`` is left, and ``batch.index`` raises.";

int batch_init(PyObject *module)
{
	static PyGetSetDef getters[] = {
		{"index", get_part, set_attribute, "The record of each row: its number in the dataset.",
		 (void *)(uintptr_t)&part_names[INDEX]},
		{"flags", get_part, set_attribute, "Of each row: 0, or bits of PADDED, SUBSTITUTED, MASKED and EDGE.",
		 (void *)(uintptr_t)&part_names[FLAGS]},
		{"valid", get_part, set_attribute, "Of each row: does it count?  False if it has a flag.",
		 (void *)(uintptr_t)&part_names[VALID]},
		{"component", get_part, set_attribute, "Of a mixture: the number of each row's source; else None.",
		 (void *)(uintptr_t)&part_names[COMPONENT]},
		{"epoch", get_part, set_attribute, "Counts from 0.", (void *)(uintptr_t)&part_names[EPOCH]},
		{"step", get_part, set_attribute, "Of the epoch; counts from 0.", (void *)(uintptr_t)&part_names[STEP]},
		{"position", get_part, set_attribute, "Where the step begins in the epoch's order.",
		 (void *)(uintptr_t)&part_names[POSITION]},
		{"item_names", item_names, NULL, "Of the items that are not fields.", NULL},
		{NULL, NULL, NULL, NULL, NULL},
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
		{Py_tp_getset, getters},
		{Py_tp_getattro, attribute},
		{Py_tp_base, &PyDict_Type},
		{Py_tp_doc, (char *)(uintptr_t)doc},
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
	for (int i = 0; i < PARTS; i++) {
		part_key[i] = PyUnicode_InternFromString(part_names[i]);
		if (!part_key[i])
			return -1;
	}
	spec.basicsize = (int)(tail_at + (Py_ssize_t)sizeof(struct tail));
	return add_type(&batch_type, module, "Batch", &spec);
}
