/* SPDX-License-Identifier: Apache-2.0 */
/*
 * label_classes.h - the class of each record, read from a field of integers
 */
#ifndef SHARD_PROVE_LABEL_CLASSES_H
#define SHARD_PROVE_LABEL_CLASSES_H

#include <stdint.h>

#include "tools/common/progress.h"
#include "tools/shardcat/dataset/target.h"

struct classes {
	uint32_t *class_of;	 /* [records], from 0: classes in the order of their values */
	uint64_t *class_records; /* [class_count] */
	uint32_t class_count;
};

/*
 * Of the records record[0] to record[count - 1], ascending; NULL: of all.  Advances `progress` by
 * the records of the dataset.  Returns an exit code; classes_free() in either case.
 */
int classes_take(struct classes *c, struct target *t, const struct shard_field *label, const uint64_t *record,
		 uint64_t count, struct progress *progress);
void classes_free(struct classes *c);

int classes_no_memory(const struct target *t); /* prints it; an exit code */

#endif
