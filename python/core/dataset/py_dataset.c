/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_dataset.c - the type libshard._core.Dataset
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libshard/base/bytes.h"
#include "libshard/base/words.h"
#include "python/core/base/py_base.h"
#include "python/core/dataset/py_dataset.h"
#include "shard_inspect.h"

/* ---- the handle, names of fields, and places of records ---- */

#define SHARDS_VIEWED 16384u /* the most maps that arrays may hold */

_Static_assert(offsetof(struct dataset, ds) == offsetof(struct map_owner, ds), "a dataset is a map_owner");

bool dataset_is_open(const struct dataset *d)
{
	if (!d->closed && d->ds)
		return true;
	fail_closed("dataset");
	return false;
}

int dataset_converter(PyObject *object, void *out)
{
	if (!PyObject_TypeCheck(object, dataset_type)) {
		fail_type("must be a dataset", object);
		return 0;
	}
	*(struct dataset **)out = (struct dataset *)object;
	return dataset_is_open((struct dataset *)object);
}

/* Reading the manifest's lines for each record would take longer than everything else. */
static int learn_shards(struct dataset *d, struct shard_error *err)
{
	struct shard_dataset_info info;
	struct shard_entry e;
	int rc = SHARD_OK;

	shard_dataset_info(d->ds, &info);
	d->first_record = PyMem_Calloc(info.shard_count + 1, sizeof(*d->first_record));
	if (!d->first_record) {
		PyErr_NoMemory();
		return SHARD_E_MEMORY;
	}
	for (uint64_t i = 0; !rc && i < info.shard_count; i++) {
		rc = shard_dataset_entry(d->ds, i, &e, err);
		d->first_record[i] = rc ? 0 : e.first_record;
	}
	d->first_record[info.shard_count] = info.record_count;
	d->shard_count = info.shard_count;
	if (rc) {
		PyMem_Free(d->first_record);
		d->first_record = NULL;
	}
	return rc;
}

int dataset_is_copied(struct dataset *d, bool *copied, struct shard_error *err)
{
	int rc = d->first_record ? SHARD_OK : learn_shards(d, err);

	*copied = d->shard_count > SHARDS_VIEWED;
	return rc;
}

int dataset_find(struct dataset *d, uint64_t idx, struct shard_reader **reader, uint64_t *within, uint64_t *shard_end,
		 struct shard_error *err)
{
	int rc = d->first_record ? SHARD_OK : learn_shards(d, err);
	uint64_t shard;

	if (rc)
		return rc;
	shard = run_holding(d->first_record, d->shard_count, idx);
	*within = idx - d->first_record[shard];
	*shard_end = d->first_record[shard + 1];
	return shard_dataset_reader(d->ds, shard, reader, err);
}

/* ---- the type ---- */

PyTypeObject *dataset_type;

/* An object of what a call returned.  It takes over `path` and, if it is not NULL, refers to `parts`. */
static PyObject *opened(PyTypeObject *type, struct shard_dataset *ds, PyObject *path, PyObject *parts)
{
	struct dataset *d = path ? object_alloc(type) : NULL;
	const struct shard_schema *s = shard_dataset_schema(ds);
	struct shard_dataset_info info;

	if (!d) {
		shard_dataset_close(ds);
		Py_XDECREF(path);
		return NULL;
	}
	shard_dataset_info(ds, &info);
	d->ds = ds;
	d->record_count = info.record_count;
	d->path = path;
	d->parts = parts ? Py_NewRef(parts) : NULL;
	for (uint32_t f = 0; f < s->field_count && !PyErr_Occurred(); f++)
		d->name[f] = PyUnicode_InternFromString(s->field[f].name);
	if (PyErr_Occurred()) {
		unref(d);
		d = NULL;
	}
	return (PyObject *)d;
}

static PyObject *new (PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"path", "check", "guard", "id", NULL};
	struct shard_dataset_options o = {.size = sizeof(o)};
	struct shard_dataset *ds = NULL;
	PyObject *path = NULL;
	struct shard_error err;
	int guard = 1, rc;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&|Ipz", names, PyUnicode_FSConverter, &path, &o.check, &guard,
					 &o.expect_id))
		return NULL;
	o.guard = guard ? SHARD_GUARD_ON : SHARD_GUARD_OFF;
	Py_BEGIN_ALLOW_THREADS rc = shard_dataset_open(&ds, PyBytes_AsString(path), &o, &err);
	Py_END_ALLOW_THREADS if (!rc) return opened(type, ds, path, NULL);
	Py_DECREF(path);
	return fail(&err);
}

/* Datasets, one behind the other, as one of the class that it is called on. */
static PyObject *concat(PyObject *type, PyObject *parts)
{
	Py_ssize_t count = PyTuple_Check(parts) ? PyTuple_Size(parts) : 0, i = 0;
	struct shard_dataset **list = PyMem_Calloc((size_t)count + 1, sizeof(*list)), *ds;
	struct shard_error err;
	struct dataset *d;
	int rc;

	if (!list)
		return PyErr_NoMemory();
	for (; i < count && dataset_converter(PyTuple_GetItem(parts, i), &d); i++)
		list[i] = d->ds;
	rc = i < count ? SHARD_E_ARGUMENT : shard_dataset_concat(&ds, list, (uint32_t)count, &err);
	PyMem_Free(list);
	if (rc)
		return i < count ? NULL : fail(&err);
	return opened((PyTypeObject *)type, ds,
		      PyBytes_FromFormat("a concatenation of %zd dataset%s", count, count == 1 ? "" : "s"), parts);
}

static void dealloc(PyObject *self)
{
	struct dataset *d = (struct dataset *)self;

	shard_dataset_close(d->ds); /* before its parts */
	Py_XDECREF(d->parts);
	for (uint32_t f = 0; f < SHARD_FIELDS_MAX; f++)
		Py_XDECREF(d->name[f]);
	Py_XDECREF(d->path);
	PyMem_Free(d->first_record);
	PyMem_Free(d->key_place);
	object_free(self);
}

static PyObject *close_(PyObject *self, PyObject *Py_UNUSED(unused))
{
	((struct dataset *)self)->closed = true;
	return Py_NewRef(Py_None);
}

/* ---- records ---- */

struct dataset *dataset_part(const struct dataset *d, uint64_t *idx)
{
	struct dataset *part = (struct dataset *)PyTuple_GetItem(d->parts, 0);
	uint64_t count = part->record_count;

	for (Py_ssize_t i = 1; *idx >= count; count = part->record_count) {
		*idx -= count;
		part = (struct dataset *)PyTuple_GetItem(d->parts, i++);
	}
	return part;
}

static Py_ssize_t length(PyObject *self)
{
	struct dataset *d = (struct dataset *)self;

	return dataset_is_open(d) ? (Py_ssize_t)d->record_count : -1;
}

/* As the dataset was named. */
static PyObject *path_of(const struct dataset *d)
{
	return PyUnicode_DecodeFSDefaultAndSize(PyBytes_AsString(d->path), PyBytes_Size(d->path));
}

static bool fail_index(const struct dataset *d, const char *number)
{
	PyObject *path = path_of(d);

	if (path)
		PyErr_Format(PyExc_IndexError, "there is no record %s; %U has %llu", number, path,
			     (unsigned long long)d->record_count);
	Py_XDECREF(path);
	return false;
}

/* Numbers below 0 count from the end. */
static bool count_index(const struct dataset *d, Py_ssize_t i, uint64_t *idx)
{
	uint64_t n = d->record_count;
	char number[24];

	if (i >= 0 ? (uint64_t)i >= n : 0 - (uint64_t)i > n) {
		snprintf(number, sizeof(number), "%zd", i);
		return fail_index(d, number);
	}
	*idx = i >= 0 ? (uint64_t)i : n + (uint64_t)i;
	return true;
}

static bool take_index(const struct dataset *d, PyObject *number, uint64_t *idx)
{
	Py_ssize_t i;

	if (PyBool_Check(number) || !PyIndex_Check(number)) {
		fail_type("the number of a record must be a whole number", number);
		return false;
	}
	i = PyNumber_AsSsize_t(number, PyExc_IndexError);
	if (i == -1 && PyErr_Occurred()) {
		if (PyErr_ExceptionMatches(PyExc_IndexError)) {
			PyErr_Clear();
			fail_index(d, "of such a number");
		}
		return false;
	}
	return count_index(d, i, idx);
}

/* True or False, of Python or of NumPy, whose bools old releases take for indices. */
static bool is_truth(PyObject *object)
{
	PyObject *name = PyLong_Check(object) ? NULL : PyObject_GetAttrString((PyObject *)Py_TYPE(object), "__name__");
	const char *text = name && PyUnicode_Check(name) ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
	bool is = PyBool_Check(object) || (text && (!strcmp(text, "bool") || !strcmp(text, "bool_")));

	PyErr_Clear();
	Py_XDECREF(name);
	return is;
}

#define NO_INDEX                                                                                                 \
	"a dataset is indexed by a number, a slice, or a sequence of numbers; ds[0]['image'] is a field of one " \
	"record, "                                                                                               \
	"and ds.column('label') that of all records"

/* Is this an array or a tensor of such items, "bool" for example? */
static bool has_items(PyObject *key, const char *kind)
{
	PyObject *dtype = PyObject_GetAttrString(key, "dtype"), *name = dtype ? PyObject_Str(dtype) : NULL;
	const char *text = name ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
	bool has = text && strstr(text, kind);

	PyErr_Clear();
	Py_XDECREF(name);
	Py_XDECREF(dtype);
	return has;
}

static bool fail_mask(const struct dataset *d, Py_ssize_t count)
{
	fail_argument("the mask has %zd bools; must have one for each of %llu records", count,
		      (unsigned long long)d->record_count);
	return false;
}

/* The numbers, or the mask, that the items of any sequence are. */
static bool take_items(const struct dataset *d, PyObject *indices, Py_ssize_t count, uint64_t *idx, Py_ssize_t *used)
{
	bool is_mask = false, ok = true;
	PyObject *item;

	for (Py_ssize_t i = 0; ok && i < count; i++) {
		item = PySequence_GetItem(indices, i);
		if (!item && PyErr_ExceptionMatches(PyExc_KeyError)) { /* a table, whose items are columns */
			PyErr_Clear();
			PyErr_SetString(PyExc_TypeError, NO_INDEX);
		}
		if (item && !i)
			is_mask = is_truth(item);
		if (item && is_truth(item) != is_mask) { /* a bool would be read as the number 0 or 1 */
			fail_argument("bools and numbers are mixed in an index: give numbers of records, or a mask "
				      "with one bool for each record");
			ok = false;
		} else if (item && is_mask) {
			int is_set = PyObject_IsTrue(item);

			ok = is_set >= 0;
			idx[*used] = (uint64_t)i;
			*used += is_set > 0;
		} else {
			ok = item && take_index(d, item, &idx[(*used)++]);
		}
		Py_XDECREF(item);
	}
	return ok && is_mask && (uint64_t)count != d->record_count ? fail_mask(d, count) : ok;
}

/* Numbers, or bools, where they lie in the memory of an array: no object is made for each. */
static bool take_buffer(const struct dataset *d, const Py_buffer *b, uint64_t *idx, Py_ssize_t *used)
{
	bool is_signed = number_is_signed(b);
	const char *at = b->buf;
	uint64_t number;

	if (b->format[0] == '?') {
		if ((uint64_t)b->shape[0] != d->record_count)
			return fail_mask(d, b->shape[0]);
		for (Py_ssize_t i = 0; i < b->shape[0]; i++, at += b->strides[0]) {
			idx[*used] = (uint64_t)i;
			*used += *at != 0;
		}
		return true;
	}
	for (; *used < b->shape[0]; at += b->strides[0]) {
		number = number_of_item(at, b->itemsize, is_signed);
		if (number > INT64_MAX && !is_signed)
			return fail_index(d, "of such a number");
		if (!count_index(d, (Py_ssize_t)number, &idx[(*used)++]))
			return false;
	}
	return true;
}

static PyObject *subscript_listed(PyObject *self, PyObject *key);

/* Numbers of records, or a mask: a bool for each record.  A mix of both is neither. */
static PyObject *gather_sequence(struct dataset *d, PyObject *indices)
{
	Py_ssize_t count = PySequence_Size(indices), used = 0;
	bool is_listed = PyList_Check(indices) || PyTuple_Check(indices), has_buffer = false, ok;
	uint64_t *idx;
	Py_buffer b;

	if (count < 0) {
		PyErr_Clear();
		PyErr_SetString(PyExc_TypeError, NO_INDEX);
		return NULL;
	}
	if (!is_listed) {
		/* Where a mask hides items of an array, its memory has numbers that nobody means. */
		has_buffer = !PyObject_HasAttrString(indices, "mask") &&
			     !PyObject_GetBuffer(indices, &b, PyBUF_FORMAT | PyBUF_STRIDES);
		PyErr_Clear();
		if (has_buffer && (b.ndim != 1 || b.shape[0] != count || !number_is_whole(&b))) {
			PyBuffer_Release(&b);
			has_buffer = false;
		}
		/* A series has places and labels, and its items would be asked for by the labels. */
		if (!has_buffer && PyObject_HasAttrString(indices, "tolist"))
			return subscript_listed((PyObject *)d, indices);
	}
	idx = PyMem_Malloc(((size_t)count + 1) * sizeof(*idx));
	if (!idx)
		fail_memory("no memory for %zd numbers of records", count);
	ok = idx && (has_buffer ? take_buffer(d, &b, idx, &used) : take_items(d, indices, count, idx, &used));
	if (has_buffer)
		PyBuffer_Release(&b);
	if (ok)
		return rows_gather(d, idx, (size_t)used);
	PyMem_Free(idx);
	return NULL;
}

static PyObject *subscript(PyObject *self, PyObject *key);

/* A tensor is not a sequence, but says its numbers, or its number, as a list would. */
static PyObject *subscript_listed(PyObject *self, PyObject *key)
{
	PyObject *listed = PyObject_CallMethod(key, "tolist", NULL), *out = NULL;
	bool known = listed && (PyList_Check(listed) || PyLong_Check(listed));
	struct dataset *d = (struct dataset *)self;

	/* Of an empty one the items do not tell. */
	if (known && d->record_count && PyList_Check(listed) && !PyList_Size(listed) && has_items(key, "bool"))
		fail_mask(d, 0);
	else if (known && !has_items(key, "datetime") && !has_items(key, "timedelta")) /* nanoseconds, as numbers */
		out = subscript(self, listed);
	else
		PyErr_SetString(PyExc_TypeError, NO_INDEX);
	Py_XDECREF(listed);
	return out;
}

static PyObject *subscript(PyObject *self, PyObject *key)
{
	struct dataset *d = (struct dataset *)self;
	Py_ssize_t first, stop, step, count;
	uint64_t idx;

	if (!dataset_is_open(d))
		return NULL;
	if (PySlice_Check(key)) {
		if (!number_slice(key, &first, &stop, &step))
			return NULL;
		count = PySlice_AdjustIndices((Py_ssize_t)d->record_count, &first, &stop, step);
		return rows_slice(d, (uint64_t)first, step, (uint64_t)count);
	}
	/* These would pass for a number or a sequence. */
	if (is_truth(key) || PyUnicode_Check(key) || PyBytes_Check(key)) {
		PyErr_SetString(PyExc_TypeError, NO_INDEX);
		return NULL;
	}
	if (PyLong_CheckExact(key) || (PyIndex_Check(key) && !PyObject_HasAttrString(key, "__len__")))
		return take_index(d, key, &idx) ? record_at(d, idx) : NULL;
	return PySequence_Check(key) ? gather_sequence(d, key) : subscript_listed(self, key);
}

/* ---- what it is ---- */

static PyObject *key(PyObject *self, PyObject *number)
{
	struct dataset *d = (struct dataset *)self;
	struct shard_error err;
	char key[SHARD_KEY_BYTES_MAX];
	size_t bytes;
	uint64_t idx;

	if (!dataset_is_open(d) || !take_index(d, number, &idx))
		return NULL;
	if (shard_dataset_key(d->ds, idx, key, &bytes, &err))
		return fail(&err);
	return PyUnicode_DecodeUTF8(key, (Py_ssize_t)bytes, "strict");
}

/* ---- records by their keys ---- */

struct key_place {
	uint64_t hash, number; /* of the key, and of its record */
};

static uint64_t key_hash(const char *key, size_t bytes) /* FNV-1a */
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < bytes; i++)
		hash = (hash ^ (unsigned char)key[i]) * UINT64_C(0x100000001b3);
	return hash;
}

static int compare_places(const void *a, const void *b)
{
	const struct key_place *x = a, *y = b;

	return x->hash != y->hash ? (x->hash < y->hash ? -1 : 1) : (x->number > y->number) - (x->number < y->number);
}

#define KEYS_BETWEEN_SIGNALS 65536u

/* 16 bytes for each record that has a key.  False with an exception set. */
static bool learn_keys(struct dataset *d)
{
	uint64_t n = d->record_count;
	struct key_place *place = n < SIZE_MAX / sizeof(*place) ? PyMem_Malloc((n + 1) * sizeof(*place)) : NULL;
	char key[SHARD_KEY_BYTES_MAX];
	struct shard_error err;
	size_t used = 0, bytes;
	uint64_t i = 0, end;
	int rc = SHARD_OK;

	if (!place) {
		fail_memory("no memory for the places of %llu keys", (unsigned long long)n);
		return false;
	}
	while (!rc && i < n) {
		end = n - i < KEYS_BETWEEN_SIGNALS ? n : i + KEYS_BETWEEN_SIGNALS;
		Py_BEGIN_ALLOW_THREADS for (; !rc && i < end; i++)
		{
			rc = shard_dataset_key(d->ds, i, key, &bytes, &err);
			if (!rc && bytes)
				place[used++] = (struct key_place){key_hash(key, bytes), i};
		}
		Py_END_ALLOW_THREADS if (!rc && PyErr_CheckSignals() < 0) rc = SHARD_E_CANCELLED;
	}
	if (!rc) {
		Py_BEGIN_ALLOW_THREADS qsort(place, used, sizeof(*place), compare_places);
		Py_END_ALLOW_THREADS
	}
	if (rc && !PyErr_Occurred())
		fail(&err);
	if (rc || d->key_place) { /* another thread was faster */
		PyMem_Free(place);
		return !rc;
	}
	d->key_place = place;
	d->key_count = used;
	return true;
}

/* (number of keys, number of the first record with this one or None, that of the second or None) */
static PyObject *find_key(PyObject *self, PyObject *text)
{
	struct dataset *d = (struct dataset *)self;
	uint64_t found[2], hash;
	char key[SHARD_KEY_BYTES_MAX];
	struct shard_error err;
	Py_ssize_t length = 0;
	const char *wanted = PyUnicode_AsUTF8AndSize(text, &length);
	size_t low = 0, high, middle, bytes;
	unsigned int count = 0;

	if (!wanted || !dataset_is_open(d) || (!d->key_place && !learn_keys(d)))
		return NULL;
	hash = key_hash(wanted, (size_t)length);
	for (high = d->key_count; low < high;) {
		middle = low + (high - low) / 2;
		if (d->key_place[middle].hash < hash)
			low = middle + 1;
		else
			high = middle;
	}
	for (; count < 2 && low < d->key_count && d->key_place[low].hash == hash; low++) {
		if (shard_dataset_key(d->ds, d->key_place[low].number, key, &bytes, &err))
			return fail(&err);
		if (bytes == (size_t)length && !memcmp(key, wanted, bytes)) /* hashes may be equal by chance */
			found[count++] = d->key_place[low].number;
	}
	if (!count)
		return Py_BuildValue("nOO", (Py_ssize_t)d->key_count, Py_None, Py_None);
	return count == 1 ? Py_BuildValue("nKO", (Py_ssize_t)d->key_count, found[0], Py_None)
			  : Py_BuildValue("nKK", (Py_ssize_t)d->key_count, found[0], found[1]);
}

/* (records whose key an earlier one has; the first of them, and the one before it with that key; or None) */
static PyObject *repeated_key(PyObject *self, PyObject *Py_UNUSED(unused))
{
	struct dataset *d = (struct dataset *)self;
	char key[2][SHARD_KEY_BYTES_MAX];
	size_t bytes[2];
	struct shard_error err;
	unsigned long long count = 0, first = 0, second = UINT64_MAX;

	if (!dataset_is_open(d) || (!d->key_place && !learn_keys(d)))
		return NULL;
	for (size_t i = 1; i < d->key_count; i++) {
		const struct key_place *place = &d->key_place[i - 1];

		if (place[0].hash != place[1].hash)
			continue;
		for (int k = 0; k < 2; k++)
			if (shard_dataset_key(d->ds, place[k].number, key[k], &bytes[k], &err))
				return fail(&err);
		if (bytes[0] != bytes[1] || memcmp(key[0], key[1], bytes[0]))
			continue;
		count++;
		if (place[1].number < second) {
			first = place[0].number;
			second = place[1].number;
		}
	}
	return count ? Py_BuildValue("KKK", count, first, second) : Py_BuildValue("KOO", count, Py_None, Py_None);
}

static PyObject *info(PyObject *self, PyObject *Py_UNUSED(unused))
{
	struct dataset *d = (struct dataset *)self;
	struct shard_dataset_info i;
	char plan[65];

	if (!dataset_is_open(d))
		return NULL;
	shard_dataset_info(d->ds, &i);
	hex_from_bytes(plan, i.plan_digest, sizeof(i.plan_digest));
	return Py_BuildValue("{s:K,s:K,s:K,s:K,s:K,s:I,s:s,s:z}", "record_count", i.record_count, "shard_count",
			     i.shard_count, "class_count", i.class_count, "data_bytes", i.data_bytes, "seed", i.seed,
			     "order", i.order, "id", i.id, "plan_digest", i.has_plan_digest ? plan : NULL);
}

static PyObject *fields(PyObject *self, PyObject *Py_UNUSED(unused))
{
	struct dataset *d = (struct dataset *)self;

	return dataset_is_open(d) ? schema_fields(shard_dataset_schema(d->ds)) : NULL;
}

static PyObject *class_name(PyObject *self, PyObject *number)
{
	struct dataset *d = (struct dataset *)self;
	size_t idx = PyLong_AsSize_t(number);
	const char *name;

	if ((idx == (size_t)-1 && PyErr_Occurred()) || !dataset_is_open(d))
		return NULL;
	name = shard_dataset_class_name(d->ds, idx);
	return name ? PyUnicode_FromString(name)
		    : PyErr_Format(PyExc_IndexError, "there is no class %zu; the dataset has fewer", idx);
}

/* ---- the text that a packer left in a shard ---- */

struct text_copy {
	struct shard_view from;
	char *to;
};

static void copy_text(void *context)
{
	struct text_copy *c = context;

	memcpy(c->to, c->from.data, c->from.bytes);
}

static PyObject *provenance(PyObject *self, PyObject *number)
{
	struct dataset *d = (struct dataset *)self;
	unsigned long long idx = PyLong_AsUnsignedLongLong(number);
	struct shard_reader *reader;
	struct text_copy c = {.to = NULL};
	struct shard_error err;
	PyObject *out = NULL;
	int rc;

	if (PyErr_Occurred() || !dataset_is_open(d))
		return NULL;
	if (shard_dataset_open_reader(d->ds, idx, &reader, &err))
		return fail(&err);
	rc = shard_reader_provenance(reader, &c.from, &err);
	if (!rc)
		out = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)c.from.bytes);
	if (out && c.from.bytes) {
		c.to = PyBytes_AsString(out);
		rc = shard_reader_guarded(reader, copy_text, &c, &err);
	}
	shard_reader_close(reader);
	if (!rc)
		return out;
	Py_XDECREF(out);
	return fail(&err);
}

/* (count, sum, sum of squares) of a channel, or None. */
static PyObject *moments(PyObject *self, PyObject *args)
{
	struct dataset *d = (struct dataset *)self;
	struct shard_moments m;
	struct shard_error err;
	unsigned int field, channel;
	int rc;

	if (!PyArg_ParseTuple(args, "II", &field, &channel) || !dataset_is_open(d))
		return NULL;
	rc = shard_dataset_moments(d->ds, field, channel, &m, &err);
	if (rc < 0)
		return fail(&err);
	return rc ? Py_NewRef(Py_None) : Py_BuildValue("(KKKK)", m.count, m.sum, m.sum_squares_low, m.sum_squares_high);
}

static PyObject *class_records(PyObject *self, PyObject *args)
{
	struct dataset *d = (struct dataset *)self;
	unsigned long long class_idx;
	struct shard_error err;
	unsigned int field;
	uint64_t count;
	int rc;

	if (!PyArg_ParseTuple(args, "IK", &field, &class_idx) || !dataset_is_open(d))
		return NULL;
	rc = shard_dataset_class_records(d->ds, field, class_idx, &count, &err);
	if (rc < 0)
		return fail(&err);
	return rc ? Py_NewRef(Py_None) : PyLong_FromUnsignedLongLong(count);
}

static PyObject *manifest(PyObject *self, PyObject *Py_UNUSED(unused))
{
	struct dataset *d = (struct dataset *)self;
	struct shard_view view;

	if (!dataset_is_open(d))
		return NULL;
	shard_dataset_manifest(d->ds, &view);
	return PyBytes_FromStringAndSize(view.data, (Py_ssize_t)view.bytes);
}

/* ---- verify ---- */

struct watch {
	PyThreadState *outside; /* while C works */
	PyObject *progress;	/* or None */
	PyObject *problems;	/* list of messages */
};

static int on_progress(void *context, uint64_t done, uint64_t total)
{
	struct watch *w = context;
	PyObject *answer = NULL;
	int stop;

	PyEval_RestoreThread(w->outside);
	stop = PyErr_CheckSignals() < 0;
	if (!stop && w->progress != Py_None) {
		answer = PyObject_CallFunction(w->progress, "KK", done, total);
		stop = !answer;
		Py_XDECREF(answer);
	}
	w->outside = PyEval_SaveThread();
	return stop;
}

static void on_problem(void *context, const struct shard_error *problem)
{
	struct watch *w = context;
	PyObject *line;

	PyEval_RestoreThread(w->outside);
	line = Py_BuildValue("(ss)", shard_status_name(problem->status), problem->message);
	if (!line || PyList_Append(w->problems, line) < 0)
		PyErr_Clear(); /* the report counts it in any case */
	Py_XDECREF(line);
	w->outside = PyEval_SaveThread();
}

static PyObject *verify(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"sample_units", "threads", "sha256", "progress", NULL};
	struct shard_verify_options o = {.size = sizeof(o), .progress = on_progress, .problem = on_problem};
	struct watch w = {.progress = Py_None};
	struct dataset *d = (struct dataset *)self;
	struct shard_verify_report r = {0};
	unsigned long long sample = 0;
	struct shard_error err;
	int sha256 = 0, rc;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|KIpO", names, &sample, &o.thread_count, &sha256,
					 &w.progress) ||
	    !dataset_is_open(d))
		return NULL;
	o.sample_units = sample;
	o.sha256 = (uint32_t)sha256;
	o.context = &w;
	w.problems = PyList_New(0);
	if (!w.problems)
		return NULL;
	w.outside = PyEval_SaveThread();
	rc = shard_dataset_verify(d->ds, &o, &r, &err);
	PyEval_RestoreThread(w.outside);
	if (rc && (PyErr_Occurred() || !r.problem_count)) {
		Py_DECREF(w.problems);
		return fail(&err);
	}
	return Py_BuildValue("{s:K,s:K,s:K,s:K,s:K,s:K,s:N}", "shard_count", r.shard_count, "record_count",
			     r.record_count, "unit_count", r.unit_count, "bytes", r.bytes, "problem_count",
			     r.problem_count, "elapsed_ns", r.elapsed_ns, "problems", w.problems);
}

static PyObject *get_path(PyObject *self, void *Py_UNUSED(unused))
{
	return path_of((const struct dataset *)self);
}

static PyObject *get_closed(PyObject *self, void *Py_UNUSED(unused))
{
	return PyBool_FromLong(((struct dataset *)self)->closed);
}

int dataset_init(PyObject *module)
{
	static PyMethodDef methods[] = {
		{"close", close_, METH_NOARGS,
		 "close($self, /)\n--\n\n"
		 "No more calls.  Views stay valid; the files are let go with the last of them."},
		{"key", key, METH_O,
		 "key($self, number, /)\n--\n\n"
		 "The key of a record, such as the path of the file that it was made of; '' if there are none."},
		{"_concat", concat, METH_O | METH_CLASS, "_concat(datasets, /)\n--\n\n"},
		{"_find_key", find_key, METH_O, "_find_key($self, key, /)\n--\n\n"},
		{"_repeated_key", repeated_key, METH_NOARGS, "_repeated_key($self, /)\n--\n\n"},
		{"_info", info, METH_NOARGS, "_info($self, /)\n--\n\n"},
		{"_fields", fields, METH_NOARGS, "_fields($self, /)\n--\n\n"},
		{"_class_name", class_name, METH_O, "_class_name($self, number, /)\n--\n\n"},
		{"_provenance", provenance, METH_O, "_provenance($self, shard, /)\n--\n\n"},
		{"_moments", moments, METH_VARARGS, "_moments($self, field, channel, /)\n--\n\n"},
		{"_class_records", class_records, METH_VARARGS, "_class_records($self, field, number, /)\n--\n\n"},
		{"manifest", manifest, METH_NOARGS, "manifest($self, /)\n--\n\nThe bytes of dataset.manifest."},
		{"_verify", (PyCFunction)(void (*)(void))verify, METH_VARARGS | METH_KEYWORDS,
		 "_verify($self, /, sample_units=0, threads=0, sha256=False, progress=None)\n--\n\n"},
		{NULL, NULL, 0, NULL},
	};
	static PyGetSetDef getters[] = {
		{"path", get_path, NULL, "The folder, as it was named.", NULL},
		{"closed", get_closed, NULL, "Was close() called?", NULL},
		{NULL, NULL, NULL, NULL, NULL},
	};
	static PyType_Slot slots[] = {
		{Py_tp_new, new},
		{Py_tp_dealloc, dealloc},
		{Py_tp_methods, methods},
		{Py_tp_getset, getters},
		{Py_mp_subscript, subscript},
		{Py_mp_length, length},
		{Py_sq_length, length},
		{Py_tp_doc, "Dataset(path, check=0, guard=True, id=None)\n--\n\n"},
		{0, NULL},
	};
	static PyType_Spec spec = {
		.name = "libshard._core.Dataset",
		.basicsize = sizeof(struct dataset),
		.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
		.slots = slots,
	};

	return add_type(&dataset_type, module, "Dataset", &spec);
}
