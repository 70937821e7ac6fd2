/* SPDX-License-Identifier: Apache-2.0 */
/*
 * result.h - one input of the plan on its way to a record
 */
#ifndef SHARD_CONVERT_RESULT_H
#define SHARD_CONVERT_RESULT_H

#include "shard_pack.h"
#include "tools/shardpack/make/fit_count.h"
#include "tools/shardpack/make/verdict.h"
#include "tools/shardpack/plan/plan.h"

struct shard_tally;

struct result {
	uint64_t ordinal;
	struct plan_input input;
	char path[PLAN_PATH_BYTES_MAX]; /* of the input; the record's key */
	size_t path_bytes;
	struct verdict verdict;
	struct fit_count fit;	   /* of this record */
	uint32_t undecided;	   /* of a record: 1 + a field that lies in an image that was not turned; or 0 */
	uint8_t *record;	   /* group 0: the caller's memory, of converter_record_bytes() */
	uint8_t *meta;		   /* group 1, behind it */
	struct shard_tally *tally; /* image_workers.c: of this record alone, without its class */
};

#endif
