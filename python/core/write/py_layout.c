/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_layout.c - what is to be written: the schema, and many records as columns
 */
#include <string.h>

#include "python/core/base/py_base.h"
#include "python/core/write/py_write.h"
#include "shard_pack.h"

/* ---- the schema, made of what Python describes ---- */

PyTypeObject *layout_type;

static bool take_name_and_shape(struct shard_field *f, const char *name, PyObject *shape)
{
	Py_ssize_t axes = PyTuple_Size(shape);

	if (strlen(name) >= sizeof(f->name) || axes > SHARD_DIMS_MAX) {
		fail_argument("field '%.80s': its name must have at most %zu bytes, and its shape at most %d axes",
			      name, sizeof(f->name) - 1, SHARD_DIMS_MAX);
		return false;
	}
	strcpy(f->name, name);
	f->ndim = (uint32_t)axes;
	for (Py_ssize_t i = 0; i < axes; i++) {
		unsigned long long n = PyLong_AsUnsignedLongLong(PyTuple_GetItem(shape, i));

		if (PyErr_Occurred() || n > UINT32_MAX || !n) {
			PyErr_Clear();
			fail_argument("field '%s': axis %zd of its shape must be 1 to %lu", name, i,
				      (unsigned long)UINT32_MAX);
			return false;
		}
		f->shape[i] = (uint32_t)n;
	}
	return true;
}

/* meaning(name, dtype, shape): (dtype, layout, semantic) */
PyObject *layout_meaning(PyObject *Py_UNUSED(self), PyObject *args)
{
	struct shard_field f = {.name = ""};
	PyObject *shape;
	const char *name;

	if (!PyArg_ParseTuple(args, "sIO!", &name, &f.dtype, &PyTuple_Type, &shape) ||
	    !take_name_and_shape(&f, name, shape))
		return NULL;
	shard_field_infer(&f);
	return Py_BuildValue("(III)", f.dtype, f.layout, f.semantic);
}

static bool take_fields(struct layout *l, PyObject *list)
{
	Py_ssize_t count = PyList_Size(list);
	struct shard_schema *s = &l->schema;

	if (count < 1 || count > SHARD_FIELDS_MAX) {
		fail_argument(
			"%zd fields, those of lengths included; must be 1 to %d. Stack columns of one dtype into one "
			"field: {'numbers': numpy.stack([a, b, ...], axis=1)} is a field float32[N]",
			count, SHARD_FIELDS_MAX);
		return false;
	}
	for (Py_ssize_t i = 0; i < count; i++) {
		struct shard_field *f = &s->field[i];
		PyObject *shape;
		const char *name;

		/* The last is the field of its length.  If the group is -1, it is chosen by size. */
		if (!PyArg_ParseTuple(PyList_GetItem(list, i), "sIO!IIIIII", &name, &f->dtype, &PyTuple_Type, &shape,
				      &f->kind, &f->layout, &f->semantic, &f->group, &f->ragged_axes,
				      &f->length_field) ||
		    !take_name_and_shape(f, name, shape))
			return false;
		l->name[i] = PyUnicode_InternFromString(f->name);
		if (!l->name[i])
			return false;
		s->field_count++;
	}
	for (uint32_t f = 0; f < s->field_count; f++)
		if (s->field[f].kind != SHARD_TENSOR && s->field[f].length_field < s->field_count)
			l->is_length[s->field[f].length_field] = true;
	shard_schema_group(s);
	return true;
}

static PyObject *new (PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"fields", "codec", "align", NULL};
	unsigned int codec, align;
	struct shard_error err;
	struct layout *l;
	PyObject *list;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!II", names, &PyList_Type, &list, &codec, &align))
		return NULL;
	l = object_alloc(type);
	if (!l || !take_fields(l, list)) {
		unref(l);
		return NULL;
	}
	l->schema.group[0].codec = codec; /* small fields, in group 1, would hardly shrink */
	if (!shard_schema_lay_out(&l->schema, align, &err))
		return (PyObject *)l;
	fail(&err);
	unref(l);
	return NULL;
}

static void dealloc(PyObject *self)
{
	struct layout *l = (struct layout *)self;

	for (uint32_t f = 0; f < SHARD_FIELDS_MAX; f++)
		Py_XDECREF(l->name[f]);
	object_free(self);
}

static PyObject *item_of(const struct layout *l, PyObject *record, uint32_t f)
{
	PyObject *value = PyDict_CheckExact(record) ? Py_XNewRef(PyDict_GetItemWithError(record, l->name[f]))
						    : PyObject_GetItem(record, l->name[f]);

	if (!value && PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_KeyError))
		PyErr_Clear();
	return value;
}

PyObject *layout_item_if(const struct layout *l, PyObject *record, uint32_t f)
{
	/* A defaultdict would make one. */
	if (PyDict_Check(record) && PyDict_Contains(record, l->name[f]) != 1)
		return NULL;
	return item_of(l, record, f);
}

/* An exception is set; if it is not of the object's own code, say that it is not a record. */
static void fail_not_a_record(PyObject *record, unsigned long long number)
{
	PyObject *type, *value, *trace, *name, *text;

	PyErr_Fetch(&type, &value, &trace);
	if (trace || PyObject_HasAttrString(record, "keys")) { /* of a function in Python, or of a mapping */
		PyErr_Restore(type, value, trace);
		return;
	}
	name = PyType_GetName(Py_TYPE(record));
	text = name ? PyUnicode_AsEncodedString(name, "utf-8", "backslashreplace") : NULL;
	PyErr_Clear();
	fail_record(number, NULL, "it is a value of type %.100s; must be a dict of field name to value",
		    text ? PyBytes_AsString(text) : "?");
	Py_XDECREF(text);
	Py_XDECREF(name);
	Py_XDECREF(type);
	Py_XDECREF(value);
}

PyObject *layout_item(const struct layout *l, PyObject *record, uint32_t f, unsigned long long number)
{
	PyObject *value = item_of(l, record, f), *names, *text;
	const char *found;

	if (!value && PyErr_Occurred())
		fail_not_a_record(record, number);
	if (value || PyErr_Occurred())
		return value;
	names = PySequence_List(record);
	text = names ? PyObject_Str(names) : NULL;
	found = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
	PyErr_Clear();
	fail_record(number, l->schema.field[f].name, "the record has no such item; it has %.300s",
		    found ? found : "others");
	Py_XDECREF(text);
	Py_XDECREF(names);
	return NULL;
}

static PyObject *fields(PyObject *self, PyObject *Py_UNUSED(unused))
{
	return schema_fields(&((struct layout *)self)->schema);
}

/*
 * shard_records(records, bytes, total): a size that is not given is 0, and an unknown total is None
 */
static PyObject *shard_records(PyObject *self, PyObject *args)
{
	unsigned long long records, bytes;
	PyObject *total;
	struct shard_error err;
	uint64_t count, out;

	if (!PyArg_ParseTuple(args, "KKO", &records, &bytes, &total))
		return NULL;
	count = total == Py_None ? SHARD_COUNT_UNKNOWN : PyLong_AsUnsignedLongLong(total);
	if (PyErr_Occurred())
		return NULL;
	if (shard_schema_shard_records(&((struct layout *)self)->schema, records, bytes, count, &out, &err))
		return fail(&err);
	return PyLong_FromUnsignedLongLong(out);
}

static PyObject *get_stride(PyObject *self, void *Py_UNUSED(unused))
{
	const struct shard_schema *s = &((struct layout *)self)->schema;
	unsigned long long bytes = 0;

	for (uint32_t g = 0; g < s->group_count; g++)
		bytes += s->group[g].stride;
	return PyLong_FromUnsignedLongLong(bytes);
}

int layout_init(PyObject *module)
{
	static PyMethodDef methods[] = {
		{"fields", fields, METH_NOARGS, "fields($self, /)\n--\n\nEach field as a dict, with its place."},
		{"shard_records", shard_records, METH_VARARGS,
		 "shard_records($self, records, bytes, total, /)\n--\n\n"
		 "Records of a shard: as given, or as many as bytes hold, or by default an eighth of the total."},
		{NULL, NULL, 0, NULL},
	};
	static PyGetSetDef getters[] = {
		{"stride", get_stride, NULL, "Bytes of a record on disk, uncompressed.", NULL},
		{NULL, NULL, NULL, NULL, NULL},
	};
	static PyType_Slot slots[] = {
		{Py_tp_doc, "Layout(fields, codec, align)\n--\n\n"},
		{Py_tp_new, new},
		{Py_tp_dealloc, dealloc},
		{Py_tp_methods, methods},
		{Py_tp_getset, getters},
		{0, NULL},
	};
	static PyType_Spec spec = {
		.name = "libshard._core.Layout",
		.basicsize = sizeof(struct layout),
		.flags = Py_TPFLAGS_DEFAULT,
		.slots = slots,
	};

	return add_type(&layout_type, module, "Layout", &spec);
}

/* ---- a mapping of columns, each with a row for every record ---- */

void columns_close(struct columns *c)
{
	for (uint32_t f = 0; f < SHARD_FIELDS_MAX; f++) {
		if (c->is_open[f])
			source_close(&c->source[f]);
		Py_XDECREF(c->value[f]);
	}
}

bool columns_open(struct columns *c, const struct layout *l, PyObject *dict, uint64_t first, uint64_t count,
		  unsigned long long number)
{
	const struct shard_schema *schema = &l->schema;
	uint32_t fields[SHARD_GROUPS_MAX] = {0};
	Py_ssize_t n;

	memset(c, 0, sizeof(*c));
	c->all_fit = true;
	for (uint32_t f = 0; f < schema->field_count; f++) {
		const struct shard_field *field = &schema->field[f];
		int rc = 0;

		fields[field->group]++;
		c->lead[field->group] = f;
		if (l->is_length[f]) {
			c->value[f] = layout_item_if(l, dict, f);
			if (!c->value[f] && !PyErr_Occurred())
				continue; /* they need not be given */
		} else {
			c->value[f] = layout_item(l, dict, f, number);
		}
		n = c->value[f] ? PySequence_Size(c->value[f]) : -1;
		if (n < 0 || first > (uint64_t)n || count > (uint64_t)n - first) {
			if (c->value[f] && !PyErr_Occurred())
				fail_record(number, field->name,
					    "the column has %zd records, and other columns have more", n);
			return false;
		}
		if (field->kind == SHARD_TENSOR && !l->is_length[f])
			rc = source_open(&c->source[f], c->value[f]);
		if (rc < 0)
			return false;
		c->is_open[f] = rc > 0;
		c->all_fit =
			c->all_fit && rc > 0 && source_is(&c->source[f], field, 1) && c->source[f].as.shape[0] == n;
	}
	for (uint32_t g = 0; c->all_fit && g < schema->group_count; g++) {
		struct view row = view_row(&c->source[c->lead[g]].as, 0);

		c->whole[g] = fields[g] == 1 && view_is_dense(&row);
	}
	return true;
}

void columns_gather(const struct columns *c, const struct layout *l, uint64_t row, char *const *room,
		    const char **group)
{
	const struct shard_schema *schema = &l->schema;

	for (uint32_t g = 0; g < schema->group_count; g++) {
		const struct view *lead = &c->source[c->lead[g]].as;

		group[g] = c->whole[g] ? lead->data + (Py_ssize_t)row * lead->stride[0] : room[g];
	}
	for (uint32_t f = 0; f < schema->field_count; f++) {
		const struct shard_field *field = &schema->field[f];
		struct view part;

		if (c->whole[field->group])
			continue;
		part = view_row(&c->source[f].as, (Py_ssize_t)row);
		view_copy_out(&part, room[field->group] + field->offset);
	}
}
