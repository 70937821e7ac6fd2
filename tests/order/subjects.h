/* SPDX-License-Identifier: Apache-2.0 */
/*
 * subjects.h - what the battery examines: the library's order, a known good shuffle, and known bad
 * ones
 *
 * A subject answers two questions: the permutation of n for a seed and an epoch, and the
 * permutations within all windows of an epoch.  The library's answers come out of order_fill.  The
 * others stand in for it, to show what the battery finds and what it does not.
 */
#ifndef TESTS_ORDER_SUBJECTS_H
#define TESTS_ORDER_SUBJECTS_H

#include <stdio.h>

#include "libshard/order/order.h"
#include "shard.h"
#include "tests/order/study.h"

enum subject {
	SUBJECT_ORDER,	   /* the library */
	SUBJECT_REFERENCE, /* Fisher-Yates with another generator: everything must pass */
	SUBJECT_ROUNDS_2,  /* a Feistel network of two rounds and no table, everywhere */
	SUBJECT_ROUNDS_4,  /* the same of four rounds */
	SUBJECT_NO_TABLE,  /* the same of twelve rounds, which is bad for a handful of records */
	SUBJECT_TABLE_4,   /* windows of four rounds and the table */
	SUBJECT_NO_TWEAK,  /* one permutation for all windows of an epoch */
	SUBJECT_MODULO,	   /* tables made with mod in place of below, of few random bits */
	SUBJECT_CONSTANT,  /* tables that ignore the epoch */
	SUBJECT_COUNT
};

static const char *const subject_names[SUBJECT_COUNT] = {"order",   "reference", "rounds-2", "rounds-4", "no-table",
							 "table-4", "no-tweak",	 "modulo",   "constant"};

static const uint32_t network_rounds[SUBJECT_COUNT] = {
	[SUBJECT_ROUNDS_2] = 2,
	[SUBJECT_ROUNDS_4] = 4,
	[SUBJECT_NO_TABLE] = FEISTEL_ROUNDS,
	[SUBJECT_TABLE_4] = 4,
	[SUBJECT_NO_TWEAK] = FEISTEL_ROUNDS,
};

static enum subject subject;
static uint16_t subject_table[ORDER_TABLE_ENTRIES_MAX];
static uint64_t reference_state[4];

__attribute__((noreturn)) static inline void subject_die(const char *what)
{
	fprintf(stderr, "prog_battery: %s\n", what);
	exit(2);
}

static inline void subject_begin(enum subject which, uint64_t seed)
{
	subject = which;
	for (int i = 0; i < 4; i++)
		reference_state[i] = seed * 4 + (uint64_t)i + 0x243f6a8885a308d3;
}

/* xoshiro256** of Blackman and Vigna: of another family than the order's own words. */
static inline uint64_t reference_word(void)
{
	uint64_t *s = reference_state, t = s[1] << 17, x = s[1] * 5, word = (x << 7 | x >> 57) * 9;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = s[3] << 45 | s[3] >> 19;
	return word;
}

static inline uint64_t modulo_word(uint64_t key, uint64_t i, uint64_t n)
{
	return random_draw(key, i) >> (n < 100 ? 60 : 47); /* 4 bits, or 17 */
}

static inline void shuffle_other(uint32_t *y, uint64_t n, uint64_t seed, uint64_t epoch)
{
	uint64_t key = random_key(seed, subject == SUBJECT_CONSTANT ? 0 : epoch, RANDOM_RECORDS);

	for (uint64_t i = 0; i < n; i++)
		y[i] = (uint32_t)i;
	for (uint64_t i = n; i-- > 1;) {
		uint64_t j =
			subject == SUBJECT_MODULO
				? modulo_word(key, i, n) % (i + 1)
				: random_below(subject == SUBJECT_REFERENCE ? reference_word() : random_draw(key, i),
					       i + 1);
		uint32_t t = y[i];

		y[i] = y[j];
		y[j] = t;
	}
}

/* The Feistel network of ORDER.md, part 3, with any count of rounds up to the library's. */
static inline void network(uint32_t *y, uint64_t n, uint64_t key, uint32_t rounds, uint64_t tweak)
{
	uint64_t b = (uint64_t)ceil(sqrt((double)n)), a = (n + b - 1) / b, k[FEISTEL_ROUNDS];

	for (uint32_t j = 0; j < rounds; j++)
		k[j] = random_draw(key, j) ^ tweak;
	for (uint64_t i = 0; i < n; i++) {
		uint64_t x = i;

		do {
			uint64_t hi = x / b, lo = x % b;

			for (uint32_t j = 0; j < rounds; j += 2) {
				hi = (hi + random_below(random_scramble(lo ^ k[j]), a)) % a;
				lo = (lo + random_below(random_scramble(hi ^ k[j + 1]), b)) % b;
			}
			x = hi * b + lo;
		} while (x >= n);
		y[i] = (uint32_t)x;
	}
}

/* The permutation of n records for a seed and an epoch: one level. */
static inline void subject_order(uint32_t *y, uint64_t n, uint64_t seed, uint64_t epoch)
{
	struct order_params p = {.kind = ORDER_ONE_LEVEL, .record_count = n, .seed = seed, .epoch = epoch};
	uint64_t records[256];
	struct order o;

	if (subject == SUBJECT_ROUNDS_2 || subject == SUBJECT_ROUNDS_4 || subject == SUBJECT_NO_TABLE) {
		network(y, n, random_key(seed, epoch, RANDOM_RECORDS), network_rounds[subject], 0);
	} else if (subject == SUBJECT_REFERENCE || subject == SUBJECT_MODULO || subject == SUBJECT_CONSTANT) {
		shuffle_other(y, n, seed, epoch);
	} else {
		if (order_init(&o, &p, subject_table) != SHARD_OK)
			subject_die("order_init refused one level");
		for (uint64_t first = 0; first < n; first += 256) {
			uint64_t count = n - first < 256 ? n - first : 256;

			order_fill(&o, first, 1, records, count);
			for (uint64_t i = 0; i < count; i++)
				y[first + i] = (uint32_t)records[i];
		}
	}
}

/* All windows of one size of an epoch; that of lane l is the l-th of each L. */
struct windows {
	struct order_params p;
	uint64_t n, count; /* records in a window, windows */
	uint32_t *y;	   /* count * n */
	uint64_t *run_at;  /* the inverse of the permutation of runs */
};

/*
 * Place within the window of the record at a tick; the position's lane and the window's first run
 * are known.
 */
static inline uint32_t slot_of(const struct order *o, const struct windows *w, uint64_t record, uint64_t lane,
			       uint64_t first_run)
{
	uint64_t n = w->p.record_count, r = w->p.run_records;
	uint64_t c = record >= o->phase ? record - o->phase : record + n - o->phase;
	uint64_t run = w->run_at[c / r], slot = (run / w->p.lane_count - first_run) * r + c % r;

	if (run % w->p.lane_count != lane || slot >= w->n)
		subject_die("a record is in another window than ORDER.md says");
	return (uint32_t)slot;
}

static inline void order_windows(struct windows *w, const struct order *o)
{
	uint64_t lanes = w->p.lane_count, longer = o->long_window_count, *records = study_take(w->n * 8);

	for (uint64_t i = 0; i < o->run_count; i++)
		w->run_at[permutation_at(&o->runs, i)] = i;
	for (uint64_t i = 0; i < w->count; i++) {
		uint64_t v = longer + i / lanes, lane = i % lanes, tick = o->long_ticks + i / lanes * w->n;

		order_fill(o, tick * lanes + lane, lanes, records, w->n);
		for (uint64_t x = 0; x < w->n; x++)
			w->y[i * w->n + x] = slot_of(o, w, records[x], lane, v * o->window_run_count + longer);
	}
	free(records);
}

/* Windows as the other subjects make them. */
static inline void other_windows(struct windows *w, uint64_t seed, uint64_t epoch)
{
	uint64_t key = random_key(seed, epoch, RANDOM_WINDOWS), tweaks = random_key(seed, epoch, RANDOM_TWEAKS);
	bool table = subject == SUBJECT_TABLE_4 && w->n <= PERMUTATION_TABLE_MAX;
	uint32_t rounds = network_rounds[subject];

	if (table)
		permutation_table(subject_table, w->n, random_key(seed, epoch, RANDOM_TABLE));
	for (uint64_t i = 0; i < w->count; i++) {
		uint32_t *y = w->y + i * w->n;

		if (rounds)
			network(y, w->n, key, rounds, subject == SUBJECT_NO_TWEAK ? 0 : random_draw(tweaks, i));
		else
			shuffle_other(y, w->n, seed * w->count + i, epoch);
		for (uint64_t x = 0; x < w->n && table; x++)
			y[x] = subject_table[y[x]];
	}
}

/* Windows of the smaller size, if there are two. */
static inline void subject_windows(struct windows *w, const struct order_params *p)
{
	struct order o;
	uint64_t n, count;

	if (order_init(&o, p, subject_table) != SHARD_OK)
		subject_die("order_init refused two levels");
	n = o.window_run_count * p->run_records;
	count = (o.lane_run_count - o.long_window_count) / o.window_run_count * p->lane_count -
		o.long_window_count * p->lane_count;
	if (!w->y) {
		w->y = study_take(n * count * sizeof(*w->y));
		w->run_at = study_take(o.run_count * sizeof(*w->run_at));
	}
	w->p = *p;
	w->n = n;
	w->count = count;
	if (subject == SUBJECT_ORDER)
		order_windows(w, &o);
	else
		other_windows(w, p->seed, p->epoch);
}

static inline void windows_free(struct windows *w)
{
	free(w->y);
	free(w->run_at);
}

#endif
