/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_order.c - shardcat order: which records a rank gets in an epoch, in which order
 *
 * The numbers are the loader's own, asked for without reading a record.
 */
#include <inttypes.h>
#include <stdio.h>

#include "tools/common/signals.h"
#include "tools/shardcat/shardcat.h"
#include "tools/shardcat/target.h"

#define ROWS_AT_A_TIME 4096

struct order_options {
	const char *path;
	uint64_t epoch, seed, rank, world, batch;
	int tail; /* enum shard_tail */
	bool sequential;
};

static int print_order(const struct shard_loader *loader, uint64_t epoch, uint64_t row_count)
{
	uint64_t idx[ROWS_AT_A_TIME];
	struct shard_error err;

	for (uint64_t first = 0; first < row_count && !ferror(stdout);) {
		uint64_t now = row_count - first < ROWS_AT_A_TIME ? row_count - first : ROWS_AT_A_TIME;
		int rc = shard_loader_order(loader, epoch, first, now, idx, &err);

		if (rc)
			return fail_with(rc, &err);
		for (uint64_t i = 0; i < now; i++)
			printf("%" PRIu64 "\n", idx[i]);
		first += now;
		if (interrupted())
			return EXIT_INTERRUPTED;
	}
	return EXIT_DONE;
}

static int run(const struct cli_args *args)
{
	const struct order_options *o = args->options;
	const struct shard_loader_options options = {
		.size = sizeof(options),
		.seed = o->seed,
		.batch_records = (uint32_t)o->batch,
		.rank = (uint32_t)o->rank,
		.world = (uint32_t)o->world,
		.shuffle = o->sequential ? SHARD_SEQUENTIAL : SHARD_SHUFFLE_GLOBAL,
		.tail = (uint32_t)o->tail,
	};
	struct shard_loader *loader = NULL;
	struct shard_error err;
	struct target t;
	int rc;

	if (o->rank >= o->world)
		return cli_misuse(args, "--rank %" PRIu64 ": must be below --world %" PRIu64, o->rank, o->world);
	rc = target_open_dataset(&t, o->path);
	if (!rc && t.record_count) { /* an epoch of no records has an order, which is empty */
		rc = shard_loader_open(&loader, t.dataset, &options, &err);
		if (rc)
			rc = fail_with(rc, &err);
	}
	if (!rc && loader) {
		uint64_t row_count = shard_loader_step_count(loader) * o->batch;

		if (o->tail == SHARD_KEEP)
			row_count = t.record_count; /* its last batch is short */
		rc = print_order(loader, o->epoch, row_count);
	}
	shard_loader_close(loader);
	target_close(&t);
	return rc;
}

static const struct cli_option positionals[] = {
	{.name = "DIR",
	 .kind = CLI_DIR,
	 .required = true,
	 .offset = offsetof(struct order_options, path),
	 .help = "dataset folder"},
	{0},
};

static const struct cli_option options[] = {
	{.name = "epoch",
	 .kind = CLI_U64,
	 .arg_name = "E",
	 .offset = offsetof(struct order_options, epoch),
	 .default_value = "0",
	 .help = "which epoch"},
	{.name = "seed",
	 .kind = CLI_U64,
	 .arg_name = "S",
	 .offset = offsetof(struct order_options, seed),
	 .default_value = "0",
	 .help = "the loader's seed"},
	{.name = "rank",
	 .kind = CLI_U64,
	 .arg_name = "Q",
	 .max = UINT32_MAX,
	 .offset = offsetof(struct order_options, rank),
	 .default_value = "0",
	 .help = "whose share, from 0"},
	{.name = "world",
	 .kind = CLI_U64,
	 .arg_name = "R",
	 .min = 1,
	 .max = UINT32_MAX,
	 .offset = offsetof(struct order_options, world),
	 .default_value = "1",
	 .help = "number of ranks"},
	{.name = "batch",
	 .kind = CLI_U64,
	 .arg_name = "N",
	 .min = 1,
	 .max = UINT32_MAX,
	 .offset = offsetof(struct order_options, batch),
	 .default_value = "1",
	 .help = "records per batch and rank"},
	{.name = "tail",
	 .kind = CLI_CHOICE,
	 .choices = "drop|pad|keep",
	 .offset = offsetof(struct order_options, tail),
	 .default_value = "drop",
	 .help = "records that do not fill the last batch"},
	{.name = "sequential",
	 .kind = CLI_FLAG,
	 .offset = offsetof(struct order_options, sequential),
	 .help = "not shuffled"},
	{0},
};

const struct cli_verb verb_order = {
	.name = "order",
	.summary = "Print the record indices that a rank gets in an epoch, one per line",
	.examples = "shardcat order ds/train --epoch 3 --seed 1\n"
		    "shardcat order ds/train --epoch 0 --seed 1 --rank 2 --world 8 --batch 256",
	.positionals = positionals,
	.options = {options},
	.options_bytes = sizeof(struct order_options),
	.run = run,
};
