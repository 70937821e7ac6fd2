/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_loader_methods.c - methods of a loader: its place and its order, its memory, and its counters
 */
#include "python/core/loader/py_loader.h"

#include "python/core/array/py_array.h"
#include "python/core/base/py_errors.h"

/* ---- places ---- */

/* Can the place be told?  Else an exception is set. */
static bool has_place(struct loader *l)
{
	return lender_is_usable(&l->lender) && (!l->at_left || loader_end_left(l));
}

static PyObject *tell(PyObject *self, PyObject *unused)
{
	struct lender *l = (struct lender *)self;
	uint64_t epoch, position;

	(void)unused;
	if (!has_place((struct loader *)self))
		return NULL;
	shard_loader_tell(l->l, &epoch, &position);
	return Py_BuildValue("(KK)", epoch, position);
}

/* The next loop begins here, and the one that is under way is over. */
static void placed_anew(struct loader *l)
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
	placed_anew((struct loader *)self);
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
static PyObject *left(PyObject *self, PyObject *unused)
{
	struct loader *l = (struct loader *)self;

	(void)unused;
	return l->left_taken ? Py_BuildValue("(KKK)", l->epoch, l->step + 1, l->left_taken) : Py_NewRef(Py_None);
}

static PyObject *token(PyObject *self, PyObject *unused)
{
	struct lender *l = (struct lender *)self;
	char text[SHARD_TOKEN_BYTES];

	(void)unused;
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
	placed_anew((struct loader *)self);
	return Py_NewRef(Py_None);
}

static PyObject *step_count(PyObject *self, PyObject *unused)
{
	struct lender *l = (struct lender *)self;

	(void)unused;
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
	if (!a || !shard_loader_order(l->l, epoch, first, count, idx, &err))
		return (PyObject *)a;
	unref(a);
	return fail(&err);
}

static PyObject *order_info(PyObject *self, PyObject *unused)
{
	struct lender *l = (struct lender *)self;
	struct shard_order_info i;

	(void)unused;
	if (!lender_is_usable(l))
		return NULL;
	shard_loader_order_info(l->l, &i);
	return Py_BuildValue("{s:K,s:K,s:K,s:K,s:I,s:I,s:I}", "record_count", i.record_count, "seed", i.seed,
			     "run_records", i.run_records, "phase_unit_records", i.phase_unit_records, "kind", i.kind,
			     "window_runs", i.window_runs, "lane_count", i.lane_count);
}

/* ---- memory and statistics ---- */

static PyObject *ring_bytes(PyObject *self, PyObject *unused)
{
	struct lender *l = (struct lender *)self;

	(void)unused;
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

static PyObject *stats(PyObject *self, PyObject *unused)
{
	struct lender *l = (struct lender *)self;
	struct shard_loader_stats s;

	(void)unused;
	if (!lender_is_usable(l))
		return NULL;
	shard_loader_stats(l->l, &s);
	return Py_BuildValue("{s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:I,s:O,"
			     "s:K,s:K,s:K,s:K,s:K,s:K,s:K}",
			     "batch_count", s.batch_count, "record_count", s.record_count, "bytes", s.bytes,
			     "filled_record_count", s.filled_record_count, "filled_bytes", s.filled_bytes,
			     "checked_unit_count", s.checked_unit_count, "elapsed_ns", s.elapsed_ns, "next_wait_ns",
			     s.next_wait_ns, "next_wait_count", s.next_wait_count, "fill_ns", s.fill_ns, "fill_cpu_ns",
			     s.fill_cpu_ns, "slot_wait_ns", s.slot_wait_ns, "mapped_bytes", s.mapped_bytes,
			     "direct_bytes", s.direct_bytes, "pread_bytes", s.pread_bytes, "substituted_count",
			     s.substituted_count, "masked_count", s.masked_count, "thread_count", s.thread_count,
			     "has_uring", s.has_uring ? Py_True : Py_False, "stage_bytes", s.stage_bytes,
			     "decoded_chunk_count", s.decoded_chunk_count, "unfinished_chunk_count",
			     s.unfinished_chunk_count, "device_bytes", s.device_bytes, "pageable_bytes",
			     s.pageable_bytes, "pinned_bytes", s.pinned_bytes, "device_wait_ns", s.device_wait_ns);
}

/* (status, message) of the row that was substituted or masked last, or None. */
static PyObject *last_damage(PyObject *self, PyObject *unused)
{
	struct lender *l = (struct lender *)self;
	struct shard_error e;

	(void)unused;
	if (!lender_is_usable(l))
		return NULL;
	return shard_loader_last_damage(l->l, &e) ? Py_NewRef(Py_None)
						  : Py_BuildValue("(ss)", shard_status_name(e.status), e.message);
}

static PyObject *held(PyObject *self, PyObject *unused)
{
	(void)unused;
	return PyLong_FromUnsignedLong(((struct lender *)self)->held_count);
}

static PyObject *lent(PyObject *self, PyObject *array)
{
	(void)self;
	if (Py_TYPE(array) != array_type)
		return fail_argument("lent() is asked of an array");
	return PyBool_FromLong(((struct array *)array)->field >= 0);
}

static PyObject *gpu(PyObject *self, PyObject *unused)
{
	struct lender *l = (struct lender *)self;

	(void)unused;
	return l->on_device ? PyLong_FromUnsignedLong(l->gpu) : Py_NewRef(Py_None);
}

/* ---- the end ---- */

static PyObject *close_(PyObject *self, PyObject *unused)
{
	struct lender *l = (struct lender *)self;

	(void)unused;
	if (!l->closed && !lender_is_usable(l))
		return NULL;
	l->closed = true;
	if (!l->held_count) /* else the handle goes with the last array */
		lender_let_go(l);
	return Py_NewRef(Py_None);
}

PyMethodDef loader_methods[] = {
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
	{"gpu", gpu, METH_NOARGS,
	 "gpu($self, /)\n--\n\nNumber of the GPU that batches are on; None: they are in the memory of the CPU."},
	{NULL, NULL, 0, NULL},
};
