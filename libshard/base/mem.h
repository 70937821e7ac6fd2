/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mem.h - the only way to the heap
 *
 * Every other file asks here, so that a test can make any one allocation fail, and sizes that were
 * multiplied are multiplied with a check.  All return NULL when there is no memory; the caller says
 * so.
 */
#ifndef SHARD_BASE_MEM_H
#define SHARD_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void *mem_alloc(size_t bytes);
void *mem_zalloc(size_t bytes);
void *mem_array(size_t count, size_t item_bytes);	      /* zeroed; NULL also if the product overflows */
void *mem_resize(void *old, size_t count, size_t item_bytes); /* realloc with the same check */
void *mem_aligned(size_t align, size_t bytes);		      /* not zeroed; bytes are rounded up to align */
char *mem_text(const char *text);			      /* a copy */
char *mem_join(const char *folder, const char *name);	      /* "folder/name" */
void mem_free(void *p);

/*
 * Make room for `need` items of `item_bytes` each.  `array` is the address of the pointer to them,
 * NULL while *room is 0.  The room at least doubles, and its new part is zero.  Returns false, with
 * nothing changed, if there is no memory.
 */
bool mem_grow(void *array, size_t *room, uint64_t need, size_t item_bytes);

#endif
