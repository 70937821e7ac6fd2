/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mix.h - which component of a mixture has a position, and which of its own positions that is
 *
 * format/ORDER.md, part 12, defines it; format/shardorder.py computes the same.  Letters are those
 * of that part.  Pure arithmetic: a struct mix is constant after mix_init.
 */
#ifndef SHARD_ORDER_MIX_H
#define SHARD_ORDER_MIX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MIX_WEIGHT_SUM_MAX  4096u
#define MIX_BLOCK_SLOTS_MAX (UINT64_C(1) << 22) /* W * L: what the tables of open blocks are made for */
#define MIX_POSITIONS_MAX   (UINT64_C(1) << 62)

struct mix {
	uint32_t component_count; /* D: 1 to MIX_WEIGHT_SUM_MAX */
	uint32_t weight_sum;	  /* W: at most MIX_WEIGHT_SUM_MAX */
	uint32_t lane_count;	  /* L */
	const uint32_t *weight;	  /* [D] each 1 or more */
	uint64_t slots_key, components_key;
};

/* What stands at a slot of a block of a lane. */
struct mix_slot {
	uint16_t component; /* d */
	uint16_t before;    /* j: slots of d before this one in the block */
};

/* A position of the mixture: P = (block * W + slot) * L + lane. */
struct mix_place {
	uint64_t lane, block;
	uint32_t slot;
};

/* Does this epoch exist: does it end at 2^62 or before? */
static inline bool mix_has_epoch(uint64_t epoch, uint64_t epoch_records)
{
	return epoch < MIX_POSITIONS_MAX / epoch_records;
}

/* The weights are lent until the mixture is no longer used. */
void mix_init(struct mix *m, const uint32_t *weight, uint32_t component_count, uint32_t lane_count, uint64_t seed);

/* The seed of the order of a component. */
uint64_t mix_component_seed(const struct mix *m, uint32_t component);

/* Entries of `scratch` that mix_block() uses. */
size_t mix_scratch_entries(const struct mix *m);
/* All W slots of a block of a lane.  Costs some nanoseconds for each slot. */
void mix_block(const struct mix *m, uint64_t lane, uint64_t block, struct mix_slot *slot, uint16_t *scratch);

static inline struct mix_place mix_place_of(const struct mix *m, uint64_t position)
{
	uint64_t tick = position / m->lane_count;

	return (struct mix_place){.lane = position % m->lane_count,
				  .block = tick / m->weight_sum,
				  .slot = (uint32_t)(tick % m->weight_sum)};
}

/* q: the component's own position, which goes on from pass to pass. */
static inline uint64_t mix_own_position(const struct mix *m, const struct mix_place *at, const struct mix_slot *s)
{
	return (at->block * m->weight[s->component] + s->before) * m->lane_count + at->lane;
}

/*
 * The inverse: the position of the mixture that has position `own` of a component.  `slot` and
 * `scratch` are memory for a block.
 */
uint64_t mix_position(const struct mix *m, uint32_t component, uint64_t own, struct mix_slot *slot, uint16_t *scratch);

/* ---- weights ---- */

/*
 * Whole numbers in proportion to `share`, with the sum MIX_WEIGHT_SUM_MAX: each gets what it is
 * owed rounded down, at least 1, and the largest remainders get what is left.  Shares are finite
 * and above 0, and at most MIX_WEIGHT_SUM_MAX of them.
 */
void mix_round_weights(const double *share, uint32_t count, uint32_t *weight);

#endif
