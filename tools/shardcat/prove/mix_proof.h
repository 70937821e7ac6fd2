/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mix_proof.h - does a mixture keep its promises, as real loaders deliver it?
 */
#ifndef SHARD_PROVE_MIX_PROOF_H
#define SHARD_PROVE_MIX_PROOF_H

#include "shard.h"

/*
 * Prove the mixture in a file, for each of these worlds and resumed from world to world, over
 * `epochs` epochs, rounded up to whole blocks.  The options are those of all loaders.  Returns an
 * exit code, and says what it found.
 */
int mix_proof(const char *path, const struct shard_loader_options *options, const uint32_t *worlds,
	      uint32_t world_count, uint64_t epochs);

#endif
