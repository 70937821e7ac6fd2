/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor_machine.h - findings about the machine: CPUs, NUMA nodes, memory, huge pages, io_uring
 */
#ifndef SHARD_DOCTOR_DOCTOR_MACHINE_H
#define SHARD_DOCTOR_DOCTOR_MACHINE_H

#include "libshard/io/machine.h"
#include "shard.h"
#include "shard_gpu.h"

void doctor_machine(const struct shard_doctor_options *o, const struct machine_cpus *cpus);

#endif
