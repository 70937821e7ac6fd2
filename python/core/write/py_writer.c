/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_writer.c - a shard is written, and shards become a dataset
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "python/core/array/py_array.h"
#include "python/core/base/py_base.h"
#include "python/core/write/py_write.h"
#include "shard_pack.h"

/* ---- the type libshard._core.ShardWriter: one shard ---- */

/*
 * Values are put into place with the interpreter's lock; hashing, compressing and writing go
 * without it.  A record that is refused was not begun, and the writer goes on with the next.
 * libshard.Writer makes a dataset of several shards.
 */

#define PIECE_BYTES (4u << 20) /* written between two looks for ^C */

static PyTypeObject *writer_type;

struct shard {
	PyObject_HEAD struct layout *layout;
	struct shard_writer *w;
	char *group[SHARD_GROUPS_MAX]; /* a record that is being put together */
	struct shard_tally *tally;
	const struct shard_field *label; /* of the layout; NULL: labels are numbers like others */
	uint64_t class_count;
	long owner_pid;
	bool busy;
};

static bool is_usable(const struct shard *s)
{
	if (s->owner_pid != (long)getpid())
		fail_argument("this writer belongs to process %ld; a forked child must open its own, in another folder",
			      s->owner_pid);
	else if (!s->w)
		fail_closed("writer");
	else if (s->busy)
		fail_argument("another thread writes to this shard; a writer belongs to one thread at a time");
	else
		return true;
	return false;
}

static bool allocate(struct shard *s, struct shard_error *err)
{
	const struct shard_schema *schema = &s->layout->schema;

	for (uint32_t g = 0; g < schema->group_count; g++) {
		s->group[g] = PyMem_Calloc(1, (size_t)schema->group[g].record_bytes + 1);
		if (!s->group[g]) {
			PyErr_NoMemory();
			return false;
		}
	}
	s->label = s->class_count ? shard_schema_label(schema) : NULL;
	if (!shard_tally_open(&s->tally, schema, err))
		return true;
	fail(err);
	return false;
}

static PyObject *new (PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"layout",     "path", "planned_records", "plan_shard",
				"provenance", "keys", "class_count",	 NULL};
	struct shard_writer_options o = {.size = sizeof(o)};
	unsigned long long planned, number, class_count;
	PyObject *path = NULL, *layout;
	const char *provenance;
	struct shard_error err;
	int keys, rc = 0;
	struct shard *s;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O&KKzpK", names, layout_type, &layout, PyUnicode_FSConverter,
					 &path, &planned, &number, &provenance, &keys, &class_count))
		return NULL;
	s = object_alloc(type);
	if (s) {
		s->layout = ref(layout);
		s->owner_pid = (long)getpid();
		s->class_count = class_count;
	}
	if (!s || !allocate(s, &err)) {
		Py_DECREF(path);
		unref(s);
		return NULL;
	}
	o.planned_records = planned;
	o.plan_shard = number;
	o.provenance = provenance;
	o.keys = (uint32_t)keys;
	o.class_count = class_count;
	Py_BEGIN_ALLOW_THREADS rc = shard_writer_open(&s->w, PyBytes_AsString(path), &s->layout->schema, &o, &err);
	Py_END_ALLOW_THREADS Py_DECREF(path);
	if (!rc)
		return (PyObject *)s;
	fail(&err);
	unref(s);
	return NULL;
}

/* A forked child leaves the parent's temporary file where it is. */
static void let_go(struct shard *s)
{
	struct shard_writer *w = s->w;

	s->w = NULL;
	if (!w || s->owner_pid != (long)getpid())
		return;
	Py_BEGIN_ALLOW_THREADS shard_writer_close(w);
	Py_END_ALLOW_THREADS
}

static void dealloc(PyObject *self)
{
	struct shard *s = (struct shard *)self;

	let_go(s);
	for (uint32_t g = 0; g < SHARD_GROUPS_MAX; g++)
		PyMem_Free(s->group[g]);
	shard_tally_close(s->tally);
	unref(s->layout);
	object_free(self);
}

static PyObject *close_(PyObject *self, PyObject *Py_UNUSED(unused))
{
	struct shard *s = (struct shard *)self;

	if (s->busy)
		return fail_argument("another thread writes to this shard; a writer belongs to one thread at a time");
	let_go(s);
	return Py_NewRef(Py_None);
}

/* ---- one record ---- */

static bool take_key(PyObject *key, const char **text, Py_ssize_t *bytes, unsigned long long record)
{
	*text = NULL;
	*bytes = 0;
	if (key == Py_None)
		return true;
	*text = PyUnicode_Check(key) ? PyUnicode_AsUTF8AndSize(key, bytes) : NULL;
	if (*text && *bytes <= SHARD_KEY_BYTES_MAX && !memchr(*text, 0, (size_t)*bytes))
		return true;
	PyErr_Clear();
	fail_record(record, NULL, "its key must be a str of at most %d bytes of UTF-8, without NUL",
		    SHARD_KEY_BYTES_MAX);
	return false;
}

static bool is_good_label(const struct shard *s, const char *const *group, int64_t *label)
{
	return !s->label || shard_label_read(s->label, (const void *const *)group, s->class_count, label);
}

static bool fail_label(const struct shard *s, unsigned long long record, int64_t label)
{
	fail_record(record, s->label->name, "label is %lld; must be 0 or more, and below %llu, the number of classes",
		    (long long)label, (unsigned long long)s->class_count);
	return false;
}

/* Write one record that is complete.  Runs without the interpreter's lock. */
static int write_one(struct shard *s, const char *const *group, const char *key, size_t key_bytes,
		     struct shard_error *err)
{
	int rc = shard_writer_append(s->w, (const void *const *)group, key, key_bytes, err);

	if (!rc)
		shard_tally_add(s->tally, (const void *const *)group);
	return rc;
}

/*
 * Write one record, value by value: a mapping, or row `row` of columns, where `record` is NULL.
 * Values may run code of other libraries.
 */
static bool write_values(struct shard *s, PyObject *record, const struct columns *c, uint64_t row, PyObject *key,
			 unsigned long long number)
{
	const struct layout *l = s->layout;
	struct shard_error err;
	Py_ssize_t key_bytes;
	PyObject *value;
	const char *text;
	int64_t label = 0;
	bool ok = true;
	int rc;

	for (int lengths = 0; lengths < 2; lengths++) /* they were written with their values, and must be the same */
		for (uint32_t f = 0; ok && f < l->schema.field_count; f++) {
			if (l->is_length[f] != lengths)
				continue;
			if (!record)
				value = c->value[f] ? PySequence_GetItem(c->value[f], (Py_ssize_t)row) : NULL;
			else if (lengths)
				value = layout_item_if(l, record, f);
			else
				value = layout_item(l, record, f, number);
			if (!value)
				ok = lengths && !PyErr_Occurred(); /* they need not be given */
			else if (lengths)
				ok = value_check_length(&l->schema, f, value, s->group, number);
			else
				ok = value_put(&l->schema, f, value, s->group, number);
			Py_XDECREF(value);
		}
	if (ok && !is_good_label(s, (const char *const *)s->group, &label))
		ok = fail_label(s, number, label);
	if (!ok || !take_key(key, &text, &key_bytes, number))
		return false;
	Py_BEGIN_ALLOW_THREADS rc = write_one(s, (const char *const *)s->group, text, (size_t)key_bytes, &err);
	Py_END_ALLOW_THREADS if (rc) fail(&err);
	return !rc;
}

/* append(record, key, number) */
static PyObject *append(PyObject *self, PyObject *args)
{
	struct shard *s = (struct shard *)self;
	unsigned long long number;
	PyObject *record, *key;
	bool ok;

	if (!PyArg_ParseTuple(args, "OOK", &record, &key, &number) || !is_usable(s))
		return NULL;
	s->busy = true;
	ok = write_values(s, record, NULL, 0, key, number);
	s->busy = false;
	return ok ? Py_NewRef(Py_None) : NULL;
}

/* ---- records as columns ---- */

/*
 * Write neighbouring records of arrays, until it is time to look for ^C.  Returns how many, or -1.
 */
static int64_t write_rows(struct shard *s, const struct columns *c, uint64_t first, uint64_t count,
			  unsigned long long number)
{
	const struct shard_schema *schema = &s->layout->schema;
	const char *group[SHARD_GROUPS_MAX];
	struct shard_error err;
	uint64_t done = 0, bytes = 0;
	int64_t label = 0;
	bool good = true;
	int rc = 0;

	Py_BEGIN_ALLOW_THREADS while (!rc && done < count && bytes < PIECE_BYTES)
	{
		columns_gather(c, s->layout, first + done, s->group, group);
		good = is_good_label(s, group, &label);
		if (!good)
			break;
		rc = write_one(s, group, NULL, 0, &err);
		for (uint32_t g = 0; g < schema->group_count; g++)
			bytes += schema->group[g].stride;
		done++;
	}
	Py_END_ALLOW_THREADS if (rc) fail(&err);
	else if (!good) fail_label(s, number + done, label);
	return rc || !good ? -1 : (int64_t)done;
}

/* append_rows(columns, keys, first, count, number): returns how many were written, at least one */
static PyObject *append_rows(PyObject *self, PyObject *args)
{
	struct shard *s = (struct shard *)self;
	unsigned long long first, count, number, done = 0, bytes = 0;
	PyObject *dict, *keys;
	struct columns c;
	int64_t n = 0;
	bool ok;

	if (!PyArg_ParseTuple(args, "OOKKK", &dict, &keys, &first, &count, &number) || !is_usable(s))
		return NULL;
	s->busy = true;
	ok = columns_open(&c, s->layout, dict, first, count, number);
	if (ok && c.all_fit && keys == Py_None) {
		n = write_rows(s, &c, first, count, number);
		done = (unsigned long long)n;
		ok = n >= 0;
	} else {
		for (; ok && done < count && bytes < PIECE_BYTES; done += ok) {
			PyObject *key = keys == Py_None ? Py_NewRef(Py_None)
							: PySequence_GetItem(keys, (Py_ssize_t)(first + done));

			ok = key && write_values(s, NULL, &c, first + done, key, number + done);
			Py_XDECREF(key);
			for (uint32_t g = 0; g < s->layout->schema.group_count; g++)
				bytes += s->layout->schema.group[g].stride;
		}
	}
	columns_close(&c);
	s->busy = false;
	return ok ? PyLong_FromUnsignedLongLong(done) : NULL;
}

/* ---- the end ---- */

/* Of each field that has any: (name, how many values are NaN, how many are infinite). */
static PyObject *not_finite(const struct shard *s)
{
	const struct shard_schema *schema = &s->layout->schema;
	PyObject *list = PyList_New(0), *row;
	uint64_t nan, infinite;

	for (uint32_t f = 0; list && f < schema->field_count; f++) {
		shard_tally_not_finite(s->tally, f, &nan, &infinite);
		if (!nan && !infinite)
			continue;
		row = Py_BuildValue("(sKK)", schema->field[f].name, (unsigned long long)nan,
				    (unsigned long long)infinite);
		if (!row || PyList_Append(list, row) < 0)
			Py_CLEAR(list);
		Py_XDECREF(row);
	}
	return list;
}

/* finish(): (sha256, already, not_finite) */
static PyObject *finish(PyObject *self, PyObject *Py_UNUSED(unused))
{
	struct shard *s = (struct shard *)self;
	struct shard_written r;
	struct shard_error err;
	int rc;

	if (!is_usable(s))
		return NULL;
	s->busy = true;
	Py_BEGIN_ALLOW_THREADS rc = shard_tally_write(s->tally, s->w, &err);
	if (!rc)
		rc = shard_writer_finish(s->w, &r, &err);
	Py_END_ALLOW_THREADS s->busy = false;
	if (rc)
		return fail(&err);
	let_go(s);
	return Py_BuildValue("(y#ON)", r.sha256, (Py_ssize_t)sizeof(r.sha256), r.already ? Py_True : Py_False,
			     not_finite(s));
}

int writer_init(PyObject *module)
{
	static PyMethodDef methods[] = {
		{"append", append, METH_VARARGS, "append($self, record, key, number, /)\n--\n\n"},
		{"append_rows", append_rows, METH_VARARGS,
		 "append_rows($self, columns, keys, first, count, number, /)\n--\n\n"},
		{"finish", finish, METH_NOARGS, "finish($self, /)\n--\n\nComplete, make durable, read back, publish."},
		{"close", close_, METH_NOARGS, "close($self, /)\n--\n\nDrop what is not finished."},
		{NULL, NULL, 0, NULL},
	};
	static PyType_Slot slots[] = {
		{Py_tp_new, new},
		{Py_tp_dealloc, dealloc},
		{Py_tp_methods, methods},
		{Py_tp_doc,
		 "ShardWriter(layout, path, planned_records, plan_shard, provenance, keys, class_count)\n--\n\n"},
		{0, NULL},
	};
	static PyType_Spec spec = {
		.name = "libshard._core.ShardWriter",
		.basicsize = sizeof(struct shard),
		.flags = Py_TPFLAGS_DEFAULT,
		.slots = slots,
	};

	return add_type(&writer_type, module, "ShardWriter", &spec);
}

/* ---- shards become a dataset, and the folder gets its name ---- */

/* Borrowed pointers into a list of str; NULL with an exception set if it holds anything else. */
static const char **take_texts(PyObject *list)
{
	Py_ssize_t count = PyList_Size(list);
	const char **text = count < 0 ? NULL : PyMem_Malloc(((size_t)count + 1) * sizeof(*text));
	Py_ssize_t bytes;

	if (!text && count >= 0)
		PyErr_NoMemory();
	for (Py_ssize_t i = 0; text && i < count; i++) {
		text[i] = PyUnicode_AsUTF8AndSize(PyList_GetItem(list, i), &bytes);
		if (text[i] && strlen(text[i]) != (size_t)bytes) {
			fail_argument("class %zd: its name has a NUL", i);
			text[i] = NULL;
		}
		if (!text[i]) {
			PyMem_Free(text);
			return NULL;
		}
	}
	return text;
}

/* Adding a shard reads two pages of it; its hash is known. */
static int add_shards(struct shard_seal *seal, PyObject *shards, struct shard_error *err)
{
	Py_ssize_t bytes;
	const char *file, *sha256;
	int rc = 0;

	for (Py_ssize_t i = 0; !rc && i < PyList_Size(shards); i++) {
		if (!PyArg_ParseTuple(PyList_GetItem(shards, i), "sy#", &file, &sha256, &bytes))
			return -1;
		if (bytes != 32) {
			fail_argument("a SHA-256 has 32 bytes, not %zd", bytes);
			return -1;
		}
		rc = shard_seal_add(seal, file, NULL, (const uint8_t *)sha256, err);
	}
	return rc;
}

/* seal(dir, shards, classes, order, seed): shards is a list of (file, sha256) */
static PyObject *seal(PyObject *Py_UNUSED(self), PyObject *args)
{
	struct shard_seal_options o = {.size = sizeof(o)};
	PyObject *dir = NULL, *shards, *classes;
	struct shard_seal *s = NULL;
	unsigned long long seed;
	struct shard_error err;
	const char **names;
	int rc;

	if (!PyArg_ParseTuple(args, "O&O!O!IK", PyUnicode_FSConverter, &dir, &PyList_Type, &shards, &PyList_Type,
			      &classes, &o.order, &seed))
		return NULL;
	names = take_texts(classes);
	if (!names) {
		Py_DECREF(dir);
		return NULL;
	}
	o.class_names = names;
	o.class_count = (uint64_t)PyList_Size(classes);
	o.seed = seed;
	rc = shard_seal_open(&s, PyBytes_AsString(dir), &o, &err);
	if (!rc)
		rc = add_shards(s, shards, &err);
	if (!rc) {
		Py_BEGIN_ALLOW_THREADS rc = shard_seal_finish(s, &err);
		Py_END_ALLOW_THREADS
	}
	shard_seal_close(s);
	PyMem_Free(names);
	Py_DECREF(dir);
	return rc ? fail(&err) : Py_NewRef(Py_None);
}

static PyObject *remove_temps(PyObject *Py_UNUSED(self), PyObject *args)
{
	struct shard_error err;
	PyObject *dir = NULL;
	uint64_t count = 0;
	int rc;

	if (!PyArg_ParseTuple(args, "O&", PyUnicode_FSConverter, &dir))
		return NULL;
	rc = shard_remove_temps(PyBytes_AsString(dir), &count, &err);
	Py_DECREF(dir);
	return rc ? fail(&err) : PyLong_FromUnsignedLongLong(count);
}

/* shuffle(seed, n, first, count): the numbers at these places */
static PyObject *shuffle(PyObject *Py_UNUSED(self), PyObject *args)
{
	unsigned long long seed, n, first, count;
	struct shard_error err;
	struct array *a;
	void *idx;

	if (!PyArg_ParseTuple(args, "KKKK", &seed, &n, &first, &count))
		return NULL;
	a = array_alloc(SHARD_I64, count, &idx);
	if (!a || !shard_pack_order(seed, n, first, count, idx, &err))
		return (PyObject *)a;
	unref(a);
	return fail(&err);
}

/* Swap the names of two folders at once.  Returns False if the file system cannot. */
static PyObject *exchange(PyObject *Py_UNUSED(self), PyObject *args)
{
	PyObject *a = NULL, *b = NULL, *out;
	int code;

	if (!PyArg_ParseTuple(args, "O&O&", PyUnicode_FSConverter, &a, PyUnicode_FSConverter, &b)) {
		Py_XDECREF(a);
		return NULL;
	}
	code = renameat2(AT_FDCWD, PyBytes_AsString(a), AT_FDCWD, PyBytes_AsString(b), RENAME_EXCHANGE) ? errno : 0;
	if (code && code != EINVAL && code != ENOSYS && code != EOPNOTSUPP) {
		errno = code;
		out = PyErr_SetFromErrnoWithFilenameObject(PyExc_OSError, b);
	} else {
		out = PyBool_FromLong(!code);
	}
	Py_DECREF(a);
	Py_DECREF(b);
	return out;
}

PyMethodDef seal_functions[] = {
	{"seal", seal, METH_VARARGS,
	 "seal(dir, shards, classes, order, seed, /)\n--\n\nWrite the manifest of shards, which makes them a dataset."},
	{"remove_temps", remove_temps, METH_VARARGS,
	 "remove_temps(dir, /)\n--\n\nRemove temporary files that no living writer holds."},
	{"shuffle", shuffle, METH_VARARGS,
	 "shuffle(seed, n, first, count, /)\n--\n\n"
	 "Places [first, first + count) of a shuffle of n, as shardpack has it."},
	{"exchange", exchange, METH_VARARGS,
	 "exchange(a, b, /)\n--\n\nSwap two folders; False if the file system cannot."},
	{NULL, NULL, 0, NULL},
};
