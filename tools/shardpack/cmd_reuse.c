/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_reuse.c - `shardpack merge`, `split` and `append`: datasets made of shards that are there
 */
#include "tools/shardpack/shardpack.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shard_inspect.h"
#include "tools/common/cli.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/text.h"
#include "tools/shardpack/reuse/reuse.h"

#define PARTS_MAX 4096 /* more do not fit on a command line that anybody writes */

struct reuse_options {
	struct cli_strings parts;
	const char *dir, *shards, *out;
	int by;		/* enum shard_reuse */
	int duplicates; /* 1: keep */
};

#define AT(member) .offset = offsetof(struct reuse_options, member)

/* clang-format off */
static const struct cli_option merge_positional[] = {
	{.name = "DIR", .kind = CLI_DIR, .required = true, .many = true, AT(parts),
	 .help = "datasets to merge; their records follow in this order"},
	{0}};

static const struct cli_option append_positional[] = {
	{.name = "DIR", .kind = CLI_DIR, .required = true, .many = true, AT(parts),
	 .help = "first the dataset that grows, then the datasets to add"},
	{0}};

static const struct cli_option split_positional[] = {
	{.name = "DIR", .kind = CLI_DIR, .required = true, AT(dir), .help = "folder of the dataset"}, {0}};

static const struct cli_option shards_option[] = {
	{.name = "shards", .kind = CLI_STRING, .required = true, AT(shards), .arg_name = "A-B",
	 .help = "shards to take: numbers A to B as `shardcat manifest` prints them, or only A"},
	{0}};

static const struct cli_option duplicates_option[] = {
	{.name = "duplicates", .kind = CLI_CHOICE, AT(duplicates), .arg_name = "HOW", .choices = "fail|keep",
	 .default_value = "fail", .help = "what to do if two datasets have the same shard or key"},
	{0}};

static const struct cli_option out_option[] = {
	{.name = "out", .short_name = 'o', .kind = CLI_DIR, .required = true, AT(out), .arg_name = "DIR",
	 .help = "folder of the new dataset; created if it is missing"},
	{0}};

static const struct cli_option by_option[] = {
	{.name = "by", .kind = CLI_CHOICE, AT(by), .arg_name = "HOW", .choices = "link|clone|copy", .default_value = "link",
	 .help = "how to take over shards: a hard link, shared blocks (reflink), or a copy"},
	{0}};
/* clang-format on */

static int open_parts(const struct reuse_options *o, struct part *part, uint32_t count)
{
	int rc = EXIT_DONE;

	for (uint32_t p = 0; rc == EXIT_DONE && p < count; p++)
		rc = part_open(&part[p], o->parts.items[p]);
	return rc;
}

static int merge_parts(const struct reuse_options *o, struct part *part, uint32_t count)
{
	uint32_t names = 0;
	int rc = open_parts(o, part, count);

	if (rc == EXIT_DONE)
		rc = parts_agree(part, count, &names);
	if (rc == EXIT_DONE && !o->duplicates)
		rc = parts_unique(part, count, o->out);
	return rc == EXIT_DONE ? assemble(o->out, part, count, names, (uint32_t)o->by) : rc;
}

/* Room for the datasets of a command line, which are closed behind `work`. */
static int with_parts(const struct cli_args *args,
		      int (*work)(const struct reuse_options *o, struct part *part, uint32_t count))
{
	const struct reuse_options *o = args->options;
	struct part *part;
	int rc;

	if (o->parts.count < 2 || o->parts.count > PARTS_MAX)
		return cli_misuse(args, "%zu dataset%s: name at least two, and at most %d", o->parts.count,
				  o->parts.count == 1 ? "" : "s", PARTS_MAX);
	part = xcalloc(o->parts.count, sizeof(*part));
	rc = work(o, part, (uint32_t)o->parts.count);
	for (size_t p = 0; p < o->parts.count; p++)
		part_close(&part[p]);
	free(part);
	return rc;
}

static int merge(const struct cli_args *args)
{
	return with_parts(args, merge_parts);
}

/* "3-7" or "3": the part becomes these shards. */
static int take_shards(const struct cli_args *args, const char *text, struct part *p)
{
	const char *dash = strchr(text, '-');
	size_t bytes = dash ? (size_t)(dash - text) : strlen(text);
	uint64_t first, last;

	if (!text_u64(text, bytes, &first))
		first = UINT64_MAX;
	last = first;
	if (dash && !text_u64(dash + 1, strlen(dash + 1), &last))
		first = UINT64_MAX;
	if (first > last || first == UINT64_MAX)
		return cli_misuse(args,
				  "--shards %s: must be A-B or A, numbers of whole shards with A at most B; for other "
				  "parts of a dataset, make a selection with `shardcat select`",
				  text);
	if (last >= p->info.shard_count)
		return cli_misuse(args, "--shards %s: %s has %" PRIu64 " shard%s, counted from 0", text, p->dir,
				  p->info.shard_count, p->info.shard_count == 1 ? "" : "s");
	p->first = first;
	p->count = last - first + 1;
	return EXIT_DONE;
}

static int append_to(const struct reuse_options *o, struct part *part, uint32_t count)
{
	uint32_t names = 0;
	int rc = open_parts(o, part, count);

	if (rc == EXIT_DONE && append_is_done(part, count, o->duplicates)) {
		note("%s: has these shards at its end already; nothing to do", part->dir);
		return EXIT_DONE;
	}
	if (rc == EXIT_DONE)
		rc = parts_agree(part, count, &names);
	if (rc == EXIT_DONE && !o->duplicates)
		rc = parts_unique(part, count, part->dir);
	return rc == EXIT_DONE ? append_parts(part, count, names, (uint32_t)o->by) : rc;
}

static int append(const struct cli_args *args)
{
	const struct reuse_options *o = args->options;
	int lock = -1, rc;

	if (o->parts.count < 2)
		return cli_misuse(args, "nothing to append; name a dataset behind %s", o->parts.items[0]);
	rc = append_check_words(o->parts.items, o->parts.count);
	if (rc == EXIT_DONE)
		rc = append_lock(o->parts.items[0], &lock);
	if (rc == EXIT_DONE)
		rc = with_parts(args, append_to);
	if (lock >= 0)
		close(lock);
	return rc;
}

static int split(const struct cli_args *args)
{
	const struct reuse_options *o = args->options;
	struct part part;
	struct shard_entry e;
	int rc = part_open(&part, o->dir);

	if (rc == EXIT_DONE)
		rc = take_shards(args, o->shards, &part);
	if (rc == EXIT_DONE)
		rc = assemble(o->out, &part, 1, 0, (uint32_t)o->by);
	if (rc == EXIT_DONE)
		rc = part_entry(&part, 0, &e);
	if (rc == EXIT_DONE)
		note("its records are those of %s from %" PRIu64 " on", o->dir, e.first_record);
	part_close(&part);
	return rc;
}

const struct cli_verb cmd_merge = {
	.name = "merge",
	.positionals = merge_positional,
	.options = {out_option, by_option, duplicates_option},
	.options_bytes = sizeof(struct reuse_options),
	.run = merge,
};

const struct cli_verb cmd_split = {
	.name = "split",
	.positionals = split_positional,
	.options = {shards_option, out_option, by_option},
	.options_bytes = sizeof(struct reuse_options),
	.run = split,
};

const struct cli_verb cmd_append = {
	.name = "append",
	.positionals = append_positional,
	.options = {by_option, duplicates_option},
	.options_bytes = sizeof(struct reuse_options),
	.run = append,
};
