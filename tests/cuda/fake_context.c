/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_context.c - devices and their contexts, and which one is current in a thread
 */
#include "tests/cuda/fake_driver.h"

#define STACK_CAP    16
#define DEVICE_FIRST 70 /* handle and number of a device are two things */

static _Thread_local struct context *stack[STACK_CAP];
static _Thread_local unsigned stack_count;

struct context *current_context(void)
{
	return stack_count ? stack[stack_count - 1] : NULL;
}

static struct context *context_new(int device, bool primary)
{
	struct context *c = calloc(1, sizeof(*c));

	c->device = device;
	c->primary = primary;
	c->null_stream = stream_new(c, false);
	c->null_stream->is_null = true;
	c->next = fake.contexts;
	fake.contexts = c;
	return c;
}

static bool context_lives(const struct context *c)
{
	for (const struct context *o = fake.contexts; o; o = o->next)
		if (o == c)
			return true;
	return false;
}

static void context_end(struct context *c)
{
	for (struct context **p = &fake.contexts; *p; p = &(*p)->next)
		if (*p == c) {
			*p = c->next;
			break;
		}
	while (c->null_stream->first)
		pthread_cond_wait(&fake.change, &fake.lock);
	stream_drop(c->null_stream);
	free(c);
}

void *context_make(int device)
{
	struct context *c;

	pthread_mutex_lock(&fake.lock);
	c = context_new(device + DEVICE_FIRST, false);
	pthread_mutex_unlock(&fake.lock);
	return c;
}

void context_drop(void *context)
{
	pthread_mutex_lock(&fake.lock);
	context_end(context);
	pthread_mutex_unlock(&fake.lock);
}

int fake_cuInit(unsigned flags)
{
	ENTER("cuInit");
	if (flags)
		return call_leave(INVALID_VALUE);
	fake.pid = getpid();
	return call_leave(OK);
}

int fake_cuDeviceGet(int *device, int ordinal)
{
	ENTER("cuDeviceGet");
	if (ordinal < 0 || ordinal >= DEVICES)
		return call_leave(INVALID_DEVICE);
	*device = ordinal + DEVICE_FIRST;
	return call_leave(OK);
}

int ordinal_of(int device)
{
	return device >= DEVICE_FIRST && device < DEVICE_FIRST + DEVICES ? device - DEVICE_FIRST : -1;
}

int fake_cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active)
{
	ENTER("cuDevicePrimaryCtxGetState");
	if (ordinal_of(device) < 0)
		return call_leave(INVALID_DEVICE);
	*flags = 0;
	*active = fake.primary[ordinal_of(device)] != NULL;
	return call_leave(OK);
}

int fake_cuDevicePrimaryCtxRetain(void **context, int device)
{
	int i = ordinal_of(device);

	ENTER("cuDevicePrimaryCtxRetain");
	if (i < 0)
		return call_leave(INVALID_DEVICE);
	if (!fake.primary[i])
		fake.primary[i] = context_new(device, true);
	fake.primary[i]->retains++;
	*context = fake.primary[i];
	return call_leave(OK);
}

int fake_cuDevicePrimaryCtxRelease(int device)
{
	int i = ordinal_of(device);
	struct context *c;

	ENTER("cuDevicePrimaryCtxRelease");
	c = i < 0 ? NULL : fake.primary[i];
	if (!c) {
		sinned(FAKE_BAD_HANDLE);
		return call_leave(INVALID_CONTEXT);
	}
	if (!--c->retains) {
		fake.primary[i] = NULL;
		context_end(c);
	}
	return call_leave(OK);
}

int fake_cuCtxGetCurrent(void **context)
{
	ENTER("cuCtxGetCurrent");
	*context = current_context();
	return call_leave(OK);
}

int fake_cuCtxGetDevice(int *device)
{
	ENTER("cuCtxGetDevice");
	if (!current_context())
		return call_leave(INVALID_CONTEXT);
	*device = current_context()->device;
	return call_leave(OK);
}

int fake_cuCtxPushCurrent(void *context)
{
	ENTER("cuCtxPushCurrent");
	if (!context_lives(context)) {
		sinned(FAKE_BAD_HANDLE);
		return call_leave(INVALID_CONTEXT);
	}
	if (stack_count == STACK_CAP)
		return call_leave(INVALID_VALUE);
	stack[stack_count++] = context;
	return call_leave(OK);
}

int fake_cuCtxPopCurrent(void **context)
{
	ENTER("cuCtxPopCurrent");
	if (!stack_count)
		return call_leave(INVALID_CONTEXT);
	*context = stack[--stack_count];
	return call_leave(OK);
}

int fake_cuCtxSynchronize(void)
{
	struct context *c;

	ENTER("cuCtxSynchronize");
	c = current_context();
	if (!c)
		return call_leave(INVALID_CONTEXT);
	for (struct stream *s = fake.streams; s; s = s->next)
		if (s->context == c && s->captures) { /* in whatever mode: it would have to wait for a graph */
			capture_lose(s);
			return call_leave(CAPTURE_UNSUPPORTED);
		}
	for (bool busy = true; busy && !fake.broken;) {
		busy = false;
		for (const struct stream *s = fake.streams; s; s = s->next)
			busy |= s->context == c && s->first;
		if (busy)
			pthread_cond_wait(&fake.change, &fake.lock);
	}
	return call_leave(fake.broken);
}
