/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grow.c - arrays that grow as they are filled
 */
#include "tools/common/grow.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_COUNT 64

bool grow(void *array, uint64_t *capacity, uint64_t need, size_t item_bytes)
{
	uint64_t want = *capacity < FIRST_COUNT ? FIRST_COUNT : *capacity;
	void *items;

	if (need <= *capacity)
		return true;
	if (need > SIZE_MAX / 2 / item_bytes)
		return false;
	while (want < need)
		want *= 2;
	memcpy(&items, array, sizeof(items)); /* whatever type it points to */
	items = realloc(items, want * item_bytes);
	if (!items)
		return false;
	memcpy(array, &items, sizeof(items));
	*capacity = want;
	return true;
}
