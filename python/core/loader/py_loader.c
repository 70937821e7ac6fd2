/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_loader.c - struct shard_loader as a Python object
 *
 * The interpreter's lock is released while a batch is waited for, a tenth of a second at a time, so that ^C is heard.  A
 * batch that is ready is taken without.
 */
#include "python/core/base/py_core.h"

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

bool loader_is_usable(const struct loader *l)
{
	if (l->closed)
		fail_closed("loader");
	else if (l->busy)
		fail_argument("another thread waits in this loader; a loader belongs to one thread at a time");
	return !l->closed && !l->busy;
}

PyObject *loader_close(PyObject *self, PyObject *unused)
{
	struct loader *l = (struct loader *)self;

	(void)unused;
	if (!l->closed && !loader_is_usable(l))
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

	if (!loader_is_usable(l))
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

	if (!loader_is_usable(l))
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

static PyObject *get_closed(PyObject *self, void *unused)
{
	(void)unused;
	return PyBool_FromLong(((struct loader *)self)->closed);
}

int loader_init(PyObject *module)
{
	static PyGetSetDef getters[] = {
		{"closed", get_closed, NULL, "Was close() called?", NULL},
		{NULL, NULL, NULL, NULL, NULL},
	};
	static PyType_Slot slots[] = {
		{Py_tp_new, new}, {Py_tp_dealloc, dealloc}, {Py_tp_methods, loader_methods}, {Py_tp_getset, getters}, {Py_tp_iter, iterate},
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
