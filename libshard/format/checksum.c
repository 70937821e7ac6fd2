/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checksum.c - XXH3 by the fastest code that this processor runs
 *
 * libxxhash has such a choice of its own, but not in every archive of it, and not on every machine.
 * Its header has the whole algorithm; compiled here, libshard depends on the header alone, and can
 * be linked into one file.
 */
#include "libshard/format/format.h"

#include <string.h>

#include "libshard/base/cpu.h"
#include "libshard/format/xxh3_code.h"

_Static_assert(sizeof(struct checksum_stream) >= XXH3_STATE_BYTES, "struct checksum_stream reserves too little");
_Static_assert(_Alignof(struct checksum_stream) >= XXH3_STATE_ALIGN, "struct checksum_stream aligns too little");

/* For every processor of the family: SSE2 on x86-64, NEON on aarch64. */
const struct xxh3 xxh3_plain = {"plain", XXH3_FUNCTIONS};

static const struct xxh3 *best(void)
{
#if defined(__x86_64__)
	if (cpu_has_avx512f())
		return xxh3_avx512;
	if (cpu_has_avx2())
		return xxh3_avx2;
#endif
	return &xxh3_plain;
}

static struct hash128 hash128_store(const uint64_t half[2])
{
	struct hash128 h;

	for (int i = 0; i < 16; i++)
		h.b[i] = (uint8_t)(half[i / 8] >> (8 * (i % 8)));
	return h;
}

uint64_t checksum64(const void *data, size_t data_bytes)
{
	return best()->hash64(data, data_bytes);
}

struct hash128 checksum128(const void *data, size_t data_bytes)
{
	uint64_t half[2];

	best()->hash128(data, data_bytes, half);
	return hash128_store(half);
}

void checksum64_init(struct checksum_stream *s)
{
	best()->reset64(s->state);
}

void checksum64_update(struct checksum_stream *s, const void *data, size_t data_bytes)
{
	if (data_bytes) /* else `data` may be NULL, which XXH3 does not take */
		best()->update64(s->state, data, data_bytes);
}

uint64_t checksum64_final(const struct checksum_stream *s)
{
	return best()->digest64(s->state);
}

void checksum128_init(struct checksum_stream *s)
{
	best()->reset128(s->state);
}

void checksum128_update(struct checksum_stream *s, const void *data, size_t data_bytes)
{
	if (data_bytes) /* as above */
		best()->update128(s->state, data, data_bytes);
}

struct hash128 checksum128_final(const struct checksum_stream *s)
{
	uint64_t half[2];

	best()->digest128(s->state, half);
	return hash128_store(half);
}
