/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checksum.c - the one place that knows libxxhash
 *
 * On x86-64 the library's run-time dispatch picks SSE2, AVX2 or AVX-512; its header redefines the plain names.  Other
 * machines have one best version, chosen when libxxhash was built.
 */
#include "libshard/codec/checksum.h"

#include <assert.h>
#include <string.h>

/* Shows the size of XXH3_state_t, so that callers can hold one; no field of it is touched here. */
#define XXH_STATIC_LINKING_ONLY
#if defined(__x86_64__)
#include <xxh_x86dispatch.h>
#else
#include <xxhash.h>
#endif

static_assert(sizeof(XXH3_state_t) <= sizeof(struct checksum_stream), "checksum.h reserves too little");
static_assert(_Alignof(XXH3_state_t) <= _Alignof(struct checksum_stream), "checksum.h aligns too little");

static XXH3_state_t *state_of(struct checksum_stream *s)
{
	return (XXH3_state_t *)(void *)s->state;
}

static struct hash128 hash128_store(XXH128_hash_t x)
{
	struct hash128 h;

	for (int i = 0; i < 8; i++) {
		h.b[i] = (uint8_t)(x.low64 >> (8 * i));
		h.b[8 + i] = (uint8_t)(x.high64 >> (8 * i));
	}
	return h;
}

uint64_t checksum64(const void *data, size_t data_bytes)
{
	return XXH3_64bits(data, data_bytes);
}

struct hash128 checksum128(const void *data, size_t data_bytes)
{
	return hash128_store(XXH3_128bits(data, data_bytes));
}

/* The calls below fail only when given NULL for the state or, with bytes to read, for the data. */
void checksum64_init(struct checksum_stream *s)
{
	XXH_errorcode rc = XXH3_64bits_reset(state_of(s));

	assert(rc == XXH_OK);
	(void)rc;
}

void checksum64_update(struct checksum_stream *s, const void *data, size_t data_bytes)
{
	XXH_errorcode rc;

	if (!data_bytes) /* NULL is an error to libxxhash even when there is nothing to read */
		return;
	rc = XXH3_64bits_update(state_of(s), data, data_bytes);
	assert(rc == XXH_OK);
	(void)rc;
}

uint64_t checksum64_final(const struct checksum_stream *s)
{
	return XXH3_64bits_digest((const XXH3_state_t *)(const void *)s->state);
}

void checksum128_init(struct checksum_stream *s)
{
	XXH_errorcode rc = XXH3_128bits_reset(state_of(s));

	assert(rc == XXH_OK);
	(void)rc;
}

void checksum128_update(struct checksum_stream *s, const void *data, size_t data_bytes)
{
	XXH_errorcode rc;

	if (!data_bytes) /* as above */
		return;
	rc = XXH3_128bits_update(state_of(s), data, data_bytes);
	assert(rc == XXH_OK);
	(void)rc;
}

struct hash128 checksum128_final(const struct checksum_stream *s)
{
	return hash128_store(XXH3_128bits_digest((const XXH3_state_t *)(const void *)s->state));
}

bool hash128_equal(const struct hash128 *a, const struct hash128 *b)
{
	return !memcmp(a->b, b->b, sizeof(a->b));
}

void hash128_to_hex(const struct hash128 *h, char hex[HASH128_HEX_DIGITS + 1])
{
	static const char digits[] = "0123456789abcdef";

	/* Text is big-endian: the last byte stored is the first one written. */
	for (int i = 0; i < 16; i++) {
		hex[2 * i] = digits[h->b[15 - i] >> 4];
		hex[2 * i + 1] = digits[h->b[15 - i] & 15];
	}
	hex[HASH128_HEX_DIGITS] = 0;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

bool hash128_from_hex(const char *hex, struct hash128 *h)
{
	struct hash128 out = {{0}};

	for (int i = 0; i < HASH128_HEX_DIGITS; i++) {
		int v = hex_digit(hex[i]);

		if (v < 0)
			return false;
		out.b[15 - i / 2] = (uint8_t)(out.b[15 - i / 2] << 4 | v);
	}
	*h = out;
	return true;
}
