/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack_order.c - shard_pack_order(): a shuffled list of indices, for packers
 *
 * The order is the one-level order of format/ORDER.md, of an epoch that no loader has.  order/ is
 * pure, so the memory for its table is allocated here.
 */
#include <inttypes.h>

#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/order/order.h"
#include "shard_pack.h"

int shard_pack_order(uint64_t seed, uint64_t n, uint64_t first, uint64_t count, uint64_t *idx, struct shard_error *err)
{
	struct order_params params = {.kind = ORDER_ONE_LEVEL, .record_count = n, .seed = seed, .epoch = UINT64_MAX};
	struct order *order;

	if (n > ORDER_RECORDS_MAX || first > n || count > n - first)
		return error_set(err, SHARD_E_ARGUMENT,
				 "places %" PRIu64 " to %" PRIu64 " were asked for; there are "
				 "%" PRIu64 ", and must be at most %" PRIu64,
				 first, first + count - 1, n, ORDER_RECORDS_MAX);
	order = order_in(mem_alloc(order_bytes(&params)), &params);
	if (!order)
		return error_set(err, SHARD_E_MEMORY, "no memory to shuffle %" PRIu64 " indices", n);
	order_fill(order, first, 1, idx, (size_t)count);
	mem_free(order);
	return SHARD_OK;
}
