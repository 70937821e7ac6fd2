/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ptx_count.c - see ptx_count.h
 */
#include "tests/ptx/ptx_count.h"

#include <stdlib.h>
#include <string.h>

#define WARP	     32u
#define SECTOR_BYTES 32u
#define BANK_BYTES   4u
#define BANKS	     32u

struct step {
	uint32_t number; /* of the instruction */
	bool runs;
	uint64_t at; /* of a load or store */
};

/* What a thread did since the last barrier, and what its registers wait for. */
struct track {
	struct step *step;
	uint32_t count, room;
	uint16_t *chain; /* [register] loads that its value is made of */
	uint32_t *trip;	 /* [register] the number of the round trip that brings it, or 0 */
	uint32_t waits, loads;
};

struct ptx_counter {
	const struct ptx_kernel *kernel;
	uint32_t threads;
	struct track *track;
	struct ptx_counts sum;
};

struct ptx_counter *ptx_counter_new(const struct ptx_kernel *k, const struct ptx_launch *l)
{
	struct ptx_counter *c = calloc(1, sizeof(*c));

	c->kernel = k;
	c->threads = l->threads;
	c->track = calloc(l->threads, sizeof(*c->track));
	for (uint32_t n = 0; n < l->threads; n++) {
		c->track[n].chain = calloc(k->register_count, sizeof(*c->track->chain));
		c->track[n].trip = calloc(k->register_count, sizeof(*c->track->trip));
	}
	return c;
}

void ptx_counter_free(struct ptx_counter *c, struct ptx_counts *out)
{
	*out = c->sum;
	for (uint32_t n = 0; n < c->threads; n++) {
		free(c->track[n].step);
		free(c->track[n].chain);
		free(c->track[n].trip);
	}
	free(c->track);
	free(c);
}

/* ---- one thread ---- */

static bool is_move(const struct ptx_instruction *i)
{
	return i->kind == PTX_LOAD || i->kind == PTX_STORE;
}

/* Are its parts what it makes, and not what it reads? */
static bool makes_parts(const struct ptx_instruction *i)
{
	return i->kind == PTX_LOAD || i->kind == PTX_UNPACK;
}

/* Registers that the instruction reads; returns how many. */
static unsigned sources(const struct ptx_instruction *i, uint16_t source[PTX_PARTS + 3])
{
	unsigned count = 0;

	if (i->guard >= 0)
		source[count++] = (uint16_t)i->guard;
	if (is_move(i) && i->address.is_register)
		source[count++] = i->address.number;
	if (i->kind == PTX_UNPACK && i->to.is_register)
		source[count++] = i->to.number;
	for (unsigned k = 0; k < i->count; k++)
		if (!makes_parts(i) && i->part[k].is_register)
			source[count++] = i->part[k].number;
	return count;
}

static void set(struct track *t, const struct ptx_operand *to, uint16_t chain, uint32_t trip)
{
	t->chain[to->number] = chain;
	t->trip[to->number] = trip;
}

/* Chains and waits: what the instruction needs, and what its results will need. */
static void follow(struct ptx_counter *c, struct track *t, const struct ptx_instruction *i, bool runs)
{
	uint16_t source[PTX_PARTS + 3], chain = 0;
	unsigned count = sources(i, source);
	bool global = i->kind == PTX_LOAD && i->space == PTX_GENERIC, waits = false;

	for (unsigned k = 0; k < count; k++) {
		waits |= t->trip[source[k]] == t->waits + 1;
		if (runs && t->chain[source[k]] > chain)
			chain = t->chain[source[k]];
	}
	t->waits += waits;
	if (!runs)
		return;
	t->loads += global;
	chain = (uint16_t)(chain + global);
	if (chain > c->sum.chain)
		c->sum.chain = chain;
	for (unsigned k = 0; makes_parts(i) && k < i->count; k++)
		set(t, &i->part[k], chain, global ? t->waits + 1 : 0);
	if (i->kind == PTX_COMPUTE || i->kind == PTX_PACK)
		set(t, &i->to, chain, 0);
}

void ptx_counter_step(struct ptx_counter *c, uint32_t thread, const struct ptx_instruction *i, const uint64_t *reg,
		      bool runs)
{
	struct track *t = &c->track[thread];
	struct step *s;

	if (t->count == t->room) {
		t->room = t->room ? 2 * t->room : 1024;
		t->step = realloc(t->step, t->room * sizeof(*t->step));
	}
	s = &t->step[t->count++];
	*s = (struct step){.number = (uint32_t)(i - c->kernel->code), .runs = runs};
	if (is_move(i))
		s->at = (i->address.is_register ? reg[i->address.number] : i->address.value) + (uint64_t)i->offset;
	c->sum.fractions += runs && i->is_fraction;
	c->sum.divisions += runs && i->is_quotient;
	follow(c, t, i, runs);
}

/* ---- a warp ---- */

static int by_value(const void *a, const void *b)
{
	uint64_t l = *(const uint64_t *)a, r = *(const uint64_t *)b;

	return (l > r) - (l < r);
}

/* Sort, and leave one of each; returns how many. */
static unsigned distinct(uint64_t *v, unsigned count)
{
	unsigned kept = 0;

	qsort(v, count, sizeof(*v), by_value);
	for (unsigned k = 0; k < count; k++)
		if (!k || v[k] != v[k - 1])
			v[kept++] = v[k];
	return kept;
}

/* All places that are so many bytes long of which the accesses touch a byte. */
static unsigned places(const uint64_t *at, unsigned count, uint32_t bytes, uint32_t each, uint64_t *place)
{
	unsigned found = 0;

	for (unsigned k = 0; k < count; k++)
		for (uint64_t p = at[k] / each; p <= (at[k] + bytes - 1) / each; p++)
			place[found++] = p;
	return distinct(place, found);
}

static void count_global(struct ptx_traffic *sum, const uint64_t *at, unsigned count, uint32_t bytes)
{
	uint64_t place[WARP * 16];

	sum->accesses++;
	sum->sectors += places(at, count, bytes, SECTOR_BYTES, place);
	sum->bytes += places(at, count, bytes, 1, place);
}

static unsigned passes(const uint64_t *at, unsigned count, uint32_t bytes)
{
	uint64_t word[WARP * 4];
	unsigned words = places(at, count, bytes, BANK_BYTES, word), bank[BANKS] = {0}, most = 0;

	for (unsigned k = 0; k < words; k++)
		most = ++bank[word[k] % BANKS] > most ? bank[word[k] % BANKS] : most;
	return most;
}

static void count_shared(struct ptx_counts *sum, const uint64_t *at, const bool *runs, uint32_t bytes)
{
	unsigned parts = bytes > 4 ? bytes / 4 : 1;

	sum->shared_accesses++;
	for (unsigned first = 0; first < WARP; first += WARP / parts) {
		uint64_t here[WARP];
		unsigned count = 0;

		for (unsigned n = first; n < first + WARP / parts; n++)
			if (runs[n])
				here[count++] = at[n] & UINT32_MAX;
		sum->shared_passes += passes(here, count, bytes);
		sum->shared_least += count > 0;
	}
}

/* These threads of a warp are at one instruction. */
static void count_warp(struct ptx_counts *sum, const struct ptx_instruction *i, const uint64_t *at, const bool *runs)
{
	uint32_t bytes = i->type.bits / 8u * i->count;
	uint64_t here[WARP];
	unsigned count = 0;

	sum->instructions += i->space != PTX_PARAMETER;
	for (unsigned n = 0; n < WARP; n++)
		if (runs[n])
			here[count++] = at[n];
	if (!is_move(i) || i->space == PTX_PARAMETER || !count)
		return;
	if (i->space == PTX_SHARED)
		count_shared(sum, at, runs, bytes);
	else
		count_global(i->kind == PTX_LOAD ? &sum->load : &sum->store, here, count, bytes);
}

static void replay(struct ptx_counter *c, struct track *warp, uint32_t threads)
{
	uint32_t done[WARP] = {0};

	for (;;) {
		uint32_t lowest = UINT32_MAX;
		uint64_t at[WARP] = {0};
		bool runs[WARP] = {false};

		for (uint32_t n = 0; n < threads; n++)
			if (done[n] < warp[n].count && warp[n].step[done[n]].number < lowest)
				lowest = warp[n].step[done[n]].number;
		if (lowest == UINT32_MAX)
			return;
		for (uint32_t n = 0; n < threads; n++)
			if (done[n] < warp[n].count && warp[n].step[done[n]].number == lowest) {
				at[n] = warp[n].step[done[n]].at;
				runs[n] = warp[n].step[done[n]++].runs;
			}
		count_warp(&c->sum, &c->kernel->code[lowest], at, runs);
	}
}

static void end_thread(struct ptx_counter *c, struct track *t)
{
	if (t->waits > c->sum.waits || (t->waits == c->sum.waits && t->loads > c->sum.loads)) {
		c->sum.waits = t->waits;
		c->sum.loads = t->loads;
	}
	t->waits = t->loads = 0;
	memset(t->chain, 0, c->kernel->register_count * sizeof(*t->chain));
	memset(t->trip, 0, c->kernel->register_count * sizeof(*t->trip));
}

void ptx_counter_meet(struct ptx_counter *c, bool end)
{
	for (uint32_t n = 0; n < c->threads; n += WARP)
		replay(c, c->track + n, c->threads - n < WARP ? c->threads - n : WARP);
	for (uint32_t n = 0; n < c->threads; n++) {
		c->track[n].count = 0;
		if (end)
			end_thread(c, &c->track[n]);
	}
}
