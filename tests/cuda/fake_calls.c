/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_calls.c - the driver's streams and events, and what every call of it begins and ends with
 */
#include "tests/cuda/fake_driver.h"

struct fake fake = {.lock = PTHREAD_MUTEX_INITIALIZER, .change = PTHREAD_COND_INITIALIZER};

/* ---- what every call begins and ends with ---- */

/* Works when nothing else does any more. */
static bool is_harmless(const char *name)
{
	return !strncmp(name, "cuCtxP", 6) || !strncmp(name, "cuGetE", 6) || !strncmp(name, "cuDeviceP", 9) ||
	       !strncmp(name, "cuThreadE", 9);
}

void sinned(enum fake_sin sin)
{
	fake.sin[sin]++;
}

int call_enter(const char *name)
{
	size_t i = call_index(name);
	int rc = OK;

	/* before the lock, which may have been held when this process was forked */
	if (fake.pid && fake.pid != getpid())
		return NOT_INITIALIZED;
	pthread_mutex_lock(&fake.lock);
	fake.call[i].count++;
	if (in_host_function) {
		sinned(FAKE_CALLS_BACK);
		rc = NOT_PERMITTED;
	} else if (fake.call[i].fail_in && !--fake.call[i].fail_in)
		rc = fake.call[i].fail_with;
	else if (!fake.pid && strcmp(name, "cuInit") && strncmp(name, "cuGetError", 10))
		rc = NOT_INITIALIZED;
	else if (fake.broken && !is_harmless(name))
		rc = fake.broken;
	else if (capture_refuses(name))
		rc = CAPTURE_UNSUPPORTED;
	if (rc)
		pthread_mutex_unlock(&fake.lock);
	return rc;
}

int call_leave(int result)
{
	pthread_mutex_unlock(&fake.lock);
	return result;
}

/* ---- streams and events ---- */

/*
 * A handle of a stream that lives; for NULL, 1 and 2 the null stream of the current context; else
 * NULL.
 */
static struct stream *stream_find(void *handle)
{
	if ((uintptr_t)handle <= 2)
		return current_context() ? current_context()->null_stream : NULL;
	for (struct stream *s = fake.streams; s; s = s->next)
		if (s == handle && !s->dropped && !s->is_null)
			return s;
	return NULL;
}

int stream_take(void *handle, struct stream **out)
{
	*out = stream_find(handle);
	if (!*out) {
		sinned((uintptr_t)handle <= 2 ? FAKE_WRONG_CONTEXT : FAKE_BAD_HANDLE);
		return (uintptr_t)handle <= 2 ? INVALID_CONTEXT : INVALID_HANDLE;
	}
	if ((*out)->context != current_context()) {
		sinned(FAKE_WRONG_CONTEXT);
		return INVALID_CONTEXT;
	}
	return OK;
}

static int event_take(void *handle, struct event **out)
{
	for (*out = fake.events; *out; *out = (*out)->next)
		if (*out == handle)
			return OK;
	sinned(FAKE_BAD_HANDLE);
	return INVALID_HANDLE;
}

int fake_cuStreamGetCtx(void *stream, void **context)
{
	struct stream *s;

	ENTER("cuStreamGetCtx");
	s = stream_find(stream);
	if (!s)
		return call_leave((uintptr_t)stream <= 2 ? INVALID_CONTEXT : INVALID_HANDLE);
	*context = s->context;
	return call_leave(OK);
}

int fake_cuStreamCreate(void **stream, unsigned flags)
{
	ENTER("cuStreamCreate");
	if (flags > 1)
		return call_leave(INVALID_VALUE);
	if (!current_context())
		return call_leave(INVALID_CONTEXT);
	*stream = stream_new(current_context(), !(flags & 1));
	return call_leave(OK);
}

/* A priority beyond the range is the nearest one.  Here it is told, and changes nothing. */
int fake_cuStreamCreateWithPriority(void **stream, unsigned flags, int priority)
{
	struct stream *s;

	ENTER("cuStreamCreateWithPriority");
	if (flags > 1)
		return call_leave(INVALID_VALUE);
	if (!current_context())
		return call_leave(INVALID_CONTEXT);
	s = stream_new(current_context(), !(flags & 1));
	s->priority = priority > 0 ? 0 : priority < PRIORITY_MOST ? PRIORITY_MOST : priority;
	*stream = s;
	return call_leave(OK);
}

int fake_cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
	ENTER("cuCtxGetStreamPriorityRange");
	if (!current_context())
		return call_leave(INVALID_CONTEXT);
	if (least)
		*least = 0;
	if (greatest)
		*greatest = PRIORITY_MOST;
	return call_leave(OK);
}

int fake_cuStreamGetPriority(void *stream, int *priority)
{
	struct stream *s;
	int rc;

	ENTER("cuStreamGetPriority");
	rc = stream_take(stream, &s);
	if (!rc)
		*priority = s->priority;
	return call_leave(rc);
}

int fake_cuStreamDestroy(void *stream)
{
	struct stream *s;
	int rc;

	ENTER("cuStreamDestroy");
	rc = stream_take(stream, &s);
	if (!rc && s->is_null)
		rc = INVALID_HANDLE;
	if (!rc)
		stream_drop(s);
	return call_leave(rc);
}

int fake_cuStreamWaitEvent(void *stream, void *event, unsigned flags)
{
	struct stream *s;
	struct event *e;
	int rc;

	ENTER("cuStreamWaitEvent");
	rc = flags ? INVALID_VALUE : stream_take(stream, &s);
	if (!rc)
		rc = event_take(event, &e);
	if (!rc && e->is_captured != s->captures && (e->last || e->is_captured)) {
		if (s->captures)
			capture_lose(s);
		else
			sinned(FAKE_BROKE_CAPTURE);
		rc = s->captures ? CAPTURE_ISOLATION : CAPTURED_EVENT;
	}
	if (!rc && e->last && !s->captures) /* one that was never recorded holds nobody up */
		work_add(s, WAIT)->record = record_hold(e->last);
	return call_leave(rc);
}

int fake_cuStreamQuery(void *stream)
{
	struct stream *s;
	int rc;

	ENTER("cuStreamQuery");
	rc = stream_take(stream, &s);
	if (!rc && s->captures) {
		capture_lose(s);
		rc = CAPTURE_UNSUPPORTED;
	}
	return call_leave(rc ? rc : s->first ? NOT_READY : OK);
}

/* With the lock: a record of what is queued on the stream so far. */
static struct record *record_new(struct stream *s)
{
	struct record *r = calloc(1, sizeof(*r));

	work_add(s, RECORD)->record = record_hold(r);
	return r;
}

int fake_cuStreamSynchronize(void *stream)
{
	struct stream *s;
	struct record *r;
	int rc;

	ENTER("cuStreamSynchronize");
	rc = stream_take(stream, &s);
	if (!rc && s->captures) {
		capture_lose(s);
		rc = CAPTURE_UNSUPPORTED;
	}
	if (rc)
		return call_leave(rc);
	r = record_hold(record_new(s));
	work_wait_for(r);
	rc = r->done ? OK : fake.broken;
	record_let_go(r);
	return call_leave(rc);
}

int fake_cuLaunchHostFunc(void *stream, void (*call)(void *context), void *context)
{
	struct stream *s;
	struct work *w;
	int rc;

	ENTER("cuLaunchHostFunc");
	rc = stream_take(stream, &s);
	if (rc || s->captures)
		return call_leave(rc);
	w = work_add(s, CALL);
	w->call = call;
	w->context = context;
	return call_leave(OK);
}

int fake_cuEventCreate(void **event, unsigned flags)
{
	struct event *e;

	ENTER("cuEventCreate");
	if (flags > 3)
		return call_leave(INVALID_VALUE);
	if (!current_context())
		return call_leave(INVALID_CONTEXT);
	e = calloc(1, sizeof(*e));
	e->context = current_context();
	e->next = fake.events;
	fake.events = e;
	*event = e;
	return call_leave(OK);
}

int fake_cuEventDestroy(void *event)
{
	struct event *e;
	int rc;

	ENTER("cuEventDestroy");
	rc = event_take(event, &e);
	if (rc)
		return call_leave(rc);
	for (struct event **p = &fake.events; *p; p = &(*p)->next)
		if (*p == e) {
			*p = e->next;
			break;
		}
	record_let_go(e->last);
	free(e);
	return call_leave(OK);
}

int fake_cuEventRecord(void *event, void *stream)
{
	struct stream *s;
	struct event *e;
	int rc;

	ENTER("cuEventRecord");
	rc = stream_take(stream, &s);
	if (!rc)
		rc = event_take(event, &e);
	if (!rc && e->context != s->context) {
		sinned(FAKE_WRONG_CONTEXT);
		rc = INVALID_HANDLE;
	}
	if (rc)
		return call_leave(rc);
	record_let_go(e->last);
	e->is_captured = s->captures;
	e->last = s->captures ? NULL : record_hold(record_new(s));
	return call_leave(OK);
}

int fake_cuEventQuery(void *event)
{
	struct event *e;
	int rc;

	ENTER("cuEventQuery");
	rc = event_take(event, &e);
	return call_leave(rc ? rc : e->last && !e->last->done ? NOT_READY : OK);
}

int fake_cuEventSynchronize(void *event)
{
	struct event *e;
	struct record *r;
	int rc;

	ENTER("cuEventSynchronize");
	rc = event_take(event, &e);
	if (rc || !e->last)
		return call_leave(rc);
	r = record_hold(e->last);
	work_wait_for(r);
	rc = r->done ? OK : fake.broken;
	record_let_go(r);
	return call_leave(rc);
}
