/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_select.c - shardcat select: choose records of a dataset, for loaders that deliver these alone
 *
 * Each condition chooses from what the one before it has left.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shard_select.h"
#include "tools/common/text.h"
#include "tools/shardcat/dataset/cat_dataset.h"
#include "tools/shardcat/dataset/target.h"
#include "tools/shardcat/shardcat.h"

struct select_options {
	const char *path, *out, *part;
	struct cli_strings where;
	struct cli_part fold;
	uint64_t seed;
	bool rest, list;
};

/* The records that the conditions leave; NULL stands for all. */
struct choice {
	struct target t;
	struct shard_selection *left;
};

static int take(struct choice *c, int status, struct shard_selection **chosen, const struct shard_error *err)
{
	if (status)
		return fail_of_library(err);
	shard_selection_close(c->left);
	c->left = *chosen;
	return EXIT_DONE;
}

static int apply_where(const struct cli_args *args, struct choice *c, const char *text)
{
	struct shard_selection *chosen = NULL;
	int rc = where_select(&chosen, args, &c->t, c->left, text);

	return rc ? rc : take(c, SHARD_OK, &chosen, NULL);
}

/* ---- by chance ---- */

/* "0.9" is the first nine tenths, "0.9-1" the rest. */
static bool take_part(const char *text, double *begin, double *end)
{
	char *behind;

	*begin = 0;
	*end = strtod(text, &behind);
	if (*behind == '-' && text_is_decimal(text, (size_t)(behind - text), false)) {
		*begin = *end;
		text = behind + 1;
	}
	return text_parse_double(text, strlen(text), end) && *begin >= 0 && *begin < *end && *end <= 1;
}

static int apply_chance(const struct cli_args *args, struct choice *c)
{
	const struct select_options *o = args->options;
	struct shard_selection *chosen = NULL;
	struct shard_error err;
	double begin, end;

	if (o->part) {
		if (!take_part(o->part, &begin, &end))
			return cli_misuse(args, "--part %s: must be a part from 0 to 1, such as 0.9, or 0.9-1",
					  o->part);
		return take(c, shard_select_fraction(&chosen, c->t.dataset, c->left, begin, end, o->seed, &err),
			    &chosen, &err);
	}
	if (!o->fold.count)
		return EXIT_DONE;
	if (o->fold.count > UINT32_MAX)
		return cli_misuse(args, "--fold: must be of at most %u parts", UINT32_MAX);
	return take(c,
		    shard_select_fold(&chosen, c->t.dataset, c->left, (uint32_t)o->fold.idx, (uint32_t)o->fold.count,
				      o->rest ? SHARD_FOLD_REST : SHARD_FOLD_PART, o->seed, &err),
		    &chosen, &err);
}

/* ---- what comes out ---- */

static int print_list(const struct shard_selection *s)
{
	struct shard_selection_info info;
	struct shard_error err;
	uint64_t idx[4096];

	shard_selection_info(s, &info);
	for (uint64_t first = 0, n; first < info.record_count && !ferror(stdout); first += n) {
		int rc;

		n = info.record_count - first < 4096 ? info.record_count - first : 4096;
		rc = shard_selection_records(s, first, n, idx, &err);
		if (rc)
			return fail_of_library(&err);
		for (uint64_t i = 0; i < n; i++)
			printf("%" PRIu64 "\n", idx[i]);
	}
	return EXIT_DONE;
}

static int put(const struct select_options *o, const struct choice *c)
{
	struct shard_selection_info info;
	struct shard_error err;
	int rc;

	if (o->list)
		return print_list(c->left);
	rc = shard_selection_write(c->left, o->out, &err);
	if (rc)
		return fail_of_library(&err);
	shard_selection_info(c->left, &info);
	note("%s: %" PRIu64 " of %" PRIu64 " records; what a loader reads is %.3g times what it delivers", o->out,
	     info.record_count, info.of_count, shard_selection_amplification(c->left, c->t.dataset));
	return EXIT_DONE;
}

static int check(const struct cli_args *args)
{
	const struct select_options *o = args->options;

	if (!o->where.count && !o->part && !o->fold.count)
		return cli_misuse(args, "give --where, --part or --fold, to say which records");
	if (o->part && o->fold.count)
		return cli_misuse(args, "--part and --fold exclude each other");
	if (o->rest && !o->fold.count)
		return cli_misuse(args, "--rest needs --fold");
	if (!o->out == !o->list)
		return cli_misuse(args, "give --out FILE, or --list");
	return EXIT_DONE;
}

static int run(const struct cli_args *args)
{
	const struct select_options *o = args->options;
	struct choice c = {.left = NULL};
	int rc = check(args);

	if (rc)
		return rc;
	rc = target_open_dataset(&c.t, o->path);
	for (size_t i = 0; !rc && i < o->where.count; i++)
		rc = apply_where(args, &c, o->where.items[i]);
	if (!rc)
		rc = apply_chance(args, &c);
	if (!rc)
		rc = put(o, &c);
	shard_selection_close(c.left);
	target_close(&c.t);
	return rc;
}

/* clang-format off */
static const struct cli_option positionals[] = {ONLY_DIR(struct select_options), {0}};

static const struct cli_option options[] = {
	{.name = "out",
	 .short_name = 'o',
	 .kind = CLI_FILE,
	 .arg_name = "FILE",
	 .offset = offsetof(struct select_options, out),
	 .help = "write the selection to FILE"},
	{.name = "list",
	 .kind = CLI_FLAG,
	 .offset = offsetof(struct select_options, list),
	 .help = "print the record indices, one per line, instead"},
	{.name = "where",
	 .kind = CLI_STRING,
	 .many = true,
	 .arg_name = "CONDITION",
	 .offset = offsetof(struct select_options, where),
	 .help = "records that fit: label=cat,3 or 'score>=0.5'; signs are = != < <= > >="},
	{.name = "part",
	 .kind = CLI_STRING,
	 .arg_name = "A-B",
	 .offset = offsetof(struct select_options, part),
	 .help = "a random part of them, from A to B of 0 to 1"},
	{.name = "fold",
	 .kind = CLI_PART,
	 .arg_name = "K/N",
	 .offset = offsetof(struct select_options, fold),
	 .help = "one of N equal random parts, K from 0"},
	{.name = "rest",
	 .kind = CLI_FLAG,
	 .offset = offsetof(struct select_options, rest),
	 .help = "with --fold: all the other parts"},
	{.name = "seed",
	 .kind = CLI_U64,
	 .arg_name = "S",
	 .offset = offsetof(struct select_options, seed),
	 .default_value = "0",
	 .help = "seed of --part and --fold"},
	{0},
};
/* clang-format on */

const struct cli_verb verb_select = {
	.name = "select",
	.positionals = positionals,
	.options = {options},
	.options_bytes = sizeof(struct select_options),
	.run = run,
};
