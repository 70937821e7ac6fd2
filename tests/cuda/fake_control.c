/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_control.c - how functions of the driver are found, kernels, and what tests steer
 */
#include <stdio.h>

#include "tests/cuda/fake_driver.h"

typedef void (*any_function)(void);

static const struct {
	const char *name;
	int since, until;
	any_function function;
} table[] = {
#define FAKE_ROW(name_, since_, until_, parameters_) {#name_, since_, until_, (any_function)fake_##name_},
	FAKE_CALLS(FAKE_ROW)
#undef FAKE_ROW
};
#define CALLS (sizeof(table) / sizeof(table[0]))
_Static_assert(CALLS <= NAMES_CAP, "struct fake counts so many");

static size_t find_call(const char *name)
{
	size_t i = 0;

	while (i < CALLS && strcmp(table[i].name, name))
		i++;
	return i;
}

size_t call_index(const char *name)
{
	size_t i = find_call(name);

	if (i < CALLS)
		return i;
	fprintf(stderr, "the fake driver has no %s\n", name);
	abort();
}

/* ---- finding functions: both forms, as a driver of CUDA 12 exports them ---- */

EXPORT int cuGetProcAddress_v2(const char *name, void **out, int version, uint64_t flags, int *status);
EXPORT int cuGetProcAddress(const char *name, void **out, int version, uint64_t flags);

int cuGetProcAddress_v2(const char *name, void **out, int version, uint64_t flags, int *status)
{
	size_t i = find_call(name);
	bool hidden;

	*out = NULL;
	*status = 1;
	if (flags > 2)
		return INVALID_VALUE;
	pthread_mutex_lock(&fake.lock);
	hidden = i == CALLS || fake.call[i].hidden;
	if (!hidden && (version < table[i].since || version >= table[i].until || version > VERSION_NEWEST)) {
		sinned(FAKE_BAD_VERSION);
		*status = 2;
		hidden = true;
	}
	pthread_mutex_unlock(&fake.lock);
	if (hidden)
		return OK; /* of the newer form: what was found is said by *status alone */
	*status = 0;
	memcpy(out, &table[i].function, sizeof(*out));
	return OK;
}

int cuGetProcAddress(const char *name, void **out, int version, uint64_t flags)
{
	int status, rc = cuGetProcAddress_v2(name, out, version, flags, &status);

	return rc ? rc : status ? NOT_FOUND : OK;
}

int fake_cuGetErrorName(int result, const char **text)
{
	static const struct {
		int result;
		const char *name;
	} names[] = {{OK, "CUDA_SUCCESS"},
		     {INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"},
		     {OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
		     {NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED"},
		     {100, "CUDA_ERROR_NO_DEVICE"},
		     {INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT"},
		     {INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE"},
		     {NOT_READY, "CUDA_ERROR_NOT_READY"},
		     {ALREADY_REGISTERED, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED"},
		     {NOT_PERMITTED, "CUDA_ERROR_NOT_PERMITTED"},
		     {801, "CUDA_ERROR_NOT_SUPPORTED"},
		     {700, "CUDA_ERROR_ILLEGAL_ADDRESS"}};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].result == result) {
			*text = names[i].name;
			return OK;
		}
	*text = NULL;
	return INVALID_VALUE;
}

int fake_cuGetErrorString(int result, const char **text)
{
	*text = result == OUT_OF_MEMORY ? "out of memory"
		: result == 700		? "an illegal memory access was encountered"
					: NULL;
	return *text ? OK : INVALID_VALUE;
}

/* ---- kernels ---- */

int fake_cuModuleLoadData(void **module, const void *image)
{
	struct module *m;

	ENTER("cuModuleLoadData");
	if (!current_context())
		return call_leave(INVALID_CONTEXT);
	if (!image || !*(const char *)image)
		return call_leave(200);
	m = calloc(1, sizeof(*m));
	*m = (struct module){.next = fake.modules, .context = current_context(), .image = image};
	fake.modules = m;
	*module = m;
	return call_leave(OK);
}

/* What it has to say of a refusal goes where option 5 points, at most option 6 bytes. */
int fake_cuModuleLoadDataEx(void **module, const void *image, unsigned count, int *options, void **values)
{
	int rc = call_enter("cuModuleLoadDataEx");

	if (rc) {
		for (unsigned i = 0; i + 1 < count; i++)
			if (options[i] == 5 && options[i + 1] == 6)
				snprintf(values[i], (size_t)(uintptr_t)values[i + 1],
					 "ptxas application ptx input, line 1; fatal");
		return rc;
	}
	call_leave(OK);
	return fake_cuModuleLoadData(module, image);
}

/* One that lives, and is of the current context. */
static int module_take(const void *handle, struct module ***at)
{
	struct module **p = &fake.modules;

	while (*p && *p != handle)
		p = &(*p)->next;
	*at = p;
	if (*p && (*p)->context == current_context())
		return OK;
	sinned(*p ? FAKE_WRONG_CONTEXT : FAKE_BAD_HANDLE);
	return *p ? INVALID_CONTEXT : INVALID_HANDLE;
}

int fake_cuModuleGetFunction(void **function, void *module, const char *name)
{
	struct module **p;
	int rc;

	ENTER("cuModuleGetFunction");
	rc = module_take(module, &p);
	if (rc)
		return call_leave(rc);
	for (unsigned i = 0; i < KERNELS_CAP; i++)
		if (fake.kernel[i].name && !strcmp(fake.kernel[i].name, name)) {
			struct function *f = &(*p)->function[i];

			if (!f->kernel)
				*f = (struct function){&fake.kernel[i], SHARED_BYTES};
			*function = f;
			return call_leave(OK);
		}
	return call_leave(NOT_FOUND);
}

/* The module that a function is of, if it was not unloaded yet. */
static const struct module *module_of(const void *function)
{
	for (const struct module *m = fake.modules; m; m = m->next)
		if ((const struct function *)function >= m->function &&
		    (const struct function *)function < m->function + KERNELS_CAP)
			return m;
	sinned(FAKE_BAD_HANDLE);
	return NULL;
}

int fake_cuFuncSetAttribute(void *function, int attribute, int value)
{
	ENTER("cuFuncSetAttribute");
	if (!module_of(function))
		return call_leave(INVALID_HANDLE);
	if (attribute != 8 || value < 0 || value > SHARED_MOST) /* the most dynamic shared memory */
		return call_leave(INVALID_VALUE);
	((struct function *)function)->shared_most = (unsigned)value;
	return call_leave(OK);
}

int fake_cuModuleUnload(void *module)
{
	struct module **p, *m;
	int rc;

	ENTER("cuModuleUnload");
	rc = module_take(module, &p);
	if (rc)
		return call_leave(rc);
	m = *p;
	*p = m->next;
	free(m);
	return call_leave(OK);
}

int fake_cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
			unsigned block_y, unsigned block_z, unsigned shared_bytes, void *stream, void **arguments,
			void **extra)
{
	const struct function *f = function;
	const struct kernel *k;
	const struct module *m;
	struct stream *s;
	struct work *w;
	int rc;

	ENTER("cuLaunchKernel");
	rc = stream_take(stream, &s);
	m = module_of(function);
	if (!rc && !m)
		rc = INVALID_HANDLE;
	if (!rc && (extra || shared_bytes > f->shared_most || grid_y > 65535 || grid_z > 65535 || !grid_x || !grid_y ||
		    !grid_z || !block_x || !block_y || !block_z || (uint64_t)block_x * block_y * block_z > 1024))
		rc = INVALID_VALUE;
	if (rc || s->captures)
		return call_leave(rc);
	w = work_add(s, KERNEL);
	w->kernel = k = f->kernel;
	w->image = m->image;
	memcpy(w->grid, (unsigned[]){grid_x, grid_y, grid_z}, sizeof(w->grid));
	memcpy(w->block, (unsigned[]){block_x, block_y, block_z}, sizeof(w->block));
	w->shared_bytes = shared_bytes;
	w->arguments = aligned_alloc(16, ARGS_BYTES + 16 * ARGS_CAP);
	for (unsigned i = 0, at = 0; i < k->count; at += argument_room(k, i++))
		memcpy(w->arguments + at, arguments[i], k->bytes[i]);
	return call_leave(OK);
}

/* ---- control ---- */

static void control_seed(uint64_t seed, unsigned late_us)
{
	pthread_mutex_lock(&fake.lock);
	fake.random = seed;
	fake.late_us = late_us;
	pthread_mutex_unlock(&fake.lock);
}

static void control_hold(int held)
{
	pthread_mutex_lock(&fake.lock);
	fake.held = held;
	pthread_cond_broadcast(&fake.change);
	pthread_mutex_unlock(&fake.lock);
}

static void control_settle(void)
{
	pthread_mutex_lock(&fake.lock);
	while (fake.pending)
		pthread_cond_wait(&fake.change, &fake.lock);
	pthread_mutex_unlock(&fake.lock);
}

static unsigned control_pending(void)
{
	unsigned count;

	pthread_mutex_lock(&fake.lock);
	count = fake.pending;
	pthread_mutex_unlock(&fake.lock);
	return count;
}

static void control_fail(const char *call, unsigned nth, int result)
{
	pthread_mutex_lock(&fake.lock);
	for (size_t i = 0; i < CALLS; i++)
		if (!call || !strcmp(table[i].name, call)) {
			fake.call[i].fail_in = call ? nth : 0;
			fake.call[i].fail_with = result;
		}
	pthread_mutex_unlock(&fake.lock);
}

static void control_hide(const char *call)
{
	pthread_mutex_lock(&fake.lock);
	for (size_t i = 0; i < CALLS; i++)
		fake.call[i].hidden = call && (fake.call[i].hidden || !strcmp(table[i].name, call));
	pthread_mutex_unlock(&fake.lock);
}

static void control_host_addresses(int same)
{
	pthread_mutex_lock(&fake.lock);
	fake.has_other_addresses = !same;
	pthread_mutex_unlock(&fake.lock);
}

static void control_break_down(int result)
{
	pthread_mutex_lock(&fake.lock);
	if (!result)
		work_forget();
	fake.broken = result;
	pthread_cond_broadcast(&fake.change);
	pthread_mutex_unlock(&fake.lock);
}

static uint64_t control_count(const char *call)
{
	uint64_t count = 0;

	pthread_mutex_lock(&fake.lock);
	for (size_t i = 0; i < CALLS; i++)
		if (!strcmp(call, "cu*Synchronize") ? strstr(table[i].name, "Synchronize") != NULL
						    : !strcmp(table[i].name, call))
			count += fake.call[i].count;
	pthread_mutex_unlock(&fake.lock);
	return count;
}

static uint64_t control_sins(enum fake_sin sin)
{
	uint64_t count;

	pthread_mutex_lock(&fake.lock);
	count = fake.sin[sin];
	pthread_mutex_unlock(&fake.lock);
	return count;
}

static void control_reset(void)
{
	pthread_mutex_lock(&fake.lock);
	for (size_t i = 0; i < CALLS; i++)
		fake.call[i].count = 0;
	memset(fake.sin, 0, sizeof(fake.sin));
	pthread_mutex_unlock(&fake.lock);
}

static const char *control_leaks(void)
{
	static char text[160];
	unsigned streams = 0, events = 0, blocks = 0, regions = 0, modules = 0, retains = 0;

	pthread_mutex_lock(&fake.lock);
	for (const struct stream *s = fake.streams; s; s = s->next)
		streams += !s->is_null && !s->dropped;
	for (const struct event *e = fake.events; e; e = e->next)
		events++;
	for (const struct block *b = fake.blocks; b; b = b->next)
		blocks++;
	for (const struct region *r = fake.regions; r; r = r->next)
		regions++;
	for (const struct module *m = fake.modules; m; m = m->next)
		modules++;
	for (const struct context *c = fake.contexts; c; c = c->next)
		retains += c->retains;
	text[0] = 0;
	if (streams + events + blocks + regions + modules + retains)
		snprintf(text, sizeof(text), "%u streams, %u events, %u blocks, %u page-locks, %u modules, %u retains",
			 streams, events, blocks, regions, modules, retains);
	if (fake.graphs)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%u graphs", text[0] ? ", " : "",
			 fake.graphs);
	pthread_mutex_unlock(&fake.lock);
	return text;
}

static void *control_at(uint64_t device_memory)
{
	struct block *b;
	void *at;

	pthread_mutex_lock(&fake.lock);
	b = block_of(device_memory, 1);
	at = b ? b->store + (device_memory - b->address) : NULL;
	pthread_mutex_unlock(&fake.lock);
	return at;
}

static uint64_t control_bytes_from(uint64_t device_memory)
{
	struct block *b;
	uint64_t bytes;

	pthread_mutex_lock(&fake.lock);
	b = block_of(device_memory, 1);
	bytes = b ? b->bytes - (device_memory - b->address) : 0;
	pthread_mutex_unlock(&fake.lock);
	return bytes;
}

static void control_kernel(const char *name, void (*twin)(const struct fake_kernel_call *c), unsigned parameter_count,
			   const size_t *bytes)
{
	struct kernel *k = fake.kernel;
	size_t total = 0;

	pthread_mutex_lock(&fake.lock);
	while (k < fake.kernel + KERNELS_CAP && k->name && strcmp(k->name, name))
		k++;
	for (unsigned i = 0; i < parameter_count; i++)
		total += bytes[i];
	if (k == fake.kernel + KERNELS_CAP || parameter_count > ARGS_CAP || total > ARGS_BYTES)
		abort();
	*k = (struct kernel){.name = name, .twin = twin, .count = parameter_count};
	memcpy(k->bytes, bytes, parameter_count * sizeof(*bytes));
	pthread_mutex_unlock(&fake.lock);
}

EXPORT extern const struct fake_control fake_control;
const struct fake_control fake_control = {
	.seed = control_seed,
	.hold = control_hold,
	.settle = control_settle,
	.pending = control_pending,
	.fail = control_fail,
	.hide = control_hide,
	.host_addresses = control_host_addresses,
	.break_down = control_break_down,
	.count = control_count,
	.sins = control_sins,
	.reset = control_reset,
	.leaks = control_leaks,
	.context = context_make,
	.drop_context = context_drop,
	.at = control_at,
	.bytes_from = control_bytes_from,
	.kernel = control_kernel,
};
