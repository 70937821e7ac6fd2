/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader.c - struct shard_loader as a Python object
 *
 * The interpreter's lock is released while a batch is waited for, a tenth of a second at a time, so that ^C is heard.  A
 * batch that is ready is taken without.
 */
#include "core.h"

#include <string.h>
#include <unistd.h>

#define SLICE_NS UINT64_C(100000000)
#define SLOTS_MAX	1024 /* of a loader */
#define DEVICE_HELD_MAX 3 /* of a GPU's 4 slots */

PyTypeObject *loader_type;

/* ---- open and close ---- */

/*
 * A loop still has its batch when it asks for the next one, where C has given it back before.  The slot of that one is extra:
 * whatever is held when the next is asked for, and when it is there, `prefetch` others are free for the threads.  Batches on
 * a GPU are held there: their slots of the host are free when they are copied.
 */
static bool plan_slots(struct loader *l, struct shard_loader_options *o, unsigned int prefetch, bool device)
{
	if (!prefetch || !l->max_held || prefetch >= SLOTS_MAX || l->max_held >= SLOTS_MAX - prefetch) {
		fail_argument("prefetch %u and max_held %u; both are at least 1, and together at most %d batches", prefetch, l->max_held, SLOTS_MAX - 1);
		return false;
	}
	if (device && l->max_held > DEVICE_HELD_MAX) {
		fail_argument("max_held %u; at most %u batches can be held on a GPU", l->max_held, DEVICE_HELD_MAX);
		return false;
	}
	l->slot_count = prefetch + l->max_held + (device ? 0 : 1);
	o->slot_count = l->slot_count;
	o->device_slot_count = device ? l->max_held + 1 : 0;
	return true;
}

static bool take_options(struct loader *l, PyObject *args, PyObject *kwargs, struct shard_loader_options *o)
{
	static char *names[] = {"dataset", "seed", "batch_records", "rank", "world", "shuffle", "tail", "prefetch", "max_held", "thread_count",
				"window_runs", "lane_count", "run_records", "phase_unit_records", "path", "on_corrupt", "stage_bytes",
				"device", "stream", "pool_bytes", NULL};
	unsigned long long seed = 0, run_records = 0, phase = 0, stage = 0, pool = 0;
	unsigned int prefetch = 2;
	PyObject *dataset, *stream = Py_None;
	int device = 0;

	l->placed = true;
	l->max_held = 2;
	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!|$KIIIIIIIIIIKKIIKpOK", names, dataset_type, &dataset, &seed, &o->batch_records,
					 &o->rank, &o->world, &o->shuffle, &o->tail, &prefetch, &l->max_held, &o->thread_count, &o->window_runs,
					 &o->lane_count, &run_records, &phase, &o->path, &o->on_corrupt, &stage, &device, &stream, &pool) ||
	    !dataset_is_open((struct dataset *)dataset))
		return false;
	if (!plan_slots(l, o, prefetch, device))
		return false;
	l->dataset = ref(dataset);
	o->pool_bytes = pool;
	o->seed = seed;
	o->run_records = run_records;
	o->phase_unit_records = phase;
	o->stage_bytes = stage;
	return !device || device_open(l, stream);
}

static PyObject *new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	struct shard_loader_options o = {.size = sizeof(o)};
	PyObject *(*alloc)(PyTypeObject *, Py_ssize_t) = PyType_GetSlot(type, Py_tp_alloc);
	struct loader *l = (struct loader *)alloc(type, 0);
	struct shard_error err;
	int rc;

	if (!l || !take_options(l, args, kwargs, &o)) {
		unref(l);
		return NULL;
	}
	l->late = PyMem_Malloc(l->slot_count * sizeof(*l->late));
	if (!l->late) {
		unref(l);
		return PyErr_NoMemory();
	}
	rc = shard_loader_open(&l->l, l->dataset->ds, &o, &err);
	if (rc) {
		fail(&err);
		unref(l);
		l = NULL;
	}
	return (PyObject *)l;
}

void loader_let_go(struct loader *l)
{
	struct shard_loader *handle = l->l;

	l->l = NULL;
	Py_BEGIN_ALLOW_THREADS
	shard_loader_close(handle); /* waits for reads under way */
	Py_END_ALLOW_THREADS
	if (l->lent_memory)
		PyBuffer_Release(&l->lent_buffer);
	Py_CLEAR(l->lent_memory);
}

static void dealloc(PyObject *self)
{
	struct loader *l = (struct loader *)self;
	PyTypeObject *type = Py_TYPE(self);
	void (*release)(void *) = PyType_GetSlot(type, Py_tp_free);

	loader_let_go(l);
	PyMem_Free(l->late);
	unref(l->dataset);
	release(self);
	Py_DECREF(type);
}

/* May a call be made now? */
static bool is_usable(const struct loader *l)
{
	if (l->closed)
		fail_closed("loader");
	else if (l->busy)
		fail_argument("another thread waits in this loader; a loader belongs to one thread at a time");
	return !l->closed && !l->busy;
}

static PyObject *close_(PyObject *self, PyObject *unused)
{
	struct loader *l = (struct loader *)self;

	(void)unused;
	if (!l->closed && !is_usable(l))
		return NULL;
	l->closed = true;
	if (!l->held_count) /* else it goes with the last view */
		loader_let_go(l);
	return Py_NewRef(Py_None);
}

/* ---- batches ---- */

/* Wait without the interpreter's lock. */
static int wait_for_batch(struct loader *l, struct shard_error *err)
{
	/* The first call makes ring and threads, which takes a while.  What is wrong the second one says. */
	int rc = l->owner_pid && !shard_loader_wait(l->l, 0, NULL) ? SHARD_OK : SHARD_E_TIMEOUT;

	if (!l->owner_pid && l->on_device && device_begin(l, err))
		return err->status;
	while (rc == SHARD_E_TIMEOUT) {
		l->busy = true;
		Py_BEGIN_ALLOW_THREADS
		rc = shard_loader_wait(l->l, SLICE_NS, err);
		Py_END_ALLOW_THREADS
		l->busy = false;
		lease_flush(l);
		if (PyErr_CheckSignals() < 0)
			return SHARD_E_CANCELLED;
	}
	if (!rc && !l->owner_pid)
		l->owner_pid = (long)getpid();
	return rc;
}

/* The next batch; NULL without an exception at the end of an epoch. */
static PyObject *next(struct loader *l)
{
	struct shard_error err;
	struct shard_batch b;
	int rc;

	if (!is_usable(l))
		return NULL;
	if (l->held_count > l->max_held)
		PyGC_Collect(); /* what is held may be held by a circle that nobody needs */
	if (l->held_count > l->max_held)
		return lease_fail_held(l);
	rc = wait_for_batch(l, &err);
	if (!rc)
		rc = l->on_device ? device_next(l, &b, &err) : shard_loader_next(l->l, &b, &err);
	if (rc == SHARD_END)
		l->placed = true;
	else if (rc && l->on_device)
		device_fail(&err);
	else if (rc)
		fail(&err);
	return rc ? NULL : batch_new(l, &b);
}

/* ---- epochs ---- */

struct epoch {
	PyObject_HEAD
	struct loader *loader; /* NULL: it is over */
};
static PyTypeObject *epoch_type;

static PyObject *epoch_next(PyObject *self)
{
	struct epoch *e = (struct epoch *)self;
	PyObject *batch = e->loader ? next(e->loader) : NULL;

	if (!batch && e->loader && !PyErr_Occurred()) {
		unref(e->loader);
		e->loader = NULL;
	}
	return batch;
}

static void epoch_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);

	unref(((struct epoch *)self)->loader);
	PyObject_Free(self);
	Py_DECREF(type);
}

/* The epoch where the loader stands; but one that a loop left early is over. */
static PyObject *iterate(PyObject *self)
{
	struct loader *l = (struct loader *)self;
	uint64_t epoch, position;
	struct shard_error err;
	struct epoch *e;

	if (!is_usable(l))
		return NULL;
	if (!l->placed) {
		shard_loader_tell(l->l, &epoch, &position); /* the last batch may have been taken, and its end not */
		if (shard_loader_seek(l->l, position ? epoch + 1 : epoch, 0, &err))
			return fail(&err);
	}
	e = PyObject_New(struct epoch, epoch_type);
	if (e) {
		e->loader = ref(l);
		l->placed = false;
	}
	return (PyObject *)e;
}

/* ---- places ---- */

static PyObject *tell(PyObject *self, PyObject *unused)
{
	struct loader *l = (struct loader *)self;
	uint64_t epoch, position;

	(void)unused;
	if (!is_usable(l))
		return NULL;
	shard_loader_tell(l->l, &epoch, &position);
	return Py_BuildValue("(KK)", epoch, position);
}

static PyObject *seek(PyObject *self, PyObject *args)
{
	struct loader *l = (struct loader *)self;
	unsigned long long epoch, position;
	struct shard_error err;

	if (!PyArg_ParseTuple(args, "KK", &epoch, &position) || !is_usable(l))
		return NULL;
	if (shard_loader_seek(l->l, epoch, position, &err))
		return fail(&err);
	l->placed = true;
	return Py_NewRef(Py_None);
}

static PyObject *token(PyObject *self, PyObject *unused)
{
	struct loader *l = (struct loader *)self;
	char text[SHARD_TOKEN_BYTES];

	(void)unused;
	if (!is_usable(l))
		return NULL;
	shard_loader_token(l->l, text);
	return PyUnicode_FromString(text);
}

static PyObject *resume(PyObject *self, PyObject *text)
{
	struct loader *l = (struct loader *)self;
	const char *token_text = PyUnicode_AsUTF8AndSize(text, NULL);
	struct shard_error err;

	if (!token_text || !is_usable(l))
		return NULL;
	if (shard_loader_resume(l->l, token_text, &err))
		return fail(&err);
	l->placed = true;
	return Py_NewRef(Py_None);
}

static PyObject *step_count(PyObject *self, PyObject *unused)
{
	struct loader *l = (struct loader *)self;

	(void)unused;
	return is_usable(l) ? PyLong_FromUnsignedLongLong(shard_loader_step_count(l->l)) : NULL;
}

static PyObject *order(PyObject *self, PyObject *args)
{
	struct loader *l = (struct loader *)self;
	unsigned long long epoch, first, count;
	struct shard_error err;
	struct memory *m;
	Py_ssize_t shape, stride = sizeof(uint64_t);
	PyObject *out;
	int rc;

	if (!PyArg_ParseTuple(args, "KKK", &epoch, &first, &count) || !is_usable(l))
		return NULL;
	shape = (Py_ssize_t)count;
	m = memory_new(count > SIZE_MAX / 16 ? SIZE_MAX : (size_t)count * sizeof(uint64_t));
	if (!m)
		return NULL;
	rc = shard_loader_order(l->l, epoch, first, count, m->data, &err);
	out = rc ? fail(&err) : (PyObject *)array_new((PyObject *)m, -1, m->data, SHARD_I64, 1, &shape, &stride);
	unref(m);
	return out;
}

static PyObject *order_info(PyObject *self, PyObject *unused)
{
	struct loader *l = (struct loader *)self;
	struct shard_order_info i;

	(void)unused;
	if (!is_usable(l))
		return NULL;
	shard_loader_order_info(l->l, &i);
	return Py_BuildValue("{s:K,s:K,s:K,s:K,s:I,s:I,s:I}", "record_count", i.record_count, "seed", i.seed, "run_records", i.run_records,
			     "phase_unit_records", i.phase_unit_records, "kind", i.kind, "window_runs", i.window_runs, "lane_count",
			     i.lane_count);
}

/* ---- memory and statistics ---- */

static PyObject *ring_bytes(PyObject *self, PyObject *unused)
{
	struct loader *l = (struct loader *)self;

	(void)unused;
	return is_usable(l) ? PyLong_FromUnsignedLongLong(shard_loader_ring_bytes(l->l)) : NULL;
}

static PyObject *lend(PyObject *self, PyObject *memory)
{
	struct loader *l = (struct loader *)self;
	struct shard_error err;

	if (!is_usable(l))
		return NULL;
	if (l->lent_memory)
		return fail_argument("memory was lent already");
	if (PyObject_GetBuffer(memory, &l->lent_buffer, PyBUF_CONTIG) < 0)
		return NULL;
	if (shard_loader_lend(l->l, l->lent_buffer.buf, (uint64_t)l->lent_buffer.len, &err)) {
		PyBuffer_Release(&l->lent_buffer);
		return fail(&err);
	}
	l->lent_memory = Py_NewRef(memory);
	return Py_NewRef(Py_None);
}

static PyObject *stats(PyObject *self, PyObject *unused)
{
	struct loader *l = (struct loader *)self;
	struct shard_loader_stats s;

	(void)unused;
	if (!is_usable(l))
		return NULL;
	shard_loader_stats(l->l, &s);
	return Py_BuildValue(
		"{s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:I,s:O,s:K,s:K,s:K,s:K,s:K,s:K,s:K}", "batch_count", s.batch_count,
		"record_count", s.record_count, "bytes", s.bytes, "filled_record_count", s.filled_record_count, "filled_bytes", s.filled_bytes,
		"checked_unit_count", s.checked_unit_count, "elapsed_ns", s.elapsed_ns, "next_wait_ns", s.next_wait_ns, "next_wait_count",
		s.next_wait_count, "fill_ns", s.fill_ns, "fill_cpu_ns", s.fill_cpu_ns, "slot_wait_ns", s.slot_wait_ns, "mapped_bytes",
		s.mapped_bytes, "direct_bytes", s.direct_bytes, "pread_bytes", s.pread_bytes, "substituted_count", s.substituted_count,
		"masked_count", s.masked_count, "thread_count", s.thread_count, "has_uring", s.has_uring ? Py_True : Py_False, "stage_bytes",
		s.stage_bytes, "decoded_chunk_count", s.decoded_chunk_count, "unfinished_chunk_count", s.unfinished_chunk_count,
		"device_bytes", s.device_bytes, "pageable_bytes", s.pageable_bytes, "pinned_bytes", s.pinned_bytes, "device_wait_ns", s.device_wait_ns);
}

static PyObject *summary(PyObject *self, PyObject *unused)
{
	struct loader *l = (struct loader *)self;
	struct shard_loader_stats s;
	char text[SHARD_SUMMARY_BYTES];

	(void)unused;
	if (!is_usable(l))
		return NULL;
	shard_loader_stats(l->l, &s);
	shard_stats_summary(&s, NULL, text);
	return PyUnicode_FromString(text);
}

/* (status, message) of the row that was substituted or masked last, or None. */
static PyObject *last_damage(PyObject *self, PyObject *unused)
{
	struct loader *l = (struct loader *)self;
	struct shard_error e;

	(void)unused;
	if (!is_usable(l))
		return NULL;
	return shard_loader_last_damage(l->l, &e) ? Py_NewRef(Py_None) : Py_BuildValue("(ss)", shard_status_name(e.status), e.message);
}

static PyObject *held(PyObject *self, PyObject *unused)
{
	(void)unused;
	return PyLong_FromUnsignedLong(((struct loader *)self)->held_count);
}

static PyObject *gpu(PyObject *self, PyObject *unused)
{
	struct loader *l = (struct loader *)self;

	(void)unused;
	return l->on_device ? PyLong_FromUnsignedLong(l->gpu) : Py_NewRef(Py_None);
}

static PyObject *get_closed(PyObject *self, void *unused)
{
	(void)unused;
	return PyBool_FromLong(((struct loader *)self)->closed);
}

int loader_init(PyObject *module)
{
	static PyMethodDef methods[] = {
		{"close", close_, METH_NOARGS,
		 "close($self, /)\n--\n\nNo more batches.  Arrays that are held stay valid, and its memory goes with the last of them."},
		{"tell", tell, METH_NOARGS, "tell($self, /)\n--\n\n"},
		{"seek", seek, METH_VARARGS, "seek($self, epoch, position, /)\n--\n\n"},
		{"token", token, METH_NOARGS, "token($self, /)\n--\n\n"},
		{"resume", resume, METH_O, "resume($self, token, /)\n--\n\n"},
		{"step_count", step_count, METH_NOARGS, "step_count($self, /)\n--\n\n"},
		{"order", order, METH_VARARGS, "order($self, epoch, first, count, /)\n--\n\n"},
		{"order_info", order_info, METH_NOARGS, "order_info($self, /)\n--\n\n"},
		{"ring_bytes", ring_bytes, METH_NOARGS, "ring_bytes($self, /)\n--\n\n"},
		{"lend", lend, METH_O, "lend($self, memory, /)\n--\n\n"},
		{"stats", stats, METH_NOARGS,
		 "stats($self, /)\n--\n\nCounters since the loader was opened; times in nanoseconds, sums over threads."},
		{"summary", summary, METH_NOARGS,
		 "summary($self, /)\n--\n\nOne line of text for a log: rates, who waited for whom, and which side is the slower one."},
		{"last_damage", last_damage, METH_NOARGS,
		 "last_damage($self, /)\n--\n\nStatus and message of the row that was substituted or masked last; None if none was."},
		{"held", held, METH_NOARGS, "held($self, /)\n--\n\nHow many batches are alive."},
		{"gpu", gpu, METH_NOARGS, "gpu($self, /)\n--\n\nNumber of the GPU that batches are on; None: they are in the memory of the CPU."},
		{NULL, NULL, 0, NULL},
	};
	static PyGetSetDef getters[] = {
		{"closed", get_closed, NULL, "Was close() called?", NULL},
		{NULL, NULL, NULL, NULL, NULL},
	};
	static PyType_Slot slots[] = {
		{Py_tp_new, new}, {Py_tp_dealloc, dealloc}, {Py_tp_methods, methods}, {Py_tp_getset, getters}, {Py_tp_iter, iterate},
		{Py_tp_doc, "Loader(dataset, *, seed=0, batch_records=0, rank=0, world=0, shuffle=0, tail=0, prefetch=2, max_held=2, thread_count=0, "
			    "window_runs=0, lane_count=0, run_records=0, phase_unit_records=0, path=0, on_corrupt=0, stage_bytes=0, device=False, "
			    "stream=None, pool_bytes=0)\n--\n\n"},
		{0, NULL},
	};
	static PyType_Spec spec = {
		.name = "libshard._core.Loader",
		.basicsize = sizeof(struct loader),
		.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
		.slots = slots,
	};

	static PyType_Slot epoch_slots[] = {
		{Py_tp_dealloc, epoch_dealloc}, {Py_tp_iter, PyObject_SelfIter}, {Py_tp_iternext, epoch_next},
		{Py_tp_doc, "Batches up to the end of an epoch."}, {0, NULL},
	};
	static PyType_Spec epoch_spec = {
		.name = "libshard._core._Epoch",
		.basicsize = sizeof(struct epoch),
		.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
		.slots = epoch_slots,
	};

	epoch_type = add_type(module, NULL, &epoch_spec);
	loader_type = epoch_type ? add_type(module, "Loader", &spec) : NULL;
	return loader_type ? 0 : -1;
}
