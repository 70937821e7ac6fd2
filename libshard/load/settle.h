/* SPDX-License-Identifier: Apache-2.0 */
/*
 * settle.h - a loader's options: defaults filled in, checked, and turned into steps
 *
 * What decides the order is settled from the options and the dataset's schema alone, never from batch
 * size, threads, memory or world: two jobs that differ in those see the same order.
 */
#ifndef SHARD_LOAD_SETTLE_H
#define SHARD_LOAD_SETTLE_H

#include "libshard/load/steps.h"

/* ARGUMENT for options that do not fit together. */
int settle_options(struct shard_loader_options *o, const struct shard_dataset *ds, struct steps *out,
		   struct shard_error *err);

#endif
