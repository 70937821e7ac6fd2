/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ptx_run.c - blocks of threads, each of which runs alone from one barrier or shuffle to the next
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/ptx/ptx.h"

#define THREADS_MOST 1024u
#define SHARED_MOST  49152u
#define STEPS_MOST   4000000u /* of a thread of a block */
#define ENDED	     UINT32_MAX

/* Registers 0 to 5 hold what ptx_read.c calls specials. */
struct thread {
	uint64_t *reg;
	uint32_t pc, steps;
	uint32_t stop; /* where it stands: behind a barrier or shuffle, or at its end */
};

struct run {
	const struct ptx_kernel *kernel;
	const struct ptx_launch *launch;
	struct ptx_memory *memory;
	struct thread *team;
	uint32_t *order;
	uint8_t *touched;
	uint32_t block[2];
	uint64_t random;
	char *error;
};

static uint64_t chance(struct run *r)
{
	uint64_t z = r->random += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	return z ^ z >> 31;
}

static bool fail(struct run *r, uint32_t thread, uint32_t line, const char *why, uint64_t value)
{
	snprintf(r->error, PTX_ERROR_BYTES,
		 "%s, line %" PRIu32 ", block (%" PRIu32 ", %" PRIu32 "), thread %" PRIu32 ": %s (%#" PRIx64 ")",
		 r->launch->name, line, r->block[0], r->block[1], thread, why, value);
	return false;
}

static uint64_t value_of(const struct thread *t, const struct ptx_operand *o)
{
	return o->is_register ? t->reg[o->number] : o->value;
}

static void set(const struct run *r, struct thread *t, const struct ptx_operand *to, uint64_t value)
{
	t->reg[to->number] = value & ptx_mask(r->kernel->register_bits[to->number]);
}

static bool compute(struct run *r, struct thread *t, const struct ptx_instruction *i)
{
	uint64_t v[PTX_PARTS], out;

	for (unsigned k = 0; k < i->count; k++) {
		char role = i->roles[k + 1];
		struct ptx_type type = i->type;

		if (role == 'u')
			type = (struct ptx_type){'u', 32};
		else if (role == 'p')
			type = (struct ptx_type){'p', 1};
		else if (role == 'f')
			type = i->from;
		else if (role == 'w')
			type.bits *= 2;
		v[k] = ptx_extend(value_of(t, &i->part[k]), type);
	}
	if (i->is_quotient && !i->is_fraction && !v[1])
		return fail(r, (uint32_t)(t - r->team), i->line, "division by zero", v[0]);
	out = i->compute(i, v);
	set(r, t, &i->to, i->roles[0] == 't' ? ptx_extend(out, i->type) : out);
	return true;
}

static bool move(struct run *r, struct thread *t, const struct ptx_instruction *i)
{
	uint32_t each = i->type.bits / 8u, bytes = each * i->count, thread = (uint32_t)(t - r->team);
	uint64_t at = value_of(t, &i->address) + (uint64_t)i->offset, value;
	uint8_t data[16];
	const char *wrong;

	if (i->space == PTX_SHARED) {
		at &= UINT32_MAX; /* its addresses have 32 bits */
		r->touched[i->line] |= at < r->launch->table_end ? PTX_IN_TABLE : PTX_BEHIND_TABLE;
	}
	for (unsigned k = 0; i->kind == PTX_STORE && k < i->count; k++) {
		value = value_of(t, &i->part[k]);
		memcpy(data + k * each, &value, each);
	}
	wrong = ptx_access(r->memory, i->space, at, bytes, thread, data, i->kind == PTX_STORE);
	if (wrong)
		return fail(r, thread, i->line, wrong, at);
	for (unsigned k = 0; i->kind == PTX_LOAD && k < i->count; k++) {
		value = 0;
		memcpy(&value, data + k * each, each);
		set(r, t, &i->part[k], ptx_extend(value, i->type));
	}
	return true;
}

static void pack(const struct run *r, struct thread *t, const struct ptx_instruction *i)
{
	unsigned each = i->type.bits / i->count;
	uint64_t all = i->kind == PTX_UNPACK ? value_of(t, &i->to) : 0;

	for (unsigned k = 0; k < i->count; k++)
		if (i->kind == PTX_UNPACK)
			set(r, t, &i->part[k], all >> k * each & ptx_mask(each));
		else
			all |= (value_of(t, &i->part[k]) & ptx_mask(each)) << k * each;
	if (i->kind == PTX_PACK)
		set(r, t, &i->to, all);
}

/* To the next barrier or shuffle, which is left behind, or to the end. */
static bool run_thread(struct run *r, struct thread *t)
{
	for (; t->steps < STEPS_MOST; t->steps++) {
		const struct ptx_instruction *i = &r->kernel->code[t->pc++];
		bool runs = i->guard < 0 || (t->reg[i->guard] != 0) != i->guard_not;

		r->touched[i->line] |= PTX_RAN;
		if (!runs)
			continue;
		switch (i->kind) {
		case PTX_COMPUTE:
			if (!compute(r, t, i))
				return false;
			break;
		case PTX_LOAD:
		case PTX_STORE:
			if (!move(r, t, i))
				return false;
			break;
		case PTX_PACK:
		case PTX_UNPACK:
			pack(r, t, i);
			break;
		case PTX_BRANCH:
			t->pc = i->target;
			break;
		case PTX_BARRIER:
		case PTX_SHUFFLE:
			t->stop = t->pc;
			return true;
		case PTX_RETURN:
			t->pc = t->stop = ENDED;
			return true;
		}
	}
	return fail(r, (uint32_t)(t - r->team), 0, "a thread does not end", t->steps);
}

static void begin_block(struct run *r)
{
	const struct ptx_launch *l = r->launch;

	ptx_memory_block(r->memory);
	for (uint32_t n = 0; n < l->threads; n++) {
		struct thread *t = &r->team[n];
		const uint64_t special[] = {n, l->threads, r->block[0], r->block[1], l->grid[0], l->grid[1]};

		t->pc = t->steps = 0;
		for (uint32_t k = 0; k < r->kernel->register_count; k++)
			t->reg[k] = chance(r) & ptx_mask(r->kernel->register_bits[k]);
		memcpy(t->reg, special, sizeof(special));
	}
}

static bool at_shuffle(const struct run *r, const struct thread *t)
{
	return t->stop != ENDED && r->kernel->code[t->stop - 1].kind == PTX_SHUFFLE;
}

/* The threads of a warp exchange what they brought to a shuffle. */
static bool exchange(struct run *r, uint32_t first, const struct ptx_instruction *i)
{
	struct thread *t = &r->team[first];
	uint64_t brought[PTX_WARP];

	for (uint32_t n = 0; n < PTX_WARP; n++) {
		if (first + n == r->launch->threads || t[n].stop != t->stop)
			return fail(r, first + n, i->line, "shuffle: another thread of the warp is not there", n);
		if (value_of(&t[n], &i->part[2]) != PTX_WARP - 1 ||
		    (uint32_t)value_of(&t[n], &i->part[3]) != UINT32_MAX)
			return fail(r, first + n, i->line, "shuffle: only those of a whole warp are known", n);
		brought[n] = value_of(&t[n], &i->part[0]);
	}
	for (uint32_t n = 0; n < PTX_WARP; n++) {
		set(r, &t[n], &i->to, brought[(n ^ value_of(&t[n], &i->part[1])) % PTX_WARP]);
		set(r, &t[n], &i->valid, 1);
	}
	return true;
}

/* The threads of a warp, or of the block, in the order that was drawn. */
static bool run_threads(struct run *r, uint32_t first, uint32_t count)
{
	for (uint32_t n = 0; n < r->launch->threads; n++)
		if (r->order[n] - first < count && !run_thread(r, &r->team[r->order[n]]))
			return false;
	return true;
}

/* All threads of the block to the next barrier. */
static bool run_to_barrier(struct run *r)
{
	uint32_t threads = r->launch->threads;

	if (!run_threads(r, 0, threads))
		return false;
	for (uint32_t first = 0; first < threads; first += PTX_WARP)
		for (uint32_t n = 0; n < PTX_WARP && first + n < threads;)
			if (!at_shuffle(r, &r->team[first + n])) {
				n++;
			} else {
				uint32_t stop = r->team[first + n].stop;

				if (!exchange(r, first, &r->kernel->code[stop - 1]) || !run_threads(r, first, PTX_WARP))
					return false;
				n = 0;
			}
	return true;
}

static bool run_block(struct run *r)
{
	uint32_t stop = 0;

	begin_block(r);
	while (stop != ENDED) {
		for (uint32_t n = r->launch->threads; n > 1; n--) { /* CUDA promises no order */
			uint32_t k = (uint32_t)(chance(r) % n), o = r->order[k];

			r->order[k] = r->order[n - 1];
			r->order[n - 1] = o;
		}
		if (!run_to_barrier(r))
			return false;
		stop = r->team[r->order[0]].stop;
		for (uint32_t n = 1; n < r->launch->threads; n++)
			if (r->team[r->order[n]].stop != stop)
				return fail(r, r->order[n], stop == ENDED ? 0 : r->kernel->code[stop - 1].line,
					    "barrier: another thread of the block is not there",
					    r->team[r->order[n]].stop);
		ptx_memory_barrier(r->memory);
	}
	return true;
}

static const struct ptx_kernel *kernel_of(const struct ptx_program *p, const char *name)
{
	for (uint32_t k = 0; k < p->kernel_count; k++)
		if (!strcmp(p->kernel[k].name, name))
			return &p->kernel[k];
	return NULL;
}

static const char *refusal(const struct ptx_kernel *k, const struct ptx_launch *l)
{
	if (!k)
		return "launch: there is no such kernel";
	if (!l->threads || l->threads > k->threads_most || l->threads > THREADS_MOST)
		return "launch: so many threads are not granted";
	if (!l->grid[0] || !l->grid[1] || l->grid[0] > INT32_MAX || l->grid[1] > UINT16_MAX)
		return "launch: no GPU takes this grid";
	return l->shared_bytes > SHARED_MOST ? "launch: so much shared memory is not granted" : NULL;
}

bool ptx_run(struct ptx_program *p, const struct ptx_launch *launch, char error[PTX_ERROR_BYTES])
{
	const struct ptx_kernel *k = kernel_of(p, launch->name);
	struct run r = {.kernel = k, .launch = launch, .touched = p->touched, .random = launch->seed, .error = error};
	const char *why = refusal(k, launch);
	uint64_t blocks = (uint64_t)launch->grid[0] * launch->grid[1], *registers;
	bool good = true;

	if (why)
		return fail(&r, 0, 0, why, launch->threads);
	registers = malloc((uint64_t)launch->threads * k->register_count * sizeof(*registers));
	r.team = calloc(launch->threads, sizeof(*r.team));
	r.order = calloc(launch->threads, sizeof(*r.order));
	r.memory = ptx_memory_new(p, launch, k->parameter_bytes);
	for (uint32_t n = 0; n < launch->threads; n++) {
		r.team[n].reg = registers + (uint64_t)n * k->register_count;
		r.order[n] = n;
	}
	for (uint64_t b = blocks; good && b-- > 0;) {
		r.block[0] = (uint32_t)(b % launch->grid[0]);
		r.block[1] = (uint32_t)(b / launch->grid[0]);
		good = run_block(&r);
	}
	ptx_memory_free(r.memory);
	free(r.order);
	free(r.team);
	free(registers);
	return good;
}

void ptx_free(struct ptx_program *p)
{
	if (!p)
		return;
	for (uint32_t k = 0; k < p->kernel_count; k++) {
		free(p->kernel[k].code);
		free(p->kernel[k].register_bits);
	}
	free(p->touched);
	free(p);
}
