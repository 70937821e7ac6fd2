/* SPDX-License-Identifier: Apache-2.0 */
/*
 * origin.h - what is known of each file of the source, as the plan found it
 *
 * The plan has names and sizes only, so that copies of a source give the same dataset.  The rest
 * lies beside it, in .shardpack/sources, little-endian:
 *
 *   64 bytes     the head
 *   16 per file  when its bytes were written, and when anything of it changed, its name or mode
 *                included; as nanoseconds since 1970, UINT64_MAX where there is no file
 *   16 per print a fingerprint, zeros where there is none; fingerprint.h
 *
 * First come the inputs of the plan, each with its own file and those of its fields, then the files
 * that hold many inputs.  Inputs have no entries if none has a file of its own.  Each file that
 * holds many inputs has a fingerprint.  Of files of their own a sample from all over the plan has
 * one.
 */
#ifndef SHARD_INPUT_ORIGIN_H
#define SHARD_INPUT_ORIGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/shardpack/input/fingerprint.h"

struct plan;
struct shelf;
struct source_place;
struct stat;
struct stored;

#define ORIGIN_NO_TIME	  UINT64_MAX /* there is no such file */
#define ORIGIN_TIME_CHARS 48

#define ORIGIN_OWN_PRINTS_MAX UINT64_C(256)

struct origin_entry {
	uint64_t written_ns, changed_ns;
};

struct origin { /* start it zeroed */
	void *data;
	size_t bytes;
	bool is_map;
	struct shelf *shelf;		     /* on which `data` is, if it is no map; NULL: in memory */
	struct origin_entry *entry;	     /* of inputs */
	struct origin_entry *file_entry;     /* of files that hold many */
	uint8_t (*print)[FINGERPRINT_BYTES]; /* of own files, then of those that hold many inputs */
	uint64_t input_count, per_input, file_count;
	uint64_t own_print_count;
	/* Of a fresh look: the last change to a name on the way to a file, and to which. */
	uint64_t name_ns, name_slot;
};

/* All functions that return int say why they fail, and return the exit code. */

/*
 * Look at every file of a plan that was just made; entries go to its shelf.  There are no
 * fingerprints yet.
 */
int origin_collect(struct origin *o, const struct plan *p, const struct source_place *place, const struct stored *s);

/* What was written then; *found is false if there is no such file. */
int origin_open(struct origin *o, const struct plan *p, const char *path, bool *found);

/*
 * The same, with memory of its own for the entries of files that hold many inputs, and without
 * fingerprints.  Entries of inputs are those of the other one.  Close it all the same.
 */
int origin_share(struct origin *o, const struct origin *of);

void origin_close(struct origin *o);

/* When was the file of an input written: its own (part 0), or that of its field part - 1? */
uint64_t origin_of_input(const struct origin *o, uint64_t input_idx, uint32_t part);

/* How many slots inputs have; those of files that hold many come behind. */
static inline uint64_t origin_own_slots(const struct origin *o)
{
	return o->input_count * o->per_input;
}

/* The entry in a slot. */
const struct origin_entry *origin_at(const struct origin *o, uint64_t slot);

struct origin_entry origin_entry_of(const struct stat *st);
const char *origin_time_text(uint64_t ns, char out[ORIGIN_TIME_CHARS]);

/* The path of the file in a slot, below the root; `out` has room for PLAN_PATH_BYTES_MAX * 3. */
void origin_path(const struct origin *o, const struct plan *p, uint64_t slot, char *out);

/* Of an input's slot the path, and the size that the plan says; false if there is no file. */
bool origin_own_file(const struct origin *o, const struct plan *p, uint64_t slot, char *out, uint64_t *bytes);

#endif
