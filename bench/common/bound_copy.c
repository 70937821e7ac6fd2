/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bound_copy.c - the bare copy loops: libc, AVX2, AVX2 past the cache, and this with prefetches;
 * records of whole cache lines
 */
#include "bench/common/bound_copy.h"

#include <stdatomic.h>
#include <string.h>

#define AHEAD	    16u	 /* records */
#define AHEAD_BYTES 512u /* of each of them: the processor sees by itself how a long record goes on */

/* `known` records lie in the array, of which `count` are to be copied. */
typedef void copy_fn(uint8_t *dst, const uint8_t *const *record, size_t count, size_t known, size_t bytes);

struct job {
	const struct bound_copy *c;
	copy_fn *copy;
	atomic_size_t next;
};

static void copy_libc(uint8_t *dst, const uint8_t *const *record, size_t count, size_t known, size_t bytes)
{
	(void)known;
	for (size_t r = 0; r < count; r++)
		memcpy(dst + r * bytes, record[r], bytes);
}

#if defined(__x86_64__)
#include <immintrin.h>

#include "bench/common/service.h"
#define AVX2 __attribute__((target("avx2")))

AVX2 static void copy_avx2(uint8_t *dst, const uint8_t *const *record, size_t count, size_t known, size_t bytes)
{
	(void)known;
	for (size_t r = 0; r < count; r++, dst += bytes)
		for (size_t i = 0; i < bytes; i += 32)
			_mm256_storeu_si256((void *)(dst + i), _mm256_loadu_si256((const void *)(record[r] + i)));
}

AVX2 static inline void stream_record(uint8_t *dst, const uint8_t *src, size_t bytes)
{
	for (size_t i = 0; i < bytes; i += 64) {
		__m256i a = _mm256_loadu_si256((const void *)(src + i)),
			b = _mm256_loadu_si256((const void *)(src + i + 32));

		_mm256_stream_si256((void *)(dst + i), a);
		_mm256_stream_si256((void *)(dst + i + 32), b);
	}
}

AVX2 static void copy_stream(uint8_t *dst, const uint8_t *const *record, size_t count, size_t known, size_t bytes)
{
	(void)known;
	for (size_t r = 0; r < count; r++, dst += bytes)
		stream_record(dst, record[r], bytes);
	_mm_sfence();
}

AVX2 static void copy_ahead(uint8_t *dst, const uint8_t *const *record, size_t count, size_t known, size_t bytes)
{
	size_t ahead = bytes < AHEAD_BYTES ? bytes : AHEAD_BYTES;

	for (size_t r = 0; r < count; r++, dst += bytes) {
		for (size_t i = 0; r + AHEAD < known && i < ahead; i += 64)
			_mm_prefetch((const void *)(record[r + AHEAD] + i), _MM_HINT_T0);
		stream_record(dst, record[r], bytes);
	}
	_mm_sfence();
}
#else
#define copy_avx2   copy_libc
#define copy_stream copy_libc
#define copy_ahead  copy_libc
#endif

bool bound_copy_can(enum bound_copy_how how)
{
#if defined(__x86_64__)
	return how == BOUND_COPY_LIBC || __builtin_cpu_supports("avx2");
#else
	return how == BOUND_COPY_LIBC;
#endif
}

static void work(void *context)
{
	struct job *j = context;
	const struct bound_copy *c = j->c;

	for (size_t at; (at = atomic_fetch_add(&j->next, c->batch_records)) < c->count;) {
		size_t n = c->count - at < c->batch_records ? c->count - at : c->batch_records;

		j->copy(c->ring + at % c->ring_records * c->record_bytes, c->record + at, n, c->count - at,
			c->record_bytes);
	}
}

double bound_copy(const struct bound_copy *c, enum bound_copy_how how, unsigned thread_count)
{
	static copy_fn *const copies[] = {copy_libc, copy_avx2, copy_stream, copy_ahead};
	struct job j = {.c = c, .copy = copies[how]};
	double begin = bench_seconds();

	bench_threads(thread_count, work, &j);
	return (double)(c->count * c->record_bytes) / (bench_seconds() - begin) / 1e9;
}
