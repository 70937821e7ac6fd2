/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor_disk.h - findings about o->path: its file system, and the dataset if there is one
 */
#ifndef SHARD_DOCTOR_DOCTOR_DISK_H
#define SHARD_DOCTOR_DOCTOR_DISK_H

#include "shard.h"
#include "shard_gpu.h"

int doctor_disk(const struct shard_doctor_options *o, struct shard_error *err);

#endif
