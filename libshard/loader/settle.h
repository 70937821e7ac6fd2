/* SPDX-License-Identifier: Apache-2.0 */
/*
 * settle.h - settles the options of a loader: fills in defaults, checks them, makes steps of them
 *
 * The order depends on the options and the schema of the dataset alone.  It does not depend on
 * batch size, threads, memory or world: jobs that differ in those have the same order.
 */
#ifndef SHARD_LOADER_SETTLE_H
#define SHARD_LOADER_SETTLE_H

#include "libshard/feed/steps.h"

/*
 * Fails with ARGUMENT if options do not fit together.  The steps of a mixture have no order yet.
 */
int settle_options(struct shard_loader_options *o, const struct shard_dataset *ds, struct steps *out,
		   struct shard_error *err);

#endif
