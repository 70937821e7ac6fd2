/* SPDX-License-Identifier: Apache-2.0 */
/*
 * row_places.c - see row_places.h
 */
#include "libshard/gpu/row_places.h"

#include <inttypes.h>

#include "libshard/base/error.h"

#define GIB (1024.0 * 1024 * 1024)

static uint64_t lowest_bit(uint64_t bits)
{
	return bits ? bits & -bits : 1;
}

int row_places_check_reach(uint64_t bytes, uint64_t places, struct shard_error *err)
{
	uint64_t unit = lowest_bit(places);

	if (bytes / unit <= UINT32_MAX)
		return SHARD_OK;
	return error_set(err, SHARD_E_UNSUPPORTED,
			 "images in the pool lie up to %.1f GiB apart, at multiples of %" PRIu64 " bytes, and kernels "
			 "reach %.1f GiB: give a smaller pool_bytes, or set pool_in_place to 0",
			 (double)bytes / GIB, unit, (double)UINT32_MAX * (double)unit / GIB);
}

struct row_places row_places_find(const struct shard_rows *rows, uint32_t count)
{
	struct row_places at = {rows->row_at, rows->stride, (count - UINT64_C(1)) * rows->stride};
	uint64_t bits = 0;

	if (!rows->row_at)
		return at;
	at.last = 0;
	for (uint32_t i = 0; i < count; i++) {
		bits |= rows->row_at[i];
		at.last = rows->row_at[i] > at.last ? rows->row_at[i] : at.last;
	}
	at.unit = lowest_bit(bits);
	return at;
}
