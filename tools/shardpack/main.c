/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - shardpack: what a trainer has in, verified shards out
 */
#include <jansson.h>
#include <stdio.h>
#include <zlib.h>
#include <zstd.h>

#include "tools/shardpack/images/images.h"
#include "tools/shardpack/input/input.h"
#include "tools/shardpack/plan/plan.h"
#include "tools/shardpack/scan/scan.h"
#include "tools/shardpack/shardpack.h"
#include "tools/shardpack/sources/sources.h"

static void print_version(FILE *out)
{
	const char *archive = unpack_archive_version();
	bool lacks = !archive;

	fprintf(out, "shardpack %d.%d.%d\n", SHARD_VERSION_MAJOR, SHARD_VERSION_MINOR, SHARD_VERSION_PATCH);
	fprintf(out, "libshard %s: %s\n", shard_version(), shard_version_details());
	for (const struct image_format *f = image_formats; f->name; f++)
		if (f->version && f->version())
			fprintf(out, "%s%s", f == image_formats ? "" : ", ", f->version());
	fprintf(out, "\nzlib %s, zstd %s, jansson %s%s%s\n", zlibVersion(), ZSTD_versionString(), JANSSON_VERSION,
		archive ? ", " : "", archive ? archive : "");
	for (const struct image_format *f = image_formats; f->name; f++)
		lacks |= f->library && !f->version;
	if (!lacks)
		return;
	fprintf(out, "this shardpack does not read");
	for (const struct image_format *f = image_formats; f->name; f++)
		if (f->library && !f->version)
			fprintf(out, " %s", f->name);
	fprintf(out, "%s\n", archive ? "" : " .bz2 .xz");
}

/* Verbs that name no source. */
static const struct cli_verb *const others[] = {&cmd_build, &cmd_status, &cmd_seal,   &cmd_merge,
						&cmd_split, &cmd_append, &cmd_decode, &cmd_demo};
#define OTHER_COUNT (sizeof(others) / sizeof(others[0]))

/* First what packs, then what plans, then the others. */
static void list_verbs(struct cli_verb *verbs)
{
	for (uint32_t i = 0; i < SOURCE_COUNT; i++) {
		const struct source *s = source_table[i];
		const struct cli_option *unpack = i == SOURCE_IMAGES ? NULL : pack_unpack_options;

		verbs[i] = (struct cli_verb){.name = s->name,
					     .positionals = s->positionals,
					     .options = {pack_output_options, s->options, pack_run_options,
							 pack_report_options, pack_input_options, unpack},
					     .options_bytes = sizeof(struct pack_options),
					     .run = cmd_pack,
					     .row = i};
		verbs[SOURCE_COUNT + i] = (struct cli_verb){
			.name = s->plan_name,
			.positionals = s->positionals,
			.options = {pack_output_options, s->options, pack_report_options, pack_input_options, unpack},
			.options_bytes = sizeof(struct pack_options),
			.run = cmd_plan,
			.row = i};
	}
	for (uint32_t i = 0; i < OTHER_COUNT; i++)
		verbs[2 * SOURCE_COUNT + i] = *others[i];
	verbs[2 * SOURCE_COUNT + OTHER_COUNT] = (struct cli_verb){0};
}

int main(int argc, char **argv)
{
	struct cli_verb verbs[2 * SOURCE_COUNT + OTHER_COUNT + 1];
	const struct cli_program program = {
		.name = "shardpack",
		.texts = cli_manual,
		.topics = pack_topics,
		.see_also = "shardcat(1)",
		.verbs = verbs,
		.print_version = print_version,
	};

	list_verbs(verbs);
	return cli_main(&program, argc, argv);
}
