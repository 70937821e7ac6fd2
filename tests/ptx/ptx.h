/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ptx.h - an interpreter of the PTX that the library ships, which checks each access to memory
 *
 * ptx_read() takes a text such as transform_ptx and makes instructions of it.  It knows the opcodes
 * that are in the tables of ptx_ops.c and ptx_read.c, and no other: for anything else it fails, and
 * names the opcode and its line.  So a text that a newer compiler made is either understood or
 * refused.
 *
 * ptx_run() runs a kernel, one block after the other.  Each thread of a block runs alone until
 * its next barrier or shuffle, and chance draws the order of threads.  Registers and shared memory
 * begin as rubbish. The launch fails at the first of these:
 *
 *   - an access outside the regions that the launch grants, or outside shared memory or parameters;
 *   - an address that is no multiple of the access's size;
 *   - a race: two threads use a byte of shared memory between two barriers, and one writes;
 *   - threads of one block at different barriers, or some at a barrier and others at their end;
 *   - a shuffle that is not of all 32 threads of a warp, or to which not all of them come;
 *   - a byte of a region that is written twice, if the region counts;
 *   - a division by zero; a thread without an end; a launch that no GPU takes.
 *
 * What it does not check: the memory model beyond barriers (the kernels have no atomics and no
 * fences), the driver's compiler, and speed.
 */
#ifndef TESTS_PTX_PTX_H
#define TESTS_PTX_PTX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PTX_ERROR_BYTES	   256
#define PTX_PARTS	   4 /* operands of an instruction, or registers between braces */
#define PTX_WARP	   32u
#define PTX_CONSTANT_BYTES 1024u

struct ptx_type {
	char kind; /* u, s, b, f, or p of a predicate */
	uint8_t bits;
};

struct ptx_operand {
	bool is_register;
	uint16_t number; /* of the register */
	uint64_t value;
};

enum ptx_kind {
	PTX_COMPUTE,
	PTX_LOAD,
	PTX_STORE,
	PTX_PACK,
	PTX_UNPACK,
	PTX_BRANCH,
	PTX_BARRIER,
	PTX_SHUFFLE,
	PTX_RETURN
};
enum ptx_space { PTX_GENERIC, PTX_SHARED, PTX_PARAMETER, PTX_CONSTANT };

struct ptx_instruction {
	enum ptx_kind kind;
	enum ptx_space space;
	uint64_t (*compute)(const struct ptx_instruction *i, const uint64_t *v);
	const char *roles; /* of the operands: see ptx_ops.c */
	struct ptx_type type, from;
	int guard; /* the register of its predicate, or -1 */
	bool guard_not, is_quotient, is_fraction;
	uint8_t count; /* of parts */
	struct ptx_operand part[PTX_PARTS], to, address;
	struct ptx_operand valid; /* of a shuffle: the register that tells whether it brought a value */
	int64_t offset;
	uint32_t target, line;
};

struct ptx_kernel {
	char name[64];
	uint32_t parameter_bytes, threads_most;
	uint32_t count, register_count;
	struct ptx_instruction *code;
	uint8_t *register_bits;
};

/* The line ran; it used shared bytes before the launch's table_end, or behind it. */
enum { PTX_IN_TABLE = 1, PTX_BEHIND_TABLE = 2, PTX_RAN = 4 };

struct ptx_program {
	uint32_t kernel_count, line_count;
	struct ptx_kernel kernel[16];
	uint8_t *touched; /* [line] */
	uint8_t constant[PTX_CONSTANT_BYTES];
	uint32_t constant_bytes;
};

/* NULL if the text is not understood; then `error` says where. */
struct ptx_program *ptx_read(const char *text, char error[PTX_ERROR_BYTES]);
void ptx_free(struct ptx_program *p);

/* Addresses [at, at + bytes) of the device; their bytes lie at `store`. */
struct ptx_region {
	uint64_t at, bytes;
	uint8_t *store;
	bool writable, readable;
	uint8_t *written; /* [bytes] how often, or NULL; then any number is fine */
};

#define PTX_REGIONS 8
struct ptx_launch {
	const char *name;
	uint32_t grid[2], threads, shared_bytes, table_end;
	const void *parameter;
	struct ptx_region region[PTX_REGIONS];
	uint32_t region_count;
	uint64_t seed;
};

bool ptx_run(struct ptx_program *p, const struct ptx_launch *launch, char error[PTX_ERROR_BYTES]);

/* ---- ptx_ops.c ---- */

struct ptx_op {
	const char *name, *types; /* types: a list of words, each the rest of the opcode */
	const char *roles;
	uint64_t (*compute)(const struct ptx_instruction *i, const uint64_t *v);
};
const struct ptx_op *ptx_find_op(const char *opcode); /* NULL if it is not known */
bool ptx_is_word(const char *list, const char *word); /* the words of a list stand one blank apart */
uint64_t ptx_extend(uint64_t v, struct ptx_type type);
static inline uint64_t ptx_mask(unsigned bits)
{
	return bits < 64 ? (UINT64_C(1) << bits) - 1 : UINT64_MAX;
}

/* ---- ptx_memory.c ---- */

struct ptx_memory;
struct ptx_memory *ptx_memory_new(const struct ptx_program *p, const struct ptx_launch *l, uint32_t parameter_bytes);
void ptx_memory_free(struct ptx_memory *m);
void ptx_memory_block(struct ptx_memory *m);   /* a block begins: shared memory is rubbish */
void ptx_memory_barrier(struct ptx_memory *m); /* what is before it does not race with what is behind */
/* NULL, or what is wrong; then nothing was moved. */
const char *ptx_access(struct ptx_memory *m, enum ptx_space space, uint64_t at, uint32_t bytes, uint32_t thread,
		       void *bytes_in_or_out, bool store);

#endif
