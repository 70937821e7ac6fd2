/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shardpack.h - what the verbs of shardpack share
 */
#ifndef SHARD_SHARDPACK_SHARDPACK_H
#define SHARD_SHARDPACK_SHARDPACK_H

#include <stdbool.h>
#include <stdint.h>

/*
 * cmd_build.c - `shardpack build` and `shardpack seal`
 */

struct cli_verb;

extern const struct cli_verb cmd_build, cmd_seal;

/*
 * cmd_decode.c - `shardpack decode`
 */

extern const struct cli_verb cmd_decode;

/*
 * cmd_demo.c - `shardpack demo`
 */

extern const struct cli_verb cmd_demo;

/* ---- cmd_pack.c ---- */

struct cli_args;

/* The row of the verb is that of the source.  Both return the exit code. */
int cmd_pack(const struct cli_args *args);
int cmd_plan(const struct cli_args *args);

/*
 * cmd_reuse.c - `shardpack merge`, `split` and `append`
 */

extern const struct cli_verb cmd_merge, cmd_split, cmd_append;

/*
 * cmd_status.c - `shardpack status`
 */

extern const struct cli_verb cmd_status;

/* ---- command.c ---- */

struct account;
struct job;
struct plan;
struct receipt_files;
struct report;
struct scan;
struct source_root;

/* Fails with EXIT_USAGE if `path` (of `option`) lies in `dir`, or is it.  Both absolute. */
int command_keep_apart(const char *option, const char *path, const char *dir_name, const char *dir);

/*
 * Folders that are read must not be written to, and the reverse.  The folder of a single file may.
 */
int command_keep_from_sources(const struct source_root *p, const char *option, const char *path);

/* Can a report be written to this absolute path?  Asked first, as it is written last. */
int command_check_report(const char *path);

/*
 * Give a plan a shelf in that folder, or the nearest one above that exists, for itself and for what
 * it is made of.
 */
void command_open_shelf(struct plan *p, const char *dir);

/* For a command that cannot replace: how to pack again what is in `dir`.  To be freed. */
char *command_plan_again(const char *dir);

/* What a job keeps beside its plan, and a worker for each CPU; `job` is then to be given to command_end_build(). */
void command_begin_build(struct job *job, struct account *account, struct receipt_files *receipts);

/*
 * Make the shards, images in a sandbox if the user asked for it: it stays in the job until
 * command_end_build().  Returns the exit code.
 */
int command_build(struct job *job, bool sandbox);
void command_end_build(struct job *job);

/* The end of `shardpack plan`: what it made, and what comes next. */
void command_tell_plan(const struct job *job, const struct scan *scan);

/*
 * The end of a verb: tell the user, write the report, and say how to go on after a failure that
 * running again helps against.  Returns the exit code, which is r->exit_code unless writing failed.
 */
int command_finish(const struct report *r, const char *report_path);

#endif
