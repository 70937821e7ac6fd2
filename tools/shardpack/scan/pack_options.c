/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack_options.c - the options that all verbs which pack have in common
 */
#include "tools/shardpack/scan/scan.h"

#include "tools/common/message.h"
#include "tools/shardpack/images/images.h"

#define AT(member) .offset = offsetof(struct pack_options, member)

const struct cli_topic pack_topics[] = {{"input", "where the inputs are, and how they are read"},
					{"images", "size, colours and type of the pixels"},
					{"tokens", "how streams of tokens become records"},
					{"labels", "where labels come from, and the numbers of classes"},
					{"fields", "masks, boxes, text and numbers beside the image"},
					{"output", "order, shards and compression of the dataset"},
					{"bad-input", "damaged, missing or too large inputs"},
					{"run", "threads, reports and temporary files"},
					{0}};

static const struct cli_key on_error_help[] = {
	{"fail", NULL, "end the command"},
	{"skip", NULL, "leave the input out, and count it"},
	{"quarantine", NULL, "leave it out, and copy it to the folder of --quarantine"},
	{0}};

/* clang-format off */
const struct cli_option pack_output_options[] = {
	{.name = "out", .short_name = 'o', .kind = CLI_DIR, .required = true, AT(out), .arg_name = "DIR",
	 .topic = "output", .often = true, .help = "folder of the dataset; created if it is missing"},
	{.name = "order", .kind = CLI_CHOICE, AT(order), .arg_name = "ORDER", .choices = "shuffle|source",
	 .default_value = "shuffle", .topic = "output", .often = true, .help = "order of the records"},
	{.name = "seed", .kind = CLI_U64, AT(seed), .arg_name = "N", .default_note = "0", .topic = "output",
	 .help = "seed of the shuffled order"},
	{.name = "shard-records", .kind = CLI_U64, AT(shard_records), .arg_name = "N", .min = 1,
	 .default_note = "as --shard-bytes says", .topic = "output", .help = "number of records in each shard"},
	{.name = "shard-bytes", .kind = CLI_SIZE, AT(shard_bytes), .arg_name = "SIZE", .min = 1,
	 .default_note = "an eighth of the dataset, but 64 MiB to 1 GiB", .topic = "output", .help = "size of each shard"},
	{.name = "compress", .kind = CLI_CHOICE, AT(compress), .arg_name = "HOW", .choices = "none|lz4",
	 .default_value = "none", .topic = "output", .help = "compression of the records"},
	{.name = "align", .kind = CLI_U64, AT(align), .arg_name = "4096", .min = 4096, .max = 4096,
	 .default_note = "large records: 512 bytes", .topic = "output",
	 .help = "start each record on a page of 4096 bytes, for O_DIRECT"},
	{.name = "on-error", .kind = CLI_CHOICE, AT(on_error), .arg_name = "HOW", .choices = "fail|skip|quarantine",
	 .default_value = "fail", .topic = "bad-input", .often = true, .keys = {on_error_help},
	 .help = "what to do with bad input"},
	{.name = "quarantine", .kind = CLI_DIR, AT(quarantine), .arg_name = "DIR", .topic = "bad-input",
	 .help = "folder for copies of bad inputs, with --on-error quarantine"},
	{0}};

const struct cli_option pack_run_options[] = {
	{.name = "max-bad", .kind = CLI_COUNT_OR_PERCENT, AT(max_bad), .arg_name = "N|P%", .default_note = "no limit",
	 .topic = "bad-input", .help = "stop if more than N inputs, or P percent of them, are bad"},
	{.name = "sandbox", .kind = CLI_FLAG, AT(sandbox), .topic = "bad-input",
	 .help = "decode images in processes that can open no files"},
	{.name = "read-back", .kind = CLI_CHOICE, AT(read_back), .choices = "yes|no", .default_value = "yes",
	 .topic = "output", .help = "read each shard back from the disk and verify it"},
	{.name = "replace", .kind = CLI_FLAG, AT(replace), .topic = "output",
	 .help = "build everything again, even if the dataset is there already"},
	{.name = "jobs", .short_name = 'j', .kind = CLI_U64, AT(jobs), .arg_name = "N", .min = 1, .max = 1024,
	 .default_note = "one per CPU", .topic = "run", .often = true, .help = "number of threads that compute at once"},
	{0}};

const struct cli_option pack_report_options[] = {
	{.name = "report", .kind = CLI_FILE, AT(report), .arg_name = "FILE", .topic = "run", .often = true,
	 .help = "write a report: JSON, or HTML if FILE ends in .html"},
	{0}};

const struct cli_option pack_input_options[] = {
	{.name = "root", .kind = CLI_DIR, AT(root), .arg_name = "DIR", .default_note = "the folder of the inputs",
	 .topic = "input", .help = "folder at which relative paths begin"},
	{.name = "trust-names", .kind = CLI_FLAG, AT(trust_names), .topic = "input",
	 .help = "go on even if source files have other times than in the plan"},
	{.name = "dry-run", .kind = CLI_FLAG, AT(dry_run), .topic = "run", .often = true,
	 .help = "print what would be packed, and write nothing"},
	{.name = "spool", .kind = CLI_DIR, AT(spool), .arg_name = "DIR", .default_note = "beside --out", .topic = "run",
	 .help = "folder for temporary files"},
	{0}};

const struct cli_option pack_unpack_options[] = {
	{.name = "limit", .kind = CLI_STRING, AT(limit), .arg_name = "unpack=SIZE", .topic = "bad-input",
	 .default_note = "1 GiB, or 100 times its size if that is more",
	 .help = "largest size that a compressed file may unpack to"},
	{0}};
/* clang-format on */

int pack_options_unpack(const struct pack_options *o, const struct cli_args *args, struct limits *out)
{
	char why[200];

	if (o->sandbox)
		return cli_misuse(args, "--sandbox is for images: nothing of this source is decoded");
	if (!o->limit || limits_parse_unpack(o->limit, out, why, sizeof(why)))
		return EXIT_DONE;
	return cli_misuse(args, "--limit %s: %s", o->limit, why);
}
