/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bound_copy.c - the bare copy loops: libc, AVX2, AVX2 past the cache; whole images only
 */
#include "bench/common/bound.h"

#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#define AVX2 __attribute__((target("avx2")))

AVX2 static void copy_avx2(uint8_t *dst, const uint8_t *src)
{
	for (size_t i = 0; i < DATA_IMAGE_BYTES; i += 32)
		_mm256_storeu_si256((void *)(dst + i), _mm256_loadu_si256((const void *)(src + i)));
}

AVX2 static void copy_stream(uint8_t *dst, const uint8_t *src)
{
	for (size_t i = 0; i < DATA_IMAGE_BYTES; i += 64) {
		__m256i a = _mm256_loadu_si256((const void *)(src + i)), b = _mm256_loadu_si256((const void *)(src + i + 32));

		_mm256_stream_si256((void *)(dst + i), a);
		_mm256_stream_si256((void *)(dst + i + 32), b);
	}
	_mm_sfence();
}
#else
#define copy_avx2   copy_libc
#define copy_stream copy_libc
#endif

static void copy_libc(uint8_t *dst, const uint8_t *src)
{
	memcpy(dst, src, DATA_IMAGE_BYTES);
}

bool bound_copy_can(enum bound_copy_how how)
{
#if defined(__x86_64__)
	return how == BOUND_COPY_LIBC || __builtin_cpu_supports("avx2");
#else
	return how == BOUND_COPY_LIBC;
#endif
}

double bound_copy(const struct bound_copy *c, enum bound_copy_how how)
{
	void (*copy)(uint8_t *, const uint8_t *) = how == BOUND_COPY_LIBC ? copy_libc : how == BOUND_COPY_AVX2 ? copy_avx2 : copy_stream;
	double begin = bench_seconds();

	for (size_t i = 0; i < c->count; i++)
		copy(c->ring + i % c->ring_images * DATA_IMAGE_BYTES, c->image[i]);
	return (double)(c->count * DATA_IMAGE_BYTES) / (bench_seconds() - begin) / 1e9;
}
