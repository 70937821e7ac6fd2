/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verdict.h - what became of an input
 *
 * Two kinds of failure are kept apart, because only one may be skipped.  A verdict on the bytes
 * (not an image, damaged) is the same each time and belongs to the dataset.  A file that cannot be
 * read, or is not the one that was planned, says nothing about the data.
 */
#ifndef SHARD_CONVERT_VERDICT_H
#define SHARD_CONVERT_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/shardpack/images/decode.h"

enum outcome {
	OUTCOME_RECORD,	  /* there is a record */
	OUTCOME_BAD,	  /* `reason` and `message`: the bytes are no good */
	OUTCOME_FAILED,	  /* `message`: the input could not be read */
	OUTCOME_CHANGED,  /* `message`: it is not the one that was planned */
	OUTCOME_VANISHED, /* `message`: the file is gone, and the folder that held it is there */
	OUTCOME_OTHER,	  /* `message`: another build made the plan, and would read this otherwise */
	OUTCOME_STOP,	  /* `message`: no memory, or no quarantine; going on makes no sense */
};

struct verdict {
	enum outcome outcome;
	uint32_t reason;   /* enum shard_miss_reason, of OUTCOME_BAD; of a record 0, or which damage was accepted */
	char message[320]; /* why; empty if there is nothing to say */
	char first[200];   /* of a record: a file has more frames or pages than are packed; else empty */
	uint32_t dropped;  /* of a record: what its images have, and it does not, bits 1 << enum decode_dropped */
};

/* Returns false, for functions that say so when there is no record. */
bool verdict_set(struct verdict *v, enum outcome outcome, uint32_t reason, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/*
 * Take over a decoder's verdict.  True if it was OK.  Of accepted damage the first one stays,
 * and of more frames, too; what is dropped adds up.
 */
bool verdict_of_decoder(struct verdict *v, enum decode_status status, const struct decode_verdict *said);

#endif
