/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scheduler.h - which worker of how many this process is, as the environment says
 *
 * Job arrays (Slurm, Grid Engine, LSF, PBS, Kubernetes) and ranks within a job (srun, Open MPI,
 * PMI) are combined.  The answer only says at which shard a worker begins, so any list of tasks
 * will do.
 */
#ifndef SHARD_BUILD_SCHEDULER_H
#define SHARD_BUILD_SCHEDULER_H

#include <stdbool.h>
#include <stdint.h>

#define SCHEDULER_WORDS_BYTES 256
#define SCHEDULER_JOB_BYTES   96

struct scheduler {
	bool found;			   /* there is an array, or more ranks than one; else this is all */
	uint64_t number, count;		   /* begin at this share of the shards: number < count */
	char words[SCHEDULER_WORDS_BYTES]; /* what was taken: "SLURM_ARRAY_TASK_ID 3 of 0-9" */
	char job[SCHEDULER_JOB_BYTES];	   /* the job without its tasks, "SLURM_ARRAY_JOB_ID 1234"; empty if unknown */
};

/*
 * Look at the environment through `get`, which is getenv() or a test's own.  What contradicts
 * itself is EXIT_USAGE, and a sentence.  Returns the exit code.
 */
int scheduler_find(struct scheduler *s, char *(*get)(const char *name));

/* A worker that nobody gave a place gets one by chance. */
void scheduler_anywhere(struct scheduler *s, uint64_t seed);

/* The first of `shard_count` for this worker. */
uint64_t scheduler_begin(const struct scheduler *s, uint64_t shard_count);

#endif
