/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job.h - what the parts of a pack share: the plan, and where things are
 */
#ifndef SHARD_BUILD_JOB_H
#define SHARD_BUILD_JOB_H

#include <stdbool.h>

#include "shard.h"
#include "tools/common/cli.h"

struct account;
struct plan;
struct quarantine;
struct receipt_files;
struct sandbox;
struct scheduler;
struct source_times;
struct stored;

struct job { /* all const while it runs, but for what `account` and `receipts` point to */
	const struct plan *plan;
	struct shard_schema schema; /* of the plan's recipe */
	const char *out_dir;
	char state_dir[4400];		     /* OUT/.shardpack */
	const char *source;		     /* for messages, and to write down */
	int source_fd;			     /* -1 if the inputs are not at hand */
	const struct stored *stored;	     /* the plan's files; NULL if it has none, or the inputs are not at hand */
	const struct quarantine *quarantine; /* NULL unless that is the policy */
	struct sandbox *sandbox;	     /* of images; or NULL */
	const struct source_times *times;    /* when sources were written; NULL: not compared */
	const char *anew;		     /* for messages: how this command makes all of the dataset anew */
	unsigned worker_count;
	bool read_back;			  /* each shard before it gets its name; one that was not is verified */
	bool verify_all;		  /* shards that are there are read once more, whatever receipts say */
	bool leave_vanished;		  /* files that were there for the plan and are gone */
	bool look_only;			  /* no dataset can come of it: find all that is bad, write nothing */
	bool again;			  /* they are built once more, and must become the same */
	struct cli_part part;		  /* shards s with s % count == idx */
	const struct scheduler *worker;	  /* shards are claimed, from its place on; NULL: all of `part` are ours */
	bool exif_said;			  /* the user has typed whether images are turned upright */
	bool no_wait;			  /* end, even if shards that others have claimed are missing */
	const struct cli_amount *max_bad; /* or NULL */
	struct receipt_files *receipts;	  /* to which this process adds */
	struct account *account;
};

#endif
