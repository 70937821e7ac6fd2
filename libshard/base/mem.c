/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mem.c - the only caller of malloc and its family
 */
#include "libshard/base/mem.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void *mem_alloc(size_t bytes)
{
	return malloc(bytes ? bytes : 1);
}

void *mem_zalloc(size_t bytes)
{
	return calloc(1, bytes ? bytes : 1);
}

void *mem_array(size_t count, size_t item_bytes)
{
	size_t bytes; /* calloc checks too, but a sanitizer's takes a product that wraps for a mistake */

	if (__builtin_mul_overflow(count, item_bytes, &bytes))
		return NULL;
	return mem_zalloc(bytes);
}

void *mem_resize(void *old, size_t count, size_t item_bytes)
{
	size_t bytes;

	if (__builtin_mul_overflow(count ? count : 1, item_bytes, &bytes))
		return NULL;
	return realloc(old, bytes);
}

bool mem_grow(void *array, size_t *room, uint64_t need, size_t item_bytes)
{
	size_t want = *room ? *room : 64;
	char *items;

	if (need <= *room)
		return true;
	if (need > SIZE_MAX / 2)
		return false;
	while (want < need)
		want *= 2;
	memcpy(&items, array, sizeof(items)); /* whatever type it points to */
	items = mem_resize(items, want, item_bytes);
	if (!items)
		return false;
	memset(items + *room * item_bytes, 0, (want - *room) * item_bytes);
	memcpy(array, &items, sizeof(items));
	*room = want;
	return true;
}

void *mem_aligned(size_t align, size_t bytes)
{
	if (bytes > SIZE_MAX - align)
		return NULL;
	bytes = (bytes + align - 1) / align * align;
	return aligned_alloc(align, bytes ? bytes : align);
}

char *mem_text(const char *text)
{
	size_t bytes = strlen(text) + 1;
	char *copy = mem_alloc(bytes);

	return copy ? memcpy(copy, text, bytes) : NULL;
}

char *mem_join(const char *folder, const char *name)
{
	size_t folder_bytes = strlen(folder), name_bytes = strlen(name);
	char *path = mem_alloc(folder_bytes + name_bytes + 2);

	if (!path)
		return NULL;
	memcpy(path, folder, folder_bytes);
	path[folder_bytes] = '/';
	memcpy(path + folder_bytes + 1, name, name_bytes + 1);
	return path;
}

void mem_free(void *p)
{
	free(p);
}
