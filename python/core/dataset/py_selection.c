/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_selection.c - the type libshard._core.Selection, and columns
 *
 * Each way to make one is a static method, which takes the dataset and, where it chooses from
 * another selection, that one or None.
 */
#include "python/core/dataset/py_dataset.h"

#include <string.h>

#include "libshard/base/bytes.h"
#include "python/core/array/py_array.h"
#include "python/core/base/py_base.h"

PyTypeObject *selection_type;

int selection_converter(PyObject *object, void *out)
{
	bool good = object == Py_None || PyObject_TypeCheck(object, selection_type);

	if (good)
		*(const struct shard_selection **)out = object == Py_None ? NULL : ((struct selection *)object)->s;
	else
		PyErr_SetString(PyExc_TypeError, "must be a selection or None");
	return good;
}

static PyObject *made(int rc, struct shard_selection *s, const struct shard_error *err)
{
	struct selection *out;

	if (rc)
		return fail(err);
	out = PyObject_New(struct selection, selection_type);
	if (out)
		out->s = s;
	else
		shard_selection_close(s);
	return (PyObject *)out;
}

static void dealloc(PyObject *self)
{
	shard_selection_close(((struct selection *)self)->s);
	object_free(self);
}

/* ---- making one ---- */

/* The numbers as the library takes them, in new memory; else an exception is set. */
static uint64_t *take_numbers(const Py_buffer *b, uint64_t count)
{
	bool is_signed = number_is_signed(b);
	uint64_t *idx = PyMem_Calloc(count + 1, sizeof(*idx)), i = 0;

	if (!idx) {
		fail_memory("no memory for the numbers of %llu records", (unsigned long long)count);
		return NULL;
	}
	for (; i < count; i++) {
		idx[i] = number_of_item((const char *)b->buf + i * (size_t)b->itemsize, b->itemsize, is_signed);
		if (is_signed && idx[i] > INT64_MAX)
			break;
	}
	if (i == count)
		return idx;
	PyMem_Free(idx);
	fail_argument("records[%llu] is below 0", (unsigned long long)i);
	return NULL;
}

/* The records with these numbers, a buffer of any integer type, in native bytes. */
static PyObject *of_records(PyObject *Py_UNUSED(unused), PyObject *args)
{
	struct shard_selection *s = NULL;
	uint64_t *idx = NULL, count;
	struct dataset *d;
	struct shard_error err;
	PyObject *object, *out = NULL;
	Py_buffer numbers;
	int rc;

	if (!PyArg_ParseTuple(args, "O&O", dataset_converter, &d, &object) ||
	    PyObject_GetBuffer(object, &numbers, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS) < 0)
		return NULL;
	count = (uint64_t)(numbers.len / numbers.itemsize);
	idx = take_numbers(&numbers, count);
	PyBuffer_Release(&numbers);
	if (idx) {
		Py_BEGIN_ALLOW_THREADS rc = shard_select_open(&s, d->ds, idx, count, &err);
		Py_END_ALLOW_THREADS out = made(rc, s, &err);
	}
	PyMem_Free(idx);
	return out;
}

/* The records whose byte in `mask` is not 0. */
static PyObject *of_mask(PyObject *Py_UNUSED(unused), PyObject *args)
{
	const struct shard_selection *from;
	struct shard_selection *s = NULL;
	PyObject *out;
	struct dataset *d;
	struct shard_error err;
	Py_buffer mask;
	int rc;

	if (!PyArg_ParseTuple(args, "O&O&y*", dataset_converter, &d, selection_converter, &from, &mask))
		return NULL;
	Py_BEGIN_ALLOW_THREADS rc = shard_select_mask(&s, d->ds, from, mask.buf, (uint64_t)mask.len, &err);
	Py_END_ALLOW_THREADS out = made(rc, s, &err);
	PyBuffer_Release(&mask);
	return out;
}

/* Those of `of` whose neighbours from `first` to `last` are in their episode. */
static PyObject *inside(PyObject *Py_UNUSED(unused), PyObject *args)
{
	const struct shard_selection *from;
	struct shard_selection *s = NULL;
	struct shard_episodes *episodes = NULL;
	PyObject *out;
	struct dataset *d;
	struct shard_error err;
	const char *field;
	int first, last, rc;

	if (!PyArg_ParseTuple(args, "O&O&sii", dataset_converter, &d, selection_converter, &from, &field, &first,
			      &last))
		return NULL;
	Py_BEGIN_ALLOW_THREADS rc = shard_episodes_open(&episodes, d->ds, field, &err);
	if (!rc)
		rc = shard_select_inside(&s, d->ds, from, episodes, first, last, &err);
	shard_episodes_close(episodes);
	Py_END_ALLOW_THREADS out = made(rc, s, &err);
	return out;
}

static PyObject *where(PyObject *Py_UNUSED(unused), PyObject *args)
{
	const struct shard_selection *from;
	struct shard_selection *s = NULL;
	PyObject *out;
	struct dataset *d;
	struct shard_error err;
	const char *field;
	Py_buffer values;
	int rc;

	if (!PyArg_ParseTuple(args, "O&O&sy*", dataset_converter, &d, selection_converter, &from, &field, &values))
		return NULL;
	Py_BEGIN_ALLOW_THREADS rc =
		shard_select_where(&s, d->ds, from, field, values.buf, (uint64_t)values.len / sizeof(int64_t), &err);
	Py_END_ALLOW_THREADS out = made(rc, s, &err);
	PyBuffer_Release(&values);
	return out;
}

static PyObject *fraction(PyObject *Py_UNUSED(unused), PyObject *args)
{
	const struct shard_selection *from;
	struct shard_selection *s = NULL;
	unsigned long long seed;
	struct dataset *d;
	struct shard_error err;
	double begin, end;
	int rc;

	if (!PyArg_ParseTuple(args, "O&O&ddK", dataset_converter, &d, selection_converter, &from, &begin, &end, &seed))
		return NULL;
	Py_BEGIN_ALLOW_THREADS rc = shard_select_fraction(&s, d->ds, from, begin, end, seed, &err);
	Py_END_ALLOW_THREADS return made(rc, s, &err);
}

static PyObject *fold(PyObject *Py_UNUSED(unused), PyObject *args)
{
	const struct shard_selection *from;
	struct shard_selection *s = NULL;
	unsigned int number, count;
	unsigned long long seed;
	struct dataset *d;
	struct shard_error err;
	int rest, rc;

	if (!PyArg_ParseTuple(args, "O&O&IIpK", dataset_converter, &d, selection_converter, &from, &number, &count,
			      &rest, &seed))
		return NULL;
	Py_BEGIN_ALLOW_THREADS rc =
		shard_select_fold(&s, d->ds, from, number, count, rest ? SHARD_FOLD_REST : SHARD_FOLD_PART, seed, &err);
	Py_END_ALLOW_THREADS return made(rc, s, &err);
}

static PyObject *read_file(PyObject *Py_UNUSED(unused), PyObject *args)
{
	struct shard_selection *s = NULL;
	PyObject *path, *out;
	struct shard_error err;
	struct dataset *d;
	int rc;

	if (!PyArg_ParseTuple(args, "O&O&", dataset_converter, &d, PyUnicode_FSConverter, &path))
		return NULL;
	Py_BEGIN_ALLOW_THREADS rc = shard_selection_read(&s, d->ds, PyBytes_AsString(path), &err);
	Py_END_ALLOW_THREADS out = made(rc, s, &err);
	Py_DECREF(path);
	return out;
}

/* ---- asking ---- */

static Py_ssize_t length(PyObject *self)
{
	struct shard_selection_info i;

	shard_selection_info(((struct selection *)self)->s, &i);
	return (Py_ssize_t)i.record_count;
}

/* The records at places [first, first + count). */
static PyObject *records(PyObject *self, PyObject *args)
{
	unsigned long long first, count;
	struct shard_error err;
	struct array *a;
	void *idx;

	if (!PyArg_ParseTuple(args, "KK", &first, &count))
		return NULL;
	a = array_alloc(SHARD_I64, count, &idx);
	if (!a || !shard_selection_records(((struct selection *)self)->s, first, count, idx, &err))
		return (PyObject *)a;
	unref(a);
	return fail(&err);
}

#define PIECE 4096u /* records that are compared at a time */

/* How many records are not in `of`, and one of them. */
static uint64_t count_outside(const struct shard_selection *s, const struct shard_selection *of, uint64_t *which)
{
	uint64_t mine[PIECE], theirs[PIECE], at = 0, have = 0, outside = 0, n = 0;
	struct shard_selection_info all, info;
	struct shard_error err;

	shard_selection_info(of, &all);
	shard_selection_info(s, &info);
	for (uint64_t i = 0; i < info.record_count; i++) {
		uint64_t left = info.record_count - i;

		if (i % PIECE == 0)
			shard_selection_records(s, i, left < PIECE ? left : PIECE, mine, &err);
		while (at < all.record_count && (at == have || theirs[at % PIECE] < mine[i % PIECE])) {
			if (at == have) {
				n = all.record_count - at < PIECE ? all.record_count - at : PIECE;
				shard_selection_records(of, at, n, theirs, &err);
				have += n;
			} else {
				at++;
			}
		}
		if (at == all.record_count || theirs[at % PIECE] != mine[i % PIECE]) {
			outside++;
			*which = mine[i % PIECE];
		}
	}
	return outside;
}

/* (how many records are not in another selection, one of them) */
static PyObject *outside(PyObject *self, PyObject *args)
{
	uint64_t count, which = 0;
	struct selection *of;

	if (!PyArg_ParseTuple(args, "O!", selection_type, &of))
		return NULL;
	Py_BEGIN_ALLOW_THREADS count = count_outside(((struct selection *)self)->s, of->s, &which);
	Py_END_ALLOW_THREADS return Py_BuildValue("KK", (unsigned long long)count, (unsigned long long)which);
}

static PyObject *digest(PyObject *self, PyObject *Py_UNUSED(unused))
{
	struct shard_selection_info i;

	shard_selection_info(((struct selection *)self)->s, &i);
	return PyUnicode_FromString(i.digest);
}

static PyObject *amplification(PyObject *self, PyObject *args)
{
	struct dataset *d;

	if (!PyArg_ParseTuple(args, "O&", dataset_converter, &d))
		return NULL;
	return PyFloat_FromDouble(shard_selection_amplification(((struct selection *)self)->s, d->ds));
}

static PyObject *write_file(PyObject *self, PyObject *args)
{
	struct shard_error err;
	PyObject *path;
	int rc;

	if (!PyArg_ParseTuple(args, "O&", PyUnicode_FSConverter, &path))
		return NULL;
	Py_BEGIN_ALLOW_THREADS rc = shard_selection_write(((struct selection *)self)->s, PyBytes_AsString(path), &err);
	Py_END_ALLOW_THREADS Py_DECREF(path);
	return rc ? fail(&err) : Py_NewRef(Py_None);
}

/* ---- columns ---- */

#define COLUMN_RECORDS 65536u /* between two looks for ^C */
#define SPAN_BYTES     262144u

/* Records that are read at once, also those between some that are selected.  They would take long if they were large. */
static uint64_t span_records(const struct shard_dataset *ds, const struct shard_field *f)
{
	uint64_t unit = shard_dataset_schema(ds)->group[f->group].unit_records; /* these are decoded together */

	return min_u64(PIECE, max_u64(SPAN_BYTES / f->stride + 1, unit));
}

/* A field of the records at places [first, first + count) of a selection, to `out`.  `piece` has room for a span. */
static int read_selected(struct shard_dataset *ds, const struct shard_field *f, const struct shard_selection *of,
			 uint64_t first, uint64_t count, char *piece, char *out, struct shard_error *err)
{
	uint64_t most = span_records(ds, f);
	uint64_t idx[PIECE], n, begin, span, i;
	int rc = SHARD_OK;

	for (uint64_t done = 0; !rc && done < count; done += n) {
		n = count - done < PIECE ? count - done : PIECE;
		rc = shard_selection_records(of, first + done, n, idx, err);
		for (i = 0; !rc && i < n;) {
			begin = idx[i];
			span = min_u64(idx[n - 1] + 1 - begin, most);
			rc = shard_dataset_column(ds, f, begin, span, piece, err);
			if (rc == SHARD_E_CORRUPT && span > 1) { /* perhaps a record that is not selected */
				most = 1;
				rc = SHARD_OK;
				continue;
			}
			for (; !rc && i < n && idx[i] < begin + span; i++) {
				memcpy(out, piece + (idx[i] - begin) * f->bytes, (size_t)f->bytes);
				out += f->bytes;
			}
		}
	}
	return rc;
}

/* A tensor field of all records, or of those of a selection, as an array. */
static PyObject *column(PyObject *Py_UNUSED(unused), PyObject *args)
{
	struct dataset *d;
	const struct shard_field *f;
	const struct shard_selection *of;
	struct shard_selection_info selected;
	struct shard_dataset_info info;
	struct shard_error err;
	struct array *a;
	const char *name;
	uint64_t n, items;
	char *piece = NULL;
	void *data;
	int rc = SHARD_OK;

	if (!PyArg_ParseTuple(args, "O&O&s", dataset_converter, &d, selection_converter, &of, &name))
		return NULL;
	f = shard_schema_find(shard_dataset_schema(d->ds), name);
	if (!f || f->kind != SHARD_TENSOR)
		return fail_argument("field '%s' %s", name,
				     f ? "has another shape in each record, so it is not a column"
				       : "is not in the dataset");
	shard_dataset_info(d->ds, &info);
	n = info.record_count;
	if (of) {
		shard_selection_info(of, &selected);
		n = selected.record_count;
	}
	items = f->bytes / shard_dtype_bytes(f->dtype);
	if (n > SIZE_MAX / 16 / f->bytes)
		return fail_memory(
			"field '%s' of %llu records needs more memory than there can be; read some of them, as "
			"ds[0:1000]['%s']",
			name, (unsigned long long)n, name);
	a = array_alloc(f->dtype, n * items, &data);
	if (!a && PyErr_ExceptionMatches(PyExc_MemoryError)) {
		PyErr_Clear();
		return fail_memory(
			"field '%s' of %llu records needs %llu bytes of memory, and there is less; read some of "
			"them, as ds[0:1000]['%s']",
			name, (unsigned long long)n, (unsigned long long)(n * f->bytes), name);
	}
	if (a && of) {
		uint64_t span = span_records(d->ds, f);

		piece = PyMem_Malloc((size_t)(span * f->bytes));
		if (!piece) {
			unref(a);
			return fail_memory("no memory for %llu records of field '%s'", (unsigned long long)span, name);
		}
	}
	for (uint64_t first = 0; a && !rc && first < n; first += COLUMN_RECORDS) {
		uint64_t count = n - first < COLUMN_RECORDS ? n - first : COLUMN_RECORDS;

		char *out = (char *)data + first * f->bytes;

		Py_BEGIN_ALLOW_THREADS rc = of ? read_selected(d->ds, f, of, first, count, piece, out, &err)
					       : shard_dataset_column(d->ds, f, first, count, out, &err);
		Py_END_ALLOW_THREADS if (!rc && PyErr_CheckSignals() < 0) rc = SHARD_E_CANCELLED;
	}
	PyMem_Free(piece);
	if (rc) {
		unref(a);
		return fail(&err);
	}
	if (a) { /* [records, ...shape] */
		PyObject *shaped =
			(PyObject *)array_of_field(a->owner, -1, f, data, (Py_ssize_t)n, (Py_ssize_t)f->bytes);

		unref(a);
		return shaped;
	}
	return NULL;
}

int selection_init(PyObject *module)
{
	static PyMethodDef methods[] = {
		{"of_records", of_records, METH_VARARGS | METH_STATIC, "of_records(dataset, numbers, /)\n--\n\n"},
		{"of_mask", of_mask, METH_VARARGS | METH_STATIC, "of_mask(dataset, of, mask, /)\n--\n\n"},
		{"where", where, METH_VARARGS | METH_STATIC, "where(dataset, of, field, values, /)\n--\n\n"},
		{"inside", inside, METH_VARARGS | METH_STATIC, "inside(dataset, of, field, first, last, /)\n--\n\n"},
		{"fraction", fraction, METH_VARARGS | METH_STATIC,
		 "fraction(dataset, of, begin, end, seed, /)\n--\n\n"},
		{"fold", fold, METH_VARARGS | METH_STATIC, "fold(dataset, of, number, count, rest, seed, /)\n--\n\n"},
		{"read", read_file, METH_VARARGS | METH_STATIC, "read(dataset, path, /)\n--\n\n"},
		{"column", column, METH_VARARGS | METH_STATIC, "column(dataset, of, field, /)\n--\n\n"},
		{"records", records, METH_VARARGS, "records($self, first, count, /)\n--\n\n"},
		{"outside", outside, METH_VARARGS, "outside($self, of, /)\n--\n\n"},
		{"digest", digest, METH_NOARGS, "digest($self, /)\n--\n\n"},
		{"amplification", amplification, METH_VARARGS, "amplification($self, dataset, /)\n--\n\n"},
		{"write", write_file, METH_VARARGS, "write($self, path, /)\n--\n\n"},
		{NULL, NULL, 0, NULL},
	};
	static PyType_Slot slots[] = {
		{Py_tp_dealloc, dealloc},
		{Py_tp_methods, methods},
		{Py_sq_length, length},
		{Py_mp_length, length},
		{0, NULL},
	};
	static PyType_Spec spec = {
		.name = "libshard._core.Selection",
		.basicsize = sizeof(struct selection),
		.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
		.slots = slots,
	};

	return add_type(&selection_type, module, "Selection", &spec);
}
