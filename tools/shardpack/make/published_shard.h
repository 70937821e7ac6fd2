/* SPDX-License-Identifier: Apache-2.0 */
/*
 * published_shard.h - is a shard of the plan there already?
 */
#ifndef SHARD_BUILD_PUBLISHED_SHARD_H
#define SHARD_BUILD_PUBLISHED_SHARD_H

#include <stdbool.h>
#include <stdint.h>

struct job;
struct receipt;
struct receipt_texts;
struct shard_outline;

/*
 * Look for the published shard.  *there with the receipt filled in, if it is the plan's.  One that
 * is not among `receipts`, or does not fit, is made again, which means reading all of the shard.
 * Anything else under that name is an error, and is not touched.  Returns the exit code.
 */
int published_find(const struct job *job, uint64_t shard_idx, const struct receipt_texts *receipts, struct receipt *r,
		   bool *there);

/*
 * The same for a shard that is there with a receipt that fits, so that nothing has to be verified.
 * Its outline is to be closed.  Any thread may ask.  Everything else is false without a word;
 * published_find() says what it is.
 */
bool published_peek(const struct job *job, uint64_t shard_idx, struct receipt *r, struct shard_outline **outline);

#endif
