/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ptx_memory.c - the memory that a launch may use, and a shadow of shared memory that shows races
 *
 * Of each byte of shared memory the shadow knows who wrote and who read it since the last barrier.
 * Threads run one after the other, so it does not depend on their order whether a race is seen.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/ptx/ptx.h"

#define SEVERAL UINT16_MAX

struct shadow {
	uint32_t written_phase, read_phase;
	uint16_t writer, reader;
};

struct ptx_memory {
	const struct ptx_program *program;
	const struct ptx_launch *launch;
	uint32_t parameter_bytes, phase;
	uint64_t random;
	uint8_t *shared;
	struct shadow *shadow;
};

struct ptx_memory *ptx_memory_new(const struct ptx_program *p, const struct ptx_launch *l, uint32_t parameter_bytes)
{
	struct ptx_memory *m = calloc(1, sizeof(*m));

	m->program = p;
	m->launch = l;
	m->parameter_bytes = parameter_bytes;
	m->random = l->seed | 1;
	m->shared = malloc(l->shared_bytes + 1);
	m->shadow = calloc(l->shared_bytes + 1, sizeof(*m->shadow));
	return m;
}

void ptx_memory_free(struct ptx_memory *m)
{
	free(m->shared);
	free(m->shadow);
	free(m);
}

void ptx_memory_block(struct ptx_memory *m)
{
	for (uint32_t i = 0; i < m->launch->shared_bytes; i++) {
		m->random = m->random * UINT64_C(6364136223846793005) + 1442695040888963407u;
		m->shared[i] = (uint8_t)(m->random >> 56);
	}
	ptx_memory_barrier(m);
}

void ptx_memory_barrier(struct ptx_memory *m)
{
	m->phase++;
}

static const char *use_shared(struct ptx_memory *m, uint64_t at, uint32_t bytes, uint16_t thread, bool store)
{
	if (at >= m->launch->shared_bytes || bytes > m->launch->shared_bytes - at)
		return "bound: outside shared memory";
	for (struct shadow *s = m->shadow + at; s < m->shadow + at + bytes; s++) {
		if (s->written_phase == m->phase && s->writer != thread)
			return "race: another thread wrote it since the last barrier";
		if (store && s->read_phase == m->phase && s->reader != thread)
			return "race: another thread read it since the last barrier";
		if (store) {
			s->written_phase = m->phase;
			s->writer = thread;
		} else if (s->read_phase != m->phase) {
			s->read_phase = m->phase;
			s->reader = thread;
		} else if (s->reader != thread) {
			s->reader = SEVERAL;
		}
	}
	return NULL;
}

static const char *use_region(const struct ptx_region *r, uint64_t at, uint32_t bytes, bool store)
{
	if (store && !r->writable)
		return "bound: writes where a launch may only read";
	if (!store && !r->readable)
		return "bound: reads where a launch may only write";
	for (uint64_t i = at - r->at; store && r->written && i < at - r->at + bytes; i++)
		if (r->written[i]++)
			return "twice: a byte of the output is written once more";
	return NULL;
}

/* Where the bytes lie, or NULL with what is wrong. */
static uint8_t *find(struct ptx_memory *m, enum ptx_space space, uint64_t at, uint32_t bytes, uint16_t thread,
		     bool store, const char **wrong)
{
	const struct ptx_launch *l = m->launch;

	if (space == PTX_SHARED) {
		*wrong = use_shared(m, at, bytes, thread, store);
		return m->shared + at;
	}
	*wrong = "bound: nothing is there";
	if (space == PTX_PARAMETER) {
		if (store || at >= m->parameter_bytes || bytes > m->parameter_bytes - at)
			return NULL;
		*wrong = NULL;
		return (uint8_t *)(uintptr_t)l->parameter + at;
	}
	if (space == PTX_CONSTANT) {
		uint32_t most = m->program->constant_bytes;

		if (store || at >= most || bytes > most - at)
			return NULL;
		*wrong = NULL;
		return (uint8_t *)(uintptr_t)m->program->constant + at;
	}
	for (uint32_t i = 0; i < l->region_count; i++) {
		const struct ptx_region *r = &l->region[i];

		if (at >= r->at && at - r->at < r->bytes && bytes <= r->bytes - (at - r->at)) {
			*wrong = use_region(r, at, bytes, store);
			return r->store + (at - r->at);
		}
	}
	return NULL;
}

const char *ptx_access(struct ptx_memory *m, enum ptx_space space, uint64_t at, uint32_t bytes, uint32_t thread,
		       void *bytes_in_or_out, bool store)
{
	const char *wrong;
	uint8_t *here;

	if (at % bytes)
		return "alignment: no multiple of the access's size";
	here = find(m, space, at, bytes, (uint16_t)thread, store, &wrong);
	if (wrong)
		return wrong;
	if (store)
		memcpy(here, bytes_in_or_out, bytes);
	else
		memcpy(bytes_in_or_out, here, bytes);
	return NULL;
}
