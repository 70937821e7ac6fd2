/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_statistics.h - the statistics of a dataset's first image
 */
#ifndef SHARD_REPORT_REPORT_STATISTICS_H
#define SHARD_REPORT_REPORT_STATISTICS_H

#include <stdbool.h>
#include <stdint.h>

#include "shard.h"
#include "shard_pack.h"

struct report_statistics {
	uint32_t channels;
	double mean[SHARD_TALLY_CHANNELS_MAX], deviation[SHARD_TALLY_CHANNELS_MAX];
};

/* Mean and standard deviation of each channel, scaled to 0..1.  False if the dataset has none. */
bool report_statistics(const struct shard_dataset *ds, struct report_statistics *out);

#endif
