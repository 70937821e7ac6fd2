/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deaf.h - a control for tests of streams: a device whose streams wait for nothing, as if nobody had
 * thought of joining them
 */
#ifndef TESTS_CUDA_DEAF_H
#define TESTS_CUDA_DEAF_H

#include "libshard/gpu/gpu.h"

struct deaf_device {
	struct cuda_device d;
	struct cuda_api api;
};

static int wait_for_nothing(struct cu_stream *stream, struct cu_event *event, unsigned int flags)
{
	(void)stream;
	(void)event;
	return flags ? 1 : 0;
}

/* *out must live as long as the device that is returned is used. */
static const struct cuda_device *make_deaf(const struct cuda_device *d, struct deaf_device *out)
{
	*out = (struct deaf_device){*d, *d->api};
	out->api.cuStreamWaitEvent = wait_for_nothing;
	out->d.api = &out->api;
	return &out->d;
}

#endif
