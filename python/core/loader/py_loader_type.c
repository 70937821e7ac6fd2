/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_loader_type.c - the type libshard._core.Loader, and its epochs
 */
#include "python/core/loader/py_loader.h"

#include "python/core/base/py_errors.h"
#include "python/core/dataset/py_dataset.h"
#include "python/core/dataset/py_dataset_type.h"

#define SLOTS_MAX	1024 /* of a loader */
#define DEVICE_HELD_MAX 3    /* of a GPU's 4 slots */

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
	o->device_slot_count = device ? l->max_held + 1 : 0;
	return true;
}

/* A selection or a mixture, or None; else an exception is set. */
static bool take_source(struct loader *l, PyObject *source, struct shard_loader_options *o)
{
	l->source = ref(source);
	if (PyObject_TypeCheck(source, selection_type)) {
		o->selection = ((struct selection *)source)->s;
		return true;
	}
	if (PyObject_TypeCheck(source, mix_type)) {
		o->mix = ((struct mix *)source)->m;
		return true;
	}
	if (source != Py_None)
		PyErr_SetString(PyExc_TypeError, "source must be a selection, a mixture, or None");
	return source == Py_None;
}

/* clang-format off */
static char *option_names[] = {
	"dataset", "seed", "batch_records", "rank", "world", "shuffle", "tail", "prefetch", "max_held", "thread_count",
	"window_runs", "lane_count", "run_records", "phase_unit_records", "path", "on_corrupt", "stage_bytes", "device",
	"gpu", "stream", "pool_bytes", "corrupt_most", "source", "fields", "transform", "items", "strings",
	"wide_tokens", "resume_appended", NULL,
};
/* clang-format on */

static bool take_options(struct loader *l, PyObject *args, PyObject *kwargs, struct shard_loader_options *o,
			 struct transform *t)
{
	unsigned long long seed = 0, run_records = 0, phase = 0, stage = 0, pool = 0, corrupt_most = 0;
	unsigned int prefetch = 2;
	PyObject *dataset, *gpu = Py_None, *stream = Py_None, *source = Py_None, *transform = Py_None;
	int device = 0, resume_appended = 0;

	l->placed = true;
	l->max_held = 2;
	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!|$KIIIIIIIIIIKKIIKpOOKKOIOIppp", option_names, dataset_type,
					 &dataset, &seed, &o->batch_records, &o->rank, &o->world, &o->shuffle, &o->tail,
					 &prefetch, &l->max_held, &o->thread_count, &o->window_runs, &o->lane_count,
					 &run_records, &phase, &o->path, &o->on_corrupt, &stage, &device, &gpu, &stream,
					 &pool, &corrupt_most, &source, &o->fields, &transform, &l->items, &l->strings,
					 &l->wide_tokens, &resume_appended) ||
	    !dataset_is_open((struct dataset *)dataset))
		return false;
	if (!plan_slots(l, o, prefetch, device))
		return false;
	if (!take_source(l, source, o) || (transform != Py_None && !transform_take(transform, t)))
		return false;
	o->transform = transform == Py_None ? NULL : &t->t;
	l->dataset = ref(dataset);
	o->pool_bytes = pool;
	o->corrupt_most = corrupt_most;
	o->resume_appended = (uint32_t)resume_appended;
	o->seed = seed;
	o->run_records = run_records;
	o->phase_unit_records = phase;
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
	PyObject *(*alloc)(PyTypeObject *, Py_ssize_t) = PyType_GetSlot(type, Py_tp_alloc);
	struct loader *l = (struct loader *)alloc(type, 0);
	struct shard_error err;
	struct transform t;
	int rc;

	if (!l || !take_options(l, args, kwargs, &o, &t)) {
		unref(l);
		return NULL;
	}
	l->lender.late = PyMem_Malloc(o.slot_count * sizeof(*l->lender.late));
	if (!l->lender.late) {
		unref(l);
		return PyErr_NoMemory();
	}
	rc = shard_loader_open(&l->lender.l, o.mix ? NULL : l->dataset->ds, &o, &err);
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
	PyTypeObject *type = Py_TYPE(self);
	void (*release)(void *) = PyType_GetSlot(type, Py_tp_free);

	lender_let_go(&l->lender);
	PyMem_Free(l->lender.late);
	PyMem_Free(l->schema);
	stream_drop(&l->lender.stream);
	unref(l->dataset);
	unref(l->source);
	release(self);
	Py_DECREF(type);
}

/* ---- epochs ---- */

/* The next batch; NULL without an exception at the end of an epoch. */
static PyObject *next(struct loader *l)
{
	struct shard_batch b;
	int rc = lender_is_usable(&l->lender) ? loader_next_batch(l, &b) : SHARD_E_ARGUMENT;

	if (rc == SHARD_END)
		l->placed = true;
	return rc ? NULL : batch_new(l, &b);
}

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
	PyObject *batch;

	if (e->loader && !is_current(e))
		return NULL;
	batch = e->loader ? next(e->loader) : NULL;
	e->taken += batch != NULL;
	if (!batch && e->loader && !PyErr_Occurred()) {
		unref(e->loader);
		e->loader = NULL;
	}
	return batch;
}

/* Nobody can ask the last loop for a batch any more, and it has not come to its end. */
static void left_early(const struct epoch *e)
{
	struct loader *l = e->loader;
	uint64_t epoch, position;

	l->placed = !e->taken; /* it asked for a batch and had none: it has not begun */
	if (!e->taken || !l->lender.l)
		return;
	shard_loader_tell(l->lender.l, &epoch, &position);
	l->at_left = position && epoch == l->epoch;
	l->left_taken = l->at_left ? e->taken : 0;
}

static void epoch_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);
	struct epoch *e = (struct epoch *)self;

	if (e->loader && e->place == e->loader->place_count && !e->loader->placed)
		left_early(e);
	unref(e->loader);
	PyObject_Free(self);
	Py_DECREF(type);
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

static PyObject *get_closed(PyObject *self, void *unused)
{
	(void)unused;
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
		 "wide_tokens=False, resume_appended=False)\n--\n\n"},
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

	epoch_type = add_type(module, NULL, &epoch_spec);
	type = epoch_type ? add_type(module, "Loader", &spec) : NULL;
	unref(type);
	return type ? 0 : -1;
}
