/* SPDX-License-Identifier: Apache-2.0 */
/*
 * order.h - seed, epoch and position to record numbers: format/ORDER.md
 *
 * Pure arithmetic; format/shardorder.py computes the same numbers.  Every struct here is prepared
 * once and constant afterwards: any thread may ask it anything.
 */
#ifndef SHARD_ORDER_ORDER_H
#define SHARD_ORDER_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- random words that are computed, not drawn in sequence: ORDER.md, part 2 ---- */

/*
 * The constants and mix() are those of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).  Changing
 * anything here changes every order.
 */

#define RANDOM_G  0x9e3779b97f4a7c15u
#define RANDOM_M1 0xbf58476d1ce4e5b9u
#define RANDOM_M2 0x94d049bb133111ebu

/*
 * Streams keep the draws for different purposes apart.  ORDER.md, parts 2 to 6, has 1 to 15;
 * augmentation and mixtures follow.
 */
enum random_stream {
	RANDOM_RECORDS = 1,
	RANDOM_PHASE = 2,
	RANDOM_RUNS = 3,
	RANDOM_WINDOWS = 4,
	RANDOM_TWEAKS = 5,
	RANDOM_TABLE = 6,
	RANDOM_REST = 7,
	RANDOM_FINISH = 16,    /* docs/TRANSFORM.md */
	RANDOM_MIX_SLOTS = 17, /* ORDER.md, part 12 */
	RANDOM_MIX_SEEDS = 18,
};

static inline uint64_t random_mix(uint64_t z)
{
	z = (z ^ z >> 30) * RANDOM_M1;
	z = (z ^ z >> 27) * RANDOM_M2;
	return z ^ z >> 31;
}

/* Half of the work of mix, for the rounds of a Feistel network, which use the high bits only. */
static inline uint64_t random_scramble(uint64_t z)
{
	z *= RANDOM_M1;
	return (z ^ z >> 32) * RANDOM_M2;
}

static inline uint64_t random_absorb(uint64_t h, uint64_t x)
{
	return random_mix((h ^ x) + RANDOM_G);
}

static inline uint64_t random_key(uint64_t seed, uint64_t epoch, uint64_t stream)
{
	return random_absorb(random_absorb(random_absorb(0, seed), epoch), stream);
}

static inline uint64_t random_draw(uint64_t key, uint64_t i)
{
	return random_mix(key + (i + 1) * RANDOM_G);
}

/* Scales a random word to [0, n).  Its bias is at most n / 2^64. */
static inline uint64_t random_below(uint64_t h, uint64_t n)
{
	return (uint64_t)((unsigned __int128)h * n >> 64);
}

/* ---- permutation.c: keyed permutations of [0, n), ORDER.md part 3 ---- */

/* A Feistel network, which needs no memory. */

#define FEISTEL_N_MAX  ((uint64_t)1 << 62)
#define FEISTEL_ROUNDS 12 /* even */

struct feistel {
	uint64_t n; /* 1 to FEISTEL_N_MAX */
	uint64_t a; /* ceil(n / b): the numbers of [0, a * b) are hi * b + lo */
	uint64_t b; /* ceil(sqrt(n)) */
	uint64_t key[FEISTEL_ROUNDS];
};

void feistel_init(struct feistel *f, uint64_t n, uint64_t key);
/* x is below n.  Each tweak makes another permutation. */
uint64_t feistel_at(const struct feistel *f, uint64_t tweak, uint64_t x);
/*
 * The rounds on numbers hi[i] * b + lo[i], in place: for every machine, and for four numbers at once
 * where the processor can; count is a multiple of 4 then.
 */
void feistel_rounds(const struct feistel *f, const uint64_t *tweak, uint64_t *hi, uint64_t *lo, size_t count);
bool feistel_has_avx2(void);
void feistel_rounds_avx2(const struct feistel *f, const uint64_t *tweak, uint64_t *hi, uint64_t *lo, size_t count);

#define FEISTEL_MANY \
	64 /* numbers in flight: enough to hide the latency of a round, and few enough for the first-level cache */

/* x[i] becomes feistel_at(f, tweak[i], x[i]).  Several times faster, as no x waits for another. */
void feistel_many(const struct feistel *f, const uint64_t *tweak, uint64_t *x, size_t count);

/* A table where n is small enough, the network where it is not.  Memory for tables is the caller's. */

#define PERMUTATION_TABLE_MAX 65536 /* so that an entry fits 16 bits and a table the second-level cache */
#define PERMUTATION_N_MAX     FEISTEL_N_MAX

/* Fisher-Yates: table[0, n) becomes a permutation of n, which is at most PERMUTATION_TABLE_MAX. */
void permutation_table(uint16_t *table, uint64_t n, uint64_t key);

struct permutation {
	const uint16_t *table; /* NULL: the network */
	struct feistel feistel;
};

/* Entries of table memory that permutation_init wants: n, or 0 if it will be a network. */
size_t permutation_table_entries(uint64_t n);
/* An n of 0 is allowed, and then nothing may be asked. */
void permutation_init(struct permutation *p, uint64_t n, uint64_t key, uint16_t *table);
uint64_t permutation_at(const struct permutation *p, uint64_t x);
void permutation_many(const struct permutation *p, uint64_t *x, size_t count);

/* ---- order.c: which record is at which position of an epoch ---- */

#define ORDER_RECORDS_MAX	PERMUTATION_N_MAX
#define ORDER_STEP_RECORDS_MAX	((uint64_t)1 << 48)	    /* world * batch_records */
#define ORDER_TABLE_ENTRIES_MAX (3 * PERMUTATION_TABLE_MAX) /* runs, windows, rest */

/* On record in tokens: values are never reused. */
enum order_kind {
	ORDER_SEQUENTIAL = 0,
	ORDER_ONE_LEVEL = 1,
	ORDER_TWO_LEVELS = 2,
};

struct order_params {
	enum order_kind kind;
	uint64_t record_count; /* N: 0 to ORDER_RECORDS_MAX */
	uint64_t seed, epoch;

	/* Of two levels only. */
	uint64_t run_records;	     /* r: neighbours read together; 1 to ORDER_RECORDS_MAX */
	uint64_t phase_unit_records; /* u: runs begin at a multiple of it, shifted by epoch; 0: at multiples of r */
	uint32_t window_runs;	     /* w: a lane's window holds at least this many runs; 1 or more */
	uint32_t lane_count;	     /* L: 1 or more */
};

/* Prepared by order_init; letters are those of ORDER.md. */
struct order {
	struct order_params params;
	struct permutation records; /* one level */

	uint64_t phase;
	uint64_t run_count;	    /* F */
	uint64_t lane_run_count;    /* K */
	uint64_t lanes_end;	    /* K * L * r: positions from here on are the rest */
	uint64_t window_run_count;  /* q */
	uint64_t long_window_count; /* e */
	uint64_t long_ticks;	    /* A */
	uint64_t tweak_key;
	struct permutation runs, rest;
	struct feistel window[2];     /* of q runs, of q + 1 runs */
	const uint16_t *window_table; /* NULL: the network does it alone */
};

/* Are all parameters within the ranges above? */
bool order_params_allowed(const struct order_params *p);

/* Entries of table memory that order_init wants; at most ORDER_TABLE_ENTRIES_MAX. */
size_t order_table_entries(const struct order_params *p);

/*
 * SHARD_OK, or SHARD_E_ARGUMENT when a parameter is outside the ranges above.  `table` is lent
 * until the order is no longer used.  Costs at most a table of 65,536 entries for each of three:
 * under a millisecond and a half.
 */
int order_init(struct order *o, const struct order_params *p, uint16_t *table);

/*
 * An order of parameters that are allowed, in one piece of memory with its table behind it: the
 * bytes of it, aligned for any object.  NULL if `memory` is NULL.
 */
size_t order_bytes(const struct order_params *p);
struct order *order_in(void *memory, const struct order_params *p);

/* The record at a position below record_count. */
uint64_t order_at(const struct order *o, uint64_t position);

/* records[i] = order_at(first + i * stride): the same numbers in a fraction of the time. */
void order_fill(const struct order *o, uint64_t first, uint64_t stride, uint64_t *records, size_t count);
/* at[i] becomes order_at(at[i]). */
void order_many(const struct order *o, uint64_t *at, size_t count);

/*
 * The same in two steps.  A place is one in the row of permuted runs, run after run: neighbours
 * there are neighbours in the dataset, but where a run ends.  Of orders without runs it is the
 * position.
 */
uint64_t order_place(const struct order *o, uint64_t position);
uint64_t order_at_place(const struct order *o, uint64_t place);

/*
 * The windows of all lanes that are under way at a position, or the rest: the positions [first,
 * end), in which stand the records of the places [first, end) and no others.  Of orders without
 * windows, the position alone.
 */
void order_band(const struct order *o, uint64_t position, uint64_t *first, uint64_t *end);
uint64_t order_largest_band(const struct order_params *p); /* positions of the largest one */

/* ---- ranks: ORDER.md, part 7 -------------------------------------------------------- */

enum order_last { /* the fate of positions that do not fill a step of all ranks */
		  ORDER_DROP = 0,
		  ORDER_PAD = 1,
		  ORDER_KEEP = 2,   /* world 1 only */
		  ORDER_RUN_ON = 3, /* the last step takes positions of the next epoch, too: of mixtures */
};

struct order_rank {
	uint64_t record_count;
	uint64_t first_position; /* of the epoch, or where it was interrupted; at most record_count */
	uint32_t batch_records;	 /* of one rank; 1 or more */
	uint32_t rank, world;	 /* rank is below world */
	enum order_last last;
};

/*
 * SHARD_OK, or SHARD_E_ARGUMENT when a field is outside its range or world * batch_records above
 * the limit.
 */
int order_rank_check(const struct order_rank *k);
/* Steps until the end of the epoch, the same for every rank. */
uint64_t order_rank_steps(const struct order_rank *k);
/* Rows of a step below order_rank_steps: batch_records, or fewer in the last step of ORDER_KEEP. */
uint32_t order_rank_rows(const struct order_rank *k, uint64_t step);
/* Position of a row; *padded says that it is a repetition.  ORDER_RUN_ON: record_count or more. */
uint64_t order_rank_position(const struct order_rank *k, uint64_t step, uint32_t row, bool *padded);

/* ---- order.c: the records that a rank needs, in the order of places ---- */

struct order_share {
	uint64_t record_count;
	uint64_t lanes_end, run_records; /* places from lanes_end on are the rest */
	uint64_t lane_rows;		 /* rows of runs */
	uint64_t whole_rows;		 /* lane_rows, and the rows of the rest */
	uint64_t pad_rows;		 /* rows that repeat records, behind whole_rows */
	uint64_t pad_first;		 /* the position that the first of the pad_rows repeats */
	uint32_t rank, stride, world;	 /* stride 1: the share holds all runs */
};

/* `whole`: the share holds the whole dataset, on each rank. */
void order_share_init(struct order_share *s, const struct order_params *p, const struct order_rank *k, bool whole);
uint64_t order_share_rows(const struct order_share *s);

/* Set records[i] to the record of row first + i. */
void order_share_fill(const struct order_share *s, const struct order *o, uint64_t first, uint64_t *records,
		      size_t count);

/* The row of the record at `place`, which must be in the share. */
uint64_t order_share_row(const struct order_share *s, uint64_t place);
/* The row of the n-th position that pads the last step. */
uint64_t order_share_padding(const struct order_share *s, uint64_t n);

/* Rows [first, end) of the band that holds `position`, which this rank delivers. */
void order_share_band(const struct order_share *s, const struct order *o, uint64_t position, uint64_t *first,
		      uint64_t *end);

/*
 * An upper limit for the rows that `records` consecutive records of this rank span: from the first
 * row of the first one's band to the last row of the last one's band.
 */
uint64_t order_share_span(const struct order_share *s, const struct order_params *p, uint64_t records);

/* ---- mix.c: which component of a mixture has a position, ORDER.md part 12 ---- */

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
