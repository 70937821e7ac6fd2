/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mixture.h - the components of a mixture: which records, in what proportion, and their digest
 */
#ifndef SHARD_MIX_MIXTURE_H
#define SHARD_MIX_MIXTURE_H

#include "shard.h"

struct component {
	const struct shard_dataset *ds;
	const struct shard_selection *selection; /* NULL: all records */
	uint64_t count;				 /* records of the component */
	uint64_t base;				 /* record 0 of its dataset is so many in the joined one */
};

struct shard_mix {		  /* const after open */
	struct shard_dataset *ds; /* all datasets joined, each once */
	struct component *component;
	uint32_t *weight; /* [component_count] */
	uint32_t component_count, weight_sum;
	uint64_t epoch_records;
	char digest[65];
};

/* MISMATCH unless all components agree on the fields that have a bit here. */
int mixture_check_fields(const struct shard_mix *m, uint32_t fields, struct shard_error *err);

#endif
