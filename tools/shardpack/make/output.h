/* SPDX-License-Identifier: Apache-2.0 */
/*
 * output.h - the folder that becomes the dataset, and what is in it on the way
 *
 *   OUT/00000.shard ...       published shards
 *   OUT/dataset.manifest      written last: with it the dataset is sealed
 *   OUT/dataset.sources       when each file of the source was written; source_times.h
 *   OUT/.shardpack/plan       the plan of the dataset
 *   OUT/.shardpack/sources    the same as dataset.sources; sealing moves it there
 *   OUT/.shardpack/source     the folder of the inputs; for `shardpack build`
 *   OUT/.shardpack/quarantine the folder for bad inputs; for `shardpack build`
 *   OUT/.shardpack/exif       there if --exif was typed; for `shardpack build`
 *   OUT/.shardpack/decoders   of images: the libraries of the process that made the plan
 *   OUT/.shardpack/receipts-00000 ...
 *   OUT/.shardpack/claim-00000 ...  which process builds a shard; claims.h
 *
 * Times, the two folders, and that an option was typed, are not part of the plan.  Sealing removes
 * .shardpack.  Only the files in OUT decide which work is left, so any process can continue it.
 */
#ifndef SHARD_BUILD_OUTPUT_H
#define SHARD_BUILD_OUTPUT_H

#include <stdbool.h>

struct job;
struct plan;
struct source_times;

enum output_state {
	OUTPUT_NEW,	/* absent, empty, or given up before there was a plan */
	OUTPUT_STARTED, /* this plan, not sealed */
	OUTPUT_SEALED,	/* this plan, done */
	OUTPUT_OTHER,	/* a dataset, sealed or not, but of another plan */
	OUTPUT_FOREIGN, /* something that shardpack did not make */
};

#define OUTPUT_WHY_BYTES 1536

/* Look, and touch nothing.  `why` names what is OTHER or FOREIGN.  Returns the exit code. */
int output_examine(const char *out_dir, const struct plan *plan, enum output_state *state, char why[OUTPUT_WHY_BYTES]);

/* Set job->out_dir and what follows from it. */
int output_set_dir(struct job *job, const char *out_dir);

/*
 * Make OUT and put the plan into it, durably.  Put files beside the plan: `source`, an absolute
 * path; the times in `now`, unless there are some already; and that --exif was typed, if it was.
 * Fails if another process puts in another plan first.
 */
int output_begin(const struct job *job, const char *source, const struct source_times *now);

/*
 * Are the sources still as old as when the plan or the sealed dataset in OUT was made?  `now` is
 * their present state.  If it is no, or nothing was written down and there are shards, this says so
 * and returns EXIT_MISMATCH.
 */
int output_check_sources(const struct job *job, const struct source_times *now);

/* The same of another folder that is not sealed, without a sentence. */
int output_same_sources(const char *out_dir, const struct plan *plan, const struct source_times *now, bool *same);

/* Open what was written down beside the plan.  If there is nothing, that is EXIT_MISMATCH. */
int output_open_times(const struct job *job, struct source_times *out);

/*
 * Read the plan that is in OUT, to the shelf that `plan` has, job->exif_said, and the places beside
 * it; NULL where there are none, else to be freed.  *sealed if OUT is a dataset that has no plan
 * any more: then nothing was read.
 */
int output_load(struct job *job, struct plan *plan, char **source, char **quarantine, bool *sealed);

/* Read plan->decoders of what is in OUT. */
int output_load_decoders(const struct job *job, struct plan *plan);

/* Was --exif typed for the plan that is in OUT? */
bool output_exif_said(const struct job *job);

/*
 * Refuse a symbolic link or a file in the place of a folder of shardpack's own.  It is fine if
 * there is nothing.  Returns the exit code.
 */
int output_refuse_link(const char *path);

/* OUT is sealed: move the times of the sources beside the manifest, unless that is done. */
int output_keep_times(const struct job *job);

/* OUT is sealed: remove .shardpack, and temporary files of processes that are there no more. */
int output_clear_state(const struct job *job);

/*
 * Undo output_begin(), if OUT holds nothing else.  Also remove OUT itself if `made`, and its shards
 * if `all_empty`, which means that each is known to have no records.  Failures are ignored.
 */
void output_give_up(const struct job *job, bool made, bool all_empty);

/* Does OUT hold the sealed dataset of this plan, of this process or of another one? */
bool output_is_sealed(const char *out_dir, const struct plan *plan);

/* Remove a folder that shardpack made.  With FOREIGN content it stays, which is an error. */
int output_remove(const char *dir);

#endif
