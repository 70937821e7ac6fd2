/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xxh3_code.h - the functions of struct xxh3, for whatever processor the file that includes this is
 * compiled for
 *
 * That file defines XXH_VECTOR, unless the compiler's default is wanted, and nothing of this is
 * visible outside of it.
 */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <assert.h>

#include "libshard/format/format.h"

static_assert(sizeof(XXH3_state_t) <= XXH3_STATE_BYTES, "XXH3_STATE_BYTES is too little");
static_assert(_Alignof(XXH3_state_t) <= XXH3_STATE_ALIGN, "XXH3_STATE_ALIGN is too little");

static void halves(XXH128_hash_t x, uint64_t half[2])
{
	half[0] = x.low64;
	half[1] = x.high64;
}

static uint64_t hash64(const void *data, size_t data_bytes)
{
	return XXH3_64bits(data, data_bytes);
}

static void hash128(const void *data, size_t data_bytes, uint64_t half[2])
{
	halves(XXH3_128bits(data, data_bytes), half);
}

/* These fail only when given NULL. */
static void reset64(void *state)
{
	XXH_errorcode rc = XXH3_64bits_reset(state);

	assert(rc == XXH_OK);
	(void)rc;
}

static void update64(void *state, const void *data, size_t data_bytes)
{
	XXH_errorcode rc = XXH3_64bits_update(state, data, data_bytes);

	assert(rc == XXH_OK);
	(void)rc;
}

static uint64_t digest64(const void *state)
{
	return XXH3_64bits_digest(state);
}

static void reset128(void *state)
{
	XXH_errorcode rc = XXH3_128bits_reset(state);

	assert(rc == XXH_OK);
	(void)rc;
}

static void update128(void *state, const void *data, size_t data_bytes)
{
	XXH_errorcode rc = XXH3_128bits_update(state, data, data_bytes);

	assert(rc == XXH_OK);
	(void)rc;
}

static void digest128(const void *state, uint64_t half[2])
{
	halves(XXH3_128bits_digest(state), half);
}

#define XXH3_FUNCTIONS hash64, hash128, reset64, update64, digest64, reset128, update128, digest128
