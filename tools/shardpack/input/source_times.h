/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_times.h - when each file of the source was written, and whether it still says so
 *
 * The plan has the name and the size of each file, and no times, so that copies of a source give
 * the same dataset.  Their modification times lie beside it, in .shardpack/sources.  A sealed
 * dataset has that file as dataset.sources.  A file is another one if its time differs by one
 * nanosecond, and an older time is as different as a newer one.  Little-endian:
 *
 *   24 bytes    "shardpack-sources 3\n" and zeros
 *   32          the digest of the plan
 *   8           how many files an input has; 0 if no input has a file of its own
 *   8 per file  nanoseconds since 1970; SOURCE_NO_TIME where there is no file
 *
 * First come the inputs of the plan, each with its own file and those of its fields, then the files
 * that hold many inputs.
 *
 * Bytes that change under the same size and time are not seen here.  The hash of what was read is
 * that of the shard, in its receipt: a shard that is made a second time must have it again.
 */
#ifndef SHARD_SHARDPACK_INPUT_SOURCE_TIMES_H
#define SHARD_SHARDPACK_INPUT_SOURCE_TIMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct plan;
struct shelf;
struct source_place;
struct stored;

#define SOURCE_NO_TIME	  UINT64_MAX
#define SOURCE_TIME_CHARS 48

struct source_times { /* start it zeroed */
	void *data;   /* all of the file's bytes */
	size_t bytes;
	bool is_map;
	struct shelf *shelf; /* on which `data` is, if it is not a map; NULL: in memory */
	uint64_t *own_ns;    /* of files of one input: [own_count] */
	uint64_t *file_ns;   /* of files that hold many: [file_count] */
	uint64_t own_count, per_input, file_count;
};

/* For messages. */
struct source_words {
	const char *root; /* the folder of the sources */
	const char *what; /* what was made of them: the plan, or a dataset */
	const char *anew; /* how to pack all anew */
};

/* All functions that return int say why they fail, and return the exit code. */

/* Look at every file of a plan that was just made; the times go to its shelf. */
int source_times_collect(struct source_times *t, const struct plan *p, const struct source_place *place,
			 const struct stored *s);

/*
 * What was written down of this plan.  *found is false if there is no such file, or none of this
 * release.
 */
int source_times_open(struct source_times *t, const struct plan *p, const char *path, bool *found);

/* Say that it is of no use. */
int source_times_refuse_damage(const char *path);

void source_times_close(struct source_times *t);

/* When was the file of an input written: its own (part 0), or that of its field part - 1? */
uint64_t source_time_of_input(const struct source_times *t, uint64_t input_idx, uint32_t part);

const char *source_time_text(uint64_t ns, char out[SOURCE_TIME_CHARS]);

/*
 * Is each file as old as it was then?  EXIT_MISMATCH names the first one that is not.  Both have the
 * same number of bytes.
 */
int source_times_compare(const struct source_times *then, const struct source_times *now, const struct plan *p,
			 const struct source_words *words);

/*
 * The same of files that hold many inputs, as they were opened.  The converter compares the time of
 * any other file when it reads it.
 */
int source_times_compare_files(const struct source_times *then, const struct stored *s, const struct plan *p,
			       const struct source_words *words);

/*
 * Call this when the records of some ordinals are made: was a file of theirs written after it was
 * read?  Files of one input only.  One that was removed has done its work.
 */
int source_times_check_written(const struct source_times *then, const struct plan *p, int root_fd,
			       const struct source_words *words, uint64_t first, uint64_t count);

#endif
