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
		verb_info, verb_list,	verb_get,   verb_verify,      verb_stats,  verb_manifest,
		verb_show, verb_select, verb_order, verb_prove_order, verb_doctor, {0},
	};
	const struct cli_program program = {
		.name = "shardcat",
		.texts = cli_manual,
		.see_also = "shardpack(1)",
		.verbs = verbs,
		.print_version = print_version,
	};

	return cli_main(&program, argc, argv);
}
