/* SPDX-License-Identifier: Apache-2.0 */
/*
 * order_options.c - which order of an epoch: the options that verbs about it share
 */
#include "tools/shardcat/prove/prove.h"

#include <assert.h>
#include <inttypes.h>

/* The choices of --shuffle, in their order. */
static_assert(SHARD_SHUFFLE_BY_SIZE == 0 && SHARD_SEQUENTIAL == 1 && SHARD_SHUFFLE_GLOBAL == 2 &&
		      SHARD_SHUFFLE_WINDOWS == 3,
	      "choices are values of enum shard_shuffle");

/* clang-format off */
const struct cli_option order_option_table[] = {
	{.name = "seed",
	 .kind = CLI_U64,
	 .arg_name = "S",
	 .offset = offsetof(struct order_options, seed),
	 .default_value = "0",
	 .help = "seed of the order"},
	{.name = "shuffle",
	 .kind = CLI_CHOICE,
	 .arg_name = "KIND",
	 .choices = "by-size|sequential|global|windows",
	 .offset = offsetof(struct order_options, shuffle),
	 .default_value = "by-size",
	 .help = "kind of order"},
	{.name = "run-records",
	 .kind = CLI_U64,
	 .arg_name = "N",
	 .min = 1,
	 .offset = offsetof(struct order_options, run_records),
	 .default_note = "by size",
	 .help = "windows: records per run"},
	{.name = "phase-unit",
	 .kind = CLI_U64,
	 .arg_name = "N",
	 .min = 1,
	 .offset = offsetof(struct order_options, phase_unit_records),
	 .default_note = "by size",
	 .help = "windows: runs shift by multiples of N"},
	{.name = "window-runs",
	 .kind = CLI_U64,
	 .arg_name = "N",
	 .min = 1,
	 .max = UINT32_MAX,
	 .offset = offsetof(struct order_options, window_runs),
	 .default_note = "the loader's",
	 .help = "windows: runs shuffled together in a lane"},
	{.name = "lanes",
	 .kind = CLI_U64,
	 .arg_name = "N",
	 .min = 1,
	 .max = UINT32_MAX,
	 .offset = offsetof(struct order_options, lane_count),
	 .default_note = "the loader's",
	 .help = "windows: number of independent streams"},
	{0},
};
/* clang-format on */

struct shard_loader_options order_loader_options(const struct order_options *o)
{
	return (struct shard_loader_options){
		.size = sizeof(struct shard_loader_options),
		.seed = o->seed,
		.shuffle = (uint32_t)o->shuffle,
		.run_records = o->run_records,
		.phase_unit_records = o->phase_unit_records,
		.window_runs = (uint32_t)o->window_runs,
		.lane_count = (uint32_t)o->lane_count,
	};
}

int order_options_check(const struct cli_args *args, const struct order_options *o)
{
	static const char *const of_windows[] = {"run-records", "phase-unit", "window-runs", "lanes"};

	if (o->shuffle != SHARD_SEQUENTIAL && o->shuffle != SHARD_SHUFFLE_GLOBAL)
		return EXIT_DONE;
	for (unsigned i = 0; i < sizeof(of_windows) / sizeof(of_windows[0]); i++)
		if (cli_given(args, of_windows[i]))
			return cli_misuse(args, "--%s needs --shuffle windows, not %s", of_windows[i],
					  o->shuffle == SHARD_SEQUENTIAL ? "sequential" : "global");
	return EXIT_DONE;
}

const char *order_text(char out[ORDER_TEXT_CHARS], const struct shard_order_info *info)
{
	switch (info->kind) {
	case SHARD_SEQUENTIAL:
		snprintf(out, ORDER_TEXT_CHARS, "sequential");
		break;
	case SHARD_SHUFFLE_GLOBAL:
		snprintf(out, ORDER_TEXT_CHARS, "global, seed %" PRIu64, info->seed);
		break;
	default:
		snprintf(out, ORDER_TEXT_CHARS,
			 "windows of %" PRIu32 " runs of %" PRIu64 " records, %" PRIu32 " lane%s, phase unit %" PRIu64
			 ", seed %" PRIu64,
			 info->window_runs, info->run_records, info->lane_count, info->lane_count == 1 ? "" : "s",
			 info->phase_unit_records, info->seed);
	}
	return out;
}
