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
};

struct cuda_gpu {
	char name[128];
	char bus_id[32]; /* "0000:65:00.0" */
	uint64_t memory_bytes;
	uint32_t capability_major, capability_minor;
};

/* The driver, loaded and started: what keeps it from that is the error, as for cuda_open(). */
int cuda_probe(struct cuda_driver *out, struct shard_error *err);
int cuda_probe_gpu(uint32_t ordinal, struct cuda_gpu *out, struct shard_error *err);

#endif
