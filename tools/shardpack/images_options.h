/* SPDX-License-Identifier: Apache-2.0 */
/*
 * images_options.h - what `shardpack images` and `shardpack plan images` can be told
 */
#ifndef SHARDPACK_IMAGES_OPTIONS_H
#define SHARDPACK_IMAGES_OPTIONS_H

#include "tools/common/cli.h"

struct images_options {
	const char *source, *out;
	uint64_t resize, crop;
	int filter, layout;
	uint64_t shard_records, shard_bytes, align;
	int order;
	uint64_t seed;
	int compress;
	const char *classes;
	uint64_t jobs;
	int on_error; /* enum on_error */
	struct cli_amount max_bad;
	const char *quarantine, *report;
	bool replace, dry_run;
};

/* cmd_images.c */
int images_run(const struct cli_args *args);
int images_plan_run(const struct cli_args *args);

#endif /* SHARDPACK_IMAGES_OPTIONS_H */
