/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bound_chunks.c - the bare loop over compressed records: decode each chunk of a window once, then
 * copy records out of them
 */
#include "bench/common/bound_chunks.h"

#include <lz4.h>
#include <stdatomic.h>
#include <string.h>

#include "bench/common/say.h"
#include "bench/common/service.h"

struct job {
	const struct bound_chunks *c;
	size_t end;
	atomic_size_t next;
};

static void decode(void *context)
{
	struct job *j = context;
	const struct bound_chunks *c = j->c;

	for (size_t i; (i = atomic_fetch_add(&j->next, 1)) < j->end;) {
		const struct bound_chunk *chunk = &c->chunk[i];

		if (!chunk->is_lz4)
			memcpy(chunk->decoded, chunk->stored, c->chunk_bytes);
		else if (LZ4_decompress_safe((const char *)chunk->stored, (char *)chunk->decoded,
					     (int)chunk->stored_bytes, (int)c->chunk_bytes) != (int)c->chunk_bytes)
			bench_die("a chunk does not decode");
	}
}

double bound_chunks(const struct bound_chunks *c, enum bound_copy_how how, unsigned thread_count)
{
	double begin = bench_seconds();

	for (size_t w = 0; w < c->window_count; w++) {
		const struct bound_window *window = &c->window[w];
		struct job j = {.c = c, .next = window->first_chunk, .end = window[1].first_chunk};
		struct bound_copy copy = c->copy;

		bench_threads(thread_count, decode, &j);
		copy.record += window->first_record;
		copy.count = window[1].first_record - window->first_record;
		bound_copy(&copy, how, thread_count);
	}
	return (double)(c->copy.count * c->copy.record_bytes) / (bench_seconds() - begin) / 1e9;
}
