/* SPDX-License-Identifier: Apache-2.0 */
/*
 * origin.h - when each file of the source was last written, as the plan found it
 *
 * The plan has names and sizes only, so that copies of a source give the same dataset.  Times lie
 * beside it, in .shardpack/sources: 64 bytes of head, then 8 bytes for each file, little-endian, as
 * nanoseconds since 1970.  First come the inputs of the plan, each with its own file and those of
 * its fields, then the files that hold many inputs.  Inputs have no entries if none has a file of
 * its own.
 */
#ifndef SHARD_INPUT_ORIGIN_H
#define SHARD_INPUT_ORIGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct plan;
struct source_place;
struct stat;
struct stored;

#define ORIGIN_NO_TIME	  UINT64_MAX /* there is no such file */
#define ORIGIN_TIME_CHARS 48

struct origin { /* start it zeroed */
	void *data;
	size_t bytes;
	bool is_map;
	uint64_t *time; /* in data */
	uint64_t input_count, per_input, file_count;
	/* Of a fresh look: the last change to any file, of its bytes or its name, and to which. */
	uint64_t newest_ns, newest_slot;
};

/* All functions that return int say why they fail, and return the exit code. */

/* Look at every file of a plan that was just made. */
int origin_collect(struct origin *o, const struct plan *p, const struct source_place *place, const struct stored *s);

/* What was written then; *found is false if there is no such file. */
int origin_open(struct origin *o, const struct plan *p, const char *path, bool *found);

void origin_close(struct origin *o);

/* Of input `input_idx` the file of its own (part 0), or of its field part - 1. */
uint64_t origin_of_input(const struct origin *o, uint64_t input_idx, uint32_t part);
uint64_t origin_of_file(const struct origin *o, uint64_t file);

uint64_t origin_time_of(const struct stat *st);
const char *origin_time_text(uint64_t ns, char out[ORIGIN_TIME_CHARS]);

/* Is every file as it was then?  Else *slot is the first that is not. */
bool origin_is_same(const struct origin *then, const struct origin *now, uint64_t *slot);

/* EXIT_DONE, or EXIT_MISMATCH and a sentence that names the first file that is not as it was. */
int origin_compare(const struct origin *then, const struct origin *now, const struct plan *p, const char *root);

/* The same of the files that hold many inputs, which were just opened. */
int origin_check_files(const struct origin *then, const struct plan *p, const struct stored *s, const char *root);

/* The path of the file in a slot, below the root; `out` has room for PLAN_PATH_BYTES_MAX * 3. */
void origin_path(const struct origin *o, const struct plan *p, uint64_t slot, char *out);

#endif
