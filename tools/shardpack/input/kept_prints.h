/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kept_prints.h - the fingerprints that a finished dataset keeps of its sources
 *
 *   shardpack-kept 1
 *   dataset 0b41...               the id of the dataset that they belong to
 *   inputs 256                    files of one input that have a fingerprint, and then these
 *   ebd9...                       16 bytes, or - where there is none
 *   files 2                       files that hold many inputs, likewise, in the order of the plan
 *   30a1...
 *   e9cd...
 *   end 66e2...                   SHA-256 of all before
 *
 * There are no times: copies of a source give the same lines.
 */
#ifndef SHARD_INPUT_KEPT_PRINTS_H
#define SHARD_INPUT_KEPT_PRINTS_H

#include "tools/common/text.h"
#include "tools/shardpack/input/origin.h"

#define KEPT_PRINTS_NAME "dataset.sources"

/* Is it the text of this dataset, as far as its first lines say? */
bool kept_prints_are_of(const struct text *text, const char *dataset_id);

void kept_prints_write(const struct origin *o, const char *dataset_id, struct text *out);

/*
 * Read them into the fingerprints of `o`, which has the counts of the plan.  False if the text is
 * damaged, or of another dataset; `text` is not as it was.
 */
bool kept_prints_read(struct text *text, const char *dataset_id, struct origin *o);

#endif
