/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy.c - see copy.h
 *
 * Every x86-64 has 16-byte stores that pass the caches; where there is AVX2 its 32-byte ones are a
 * few per cent faster.  Elsewhere plain copies of 64 bytes, in order.
 */
#include "libshard/codec/copy.h"

#include <string.h>

#include "libshard/codec/checksum.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define LINE	   64u
#define HASH_BYTES 2048u /* hashed, then copied out of the first-level cache */

void copy_portable(void *dst, const void *src, size_t bytes)
{
	uint8_t *to = dst;
	const uint8_t *from = src;

	for (; bytes >= LINE; bytes -= LINE, to += LINE, from += LINE) {
		memcpy(to, from, LINE);		   /* of a known length: loads and stores, no call */
		__asm__ volatile("" ::: "memory"); /* or the compiler sees that the loop is a memcpy */
	}
	memcpy(to, from, bytes);
}

#if defined(__x86_64__)

/* Whole lines to an address that is a multiple of 64. */
static void lines_sse2(uint8_t *to, const uint8_t *from, size_t bytes)
{
	for (size_t i = 0; i < bytes; i += LINE) {
		__m128i a = _mm_loadu_si128((const void *)(from + i)),
			b = _mm_loadu_si128((const void *)(from + i + 16));
		__m128i c = _mm_loadu_si128((const void *)(from + i + 32)),
			d = _mm_loadu_si128((const void *)(from + i + 48));

		_mm_stream_si128((void *)(to + i), a);
		_mm_stream_si128((void *)(to + i + 16), b);
		_mm_stream_si128((void *)(to + i + 32), c);
		_mm_stream_si128((void *)(to + i + 48), d);
	}
}

__attribute__((target("avx2"))) static void lines_avx2(uint8_t *to, const uint8_t *from, size_t bytes)
{
	for (size_t i = 0; i < bytes; i += LINE) {
		__m256i a = _mm256_loadu_si256((const void *)(from + i)),
			b = _mm256_loadu_si256((const void *)(from + i + 32));

		_mm256_stream_si256((void *)(to + i), a);
		_mm256_stream_si256((void *)(to + i + 32), b);
	}
}

void copy_stream(void *dst, const void *src, size_t bytes)
{
	uint8_t *to = dst;
	const uint8_t *from = src;
	size_t head = (size_t)(-(uintptr_t)to % LINE), lines;

	if (head > bytes)
		head = bytes;
	memcpy(to, from, head);
	lines = (bytes - head) / LINE * LINE;
	if (__builtin_cpu_supports("avx2"))
		lines_avx2(to + head, from + head, lines);
	else
		lines_sse2(to + head, from + head, lines);
	memcpy(to + head + lines, from + head + lines, bytes - head - lines);
}

void copy_fence(void)
{
	_mm_sfence();
}

#else

void copy_stream(void *dst, const void *src, size_t bytes)
{
	copy_portable(dst, src, bytes);
}

void copy_fence(void)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

#endif

uint64_t copy_stream_hashed(void *dst, const void *src, size_t bytes)
{
	struct checksum_stream hash;

	if (bytes <= HASH_BYTES) { /* no state to keep */
		copy_stream(dst, src, bytes);
		return checksum64(src, bytes);
	}
	checksum64_init(&hash);
	for (size_t at = 0; at < bytes; at += HASH_BYTES) {
		size_t n = bytes - at < HASH_BYTES ? bytes - at : HASH_BYTES;

		checksum64_update(&hash, (const uint8_t *)src + at, n);
		copy_stream((uint8_t *)dst + at, (const uint8_t *)src + at, n);
	}
	return checksum64_final(&hash);
}
