/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe.h - which GPUs there are, for shard_doctor(); no context is made by looking
 */
#ifndef LIBSHARD_CUDA_PROBE_H
#define LIBSHARD_CUDA_PROBE_H

#include <stdint.h>

#include "shard.h"

struct cuda_driver {
	uint32_t major, minor; /* the newest CUDA that it has */
	uint32_t device_count;
	const char *lacks; /* "": nothing */
};

struct cuda_gpu {
	char name[128];
	char bus_id[32]; /* "0000:65:00.0" */
	uint64_t memory_bytes;
	uint32_t capability_major, capability_minor;
};

/*
 * The driver, loaded and started: what keeps it from that is the error, as for cuda_open().  If it lacks a call that tells
 * of GPUs, `lacks` names it, and nothing else is known; loaders need none of these.
 */
int cuda_probe(struct cuda_driver *out, struct shard_error *err);
/* One of device_count. */
int cuda_probe_gpu(uint32_t ordinal, struct cuda_gpu *out, struct shard_error *err);

/*
 * The GPU that a stream is on; of a default stream that of this thread's context, or the first if it has none.  Makes
 * no context.
 */
int cuda_probe_stream(void *stream, uint32_t *ordinal, struct shard_error *err);

#endif
