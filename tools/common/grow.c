/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grow.c - arrays that grow as they are filled
 */
#include "tools/common/grow.h"

#include <string.h>

#include "tools/common/shelf.h"

#define FIRST_COUNT 64

bool grow_on(struct shelf *s, void *array, uint64_t *capacity, uint64_t need, size_t item_bytes)
{
	uint64_t want = need < FIRST_COUNT ? FIRST_COUNT : need;
	size_t room;
	void *items;

	if (need <= *capacity)
		return true;
	if (want > SIZE_MAX / 4 / item_bytes)
		return false;
	memcpy(&items, array, sizeof(items)); /* whatever type it points to */
	room = (size_t)*capacity * item_bytes;
	items = shelf_grow(s, items, &room, (size_t)want * item_bytes);
	if (!items)
		return false;
	memcpy(array, &items, sizeof(items));
	*capacity = room / item_bytes;
	return true;
}

bool grow(void *array, uint64_t *capacity, uint64_t need, size_t item_bytes)
{
	return grow_on(NULL, array, capacity, need, item_bytes);
}
