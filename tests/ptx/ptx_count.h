/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ptx_count.h - what a launch asks of a GPU, counted while the interpreter runs it
 *
 * Counts are exact and the same on every machine.  They are no times: they say what a kernel asks
 * for, not how long a GPU takes.
 *
 * The interpreter runs one thread after the other.  Between two barriers the counter keeps what
 * each thread did, and then lays the 32 threads of a warp side by side: at each step, those go on
 * that stand at the lowest line.  So threads that went different ways meet again where the text
 * joins, as they do on a GPU.
 *
 *   - An instruction counts once for a warp, however many of its threads take part.  Loads of
 *     parameters do not count: other instructions take them as operands.
 *   - Global memory moves in sectors of 32 bytes.  An access of a warp asks for each sector that
 *     one of its threads touches.  It uses the bytes that they touch.
 *   - Shared memory has 32 banks of 4 bytes.  An access of a warp takes one pass, or as many as
 *     different words of one bank are asked for.  Accesses of 8 and 16 bytes go by halves and
 *     quarters of a warp.
 *   - A chain is the most loads from global memory of which each gets its address from the one
 *     before.  Addresses that went through shared memory begin a new chain.
 *   - A wait is an instruction that needs what a load from global memory brings, if that load was
 *     begun behind the last wait.  All loads before it then come in one round trip.  The driver may
 *     move loads further up, so these are the most waits that the text leaves.
 */
#ifndef TESTS_PTX_PTX_COUNT_H
#define TESTS_PTX_PTX_COUNT_H

#include "tests/ptx/ptx.h"

struct ptx_traffic { /* of global memory */
	uint64_t accesses, sectors, bytes;
};

struct ptx_counts {
	uint64_t instructions;	       /* of warps */
	uint64_t fractions, divisions; /* of threads: 64-bit floating point; div and rem of any type */
	struct ptx_traffic load, store;
	uint64_t shared_accesses, shared_passes, shared_least; /* least: passes if no two threads met in a bank */
	uint32_t chain;
	uint32_t waits, loads; /* of the thread that waits most */
};

struct ptx_counter;
struct ptx_counter *ptx_counter_new(const struct ptx_kernel *k, const struct ptx_launch *l);
void ptx_counter_free(struct ptx_counter *c, struct ptx_counts *out);
/* A thread comes to instruction `i`, with these registers; `runs`: its predicate lets it. */
void ptx_counter_step(struct ptx_counter *c, uint32_t thread, const struct ptx_instruction *i, const uint64_t *reg,
		      bool runs);
/* All threads stand at a barrier, or at their end. */
void ptx_counter_meet(struct ptx_counter *c, bool end);

#endif
