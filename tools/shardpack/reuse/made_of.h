/* SPDX-License-Identifier: Apache-2.0 */
/*
 * made_of.h - how the records of a shard were made, by its provenance
 */
#ifndef SHARD_REUSE_MADE_OF_H
#define SHARD_REUSE_MADE_OF_H

#include "tools/common/text.h"
#include "tools/shardpack/reuse/part.h"

/*
 * The provenance of a shard of the part, "" if it has none.  Says why it fails and returns the exit
 * code.
 */
int made_of_read(const struct part *p, uint64_t i, struct text *out);

/*
 * Are records alike that were made so?  Lines that decide only which inputs there are, in which
 * order and in which shards, do not count; nor do versions of decoders, and counts of NaN and infinite
 * values.  If not, *a and *b are the first lines that differ; one of them may be NULL, for a line that
 * is missing.
 */
struct made_line {
	const char *at; /* NULL: there is none */
	int bytes;
};
bool made_of_same(const struct text *one, const struct text *two, struct made_line *a, struct made_line *b);

/* Were both made with the same decoders, as far as they name the same?  If not, the two lines. */
bool made_of_same_decoders(const struct text *one, const struct text *two, struct made_line *a, struct made_line *b);

#endif
