/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack_options.h - what the verbs that pack can be told, all of them
 *
 * One struct for all sources: each verb's tables fill in what that source has.
 */
#ifndef SHARD_SCAN_PACK_OPTIONS_H
#define SHARD_SCAN_PACK_OPTIONS_H

#include "tools/cli/cli.h"

struct pack_options {
	struct cli_strings sources;
	const char *out;

	/* images */
	uint64_t resize, crop;
	int exif, fit, filter, pixels, layout, dtype;
	const char *mean, *std;
	const char *label_regex, *label_list, *label_key, *columns;
	struct cli_strings fields;
	const char *limit;
	int accept; /* enum decode_accept */

	/* images, array, raw */
	const char *classes;

	/* raw */
	const char *schema;
	uint64_t skip_bytes;

	/* tokens */
	uint64_t sequence, overlap, end_of_text;
	int token_dtype;

	/* cifar, mnist */
	int coarse, split;

	uint64_t shard_records, shard_bytes, align;
	int order;
	uint64_t seed;
	int compress;
	uint64_t jobs;
	int read_back; /* 0: yes */
	int on_error;  /* enum on_error */
	struct cli_amount max_bad;
	const char *quarantine, *report;
	bool replace;
	const char *root, *spool;
	bool trust_names, dry_run;
};

/* The options of every source, in tables. */
extern const struct cli_option pack_output_options[]; /* --out, and what else decides bytes */
extern const struct cli_option pack_run_options[];    /* what does not */
extern const struct cli_option pack_input_options[];  /* where things are, and --dry-run */

#endif
