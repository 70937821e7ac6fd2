/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shardcat.h - what the verbs of shardcat share
 */
#ifndef SHARD_SHARDCAT_SHARDCAT_H
#define SHARD_SHARDCAT_SHARDCAT_H

#include "tools/common/cli.h"
#include "tools/common/shelf.h"
#include "tools/shardcat/dataset/cat_dataset.h"

/* ---- out_file.c: a file that is complete or absent, or stdout ---- */

/*
 * Its contents are small, and are put together in `f`, which is open.  If `rc` is EXIT_DONE, write it
 * all to `path`, or to stdout if that is NULL or "-"; else return `rc`.  A file is written beside its
 * name and then renamed, over an older one if there is one; a device or pipe is written to as it is.
 * Binary data is not written to a terminal.
 */
int out_file_close(struct memory_file *f, const char *path, int rc);

/* ---- options of several verbs ---- */

/*
 * Rows that the tables of several verbs have; `type` is the verb's struct, with members `path` and
 * `json`.
 */
#define DIR_OR_SHARD(type)                                                                               \
	{                                                                                                \
		.name = "DIR|SHARD", .kind = CLI_FILE, .required = true, .offset = offsetof(type, path), \
		.help = "folder of a dataset, or one shard file"                                         \
	}
#define ONLY_DIR(type)                                                                            \
	{                                                                                         \
		.name = "DIR", .kind = CLI_DIR, .required = true, .offset = offsetof(type, path), \
		.help = "folder of a dataset"                                                     \
	}
#define SELECT_OPTION(type)                                                                               \
	{                                                                                                 \
		.name = "select", .kind = CLI_FILE, .arg_name = "FILE", .offset = offsetof(type, select), \
		.help = "use only the records of this file, which shardcat select wrote"                  \
	}
#define AS_JSON(type, text)                                                                      \
	{                                                                                        \
		.name = "json", .kind = CLI_FLAG, .offset = offsetof(type, json), .help = (text) \
	}

/*
 * Which order of an epoch: options that verbs share, in cmd_order.c.  The struct of such a verb
 * begins with a struct order_options, since offsets of a table are from the start.
 */

struct order_options {
	uint64_t seed, run_records, phase_unit_records, window_runs, lane_count;
	int shuffle; /* enum shard_shuffle */
};

extern const struct cli_option order_option_table[];

/* The loader's options, with the order filled in; the rest is zero, which means default. */
struct shard_loader_options order_loader_options(const struct order_options *o);

/* EXIT_DONE, or the mistake has been printed: runs, windows and lanes belong to windows only. */
int order_options_check(const struct cli_args *args, const struct order_options *o);

/* ---- the verbs, one file each ---- */

extern const struct cli_verb verb_info;	       /* cmd_info.c */
extern const struct cli_verb verb_list;	       /* cmd_list.c */
extern const struct cli_verb verb_get;	       /* cmd_get.c */
extern const struct cli_verb verb_verify;      /* cmd_verify.c */
extern const struct cli_verb verb_stats;       /* cmd_stats.c */
extern const struct cli_verb verb_manifest;    /* cmd_manifest.c */
extern const struct cli_verb verb_show;	       /* cmd_show.c */
extern const struct cli_verb verb_select;      /* cmd_select.c */
extern const struct cli_verb verb_order;       /* cmd_order.c */
extern const struct cli_verb verb_prove_order; /* cmd_prove_order.c */
extern const struct cli_verb verb_doctor;      /* cmd_doctor.c */

#endif
