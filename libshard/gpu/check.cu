/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.cu - the kernels of check.h: XXH3-64 of units, compared with leaf hashes
 *
 * XXH3 cuts a long unit into stripes of 64 bytes, and keeps 8 sums of 64 bits.  Each stripe adds to
 * all sums.  16 stripes are a block, behind which the sums are scrambled.  Only that has to wait for
 * the block before.
 *
 * A warp hashes a long unit.  Four threads share a stripe: each holds two of the 8 sums and reads 16
 * bytes.  So a warp reads 8 stripes at a time, 512 bytes that lie side by side, and adds up what its
 * threads have by shuffles.  All threads then scramble alike.
 *
 * make_ptx.sh makes check.ptx from this.  Tests run that text on an interpreter, and compare it with
 * checksum64().
 */
#include "libshard/gpu/check.h"

#define FORCED	static __device__ __forceinline__
#define UNROLL	_Pragma("unroll")
#define COMPACT _Pragma("unroll 1") /* for short or slow loops: the driver compiles less */

#define PRIME32_1 UINT64_C(0x9E3779B1)
#define PRIME32_2 UINT64_C(0x85EBCA77)
#define PRIME32_3 UINT64_C(0xC2B2AE3D)
#define PRIME64_1 UINT64_C(0x9E3779B185EBCA87)
#define PRIME64_2 UINT64_C(0xC2B2AE3D27D4EB4F)
#define PRIME64_3 UINT64_C(0x165667B19E3779F9)
#define PRIME64_4 UINT64_C(0x85EBCA77C2B2AE63)
#define PRIME64_5 UINT64_C(0x27D4EB2F165667C5)

#define EVERYONE 0xffffffffu
#define STRIPE	 64u
#define BLOCK	 1024u /* bytes of 16 stripes */
#define AHEAD	 4u    /* blocks whose loads are under way together: 4 KiB of a warp */

extern "C" {

/* The default secret of XXH3, as little-endian words. */
__constant__ uint64_t check_secret[24] = {
	0xbe4ba423396cfeb8u, 0x1cad21f72c81017cu, 0xdb979083e96dd4deu, 0x1f67b3b7a4a44072u, 0x78e5c0cc4ee679cbu,
	0x2172ffcc7dd05a82u, 0x8e2443f7744608b8u, 0x4c263a81e69035e0u, 0xcb00c391bb52283cu, 0xa32e531b8b65d088u,
	0x4ef90da297486471u, 0xd8acdea946ef1938u, 0x3f349ce33f76faa8u, 0x1d4f0bc7c7bbdcf9u, 0x3159b4cd4be0518au,
	0x647378d9c97e9fc8u, 0xc3ebd33483acc5eau, 0xeb6313faffa081c5u, 0x49daf0b751dd0d17u, 0x9e68d429265516d3u,
	0xfca1477d58be162bu, 0xce31d07ad1b8f88fu, 0x280416958f3acb45u, 0x7e404bbbcafbd7afu,
};

/* ---- numbers ---- */

/* Eight bytes of the secret from byte `at` on, at most 184. */
FORCED uint64_t secret(uint32_t at)
{
	uint32_t word = at / 8, shift = at % 8 * 8;

	return shift ? check_secret[word] >> shift | check_secret[word + 1] << (64 - shift) : check_secret[word];
}

/* The halves of a product of 128 bits, one upon the other. */
FORCED uint64_t fold(uint64_t a, uint64_t b)
{
	return a * b ^ __umul64hi(a, b);
}

FORCED uint64_t halves_multiplied(uint64_t key)
{
	return (key & 0xffffffffu) * (key >> 32);
}

FORCED uint64_t bytes_reversed(uint64_t a)
{
	return (uint64_t)__byte_perm((uint32_t)a, 0, 0x0123) << 32 | __byte_perm((uint32_t)(a >> 32), 0, 0x0123);
}

/* The last step of XXH3, and that of XXH64 for the shortest units. */
FORCED uint64_t avalanche(uint64_t h)
{
	h = (h ^ h >> 37) * UINT64_C(0x165667919E3779F9);
	return h ^ h >> 32;
}

FORCED uint64_t avalanche_64(uint64_t h)
{
	h = (h ^ h >> 33) * PRIME64_2;
	h = (h ^ h >> 29) * PRIME64_3;
	return h ^ h >> 32;
}

/* ---- loads ---- */

struct pair {
	uint64_t a, b;
};

struct unit {
	uint64_t begin, bytes;
};

/* Up to 8 bytes, one after the other. */
FORCED uint64_t load_bytes(uint64_t at, uint32_t count)
{
	uint64_t word = 0;

	COMPACT
	for (uint32_t i = 0; i < count; i++)
		word |= (uint64_t)__ldg((const uint8_t *)(uintptr_t)at + i) << 8 * i;
	return word;
}

FORCED struct pair load_aligned(uint64_t at)
{
	ulonglong2 both = __ldg((const ulonglong2 *)(uintptr_t)at);
	struct pair p = {both.x, both.y};

	return p;
}

/*
 * 16 bytes of a unit, at any address.  Words around them may be read if these lie within the unit.
 */
FORCED struct pair load_any(struct unit u, uint64_t at)
{
	uint64_t first = at & ~UINT64_C(3);
	struct pair p;

	if (at % 16 == 0)
		return load_aligned(at);
	if (first >= u.begin && first + 20 <= u.begin + u.bytes) {
		const uint32_t *from = (const uint32_t *)(uintptr_t)first;
		uint32_t shift = (uint32_t)at % 4 * 8, word[5];

		UNROLL
		for (uint32_t i = 0; i < 5; i++)
			word[i] = __ldg(from + i);
		p.a = (uint64_t)word[1] << 32 | word[0];
		p.b = (uint64_t)word[3] << 32 | word[2];
		if (shift) {
			p.a = p.a >> shift | p.b << (64 - shift);
			p.b = p.b >> shift | (uint64_t)word[4] << (64 - shift);
		}
		return p;
	}
	p.a = load_bytes(at, 8);
	p.b = load_bytes(at + 8, 8);
	return p;
}

/* ---- units of up to 240 bytes, by one thread ---- */

/* 16 bytes from `at` on, with as many of the secret. */
FORCED uint64_t mixed(struct unit u, uint64_t at, uint32_t secret_at)
{
	struct pair p = load_any(u, u.begin + at);

	return fold(p.a ^ secret(secret_at), p.b ^ secret(secret_at + 8));
}

FORCED uint64_t hash_to_3(struct unit u)
{
	uint64_t first = load_bytes(u.begin, 1), middle = load_bytes(u.begin + u.bytes / 2, 1);
	uint64_t last = load_bytes(u.begin + u.bytes - 1, 1), key = secret(0);

	return avalanche_64((first << 16 | middle << 24 | last | u.bytes << 8) ^ ((key ^ key >> 32) & 0xffffffffu));
}

FORCED uint64_t hash_to_8(struct unit u)
{
	uint64_t first = load_bytes(u.begin, 4), last = load_bytes(u.begin + u.bytes - 4, 4);
	uint64_t h = (last + (first << 32)) ^ secret(8) ^ secret(16);

	h = h ^ h << 49 ^ h << 24 ^ h >> 15 ^ h >> 40; /* h and two rotations of it, by 49 and 24 bits */
	h *= UINT64_C(0x9FB21C651E98DF25);
	h ^= (h >> 35) + u.bytes;
	h *= UINT64_C(0x9FB21C651E98DF25);
	return h ^ h >> 28;
}

FORCED uint64_t hash_to_16(struct unit u)
{
	uint64_t first = load_bytes(u.begin, 8) ^ secret(24) ^ secret(32);
	uint64_t last = load_bytes(u.begin + u.bytes - 8, 8) ^ secret(40) ^ secret(48);

	return avalanche(u.bytes + bytes_reversed(first) + last + fold(first, last));
}

/* Pairs of 16 bytes, from both ends to the middle. */
FORCED uint64_t hash_to_128(struct unit u)
{
	uint32_t pairs = ((uint32_t)u.bytes + 31) / 32;
	uint64_t h = u.bytes * PRIME64_1;

	COMPACT
	for (uint32_t i = 0; i < pairs; i++)
		h += mixed(u, 16 * i, 32 * i) + mixed(u, u.bytes - 16 * (i + 1), 32 * i + 16);
	return avalanche(h);
}

FORCED uint64_t hash_to_240(struct unit u)
{
	uint32_t pieces = (uint32_t)u.bytes / 16;
	uint64_t h = u.bytes * PRIME64_1;

	COMPACT
	for (uint32_t i = 0; i < pieces; i++) {
		if (i == 8)
			h = avalanche(h);
		h += mixed(u, 16 * i, i < 8 ? 16 * i : 16 * (i - 8) + 3);
	}
	if (pieces == 8)
		h = avalanche(h);
	return avalanche(h + mixed(u, u.bytes - 16, 119));
}

FORCED uint64_t hash_short(struct unit u)
{
	if (u.bytes > 128)
		return hash_to_240(u);
	if (u.bytes > 16)
		return hash_to_128(u);
	if (u.bytes > 8)
		return hash_to_16(u);
	if (u.bytes > 3)
		return hash_to_8(u);
	return u.bytes ? hash_to_3(u) : avalanche_64(secret(56) ^ secret(64));
}

/* ---- longer units, by one warp ---- */

/* What a stripe adds to two sums: `key` is the part of the secret beside them. */
FORCED void accumulate(struct pair *sum, struct pair p, struct pair key)
{
	sum->a += halves_multiplied(p.a ^ key.a) + p.b;
	sum->b += halves_multiplied(p.b ^ key.b) + p.a;
}

FORCED struct pair secret_pair(uint32_t at)
{
	struct pair p = {secret(at), secret(at + 8)};

	return p;
}

/* Add `part` of all threads that hold the same two sums. */
FORCED void add_parts(struct pair *sum, struct pair part)
{
	UNROLL
	for (uint32_t apart = 4; apart < CHECK_WARP; apart *= 2) {
		part.a += __shfl_xor_sync(EVERYONE, part.a, apart);
		part.b += __shfl_xor_sync(EVERYONE, part.b, apart);
	}
	sum->a += part.a;
	sum->b += part.b;
}

FORCED void scramble(struct pair *sum, struct pair key)
{
	sum->a = (sum->a ^ sum->a >> 47 ^ key.a) * PRIME32_1;
	sum->b = (sum->b ^ sum->b >> 47 ^ key.b) * PRIME32_1;
}

FORCED void add_block(struct pair *sum, struct pair low, struct pair high, const struct pair key[3])
{
	struct pair part = {0, 0};

	accumulate(&part, low, key[0]);
	accumulate(&part, high, key[1]);
	add_parts(sum, part);
	scramble(sum, key[2]);
}

/* Whole blocks of a unit that begins at a multiple of 16. */
FORCED void add_blocks_aligned(struct pair *sum, uint64_t at, uint64_t blocks, const struct pair key[3])
{
	struct pair low[AHEAD], high[AHEAD];

	UNROLL
	for (uint32_t i = 0; i < AHEAD; i++)
		if (i < blocks) {
			low[i] = load_aligned(at + i * BLOCK);
			high[i] = load_aligned(at + i * BLOCK + BLOCK / 2);
		}
	COMPACT
	for (uint64_t first = 0; first < blocks; first += AHEAD) {
		UNROLL
		for (uint32_t i = 0; i < AHEAD; i++)
			if (first + i < blocks) {
				struct pair low_now = low[i], high_now = high[i];
				uint64_t next = at + (first + i + AHEAD) * BLOCK;

				if (first + i + AHEAD < blocks) {
					low[i] = load_aligned(next);
					high[i] = load_aligned(next + BLOCK / 2);
				}
				add_block(sum, low_now, high_now, key);
			}
	}
}

FORCED void add_blocks_anywhere(struct pair *sum, struct unit u, uint64_t at, uint64_t blocks, const struct pair key[3])
{
	COMPACT
	for (; blocks; blocks--, at += BLOCK)
		add_block(sum, load_any(u, at), load_any(u, at + BLOCK / 2), key);
}

FORCED uint64_t hash_long(struct unit u)
{
	uint32_t quarter = threadIdx.x % 4 * 16, stripe = threadIdx.x % CHECK_WARP / 4;
	uint64_t blocks = (u.bytes - 1) / BLOCK, at = u.begin + stripe * STRIPE + quarter;
	uint32_t rest = (uint32_t)((u.bytes - 1) % BLOCK) / STRIPE; /* stripes behind the blocks */
	/* of stripes 0 to 7 and 8 to 15 of a block, and for scrambling */
	const struct pair key[3] = {secret_pair(8 * stripe + quarter), secret_pair(8 * stripe + quarter + 64),
				    secret_pair(128 + quarter)};
	struct pair sum, part = {0, 0};
	uint64_t h;

	sum.a = quarter == 0 ? PRIME32_3 : quarter == 16 ? PRIME64_2 : quarter == 32 ? PRIME64_4 : PRIME64_5;
	sum.b = quarter == 0 ? PRIME64_1 : quarter == 16 ? PRIME64_3 : quarter == 32 ? PRIME32_2 : PRIME32_1;
	if (u.begin % 16 == 0)
		add_blocks_aligned(&sum, at, blocks, key);
	else
		add_blocks_anywhere(&sum, u, at, blocks, key);
	if (stripe < rest)
		accumulate(&part, load_any(u, at + blocks * BLOCK), key[0]);
	if (stripe + 8 < rest)
		accumulate(&part, load_any(u, at + blocks * BLOCK + BLOCK / 2), key[1]);
	if (stripe == 7) /* the last 64 bytes, of which some may have been added already */
		accumulate(&part, load_any(u, u.begin + u.bytes - STRIPE + quarter), secret_pair(121 + quarter));
	add_parts(&sum, part);
	h = fold(sum.a ^ secret(11 + quarter), sum.b ^ secret(19 + quarter));
	h += __shfl_xor_sync(EVERYONE, h, 1);
	h += __shfl_xor_sync(EVERYONE, h, 2);
	return avalanche(u.bytes * PRIME64_1 + h);
}

/* ---- rows ---- */

FORCED int is_skipped(const struct check_call *call, uint32_t row)
{
	return call->skip[row / 32] >> row % 32 & 1;
}

FORCED void report(const struct check_call *call, uint32_t row, int skipped, uint64_t hash)
{
	uint4 out;

	out.x = (uint32_t)hash;
	out.y = (uint32_t)(hash >> 32);
	out.z = skipped ? CHECK_SKIPPED : hash == call->want[row] ? CHECK_SOUND : CHECK_DAMAGED;
	out.w = call->number;
	((uint4 *)(uintptr_t)call->to)[row] = out;
}

__global__ void __launch_bounds__(CHECK_THREADS) check_short(const __grid_constant__ struct check_call call)
{
	uint32_t row = blockIdx.x * CHECK_THREADS + threadIdx.x;
	struct unit u = {call.from + row * call.step, call.bytes};

	if (row < call.row_count) {
		int skipped = is_skipped(&call, row);

		report(&call, row, skipped, skipped ? 0 : hash_short(u));
	}
}

/* All threads of a warp have the same row, so all come to each shuffle. */
__global__ void __launch_bounds__(CHECK_THREADS) check_long(const __grid_constant__ struct check_call call)
{
	uint32_t row = blockIdx.x * (CHECK_THREADS / CHECK_WARP) + threadIdx.x / CHECK_WARP;
	struct unit u = {call.from + row * call.step, call.bytes};

	if (row < call.row_count) {
		int skipped = is_skipped(&call, row);
		uint64_t hash = skipped ? 0 : hash_long(u);

		if (threadIdx.x % CHECK_WARP == 0)
			report(&call, row, skipped, hash);
	}
}
}
