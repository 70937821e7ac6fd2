/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sha256.c - SHA-256 by the SHA instructions of x86, one stream or two
 */
#include "bench/common/sha256.h"

#include <string.h>

#include "bench/common/say.h"
#include "shard_pack.h"

void bench_sha256_init(uint32_t h[8])
{
	static const uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
					  0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

	memcpy(h, start, sizeof(start));
}

void bench_sha256_final(uint32_t h[8], uint64_t bytes, uint8_t digest[32])
{
	uint8_t last[64] = {0x80};
	const uint8_t *data = last;

	for (int i = 0; i < 8; i++)
		last[56 + i] = (uint8_t)(bytes * 8 >> (56 - 8 * i));
	bench_sha256((uint32_t(*)[8])h, &data, 1, sizeof(last));
	for (int i = 0; i < 32; i++)
		digest[i] = (uint8_t)(h[i / 4] >> (24 - i % 4 * 8));
}

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>

#define NI __attribute__((target("sha,sse4.1,ssse3"), always_inline)) static inline

static const _Alignas(64) uint32_t k[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static bool has_instructions(void)
{
	unsigned a, b, c, d;

	return __builtin_cpu_supports("sse4.1") && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_SHA);
}

/* The registers of a stream: words a, b, e, f and c, d, g, h, and the schedule. */
struct stream {
	__m128i abef, cdgh, w[4];
};

NI void four_rounds(struct stream *s, int group)
{
	__m128i wk = _mm_add_epi32(s->w[group % 4], _mm_load_si128((const __m128i *)(k + 4 * group)));

	s->cdgh = _mm_sha256rnds2_epu32(s->cdgh, s->abef, wk);
	s->abef = _mm_sha256rnds2_epu32(s->abef, s->cdgh, _mm_shuffle_epi32(wk, 0x0e));
}

NI void schedule(struct stream *s, int group)
{
	__m128i *w0 = &s->w[group % 4], w1 = s->w[(group + 1) % 4], w2 = s->w[(group + 2) % 4],
		w3 = s->w[(group + 3) % 4];

	*w0 = _mm_sha256msg2_epu32(_mm_add_epi32(_mm_sha256msg1_epu32(*w0, w1), _mm_alignr_epi8(w3, w2, 4)), w3);
}

NI void load(struct stream *s, const uint32_t h[8])
{
	__m128i cdab = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)h), 0xb1);
	__m128i efgh = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(h + 4)), 0x1b);

	s->abef = _mm_alignr_epi8(cdab, efgh, 8);
	s->cdgh = _mm_blend_epi16(efgh, cdab, 0xf0);
}

NI void store(const struct stream *s, uint32_t h[8])
{
	__m128i feba = _mm_shuffle_epi32(s->abef, 0x1b), dchg = _mm_shuffle_epi32(s->cdgh, 0xb1);

	_mm_storeu_si128((__m128i *)h, _mm_blend_epi16(feba, dchg, 0xf0));
	_mm_storeu_si128((__m128i *)(h + 4), _mm_alignr_epi8(dchg, feba, 8));
}

NI void hash(uint32_t (*h)[8], const uint8_t *const *data, unsigned count, size_t bytes)
{
	const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
	struct stream s[SHA256_STREAMS_MAX];

	for (unsigned i = 0; i < count; i++)
		load(&s[i], h[i]);
	for (size_t at = 0; at < bytes; at += 64) {
		__m128i abef[SHA256_STREAMS_MAX], cdgh[SHA256_STREAMS_MAX];

		for (unsigned i = 0; i < count; i++) {
			abef[i] = s[i].abef;
			cdgh[i] = s[i].cdgh;
		}
#pragma GCC unroll 16
		for (int group = 0; group < 16; group++)
#pragma GCC unroll 2
			for (unsigned i = 0; i < count; i++) {
				if (group < 4)
					s[i].w[group] = _mm_shuffle_epi8(
						_mm_loadu_si128((const __m128i *)(data[i] + at) + group), swap);
				else
					schedule(&s[i], group);
				four_rounds(&s[i], group);
			}
		for (unsigned i = 0; i < count; i++) {
			s[i].abef = _mm_add_epi32(s[i].abef, abef[i]);
			s[i].cdgh = _mm_add_epi32(s[i].cdgh, cdgh[i]);
		}
	}
	for (unsigned i = 0; i < count; i++)
		store(&s[i], h[i]);
}

__attribute__((target("sha,sse4.1,ssse3"))) void bench_sha256(uint32_t (*h)[8], const uint8_t *const *data,
							      unsigned count, size_t bytes)
{
	if (count == 2)
		hash(h, data, 2, bytes);
	else
		hash(h, data, 1, bytes);
}
#else
static bool has_instructions(void)
{
	return false;
}

void bench_sha256(uint32_t (*h)[8], const uint8_t *const *data, unsigned count, size_t bytes)
{
	(void)h, (void)data, (void)count, (void)bytes;
	bench_die("there are no SHA instructions here");
}
#endif

/* A loop that computed something else would not be a bound: compare it with the library. */
bool bench_sha256_can(void)
{
	uint8_t bytes[2][128], want[32], is[32];
	const uint8_t *data[] = {bytes[0], bytes[1]};
	uint32_t h[2][8];

	if (!has_instructions())
		return false;
	for (unsigned i = 0; i < 2; i++) {
		memset(bytes[i], 'a' + (int)i, sizeof(bytes[i]));
		bench_sha256_init(h[i]);
	}
	bench_sha256(h, data, 2, sizeof(bytes[0]));
	for (unsigned i = 0; i < 2; i++) {
		bench_sha256_final(h[i], sizeof(bytes[i]), is);
		shard_sha256(bytes[i], sizeof(bytes[i]), want);
		if (memcmp(is, want, sizeof(is)))
			bench_die("the bound's SHA-256 is wrong");
	}
	return true;
}
