/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bound_hash.c - the bare XXH3-64 loop: each image where it is mapped, by as many threads as verify
 * has
 */
#include "bench/common/bound_hash.h"

#include <stdatomic.h>
#include <stdlib.h>

#if defined(__x86_64__)
#include <xxh_x86dispatch.h>
#else
#include <xxhash.h>
#endif

#define CLAIM 32 /* images that a thread takes at a time: about as many bytes as verify does */

struct job {
	const struct data_files *files;
	const uint8_t *const *map;
	atomic_uint_fast64_t next;
	atomic_uint_fast64_t sum; /* so that no hash is optimized away */
};

static void work(void *context)
{
	struct job *j = context;
	uint64_t sum = 0;

	for (uint64_t at; (at = atomic_fetch_add(&j->next, CLAIM)) < j->files->record_count;)
		for (uint64_t i = at; i < at + CLAIM && i < j->files->record_count; i++) {
			uint64_t per_file = j->files->file[0].record_count; /* the same in all */
			const struct data_file *f = &j->files->file[i / per_file];
			const uint8_t *image =
				j->map[i / per_file] + f->record_offset + i % per_file * DATA_IMAGE_BYTES;

			sum += XXH3_64bits(image, DATA_IMAGE_BYTES);
		}
	atomic_fetch_add(&j->sum, sum);
}

double bound_hash(const struct data_files *files, const uint8_t *const *map, unsigned thread_count)
{
	struct job j = {.files = files, .map = map};
	double begin = bench_seconds(), seconds;

	bench_threads(thread_count, work, &j);
	seconds = bench_seconds() - begin;
	if (!j.sum)
		bench_die("all hashes are 0");
	return (double)(files->record_count * DATA_IMAGE_BYTES) / seconds / 1e9;
}
