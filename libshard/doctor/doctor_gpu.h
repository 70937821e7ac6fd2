/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor_gpu.h - findings about GPUs: the driver, each device and its link, and page-locking
 *
 * Page-locking is tried.  That makes the first device's primary context for as long as it takes,
 * unless there is one already.
 */
#ifndef SHARD_DOCTOR_DOCTOR_GPU_H
#define SHARD_DOCTOR_DOCTOR_GPU_H

#include <stdint.h>

#include "shard.h"
#include "shard_gpu.h"

void doctor_gpu(const struct shard_doctor_options *o, uint64_t node_count);

#endif
