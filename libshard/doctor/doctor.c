/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor.c - shard_doctor(): what this machine has for a loader to use
 *
 * Facts come from io/machine.h and cuda/probe.h.  The files of this folder turn them into
 * sentences: what was found, what follows for a loader, what to do.  Nothing is changed, and no
 * loader asks here.
 */
#include "libshard/base/error.h"
#include "libshard/base/options.h"
#include "libshard/doctor/doctor_disk.h"
#include "libshard/doctor/doctor_gpu.h"
#include "libshard/doctor/doctor_machine.h"
#include "shard_gpu.h"

int shard_doctor(const struct shard_doctor_options *opt, struct shard_error *err)
{
	struct shard_doctor_options o;
	struct machine_cpus cpus;
	int rc = options_take(&o, sizeof(o), opt, err);

	if (rc)
		return rc;
	if (!o.finding)
		return error_set(err, SHARD_E_ARGUMENT,
				 "options: finding is NULL; must be a function that takes findings");
	machine_cpus(&cpus);
	doctor_machine(&o, &cpus);
	if (o.path)
		rc = doctor_disk(&o, err);
	if (!rc)
		doctor_gpu(&o, cpus.node_count);
	return rc;
}
