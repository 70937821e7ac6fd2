/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack_options.h - what the verbs that pack can be told, all of them
 *
 * One struct for all sources: each verb's tables fill in what that source has.
 */
#ifndef SHARD_SCAN_PACK_OPTIONS_H
#define SHARD_SCAN_PACK_OPTIONS_H

#include "tools/common/cli.h"

struct limits;

struct pack_options {
	struct cli_strings sources;
	const char *out;

	/* images */
	uint64_t resize, crop;
	int exif, fit, filter, pixels, layout, dtype, bits;
	const char *mean, *std;
	const char *label_regex, *label_list, *label_key, *multi_label, *label_separator, *path_key, *path_suffix;
	const char *columns;
	bool no_label;
	struct cli_strings fields;
	int accept; /* enum decode_accept */

	/* images, array, raw */
	const char *classes;
	bool strict_classes;

	/* array */
	int v2;	      /* what arrays of two unnamed bytes hold; 0: not said */
	int numbered; /* what files are whose names differ in a number; 0: not said */

	/* raw */
	const char *schema;
	uint64_t skip_bytes;

	/* tokens */
	uint64_t sequence, overlap, end_of_text, max_documents;
	int token_dtype;
	bool pack, position_ids;

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
	const char *quarantine, *report, *limit;
	bool replace, sandbox;
	const char *root, *spool;
	bool trust_names, dry_run;
};

/* The topics of --help, in the order in which a user meets them. */
extern const struct cli_topic pack_topics[];

/* The options of every source, in tables. */
extern const struct cli_option pack_output_options[]; /* --out, and what else decides bytes */
extern const struct cli_option pack_run_options[];    /* what does not */
extern const struct cli_option pack_report_options[]; /* --report */
extern const struct cli_option pack_input_options[];  /* where things are, and --dry-run */
extern const struct cli_option pack_unpack_options[]; /* --limit, of sources without images */

/* What these sources say to that option, and to --sandbox.  Returns the exit code. */
int pack_options_unpack(const struct pack_options *o, const struct cli_args *args, struct limits *out);

#endif
