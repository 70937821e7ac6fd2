/* SPDX-License-Identifier: Apache-2.0 */
/*
 * order.h - which record stands at which position of an epoch, and which positions a rank takes
 *
 * format/ORDER.md defines every number that comes out of here; format/shardorder.py computes the
 * same ones.  Pure arithmetic.  A struct order is constant after order_init: any thread may ask it
 * anything.
 */
#ifndef SHARD_ORDER_ORDER_H
#define SHARD_ORDER_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libshard/order/permutation.h"

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
	uint32_t window_runs;	     /* w: a lane's window holds at least so many runs; 1 or more */
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
	uint64_t rest_run_records;  /* (F mod L) * r */
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
 * An order of parameters that are allowed, in one piece of memory with its table behind it: so many
 * bytes, aligned for any object.  NULL if `memory` is NULL.
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

#endif
