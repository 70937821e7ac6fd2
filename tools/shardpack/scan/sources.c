/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sources.c - the table of sources, and the options that their verbs share
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tools/shardpack/scan/source.h"

const struct source *const source_table[SOURCE_COUNT] = {
	[SOURCE_IMAGES] = &source_images,
	[SOURCE_ARRAY] = &source_array,
	[SOURCE_RAW] = &source_raw,
	[SOURCE_TOKENS] = &source_tokens,
	[SOURCE_CIFAR] = &source_cifar,
	[SOURCE_MNIST] = &source_mnist,
};

#define AT(member) .offset = offsetof(struct pack_options, member)

const struct cli_option source_output_options[] = {
	{.name = "out", .short_name = 'o', .kind = CLI_DIR, .required = true, AT(out), .arg_name = "DIR",
	 .help = "folder of the dataset; made if it is not there"},
	{.name = "order", .kind = CLI_CHOICE, AT(order), .arg_name = "ORDER", .choices = "shuffle|source",
	 .default_value = "shuffle", .help = "of the records"},
	{.name = "seed", .kind = CLI_U64, AT(seed), .arg_name = "N", .default_value = "0", .help = "of the shuffle"},
	{.name = "shard-records", .kind = CLI_U64, AT(shard_records), .arg_name = "N", .min = 1,
	 .default_note = "by --shard-bytes", .help = "records per shard"},
	{.name = "shard-bytes", .kind = CLI_SIZE, AT(shard_bytes), .arg_name = "SIZE", .min = 1,
	 .default_note = "an eighth, 64 MiB to 1 GiB", .help = "the same by size"},
	{.name = "compress", .kind = CLI_CHOICE, AT(compress), .choices = "none|lz4", .default_value = "none",
	 .help = "photographs hardly shrink"},
	{.name = "align", .kind = CLI_U64, AT(align), .arg_name = "4096", .min = 4096, .max = 4096,
	 .default_note = "by size", .help = "records on pages, for O_DIRECT"},
	{.name = "on-error", .kind = CLI_CHOICE, AT(on_error), .arg_name = "HOW", .choices = "fail|skip|quarantine",
	 .default_value = "fail", .help = "bad inputs"},
	{.name = "quarantine", .kind = CLI_DIR, AT(quarantine), .arg_name = "DIR", .help = "copy bad inputs there"},
	{0}};

const struct cli_option source_run_options[] = {
	{.name = "jobs", .short_name = 'j', .kind = CLI_U64, AT(jobs), .arg_name = "N", .min = 1, .max = 1024,
	 .default_note = "one per CPU", .help = "threads that convert"},
	{.name = "max-bad", .kind = CLI_COUNT_OR_PERCENT, AT(max_bad), .arg_name = "N|P%", .default_note = "no limit",
	 .help = "stop when more inputs are bad"},
	{.name = "report", .kind = CLI_FILE, AT(report), .arg_name = "FILE", .help = "write what happened as JSON, or as .html"},
	{.name = "replace", .kind = CLI_FLAG, AT(replace), .help = "take the place of another dataset in DIR"},
	{0}};

const struct cli_option source_input_options[] = {
	{.name = "root", .kind = CLI_DIR, AT(root), .arg_name = "DIR", .default_note = "by SRC",
	 .help = "folder that paths are relative to"},
	{.name = "spool", .kind = CLI_DIR, AT(spool), .arg_name = "DIR", .default_note = "beside --out",
	 .help = "where compressed files are unpacked"},
	{.name = "dry-run", .kind = CLI_FLAG, AT(dry_run), .help = "print the plan and write nothing"},
	{0}};

void scan_warn(struct scan *scan, const char *fmt, ...)
{
	char line[4096];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	warn("%s", line);
	text_add(&scan->warnings, line, strlen(line));
	text_add(&scan->warnings, "\n", 1);
}

void scan_barren(struct scan *scan, const char *where)
{
	if (!scan->barren_count++)
		snprintf(scan->barren, sizeof(scan->barren), "%s", where);
}

void scan_warn_of_barren(struct scan *scan, const char *what)
{
	if (scan->barren_count)
		scan_warn(scan, "%" PRIu64 " file%s no %s (the first is '%s')", scan->barren_count, scan->barren_count == 1 ? " has" : "s have", what,
			  scan->barren);
}

int scan_refuse_barren(const struct request *r, const char *what, const char *remedy)
{
	const struct scan *s = r->scan;

	if (s->barren_count > 1)
		return fail(EXIT_BAD, "%s: no %s in it, nor in %" PRIu64 " other file%s%s", s->barren, what, s->barren_count - 1,
			    s->barren_count > 2 ? "s" : "", remedy);
	return fail(EXIT_BAD, "%s: no %s in it%s", s->barren_count ? s->barren : r->place->root, what, remedy);
}

/* "10" stands before "2": right, as torchvision has it, and yet not what most expect. */
void scan_warn_of_numbers(struct scan *scan, const struct classes *folders)
{
	uint64_t i;

	for (i = 1; i < folders->count; i++) {
		const char *a = folders->name[i - 1], *b = folders->name[i];

		if (strspn(a, "0123456789") != strlen(a) || strspn(b, "0123456789") != strlen(b) || strlen(a) <= strlen(b))
			continue;
		scan_warn(scan,
			  "class folders are numbers and sort as text, as in torchvision: class %" PRIu64 " is '%s', before '%s'; --classes FILE "
			  "fixes the numbers",
			  i - 1, a, b);
		return;
	}
}

void scan_free(struct scan *scan)
{
	text_free(&scan->warnings);
}
