/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command.h - what the verbs of shardpack have in common
 */
#ifndef SHARD_SHARDPACK_COMMAND_H
#define SHARD_SHARDPACK_COMMAND_H

struct job;
struct report;
struct scan;

/* Fails with EXIT_USAGE if `path` (of `option`) lies in `dir`, or is it.  Both absolute. */
int command_keep_apart(const char *option, const char *path, const char *dir_name, const char *dir);

/* Can a report be written to this absolute path?  Asked first, as it is written last. */
int command_check_report(const char *path);

/* For a command that cannot replace: how to pack anew what is in `dir`.  To be freed, or NULL. */
char *command_plan_again(const char *dir);

/* The end of `shardpack plan`: what it made, and what comes next. */
void command_tell_plan(const struct job *job, const struct scan *scan);

/*
 * The end of a verb: tell the user, write the report, and say how to go on after a failure that
 * running again helps against.  Returns the exit code, which is r->exit_code unless writing failed.
 */
int command_finish(const struct report *r, const char *report_path);

#endif
