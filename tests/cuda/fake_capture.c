/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_capture.c - streams whose work goes to a graph, and the calls that break such a capture
 *
 * Graphs are counted and never run.  The modes are those of cuThreadExchangeStreamCaptureMode.
 */
#include "tests/cuda/fake_driver.h"

enum { GLOBAL, THREAD_LOCAL, RELAXED };

static _Thread_local int mode = GLOBAL;

/*
 * What cuda.h calls potentially unsafe, and what real drivers refuse.  cuMemAlloc is its example;
 * the others allocate, free, load code, or wait, too.
 */
static bool is_unsafe(const char *call)
{
	static const char *const names[] = {"cuMemAlloc",
					    "cuMemFree",
					    "cuMemHostRegister",
					    "cuMemHostUnregister",
					    "cuModuleLoadData",
					    "cuModuleLoadDataEx",
					    "cuModuleUnload",
					    "cuStreamQuery",
					    "cuStreamSynchronize",
					    "cuEventQuery",
					    "cuEventSynchronize",
					    "cuCtxSynchronize",
					    "cuDevicePrimaryCtxRetain"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(call, names[i]))
			return true;
	return false;
}

void capture_lose(struct stream *s)
{
	s->capture_is_lost = true;
	sinned(FAKE_BROKE_CAPTURE);
}

/* Does the capture of this stream forbid unsafe calls to this thread? */
static bool forbids(const struct stream *s)
{
	bool own = pthread_equal(s->capture_thread, pthread_self());

	if (!s->captures || mode == RELAXED)
		return false;
	return own ? s->capture_mode != RELAXED : mode == GLOBAL && s->capture_mode == GLOBAL;
}

bool capture_refuses(const char *call)
{
	bool refuses = false;

	if (!is_unsafe(call))
		return false;
	for (struct stream *s = fake.streams; s; s = s->next)
		if (forbids(s)) {
			capture_lose(s);
			refuses = true;
		}
	return refuses;
}

int fake_cuThreadExchangeStreamCaptureMode(int *other)
{
	int mine = mode;

	ENTER("cuThreadExchangeStreamCaptureMode");
	if (*other < GLOBAL || *other > RELAXED)
		return call_leave(INVALID_VALUE);
	mode = *other;
	*other = mine;
	return call_leave(OK);
}

int fake_cuStreamBeginCapture(void *stream, int capture_mode)
{
	struct stream *s;
	int rc;

	ENTER("cuStreamBeginCapture");
	rc = capture_mode < GLOBAL || capture_mode > RELAXED ? INVALID_VALUE : stream_take(stream, &s);
	if (!rc && (s->is_null || s->captures))
		rc = CAPTURE_UNSUPPORTED;
	if (rc)
		return call_leave(rc);
	s->captures = true;
	s->capture_is_lost = false;
	s->capture_mode = capture_mode;
	s->capture_thread = pthread_self();
	return call_leave(OK);
}

int fake_cuStreamEndCapture(void *stream, void **graph)
{
	struct stream *s;
	int rc;

	ENTER("cuStreamEndCapture");
	rc = stream_take(stream, &s);
	if (rc)
		return call_leave(rc);
	if (!s->captures)
		return call_leave(CAPTURE_UNMATCHED);
	if (s->capture_mode != RELAXED && !pthread_equal(s->capture_thread, pthread_self()))
		return call_leave(CAPTURE_WRONG_THREAD);
	s->captures = false;
	*graph = s->capture_is_lost ? NULL : malloc(1);
	fake.graphs += !s->capture_is_lost;
	return call_leave(s->capture_is_lost ? CAPTURE_INVALIDATED : OK);
}

int fake_cuGraphDestroy(void *graph)
{
	ENTER("cuGraphDestroy");
	free(graph);
	fake.graphs--;
	return call_leave(OK);
}

int fake_cuStreamIsCapturing(void *stream, int *status)
{
	struct stream *s;
	int rc;

	ENTER("cuStreamIsCapturing");
	rc = stream_take(stream, &s);
	if (rc)
		return call_leave(rc);
	for (const struct stream *o = fake.streams; s->is_null && o; o = o->next)
		if (o->captures && o->waits_for_null && o->context == s->context)
			return call_leave(CAPTURE_IMPLICIT);
	*status = !s->captures ? 0 : s->capture_is_lost ? 2 : 1;
	return call_leave(OK);
}
