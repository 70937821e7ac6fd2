/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - shardpack: what a trainer has in, verified shards out
 */
#include <stdio.h>

#include "tools/shardpack/cmd_build.h"
#include "tools/shardpack/cmd_pack.h"
#include "tools/shardpack/decode/decode_versions.h"
#include "tools/shardpack/plan/recipe.h"
#include "tools/shardpack/scan/pack_options.h"
#include "tools/shardpack/sources/source.h"
#include "tools/shardpack/sources/sources.h"

static void print_version(FILE *out)
{
	fprintf(out, "shardpack %d.%d.%d\n", SHARD_VERSION_MAJOR, SHARD_VERSION_MINOR, SHARD_VERSION_PATCH);
	fprintf(out, "libshard %s: %s\n", shard_version(), shard_version_details());
	fprintf(out, "%s, %s, %s\n", decoder_jpeg_version(), decoder_png_version(), decoder_webp_version());
}

/* First what packs, then what plans, then what goes on from a plan. */
static void list_verbs(struct cli_verb *verbs)
{
	for (uint32_t i = 0; i < SOURCE_COUNT; i++) {
		const struct source *s = source_table[i];

		verbs[i] = (struct cli_verb){
			.name = s->name, .summary = s->summary, .description = s->description, .examples = s->examples,
			.positionals = s->positionals, .options = {pack_output_options, s->options, pack_run_options, pack_input_options},
			.options_bytes = sizeof(struct pack_options), .run = cmd_pack, .row = i};
		verbs[SOURCE_COUNT + i] = (struct cli_verb){
			.name = s->plan_name, .summary = "Write the plan only, for builds in parts", .description = s->plan_description,
			.examples = s->plan_examples, .positionals = s->positionals,
			.options = {pack_output_options, s->options, pack_input_options},
			.options_bytes = sizeof(struct pack_options), .run = cmd_plan, .row = i};
	}
	verbs[2 * SOURCE_COUNT] = cmd_build;
	verbs[2 * SOURCE_COUNT + 1] = cmd_seal;
	verbs[2 * SOURCE_COUNT + 2] = (struct cli_verb){0};
}

int main(int argc, char **argv)
{
	struct cli_verb verbs[2 * SOURCE_COUNT + 3];
	const struct cli_program program = {
		.name = "shardpack",
		.summary = "pack images, arrays and tokens into verified shards that train fast",
		.description = "Converts images, arrays, raw records or tokens, once, into a dataset: a folder of shards with "
			       "records of one size, shuffled, hashed and complete. What a shard holds is settled by a plan before any work, "
			       "so a run that was stopped continues, and machines can share the work.\n"
			       "\n"
			       "Exit codes: 0 done, 1 bad input, 2 wrong command, 3 the system refused, 4 unsupported, 5 not as "
			       "the plan says, 130 interrupted.",
		.examples = "shardpack images photos/train -o ds/train --resize 256 --crop 224\n"
			    "shardpack tokens train.bin -o ds/train --seq-len 1024\n",
		.see_also = "shardcat(1)",
		.verbs = verbs,
		.print_version = print_version,
	};

	list_verbs(verbs);
	return cli_main(&program, argc, argv);
}
