/* SPDX-License-Identifier: Apache-2.0 */
/*
 * order_options.h - which order of an epoch: the options that verbs about it share
 *
 * A verb's struct begins with a struct order_options, since offsets of a table that verbs share are
 * from the start.
 */
#ifndef SHARD_PROVE_ORDER_OPTIONS_H
#define SHARD_PROVE_ORDER_OPTIONS_H

#include <stdint.h>

#include "shard.h"
#include "tools/common/cli.h"

struct order_options {
	uint64_t seed, run_records, phase_unit_records, window_runs, lane_count;
	int shuffle; /* enum shard_shuffle */
};

extern const struct cli_option order_option_table[];

/* The loader's options, with the order filled in; the rest is zero, which means default. */
struct shard_loader_options order_loader_options(const struct order_options *o);

/* EXIT_DONE, or the mistake has been printed: runs, windows and lanes belong to windows only. */
int order_options_check(const struct cli_args *args, const struct order_options *o);

/* "windows of 40 runs of 128 records, 64 lanes, phase unit 1, seed 7" */
#define ORDER_TEXT_CHARS 256
const char *order_text(char out[ORDER_TEXT_CHARS], const struct shard_order_info *info);

#endif
