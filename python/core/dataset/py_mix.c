/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_mix.c - the type libshard._core.Mix: several datasets or selections, with weights
 */
#include "python/core/dataset/py_dataset.h"

#include "python/core/base/py_base.h"

PyTypeObject *mix_type;

/* ---- making one ---- */

static PyObject *new (PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"sources", "epoch_records", "stop", NULL};
	struct shard_mix_options o = {.size = sizeof(o)};
	unsigned long long epoch_records = 0;
	struct shard_mix_source *sources;
	struct shard_error err;
	PyObject *items;
	Py_ssize_t count, i;
	struct mix *mix;
	int rc;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!|KI", names, &PyTuple_Type, &items, &epoch_records, &o.stop))
		return NULL;
	o.epoch_records = epoch_records;
	count = PyTuple_Size(items);
	sources = PyMem_Calloc((size_t)count + 1, sizeof(*sources));
	if (!sources)
		return PyErr_NoMemory();
	for (i = 0; i < count; i++) { /* each is (dataset, selection or None, weight) */
		struct dataset *d;

		if (!PyArg_ParseTuple(PyTuple_GetItem(items, i), "O&O&I", dataset_converter, &d, selection_converter,
				      &sources[i].selection, &sources[i].weight))
			break;
		sources[i].ds = d->ds;
	}
	mix = i == count ? object_alloc(type) : NULL;
	if (mix) {
		mix->sources = ref(items);
		rc = shard_mix_open(&mix->m, sources, (uint32_t)count, &o, &err);
		if (rc) {
			fail(&err);
			unref(mix);
			mix = NULL;
		}
	}
	PyMem_Free(sources);
	return (PyObject *)mix;
}

static void dealloc(PyObject *self)
{
	struct mix *mix = (struct mix *)self;

	shard_mix_close(mix->m);
	unref(mix->sources);
	object_free(self);
}

/* ---- asking ---- */

static PyObject *info(PyObject *self, PyObject *Py_UNUSED(unused))
{
	struct shard_mix_info i;

	shard_mix_info(((struct mix *)self)->m, &i);
	return Py_BuildValue("{s:K,s:I,s:s}", "epoch_records", i.epoch_records, "weight_sum", i.weight_sum, "digest",
			     i.digest);
}

static bool set_number(PyObject *list, Py_ssize_t i, unsigned long n)
{
	PyObject *number = PyLong_FromUnsignedLong(n);

	return number && !PyList_SetItem(list, i, number); /* which takes it over */
}

static PyObject *weights(PyObject *self, PyObject *Py_UNUSED(unused))
{
	const struct mix *mix = (struct mix *)self;
	Py_ssize_t count = PyTuple_Size(mix->sources);
	PyObject *list = PyList_New(count);

	for (Py_ssize_t i = 0; list && i < count; i++) {
		uint32_t weight = 0;

		(void)shard_mix_component(mix->m, (uint32_t)i, &weight, NULL, NULL); /* each source is one */
		if (!set_number(list, i, weight))
			Py_CLEAR(list);
	}
	return list;
}

/* Whole weights of shares. */
static PyObject *rounded(PyObject *Py_UNUSED(unused), PyObject *shares)
{
	Py_ssize_t count = PyList_Check(shares) ? PyList_Size(shares) : -1;
	double *share = count < 0 ? NULL : PyMem_Calloc((size_t)count + 1, sizeof(*share));
	uint32_t *weight = count < 0 ? NULL : PyMem_Calloc((size_t)count + 1, sizeof(*weight));
	PyObject *list = NULL;
	struct shard_error err;

	if (count < 0)
		PyErr_SetString(PyExc_TypeError, "must be a list of numbers");
	else if (!share || !weight)
		PyErr_NoMemory();
	for (Py_ssize_t i = 0; i < count && share; i++)
		share[i] = PyFloat_AsDouble(PyList_GetItem(shares, i));
	if (!PyErr_Occurred() && shard_mix_round(share, (uint32_t)count, weight, &err))
		fail(&err);
	if (!PyErr_Occurred())
		list = PyList_New(count);
	for (Py_ssize_t i = 0; list && i < count; i++)
		if (!set_number(list, i, weight[i]))
			Py_CLEAR(list);
	PyMem_Free(share);
	PyMem_Free(weight);
	return list;
}

int mix_type_init(PyObject *module)
{
	static PyMethodDef methods[] = {
		{"info", info, METH_NOARGS, "info($self, /)\n--\n\n"},
		{"weights", weights, METH_NOARGS, "weights($self, /)\n--\n\n"},
		{"rounded", rounded, METH_O | METH_STATIC, "rounded(shares, /)\n--\n\n"},
		{NULL, NULL, 0, NULL},
	};
	static PyType_Slot slots[] = {
		{Py_tp_new, new},
		{Py_tp_dealloc, dealloc},
		{Py_tp_methods, methods},
		{Py_tp_doc, "Mix(sources, epoch_records=0, stop=0)\n--\n\n"},
		{0, NULL},
	};
	static PyType_Spec spec = {
		.name = "libshard._core.Mix",
		.basicsize = sizeof(struct mix),
		.flags = Py_TPFLAGS_DEFAULT,
		.slots = slots,
	};

	return add_type(&mix_type, module, "Mix", &spec);
}
