/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grow.h - arrays that grow as they are filled
 */
#ifndef SHARD_COMMON_GROW_H
#define SHARD_COMMON_GROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct shelf;

/*
 * Make room for `need` items of `item_bytes` each.  `array` is the address of the pointer to them,
 * NULL while *capacity is 0, which free() gives back.  The room at least doubles, so that adding
 * items one by one takes time in proportion to their number.  Returns false, with nothing changed,
 * if there is no memory.
 */
bool grow(void *array, uint64_t *capacity, uint64_t need, size_t item_bytes);

/*
 * The same on a shelf, for arrays that may be large.  shelf_free() gives them back, and
 * shelf_refuse() says why it failed.
 */
bool grow_on(struct shelf *s, void *array, uint64_t *capacity, uint64_t need, size_t item_bytes);

#endif
