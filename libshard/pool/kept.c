/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kept.c - see kept.h
 */
#include "libshard/pool/kept.h"

bool kept_has(const struct kept *k, uint64_t number)
{
	for (uint32_t i = 0; k->batches && i < k->batches->slot_count; i++) {
		const struct device_slot *batch = &k->batches->slot[i];

		if ((batch->queued || batch->as.lent) && number >= k->of[i].first && number < k->of[i].end)
			return true;
	}
	return false;
}
