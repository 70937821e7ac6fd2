/* SPDX-License-Identifier: Apache-2.0 */
/*
 * build.h - make the shards of a plan that are not there yet
 */
#ifndef SHARD_BUILD_BUILD_H
#define SHARD_BUILD_BUILD_H

struct job;

/*
 * Build this part of the plan.  What became of every input is in job->account afterwards,
 * that of earlier runs included.  Returns the exit code; whatever it is, a shard is either
 * complete under its name or not there, and running again continues.
 */
int build_run(const struct job *job);

#endif
