/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack_options.c - the options that all verbs which pack have in common
 */
#include "tools/shardpack/scan/scan.h"

#include "tools/common/exit_code.h"
#include "tools/shardpack/images/limits.h"

#define AT(member) .offset = offsetof(struct pack_options, member)

/* clang-format off */
const struct cli_option pack_output_options[] = {
	{.name = "out", .short_name = 'o', .kind = CLI_DIR, .required = true, AT(out), .arg_name = "DIR",
	 .help = "folder of the dataset; created if missing"},
	{.name = "order", .kind = CLI_CHOICE, AT(order), .arg_name = "ORDER", .choices = "shuffle|source",
	 .default_value = "shuffle", .help = "order"},
	{.name = "seed", .kind = CLI_U64, AT(seed), .arg_name = "N",
	 .help = "seed", .beside = true},
	{.name = "shard-records", .kind = CLI_U64, AT(shard_records), .arg_name = "N", .min = 1,
	 .default_note = "by --shard-bytes", .help = "records per shard"},
	{.name = "shard-bytes", .kind = CLI_SIZE, AT(shard_bytes), .arg_name = "SIZE", .min = 1,
	 .default_note = "an eighth, 64 MiB to 1 GiB", .help = "bytes per shard"},
	{.name = "compress", .kind = CLI_CHOICE, AT(compress), .arg_name = "HOW", .choices = "none|lz4", .default_value = "none",
	 .help = "compression"},
	{.name = "align", .kind = CLI_U64, AT(align), .arg_name = "4096", .min = 4096, .max = 4096,
	 .default_note = "by size", .help = "start each record on a page, for O_DIRECT"},
	{.name = "on-error", .kind = CLI_CHOICE, AT(on_error), .arg_name = "HOW", .choices = "fail|skip|quarantine",
	 .default_value = "fail", .help = "action on bad input"},
	{.name = "quarantine", .kind = CLI_DIR, AT(quarantine), .arg_name = "DIR",
	 .help = "folder for copies of bad inputs"},
	{0}};

const struct cli_option pack_run_options[] = {
	{.name = "jobs", .short_name = 'j', .kind = CLI_U64, AT(jobs), .arg_name = "N", .min = 1, .max = 1024,
	 .default_note = "one per CPU", .help = "threads"},
	{.name = "sandbox", .kind = CLI_FLAG, AT(sandbox), .help = "lock up decoders", .beside = true},
	{.name = "read-back", .kind = CLI_CHOICE, AT(read_back), .choices = "yes|no", .default_value = "yes",
	 .help = "verify what was written"},
	{.name = "replace", .kind = CLI_FLAG, AT(replace), .help = "build again", .beside = true},
	{.name = "max-bad", .kind = CLI_COUNT_OR_PERCENT, AT(max_bad), .arg_name = "N|P%", .default_note = "no limit",
	 .help = "stop if more inputs are bad"},
	{0}};

const struct cli_option pack_report_options[] = {
	{.name = "report", .kind = CLI_FILE, AT(report), .arg_name = "FILE",
	 .help = "write a report: JSON, or HTML if FILE ends in .html"},
	{0}};

const struct cli_option pack_input_options[] = {
	{.name = "root", .kind = CLI_DIR, AT(root), .arg_name = "DIR", .default_note = "by SRC",
	 .help = "folder that relative paths start from"},
	{.name = "spool", .kind = CLI_DIR, AT(spool), .arg_name = "DIR", .default_note = "beside --out",
	 .help = "folder for temporary files"},
	{.name = "trust-names", .kind = CLI_FLAG, AT(trust_names), .help = "ignore source times"},
	{.name = "dry-run", .kind = CLI_FLAG, AT(dry_run), .help = "print the plan only", .beside = true},
	{0}};

const struct cli_option pack_unpack_options[] = {
	{.name = "limit", .kind = CLI_STRING, AT(limit), .arg_name = "unpack=SIZE",
	 .default_note = "100 times its size", .help = "what a file may unpack to"},
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
