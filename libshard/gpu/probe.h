/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe.h - tells which GPUs there are, without making a context
 */
#ifndef SHARD_CUDA_PROBE_H
#define SHARD_CUDA_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#include "shard.h"

struct cuda_driver {
	bool is_loaded;	       /* the driver's library is there, even if it does not work */
	uint32_t major, minor; /* the newest version of CUDA that it supports */
	uint32_t device_count;
	const char *lacks; /* calls that are missing; "": none */
};

struct cuda_gpu {
	char name[128];
	char bus_id[32]; /* "0000:65:00.0" */
	uint64_t memory_bytes;
	uint32_t capability_major, capability_minor;
};

/*
 * Load and start the driver.  Fails as cuda_open() does.  If the driver lacks a call that is needed
 * here, `lacks` names it, and the rest is not known.  A loader does not need these calls.
 * `is_loaded` is set even if this fails.
 */
int cuda_probe(struct cuda_driver *out, struct shard_error *err);
/* `ordinal` is below device_count. */
int cuda_probe_gpu(uint32_t ordinal, struct cuda_gpu *out, struct shard_error *err);

/*
 * The GPU of a stream.  That of a default stream is the GPU of this thread's context, or else the
 * first one.
 */
int cuda_probe_stream(void *stream, uint32_t *ordinal, struct shard_error *err);

#endif
