/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_loader.c - the type libshard._core.Loader: its batches, its place, and its epochs
 */
#include <stdio.h>
#include <unistd.h>

#include "python/core/array/py_array.h"
#include "python/core/base/py_base.h"
#include "python/core/dataset/py_dataset.h"
#include "python/core/loader/py_loader.h"
#include "shard_gpu.h"
#include "shard_transform.h"

/* ---- the next batch ---- */

/*
 * The interpreter's lock is released while a batch is waited for, a tenth of a second at a time, so
 * that ^C is heard.  A batch that is ready is taken without releasing it.
 */

#define SLICE_NS UINT64_C(100000000)

/*
 * Batches will be on GPU number `gpu`, or with None on that of this stream.  Else an exception is
 * set, which says what to do in Python.
 */
static bool loader_choose_device(struct loader *l, PyObject *gpu, PyObject *stream, struct shard_loader_options *o)
{
	struct lender *lender = &l->lender;
	unsigned long number = gpu == Py_None ? 0 : PyLong_AsUnsignedLong(gpu);
	struct shard_error err;
	int rc;

	lender->on_device = true;
	if (PyErr_Occurred() || !stream_take(stream, &lender->stream))
		return false;
	if (number >= SHARD_GPU_OF_STREAM - SHARD_GPU(0)) {
		fail_argument("GPU %lu: no machine has that many", number);
		return false;
	}
	o->gpu.device = gpu == Py_None ? SHARD_GPU_OF_STREAM : SHARD_GPU(number);
	o->gpu.stream = lender->stream.handle;
	rc = shard_stream_gpu(lender->stream.handle, &lender->gpu, &err);
	if (gpu != Py_None)
		lender->gpu = (uint32_t)number; /* opening the loader checks the stream */
	if (rc == SHARD_E_UNSUPPORTED)
		fail_no_device(&err);
	else if (rc)
		fail(&err);
	return !rc;
}

/* Too many batches are held: say which, and by arrays of which fields. */
static void fail_held(const struct loader *l)
{
	const struct shard_schema *s = shard_dataset_schema(l->dataset->ds);
	const struct lease *lease = l->lender.held;
	char holders[256];
	size_t used = 0;

	holders[0] = '\0';
	for (uint32_t i = 0; i < l->lender.held_count && used < 160; i++, lease = lease->newer) {
		used += (size_t)snprintf(holders + used, sizeof(holders) - used, "%sstep %llu (", i ? ", " : "",
					 (unsigned long long)lease->as.batch.step);
		for (uint32_t f = 0, n = 0; f < s->field_count && used < 200; f++)
			if (lease->view_count[f])
				used += (size_t)snprintf(holders + used, sizeof(holders) - used, "%s%s",
							 n++ ? ", " : "", s->field[f].name);
		used += (size_t)snprintf(holders + used, sizeof(holders) - used, ")");
	}
	fail_argument("%u batches are still held, of %s; max_held is %u. Drop them, copy() the arrays to keep, "
		      "or open the loader with a greater max_held%s",
		      l->lender.held_count, holders, l->max_held,
		      l->lender.on_device ? ", at most 3 on a GPU"
		      : l->lender.pins	  ? ""
					  : " or copy=True");
}

/* ---- memory that a batch keeps ---- */

/* Memory for this place, unless there is some.  Runs code of Python.  Else an exception is set. */
static bool make_slot(struct lender *l, uint32_t i)
{
	unsigned long long bytes = shard_loader_ring_bytes(l->l) / l->slot_count, at = 0;
	PyObject *pair, *object = NULL;
	struct memory *m = NULL;

	if (l->slot[i])
		return true;
	pair = PyObject_CallFunction(l->make_memory, "K", bytes);
	if (pair && PyArg_ParseTuple(pair, "OK", &object, &at))
		m = memory_of(object, (void *)(uintptr_t)at, (size_t)bytes);
	Py_XDECREF(pair);
	if (!m || !lender_is_usable(l) || l->slot[i]) /* a signal handler may have closed it, or was here before us */
		unref(m);
	else
		l->slot[i] = m;
	return m && !PyErr_Occurred();
}

/* Memory for all slots before the first batch, and then for the one that takes the place of the next batch's. */
static bool make_slots(struct lender *l)
{
	void **at;
	struct shard_error err;
	int rc;

	if (l->has_slots)
		return make_slot(l, l->slot_count);
	for (uint32_t i = 0; i < l->slot_count; i++)
		if (!make_slot(l, i))
			return false;
	if (l->has_slots)
		return make_slot(l, l->slot_count);
	at = PyMem_Malloc(l->slot_count * sizeof(*at));
	if (!at) {
		PyErr_NoMemory();
		return false;
	}
	for (uint32_t i = 0; i < l->slot_count; i++)
		at[i] = l->slot[i]->data;
	rc = shard_loader_lend_slots(l->l, at, l->slot_count, &err);
	PyMem_Free(at);
	if (rc)
		fail(&err);
	l->has_slots = !rc;
	return !rc;
}

/* ---- page-locks of the ring ---- */

/* False with an exception set if the user has made errors of warnings. */
static bool warn_of_pins(const char *what, const struct shard_error *why)
{
	return !PyErr_WarnFormat(PyExc_UserWarning, 1, "pin_memory=True: %s%s", what, why->message);
}

/* Before the first batch.  Without a driver or a GPU all goes on in pageable memory. */
static bool pin_ring(struct loader *l)
{
	struct lender *lender = &l->lender;
	struct shard_error err;
	int rc;

	lender->busy = true;
	Py_BEGIN_ALLOW_THREADS rc = shard_loader_pin(lender->l, lender->stream.handle, &err);
	Py_END_ALLOW_THREADS lender->busy = false;
	if (rc && rc != SHARD_E_UNSUPPORTED) { /* the next call says so again */
		fail_device(&err);
		return false;
	}
	lender->pins = !rc;
	l->wants_pins = false;
	return !rc || warn_of_pins("batches stay in pageable memory, because ", &err);
}

/* Slots that were refused since are told of once. */
static bool tell_of_pins(struct loader *l)
{
	struct shard_error why;

	if (!l->lender.pins || l->told_of_pins || shard_loader_pin_problem(l->lender.l, &why))
		return true;
	l->told_of_pins = true;
	return warn_of_pins("", &why);
}

static int wait_for_batch(struct lender *l, struct shard_error *err)
{
	/*
	 * The first call makes ring and threads, which takes a while.  If something is wrong, the
	 * second call reports it.
	 */
	int rc = l->owner_pid && !shard_loader_wait(l->l, 0, NULL) ? SHARD_OK : SHARD_E_TIMEOUT;

	if (!l->owner_pid && l->on_device) { /* before the first wait on a GPU: memory, threads, reads */
		int begun;

		l->busy = true;
		Py_BEGIN_ALLOW_THREADS begun = shard_loader_begin_device(l->l, l->stream.handle, err);
		Py_END_ALLOW_THREADS l->busy = false;
		if (begun)
			return begun;
	}
	while (rc == SHARD_E_TIMEOUT) {
		l->busy = true;
		Py_BEGIN_ALLOW_THREADS rc = shard_loader_wait(l->l, SLICE_NS, err);
		Py_END_ALLOW_THREADS l->busy = false;
		if (lender_flush(l, err))
			return err->status;
		if (PyErr_CheckSignals() < 0 || !lender_is_usable(l)) /* a handler may have closed it */
			return SHARD_E_CANCELLED;
	}
	if (!rc && !l->owner_pid)
		l->owner_pid = (long)getpid();
	return rc;
}

/*
 * A loop that was left early has ended its epoch: go to the start of the next one.  If that fails,
 * an exception is set.
 */
static bool loader_end_left(struct loader *l)
{
	uint64_t epoch, position;
	struct shard_error err;

	shard_loader_tell(l->lender.l, &epoch, &position);
	/* Else the next epoch begins already: at 0, or of a mixture behind a step. */
	if (position && epoch == l->epoch) {
		epoch++;
		position = 0;
	}
	if (shard_loader_seek(l->lender.l, epoch, position, &err)) { /* also past the end, if nobody asked for it */
		fail(&err);
		return false;
	}
	l->placed = true;
	l->at_left = false;
	return true;
}

/*
 * Wait for the next batch and take it.  SHARD_END at the end of an epoch; for any other status but
 * SHARD_OK an exception is set.
 */
static int loader_next_batch(struct loader *l, struct shard_batch *b)
{
	struct lender *lender = &l->lender;
	struct shard_error err, late;
	int rc;

	if (lender->held_count > l->max_held)
		PyGC_Collect(); /* batches may be held by a circle of objects that nobody needs */
	if (lender->held_count > l->max_held) {
		fail_held(l);
		return SHARD_E_ARGUMENT;
	}
	if ((l->wants_pins && !pin_ring(l)) || !tell_of_pins(l) ||
	    (lender->make_memory && !lender->has_slots && !make_slots(lender)))
		return SHARD_E_CANCELLED;
	rc = lender_flush(lender, &err);
	if (!lender_is_usable(lender)) /* code that shows a warning, or that was collected, may have closed it */
		return SHARD_E_CANCELLED;
	if (!rc)
		rc = wait_for_batch(lender, &err);
	if (!rc && lender->make_memory && !make_slots(lender))
		return SHARD_E_CANCELLED;
	if (!rc && (lender->on_device || lender->pins)) { /* it may wait for the driver: for seconds if that is slow */
		lender->busy = true;
		Py_BEGIN_ALLOW_THREADS rc =
			lender->on_device ? shard_loader_next_device(lender->l, lender->stream.handle, b, &err)
					  : shard_loader_next(lender->l, b, &err);
		Py_END_ALLOW_THREADS lender->busy = false;
		(void)lender_flush(lender, &late); /* the next call tells of arrays that are still late */
	} else if (!rc) {
		rc = shard_loader_next(lender->l, b, &err);
	}
	if (!rc) {
		l->epoch = b->epoch;
		l->step = b->step;
	}
	if (rc && rc != SHARD_END && lender->on_device)
		fail_device(&err);
	else if (rc && rc != SHARD_END)
		fail(&err);
	return rc;
}

/* ---- what it does to images, as Python gives it ---- */

struct transform {
	struct shard_loader_transform t;
	struct shard_transform_options o;
	const char *as_stored[SHARD_FIELDS_MAX];
};

/*
 * Windows, of a tuple (field with the number of the episode, tuple of offsets).  *offsets becomes
 * memory of PyMem_Malloc() that is needed until the loader is open.  Else an exception is set.
 */
static bool window_take(struct loader *l, PyObject *tuple, struct shard_loader_window *out, int32_t **offsets)
{
	struct shard_error err;
	const char *field;
	PyObject *list;
	Py_ssize_t count;
	int rc;

	if (!PyArg_ParseTuple(tuple, "sO!", &field, &PyTuple_Type, &list))
		return false;
	count = PyTuple_Size(list);
	*offsets = PyMem_Calloc((size_t)count + 1, sizeof(**offsets));
	if (!*offsets) {
		PyErr_NoMemory();
		return false;
	}
	for (Py_ssize_t i = 0; i < count; i++) {
		long offset = PyLong_AsLong(PyTuple_GetItem(list, i));

		if (PyErr_Occurred())
			return false;
		(*offsets)[i] = (int32_t)offset; /* Python has looked at it */
	}
	Py_BEGIN_ALLOW_THREADS rc = shard_episodes_open(&l->episodes, l->dataset->ds, field, &err);
	Py_END_ALLOW_THREADS if (rc)
	{
		fail(&err);
		return false;
	}
	l->window = (uint32_t)count;
	*out = (struct shard_loader_window){
		.episodes = l->episodes, .offset = *offsets, .offset_count = (uint32_t)count};
	return true;
}

/*
 * Of a tuple (field, views, height, width, dtype, layout, crop, pixels, mean, std, flip, area,
 * ratio, as_stored), where mean and std have four numbers, area and ratio have two, and the last is
 * a tuple of names.  Names live as long as the tuple.  Else an exception is set.
 */
static bool transform_take(PyObject *tuple, struct transform *out)
{
	struct shard_transform_options *o = &out->o;
	float *m = o->mean, *s = o->std;
	PyObject *names;
	Py_ssize_t count;

	*out = (struct transform){.t = {.size = sizeof(out->t)}, .o = {.size = sizeof(out->o)}};
	out->t.options = o;
	if (!PyArg_ParseTuple(tuple, "sIIIIIII(ffff)(ffff)d(dd)(dd)O!", &out->t.field, &out->t.views, &o->height,
			      &o->width, &o->dtype, &o->layout, &o->crop, &o->pixels, m, m + 1, m + 2, m + 3, s, s + 1,
			      s + 2, s + 3, &o->flip, &o->area_min, &o->area_max, &o->ratio_min, &o->ratio_max,
			      &PyTuple_Type, &names))
		return false;
	count = PyTuple_Size(names);
	if (count > SHARD_FIELDS_MAX) {
		fail_argument("transform_as_stored has %zd names; a dataset has at most %d fields", count,
			      SHARD_FIELDS_MAX);
		return false;
	}
	for (Py_ssize_t i = 0; i < count; i++) {
		out->as_stored[i] = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(names, i), NULL);
		if (!out->as_stored[i])
			return false;
	}
	out->t.as_stored = out->as_stored;
	out->t.as_stored_count = (uint32_t)count;
	return true;
}

/* ---- methods: its place and its order, its memory, and its counters ---- */

/* ---- places ---- */

/* Can the place be told?  Else an exception is set. */
static bool has_place(struct loader *l)
{
	return lender_is_usable(&l->lender) && (!l->at_left || loader_end_left(l));
}

static PyObject *tell(PyObject *self, PyObject *Py_UNUSED(unused))
{
	struct lender *l = (struct lender *)self;
	uint64_t epoch, position;

	if (!has_place((struct loader *)self))
		return NULL;
	shard_loader_tell(l->l, &epoch, &position);
	return Py_BuildValue("(KK)", epoch, position);
}

/* The next loop begins here, and the one that is under way is over. */
static void placed_again(struct loader *l)
{
	uint64_t position;

	l->placed = true;
	l->at_left = false;
	l->left_taken = 0;
	l->place_count++;
	shard_loader_tell(l->lender.l, &l->epoch, &position);
}

static PyObject *seek(PyObject *self, PyObject *args)
{
	struct lender *l = (struct lender *)self;
	unsigned long long epoch, position;
	struct shard_error err;

	if (!PyArg_ParseTuple(args, "KK", &epoch, &position) || !lender_is_usable(l))
		return NULL;
	if (shard_loader_seek(l->l, epoch, position, &err))
		return fail(&err);
	placed_again((struct loader *)self);
	return Py_NewRef(Py_None);
}

/* Is the next batch the first of this epoch, and was no place in it given? */
static PyObject *begins(PyObject *self, PyObject *args)
{
	struct loader *l = (struct loader *)self;
	unsigned long long epoch;
	uint64_t now, position;

	if (!PyArg_ParseTuple(args, "K", &epoch) || !has_place(l))
		return NULL;
	shard_loader_tell(l->lender.l, &now, &position);
	return PyBool_FromLong(now == epoch && l->epoch < epoch);
}

/* None, or of a last loop that was left early: epoch, steps that were done, batches that it had. */
static PyObject *left(PyObject *self, PyObject *Py_UNUSED(unused))
{
	struct loader *l = (struct loader *)self;

	return l->left_taken ? Py_BuildValue("(KKK)", l->epoch, l->step + 1, l->left_taken) : Py_NewRef(Py_None);
}

static PyObject *token(PyObject *self, PyObject *Py_UNUSED(unused))
{
	struct lender *l = (struct lender *)self;
	char text[SHARD_TOKEN_BYTES];

	if (!has_place((struct loader *)self))
		return NULL;
	shard_loader_token(l->l, text);
	return PyUnicode_FromString(text);
}

static PyObject *resume(PyObject *self, PyObject *text)
{
	struct lender *l = (struct lender *)self;
	const char *token_text = PyUnicode_AsUTF8AndSize(text, NULL);
	struct shard_error err;

	if (!token_text || !lender_is_usable(l))
		return NULL;
	if (shard_loader_resume(l->l, token_text, &err))
		return fail(&err);
	placed_again((struct loader *)self);
	return Py_NewRef(Py_None);
}

static PyObject *step_count(PyObject *self, PyObject *Py_UNUSED(unused))
{
	struct lender *l = (struct lender *)self;

	return lender_is_usable(l) ? PyLong_FromUnsignedLongLong(shard_loader_step_count(l->l)) : NULL;
}

static PyObject *order(PyObject *self, PyObject *args)
{
	struct lender *l = (struct lender *)self;
	unsigned long long epoch, first, count;
	struct shard_error err;
	struct array *a;
	void *idx;

	if (!PyArg_ParseTuple(args, "KKK", &epoch, &first, &count) || !lender_is_usable(l))
		return NULL;
	a = array_alloc(SHARD_I64, count, &idx);
	if (!a || !shard_loader_order(l->l, epoch, first, count, NULL, idx, &err))
		return (PyObject *)a;
	unref(a);
	return fail(&err);
}

static PyObject *order_info(PyObject *self, PyObject *Py_UNUSED(unused))
{
	struct lender *l = (struct lender *)self;
	struct shard_order_info i;

	if (!lender_is_usable(l))
		return NULL;
	shard_loader_order_info(l->l, &i);
	return Py_BuildValue("{s:K,s:K,s:K,s:K,s:I,s:I,s:I}", "record_count", i.record_count, "seed", i.seed,
			     "run_records", i.run_records, "phase_unit_records", i.phase_unit_records, "kind", i.kind,
			     "window_runs", i.window_runs, "lane_count", i.lane_count);
}

/* ---- memory and statistics ---- */

static PyObject *ring_bytes(PyObject *self, PyObject *Py_UNUSED(unused))
{
	struct lender *l = (struct lender *)self;

	return lender_is_usable(l) ? PyLong_FromUnsignedLongLong(shard_loader_ring_bytes(l->l)) : NULL;
}

static PyObject *lend(PyObject *self, PyObject *memory)
{
	struct lender *l = (struct lender *)self;
	struct shard_error err;

	if (!lender_is_usable(l))
		return NULL;
	if (l->lent_memory)
		return fail_argument("memory was given already; a loader takes it once");
	if (!PyObject_CheckBuffer(memory))
		return fail_type("memory must be a writable buffer, such as an array of NumPy", memory);
	if (PyObject_GetBuffer(memory, &l->lent_buffer, PyBUF_CONTIG) < 0) {
		PyErr_Clear();
		return fail_argument("memory must be writable and in one piece, such as numpy.empty(n, 'u1')");
	}
	if (shard_loader_lend(l->l, l->lent_buffer.buf, (uint64_t)l->lent_buffer.len, &err)) {
		PyBuffer_Release(&l->lent_buffer);
		return fail(&err);
	}
	l->lent_memory = Py_NewRef(memory);
	return Py_NewRef(Py_None);
}

static PyObject *stats(PyObject *self, PyObject *Py_UNUSED(unused))
{
	struct lender *l = (struct lender *)self;
	struct shard_loader_stats s;

	if (!lender_is_usable(l))
		return NULL;
	shard_loader_stats(l->l, &s);
	return Py_BuildValue(
		"{s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:I,s:O,"
		"s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K}",
		"batch_count", s.batch_count, "record_count", s.record_count, "bytes", s.bytes, "filled_record_count",
		s.filled_record_count, "filled_bytes", s.filled_bytes, "checked_unit_count", s.checked_unit_count,
		"elapsed_ns", s.elapsed_ns, "next_wait_ns", s.next_wait_ns, "next_wait_count", s.next_wait_count,
		"fill_ns", s.fill_ns, "fill_cpu_ns", s.fill_cpu_ns, "slot_wait_ns", s.slot_wait_ns, "mapped_bytes",
		s.mapped_bytes, "direct_bytes", s.direct_bytes, "pread_bytes", s.pread_bytes, "substituted_count",
		s.substituted_count, "masked_count", s.masked_count, "thread_count", s.thread_count, "has_uring",
		s.has_uring ? Py_True : Py_False, "stage_bytes", s.stage_bytes, "decoded_chunk_count",
		s.decoded_chunk_count, "unfinished_chunk_count", s.unfinished_chunk_count, "device_bytes",
		s.device_bytes, "pageable_bytes", s.pageable_bytes, "pinned_bytes", s.pinned_bytes, "cached_bytes",
		s.cached_bytes, "registered_bytes", s.registered_bytes, "device_wait_ns", s.device_wait_ns,
		"device_checked_count", s.device_checked_count, "check_wait_count", s.check_wait_count,
		"recopied_count", s.recopied_count);
}

/* (status, message) of the row that was substituted or masked last, or None. */
static PyObject *last_damage(PyObject *self, PyObject *Py_UNUSED(unused))
{
	struct lender *l = (struct lender *)self;
	struct shard_error e;

	if (!lender_is_usable(l))
		return NULL;
	return shard_loader_last_damage(l->l, &e) ? Py_NewRef(Py_None)
						  : Py_BuildValue("(ss)", shard_status_name(e.status), e.message);
}

static PyObject *held(PyObject *self, PyObject *Py_UNUSED(unused))
{
	return PyLong_FromUnsignedLong(((struct lender *)self)->held_count);
}

static PyObject *lent(PyObject *Py_UNUSED(self), PyObject *array)
{
	if (Py_TYPE(array) != array_type)
		return fail_argument("lent() is asked of an array");
	return PyBool_FromLong(((struct array *)array)->field >= 0);
}

/* The object that made the memory of a batch's array; None: the array has its own, or it is lent. */
static PyObject *memory_object(PyObject *Py_UNUSED(self), PyObject *array)
{
	struct array *a = (struct array *)array;
	PyObject *object;

	if (Py_TYPE(array) != array_type)
		return fail_argument("memory() is asked of an array");
	object = a->field < 0 && memory_is(a->owner) ? ((struct memory *)a->owner)->object : NULL;
	return Py_NewRef(object ? object : Py_None);
}

static PyObject *gpu(PyObject *self, PyObject *Py_UNUSED(unused))
{
	struct lender *l = (struct lender *)self;

	return l->on_device ? PyLong_FromUnsignedLong(l->gpu) : Py_NewRef(Py_None);
}

/* ---- the end ---- */

static PyObject *close_(PyObject *self, PyObject *Py_UNUSED(unused))
{
	struct lender *l = (struct lender *)self;

	if (!l->closed && !lender_is_usable(l))
		return NULL;
	l->closed = true;
	if (!l->held_count) /* else the handle goes with the last array */
		lender_let_go(l);
	return Py_NewRef(Py_None);
}

static PyMethodDef loader_methods[] = {
	{"close", close_, METH_NOARGS,
	 "close($self, /)\n--\n\n"
	 "No more batches.  Arrays that are held stay valid, and its memory goes with the last of them."},
	{"tell", tell, METH_NOARGS, "tell($self, /)\n--\n\n"},
	{"seek", seek, METH_VARARGS, "seek($self, epoch, position, /)\n--\n\n"},
	{"begins", begins, METH_VARARGS, "begins($self, epoch, /)\n--\n\n"},
	{"left", left, METH_NOARGS, "left($self, /)\n--\n\n"},
	{"token", token, METH_NOARGS, "token($self, /)\n--\n\n"},
	{"resume", resume, METH_O, "resume($self, token, /)\n--\n\n"},
	{"step_count", step_count, METH_NOARGS, "step_count($self, /)\n--\n\n"},
	{"order", order, METH_VARARGS, "order($self, epoch, first, count, /)\n--\n\n"},
	{"order_info", order_info, METH_NOARGS, "order_info($self, /)\n--\n\n"},
	{"ring_bytes", ring_bytes, METH_NOARGS, "ring_bytes($self, /)\n--\n\n"},
	{"lend", lend, METH_O, "lend($self, memory, /)\n--\n\n"},
	{"stats", stats, METH_NOARGS,
	 "stats($self, /)\n--\n\nCounters since the loader was opened; times in nanoseconds, sums over threads."},
	{"last_damage", last_damage, METH_NOARGS,
	 "last_damage($self, /)\n--\n\n"
	 "Status and message of the row that was substituted or masked last; None if none was."},
	{"held", held, METH_NOARGS, "held($self, /)\n--\n\nHow many batches are alive."},
	{"lent", lent, METH_O,
	 "lent($self, array, /)\n--\n\nDoes this array of a batch lie in the loader's memory, and hold the batch?"},
	{"memory", memory_object, METH_O,
	 "memory($self, array, /)\n--\n\nThe object of make_memory that this array of a batch lies in; else None."},
	{"gpu", gpu, METH_NOARGS,
	 "gpu($self, /)\n--\n\nNumber of the GPU that batches are on; None: they are in the memory of the CPU."},
	{NULL, NULL, 0, NULL},
};

/* ---- the type, and its epochs ---- */

#define SLOTS_MAX	1024 /* of a loader */
#define SLOTS_MIN	2
#define DEVICE_HELD_MAX 3 /* of a GPU's 4 slots */

/* ---- open and close ---- */

/*
 * A loop in Python still holds its batch when it asks for the next one; a loop in C has given it
 * back by then.  So there is one slot more: while `max_held` batches are held and the next one is
 * taken, threads have `prefetch` slots to fill.  Batches on a GPU are held there, and their slots
 * on the host are free as soon as they are copied.
 */
static bool plan_slots(const struct loader *l, struct shard_loader_options *o, unsigned int prefetch, bool device)
{
	if (!prefetch || !l->max_held || prefetch >= SLOTS_MAX || l->max_held >= SLOTS_MAX - prefetch) {
		fail_argument("prefetch is %u and max_held %u; both must be at least 1, and together at most %d",
			      prefetch, l->max_held, SLOTS_MAX - 1);
		return false;
	}
	if (device && l->max_held > DEVICE_HELD_MAX) {
		fail_argument("max_held is %u; must be at most %u for batches on a GPU", l->max_held, DEVICE_HELD_MAX);
		return false;
	}
	o->slot_count = prefetch + l->max_held + (device ? 0 : 1);
	if (l->lender.make_memory) /* a batch is not in a slot any more when it is there */
		o->slot_count = prefetch < SLOTS_MIN ? SLOTS_MIN : prefetch;
	o->gpu.slot_count = device ? l->max_held + 1 : 0;
	return true;
}

/* clang-format off */
static char *option_names[] = {
	"dataset", "seed", "batch_records", "rank", "world", "shuffle", "tail", "prefetch", "max_held", "thread_count",
	"window_runs", "lane_count", "run_records", "phase_unit_records", "path", "on_corrupt", "stage_bytes", "device",
	"gpu", "stream", "pool_bytes", "corrupt_most", "source", "fields", "transform", "items", "strings",
	"wide_tokens", "resume_appended", "pin", "make_memory", "pin_most", "window", NULL,
};
/* clang-format on */

static bool take_options(struct loader *l, PyObject *args, PyObject *kwargs, struct shard_loader_options *o,
			 struct transform *t, int32_t **offsets)
{
	unsigned long long seed = 0, run_records = 0, phase = 0, stage = 0, pool = 0, corrupt_most = 0, pin_most = 0;
	unsigned int prefetch = 2;
	struct dataset *dataset;
	PyObject *gpu = Py_None, *stream = Py_None, *source = Py_None, *transform = Py_None;
	PyObject *make_memory = Py_None, *window = Py_None;
	int device = 0, resume_appended = 0;

	l->placed = true;
	l->max_held = 2;
	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&|$KIIIIIIIIIIKKIIKpOOKKOIOIppppOKO", option_names,
					 dataset_converter, &dataset, &seed, &o->batch_records, &o->rank, &o->world,
					 &o->order.shuffle, &o->tail, &prefetch, &l->max_held, &o->thread_count,
					 &o->order.window_runs, &o->order.lane_count, &run_records, &phase, &o->path,
					 &o->repair.on_corrupt, &stage, &device, &gpu, &stream, &pool, &corrupt_most,
					 &source, &o->fields, &transform, &l->items, &l->strings, &l->wide_tokens,
					 &resume_appended, &l->wants_pins, &make_memory, &pin_most, &window))
		return false;
	l->lender.make_memory = make_memory == Py_None ? NULL : ref(make_memory);
	if (!plan_slots(l, o, prefetch, device) || (l->wants_pins && !stream_take(stream, &l->lender.stream)))
		return false;
	l->source = ref(source);
	if (PyObject_TypeCheck(source, mix_type)) {
		o->mix = ((struct mix *)source)->m;
	} else if (PyObject_TypeCheck(source, selection_type)) {
		o->selection = ((struct selection *)source)->s;
	} else if (source != Py_None) {
		PyErr_SetString(PyExc_TypeError, "source must be a selection, a mixture, or None");
		return false;
	}
	if (transform != Py_None && !transform_take(transform, t))
		return false;
	o->transform = transform == Py_None ? NULL : &t->t;
	l->dataset = ref(dataset);
	if (window != Py_None && !window_take(l, window, &o->window, offsets))
		return false;
	o->gpu.pool_bytes = pool;
	o->gpu.pin_most = pin_most;
	o->repair.corrupt_most = corrupt_most;
	o->resume_appended = (uint32_t)resume_appended;
	o->order.seed = seed;
	o->order.run_records = run_records;
	o->order.phase_unit_records = phase;
	o->stage_bytes = stage;
	return !device || loader_choose_device(l, gpu, stream, o);
}

/* Fields as they are in batches.  If there is no memory, an exception is set. */
static bool describe(struct loader *l)
{
	l->schema = PyMem_Malloc(sizeof(*l->schema));
	if (!l->schema) {
		PyErr_NoMemory();
		return false;
	}
	*l->schema = *shard_dataset_schema(l->dataset->ds);
	for (uint32_t f = 0; f < l->schema->field_count; f++)
		shard_loader_field(l->lender.l, f, &l->schema->field[f]);
	return true;
}

static PyObject *new (PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	struct shard_loader_options o = {.size = sizeof(o)};
	struct loader *l = object_alloc(type);
	struct shard_error err;
	int32_t *offsets = NULL;
	struct transform t;
	int rc;

	if (!l || !take_options(l, args, kwargs, &o, &t, &offsets)) {
		PyMem_Free(offsets);
		unref(l);
		return NULL;
	}
	l->lender.late = PyMem_Malloc(o.slot_count * sizeof(*l->lender.late));
	l->lender.slot_count = o.slot_count;
	l->lender.slot = PyMem_Calloc(o.slot_count + 1, sizeof(struct memory *));
	if (!l->lender.late || !l->lender.slot) {
		PyMem_Free(offsets);
		unref(l);
		return PyErr_NoMemory();
	}
	rc = shard_loader_open(&l->lender.l, o.mix ? NULL : l->dataset->ds, &o, &err);
	PyMem_Free(offsets);
	if (rc)
		fail(&err);
	if (rc || !describe(l)) {
		unref(l);
		l = NULL;
	}
	return (PyObject *)l;
}

static void dealloc(PyObject *self)
{
	struct loader *l = (struct loader *)self;

	lender_let_go(&l->lender);
	PyMem_Free(l->lender.late);
	PyMem_Free(l->lender.slot);
	unref(l->lender.make_memory);
	PyMem_Free(l->schema);
	shard_episodes_close(l->episodes); /* behind the loader */
	stream_drop(&l->lender.stream);
	unref(l->dataset);
	unref(l->source);
	object_free(self);
}

/* ---- epochs ---- */

struct epoch {
	PyObject_HEAD struct loader *loader; /* NULL: it is over */
	uint64_t place;			     /* the loader's place_count when this loop began */
	uint64_t taken;			     /* batches that it had */
};
static PyTypeObject *epoch_type;

/* A loader has one place, so only its last loop may go on; else an exception is set. */
static bool is_current(struct epoch *e)
{
	struct loader *l = e->loader;

	if (!e->taken && l->placed) { /* a loop begins with its first batch, where the loader stands then */
		e->place = ++l->place_count;
		l->placed = false;
	}
	if (e->place != l->place_count && !l->lender.closed)
		fail_argument("this loop is over: another one began, or set_epoch() or load_state_dict() was called, "
			      "and a loader has one place; open a loader for each loop");
	return e->place == l->place_count || l->lender.closed; /* of a closed one, the next call says so */
}

static PyObject *epoch_next(PyObject *self)
{
	struct epoch *e = (struct epoch *)self;
	PyObject *batch = NULL;
	struct shard_batch b;
	struct loader *l;
	int rc;

	if (!e->loader || !is_current(e) || !lender_is_usable(&e->loader->lender))
		return NULL;
	l = ref(e->loader); /* a signal handler may ask for batches, too, and end the epoch */
	rc = loader_next_batch(l, &b);
	if (!rc)
		batch = batch_new(l, &b);
	e->taken += batch != NULL;
	if (rc == SHARD_END) {
		l->placed = true;
		unref(e->loader);
		e->loader = NULL;
	}
	unref(l);
	return batch;
}

static void epoch_dealloc(PyObject *self)
{
	struct epoch *e = (struct epoch *)self;
	struct loader *l = e->loader;
	uint64_t epoch, position;

	/* Nobody can ask the last loop for a batch any more, and it has not come to its end. */
	if (l && e->place == l->place_count && !l->placed) {
		l->placed = !e->taken; /* it asked for a batch and had none: it has not begun */
		if (e->taken && l->lender.l) {
			shard_loader_tell(l->lender.l, &epoch, &position);
			l->at_left = position && epoch == l->epoch;
			l->left_taken = l->at_left ? e->taken : 0;
		}
	}
	unref(l);
	object_free(self);
}

/* The epoch where the loader stands.  If a loop left one early, that one is over. */
static PyObject *iterate(PyObject *self)
{
	struct loader *l = (struct loader *)self;
	struct epoch *e;

	if (!lender_is_usable(&l->lender) || (!l->placed && !loader_end_left(l)))
		return NULL;
	e = PyObject_New(struct epoch, epoch_type);
	if (e) {
		e->loader = ref(l);
		e->place = ++l->place_count;
		e->taken = 0;
		l->left_taken = 0;
	}
	return (PyObject *)e;
}

static PyObject *get_closed(PyObject *self, void *Py_UNUSED(unused))
{
	return PyBool_FromLong(((struct lender *)self)->closed);
}

int loader_init(PyObject *module)
{
	static PyGetSetDef getters[] = {
		{"closed", get_closed, NULL, "Was close() called?", NULL},
		{NULL, NULL, NULL, NULL, NULL},
	};
	static PyType_Slot slots[] = {
		{Py_tp_new, new},
		{Py_tp_dealloc, dealloc},
		{Py_tp_methods, loader_methods},
		{Py_tp_getset, getters},
		{Py_tp_iter, iterate},
		{Py_tp_doc,
		 "Loader(dataset, *, seed=0, batch_records=0, rank=0, world=0, shuffle=0, tail=0, prefetch=2, "
		 "max_held=2, thread_count=0, window_runs=0, lane_count=0, run_records=0, phase_unit_records=0, "
		 "path=0, on_corrupt=0, stage_bytes=0, device=False, gpu=None, stream=None, pool_bytes=0, "
		 "corrupt_most=0, source=None, fields=0, transform=None, items=0, strings=False, "
		 "wide_tokens=False, resume_appended=False, pin=False, make_memory=None, pin_most=0, "
		 "window=None)\n--\n\n"},
		{0, NULL},
	};
	static PyType_Spec spec = {
		.name = "libshard._core.Loader",
		.basicsize = sizeof(struct loader),
		.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
		.slots = slots,
	};
	static PyType_Slot epoch_slots[] = {
		{Py_tp_dealloc, epoch_dealloc},
		{Py_tp_iter, PyObject_SelfIter},
		{Py_tp_iternext, epoch_next},
		{Py_tp_doc, "Batches up to the end of an epoch."},
		{0, NULL},
	};
	static PyType_Spec epoch_spec = {
		.name = "libshard._core._Epoch",
		.basicsize = sizeof(struct epoch),
		.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
		.slots = epoch_slots,
	};

	PyTypeObject *type;

	if (add_type(&epoch_type, module, NULL, &epoch_spec) || add_type(&type, module, "Loader", &spec))
		return -1;
	unref(type);
	return 0;
}
