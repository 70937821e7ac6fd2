/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mix_report.h - what a mixture makes of its sources: how often each comes, and how evenly
 */
#ifndef SHARD_PROVE_MIX_REPORT_H
#define SHARD_PROVE_MIX_REPORT_H

#include "shard.h"

/*
 * Print a table for the mixture in a file, from the order of `epochs` epochs.  Reads no record.
 * The options are those of the loader.  Returns an exit code.
 */
int mix_report(const char *path, const struct shard_loader_options *options, uint64_t epochs);

#endif
