/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_prove_order.c - shardcat prove-order: is every record delivered exactly once?
 *
 * Real loaders of all ranks deliver real batches, and every row is identified by its bytes.
 * Nothing that the loader says about a row is believed: record[] is compared with the bytes as
 * well.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/signals.h"
#include "tools/shardcat/prove/prove.h"
#include "tools/shardcat/shardcat.h"

#define WORLDS_MAX    16
#define BATCH_DEFAULT 32
#define RING_BYTES    (UINT64_C(256) << 20) /* of all loaders together, with the default batch */

struct prove_options {
	struct order_options order; /* first: see shardcat.h */
	const char *path, *worlds, *select, *mix;
	uint64_t batch, epochs, threads;
	int tail; /* enum shard_tail */
};

struct plan {
	const struct prove_options *o;
	uint32_t world[WORLDS_MAX], world_count, batch;
};

/* Of an epoch: those of the dataset, or of the selection. */
static uint64_t epoch_records(const struct proof *p)
{
	struct shard_selection_info info;

	if (!p->loader.selection)
		return p->in.record_count;
	shard_selection_info(p->loader.selection, &info);
	return info.record_count;
}

/* All epochs with one world, by loaders that live through them. */
static int prove_world(struct proof *p, const struct plan *n, struct tally *y, uint32_t world)
{
	struct job j;
	int rc = job_open(p, &j, world, n->batch, NULL);

	for (uint64_t e = 0; e < n->o->epochs && !rc; e++) {
		bool ended = false;
		uint64_t steps;

		snprintf(y->name, sizeof(y->name), "world %" PRIu32 ", batch %" PRIu32 ", epoch %" PRIu64, world,
			 n->batch, e);
		epoch_begin(p, y, e);
		while (!rc && !ended)
			rc = job_step(p, y, &j, &ended);
		steps = y->at / ((uint64_t)world * n->batch);
		if (!rc && steps != shard_loader_step_count(j.loader[0]))
			proof_find(y, OUT_OF_STEP, "the epoch had %" PRIu64 " steps; the loader says %" PRIu64, steps,
				   shard_loader_step_count(j.loader[0]));
		if (!rc)
			rc = epoch_end(p, y, &j);
	}
	job_close(&j);
	return rc;
}

/* ---- an epoch that is interrupted, and goes on with another world and batch ---- */

struct leg {
	uint32_t world, batch;
};

/* Every world, the largest first, each with another batch; another one begins in each epoch. */
static uint32_t plan_legs(const struct plan *n, uint64_t epoch, struct leg legs[WORLDS_MAX])
{
	uint32_t count = n->world_count < 3 ? 3 : n->world_count;

	assert(n->world_count);
	for (uint32_t i = 0; i < count; i++) {
		uint64_t which = (count - 1 - i + epoch) % count % n->world_count;

		legs[i].world = n->world[which];
		legs[i].batch = n->batch - (uint32_t)((uint64_t)i * n->batch / (count + 1));
	}
	return count;
}

/*
 * Steps of a leg: to about its share of the epoch, at least one, and at most as many as leave
 * a further one to go on with, for this job and for the last.  A token of an epoch without a
 * further step is one of the next epoch.
 */
static uint64_t leg_steps(const struct proof *p, const struct tally *y, const struct leg *leg, const struct leg *last,
			  uint64_t target)
{
	uint64_t step = (uint64_t)leg->world * leg->batch, last_step = (uint64_t)last->world * last->batch;
	uint64_t need = p->loader.tail != SHARD_DROP ? 1 : step > last_step ? step : last_step;
	uint64_t left = p->prints.wanted_count - y->at;
	uint64_t most = left > need ? (left - need) / step : 0;
	uint64_t wanted = target > y->at ? (target - y->at) / step : 0;

	wanted = wanted ? wanted : 1;
	return wanted < most ? wanted : most;
}

static int prove_resuming(struct proof *p, const struct plan *n, struct tally *y, uint64_t epoch)
{
	char token[SHARD_TOKEN_BYTES];
	struct leg legs[WORLDS_MAX];
	uint32_t count = plan_legs(n, epoch, legs);
	struct job j = {.world = 0};
	bool first = true, ended = false;
	int rc = EXIT_DONE;

	snprintf(y->name, sizeof(y->name), "resumed, epoch %" PRIu64 ", world x batch", epoch);
	epoch_begin(p, y, epoch);
	for (uint32_t i = 0; i < count && !rc; i++) {
		uint64_t target = p->prints.wanted_count / count * (i + 1);
		uint64_t steps = i + 1 < count ? leg_steps(p, y, &legs[i], &legs[count - 1], target) : UINT64_MAX;

		if (!steps) /* too few records for this one */
			continue;
		snprintf(y->name + strlen(y->name), sizeof(y->name) - strlen(y->name), "%s %" PRIu32 " x %" PRIu32,
			 first ? "" : " >", legs[i].world, legs[i].batch);
		job_close(&j);
		rc = job_open(p, &j, legs[i].world, legs[i].batch, first ? NULL : token);
		for (uint32_t q = 0; first && q < j.world && !rc; q++) {
			struct shard_error err;

			rc = shard_loader_seek(j.loader[q], epoch, 0, &err);
			if (rc)
				rc = fail_of_library(&err);
		}
		first = false;
		for (uint64_t s = 0; s < steps && !rc && !ended; s++)
			rc = job_step(p, y, &j, &ended);
		if (!rc && i + 1 < count)
			job_token(&j, y, token);
	}
	if (!rc)
		rc = epoch_end(p, y, &j);
	job_close(&j);
	return rc;
}

/* ---- the whole proof ---- */

static int prove(struct proof *p, const struct plan *n)
{
	struct tally tally;
	int rc;

	progress_start(&p->progress, "proving", "records",
		       p->in.record_count + epoch_records(p) * (n->world_count + 1) * n->o->epochs);
	rc = fingerprints_take(&p->prints, &p->in, p->loader.selection, &p->progress);
	for (uint32_t i = 0; i < n->world_count && !rc; i++)
		rc = prove_world(p, n, &tally, n->world[i]);
	for (uint64_t e = 0; e < n->o->epochs && !rc; e++)
		rc = prove_resuming(p, n, &tally, e);
	progress_abandon(&p->progress);
	if (rc == EXIT_INTERRUPTED)
		return fail(rc, "%s: interrupted; %" PRIu64 " epochs were proven before", p->in.path,
			    p->epoch_count - p->bad_count);
	if (rc)
		return rc;
	if (p->bad_count)
		return fail(EXIT_BAD,
			    "%s: NOT PROVEN: %" PRIu64 " of %" PRIu64 " epochs did not deliver every record exactly "
			    "once",
			    p->in.path, p->bad_count, p->epoch_count);
	if (message_shows(MESSAGE_NORMAL))
		printf("proven: in each of %" PRIu64
		       " epochs every record%s was delivered exactly once, by its bytes%s\n",
		       p->epoch_count, p->loader.selection ? " of the selection, and no other," : "",
		       p->loader.tail == SHARD_DROP ? ", but for the last incomplete step" : "");
	return EXIT_DONE;
}

/* "1,2,3,8" */
static int parse_worlds(const struct cli_args *args, struct plan *n)
{
	bool alone = n->o->tail == SHARD_KEEP && !cli_given(args, "worlds");
	const char *at = alone ? "1" : n->o->worlds;

	for (;;) {
		char *end;
		unsigned long world = *at >= '0' && *at <= '9' ? strtoul(at, &end, 10) : 0;

		if (!world || world > PROOF_RANKS_MAX || (*end && *end != ',') || n->world_count == WORLDS_MAX)
			return cli_misuse(args, "--worlds %s: must be at most %d numbers from 1 to %d, such as 1,2,3,8",
					  n->o->worlds, WORLDS_MAX, PROOF_RANKS_MAX);
		if (world > 1 && n->o->tail == SHARD_KEEP)
			return cli_misuse(args, "--tail keep needs one rank: --worlds 1");
		n->world[n->world_count++] = (uint32_t)world;
		if (!*end)
			return EXIT_DONE;
		at = end + 1;
	}
}

/*
 * So that the largest world makes a few steps in a small dataset, and the loaders of large records
 * fit memory.
 */
static uint32_t default_batch(const struct proof *p, const struct plan *n)
{
	uint64_t world = 1, record_bytes = 1, batch = BATCH_DEFAULT;

	for (uint32_t i = 0; i < n->world_count; i++)
		world = n->world[i] > world ? n->world[i] : world;
	for (uint32_t g = 0; g < p->in.schema->group_count; g++)
		record_bytes += p->in.schema->group[g].stride;
	if (batch > epoch_records(p) / world / 4)
		batch = epoch_records(p) / world / 4;
	if (batch > RING_BYTES / record_bytes / PROOF_SLOTS / world)
		batch = RING_BYTES / record_bytes / PROOF_SLOTS / world;
	return batch ? (uint32_t)batch : 1;
}

/* Worlds that make no step in this dataset: an error, or left out if nobody asked for them. */
static int check_worlds(const struct proof *p, struct plan *n, bool given)
{
	uint64_t records = epoch_records(p);
	uint32_t kept = 0;

	for (uint32_t i = 0; i < n->world_count; i++) {
		uint64_t step = (uint64_t)n->world[i] * n->batch;

		if (p->loader.tail != SHARD_DROP || step <= records || !records)
			n->world[kept++] = n->world[i];
		else if (given || !i)
			return fail(EXIT_USAGE,
				    "%s: %" PRIu64 " records are fewer than one step of world %" PRIu32 ", batch "
				    "%" PRIu32 "; use --tail pad, or a smaller world or batch",
				    p->in.path, records, n->world[i], n->batch);
		else
			note("world %" PRIu32 " is left out: %" PRIu64 " records are fewer than one step of it",
			     n->world[i], records);
	}
	n->world_count = kept;
	return EXIT_DONE;
}

static int run(const struct cli_args *args)
{
	const struct prove_options *o = args->options;
	struct plan n = {.o = o};
	struct proof p = {.loader = order_loader_options(&o->order)};
	struct shard_selection *selection = NULL;
	struct shard_error err;
	int rc = order_options_check(args, &o->order);

	if (rc)
		return rc;
	if (o->mix && o->path)
		return cli_misuse(args, "%s and --mix %s: give one of them", o->path, o->mix);
	if (!o->mix && !o->path)
		return cli_misuse(args, "DIR is missing, or --mix FILE");
	if (o->mix && (o->select || cli_given(args, "tail")))
		return cli_misuse(args, "--%s does not go with --mix: %s", o->select ? "select" : "tail",
				  o->select ? "name selections in the file" : "an epoch of a mixture has no tail");
	rc = parse_worlds(args, &n);
	if (rc)
		return rc;
	p.loader.tail = (uint32_t)o->tail;
	p.loader.slot_count = PROOF_SLOTS;
	p.loader.thread_count = (uint32_t)o->threads;
	if (o->mix) {
		p.loader.batch_records = o->batch ? (uint32_t)o->batch : BATCH_DEFAULT;
		return mix_proof(o->mix, &p.loader, n.world, n.world_count, o->epochs);
	}
	rc = input_open_dataset(&p.in, o->path);
	if (!rc)
		rc = input_selection(&p.in, o->select, &selection);
	p.loader.selection = selection;
	if (!rc) {
		n.batch = o->batch ? (uint32_t)o->batch : default_batch(&p, &n);
		rc = check_worlds(&p, &n, cli_given(args, "worlds"));
	}
	if (!rc) {
		rc = shard_dataset_open(&p.dataset, o->path, NULL, &err);
		if (rc)
			rc = fail_of_library(&err);
	}
	if (!rc && p.in.record_count)
		rc = prove(&p, &n);
	else if (!rc && message_shows(MESSAGE_NORMAL))
		printf("proven: %s has no records\n", p.in.path);
	fingerprints_free(&p.prints);
	shard_selection_close(selection);
	shard_dataset_close(p.dataset);
	input_close(&p.in);
	return rc;
}

/* clang-format off */
static const struct cli_option positionals[] = {
	{.name = "DIR", .kind = CLI_DIR, .offset = offsetof(struct prove_options, path), .help = "folder of a dataset"},
	{0},
};

static const struct cli_option options[] = {
	{.name = "worlds",
	 .kind = CLI_STRING,
	 .arg_name = "R,R,...",
	 .offset = offsetof(struct prove_options, worlds),
	 .default_value = "1,2,3,8",
	 .help = "how many ranks to test, one number after the other"},
	SELECT_OPTION(struct prove_options),
	{.name = "mix",
	 .kind = CLI_FILE,
	 .arg_name = "FILE",
	 .offset = offsetof(struct prove_options, mix),
	 .help = "test a mixture instead of DIR; each line of FILE is WEIGHT DIR [SELECTION]"},
	{.name = "batch",
	 .kind = CLI_U64,
	 .arg_name = "N",
	 .min = 1,
	 .max = UINT32_MAX,
	 .offset = offsetof(struct prove_options, batch),
	 .default_note = "32, or fewer in a small dataset",
	 .help = "number of records in each batch of a rank"},
	{.name = "epochs",
	 .kind = CLI_U64,
	 .arg_name = "N",
	 .min = 1,
	 .max = 1000,
	 .offset = offsetof(struct prove_options, epochs),
	 .default_value = "2",
	 .help = "number of epochs to test, for each number of ranks and with interruptions"},
	{.name = "tail",
	 .kind = CLI_CHOICE,
	 .choices = "drop|pad|keep",
	 .offset = offsetof(struct prove_options, tail),
	 .default_value = "drop",
	 .help = "what to do with an incomplete last batch"},
	{.name = "threads",
	 .short_name = 'j',
	 .kind = CLI_U64,
	 .arg_name = "N",
	 .min = 1,
	 .max = 256,
	 .offset = offsetof(struct prove_options, threads),
	 .default_note = "the loader's",
	 .help = "number of threads in the loader of each rank"},
	{0},
};
/* clang-format on */

const struct cli_verb verb_prove_order = {
	.name = "prove-order",
	.positionals = positionals,
	.options = {order_option_table, options},
	.options_bytes = sizeof(struct prove_options),
	.run = run,
};
