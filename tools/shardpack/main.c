/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - shardpack: images in, verified shards out
 */
#include <stdio.h>

#include "shard.h"
#include "tools/shardpack/command.h"
#include "tools/shardpack/decode.h"

static void print_version(FILE *out)
{
	fprintf(out, "shardpack %d.%d.%d\n", SHARD_VERSION_MAJOR, SHARD_VERSION_MINOR, SHARD_VERSION_PATCH);
	fprintf(out, "libshard %s: %s\n", shard_version(), shard_version_details());
	fprintf(out, "%s, %s\n", decoder_jpeg_version(), decoder_png_version());
}

int main(int argc, char **argv)
{
	const struct cli_verb verbs[] = {command_images, command_plan_images, command_build, command_seal, {0}};
	const struct cli_program program = {
		.name = "shardpack",
		.summary = "pack images into verified shards that train fast",
		.description = "Converts a collection of images, once, into a dataset: a folder of shards with records of one "
			       "size, shuffled, hashed and complete. What a shard holds is settled by a plan before any work, "
			       "so a run that was stopped continues, and machines can share the work.\n"
			       "\n"
			       "Exit codes: 0 done, 1 bad input, 2 wrong command, 3 the system refused, 4 unsupported, 5 not as "
			       "the plan says, 130 interrupted.",
		.examples = "shardpack images photos/train -o ds/train --resize 256 --crop 224\n",
		.see_also = "shardcat(1)",
		.verbs = verbs,
		.print_version = print_version,
	};

	return cli_main(&program, argc, argv);
}
