/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - shardcat: look at datasets and shards
 *
 * A table of verbs and the versions.  Everything else is in the verbs' own files.
 */
#include <png.h>
#include <stdio.h>

#include "shard.h"
#include "tools/shardcat/shardcat.h"

static void print_version(FILE *out)
{
	fprintf(out, "shardcat %d.%d.%d\n", SHARD_VERSION_MAJOR, SHARD_VERSION_MINOR, SHARD_VERSION_PATCH);
	fprintf(out, "libshard %s\n", shard_version());
	fprintf(out, "%s\n", shard_version_details());
	fprintf(out, "libpng %s\n", png_get_libpng_ver(NULL));
}

int main(int argc, char **argv)
{
	const struct cli_verb verbs[] = {
		verb_info, verb_list,  verb_get,	      verb_verify,	   verb_stats, verb_manifest,
		verb_show, verb_order, verb_prove_order, verb_shuffle_report, verb_doctor, {0},
	};
	const struct cli_program program = {
		.name = "shardcat",
		.summary = "look at datasets of packed shards: what they hold, whether it is intact, how it looks",
		.description =
			"A dataset is a folder with dataset.manifest and the shard files that it names; shardpack(1) "
			"makes them. Most verbs take a dataset or a single shard file.\n"
			"\n"
			"Data goes to standard output and talk to standard error. Names and keys are escaped as in C, "
			"so that none can drive the terminal.",
		.examples = "shardcat info ds/train\n"
			    "shardcat verify ds/train\n"
			    "shardcat stats ds/train\n"
			    "shardcat get ds/train 17 --field image --png --out cat.png\n"
			    "shardcat show ds/train --out sheet.png\n"
			    "shardcat doctor ds/train",
		.see_also = "shardpack(1)",
		.verbs = verbs,
		.print_version = print_version,
	};

	return cli_main(&program, argc, argv);
}
