/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dump.h - what the dump programs share: they end where a test would fail
 */
#ifndef TESTS_PACK_DUMP_H
#define TESTS_PACK_DUMP_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static inline void *must(void *p, const char *what)
{
	if (p)
		return p;
	fprintf(stderr, "%s\n", what);
	exit(1);
}

static inline uint8_t *read_file(const char *path, size_t *size)
{
	FILE *f = must(fopen(path, "rb"), path);
	uint8_t *bytes = NULL;
	size_t capacity = 1 << 16, got;

	*size = 0;
	do {
		bytes = must(realloc(bytes, capacity *= 2), "out of memory");
		got = fread(bytes + *size, 1, capacity - *size, f);
		*size += got;
	} while (*size == capacity);
	fclose(f);
	return bytes;
}

/* All that was printed is out: what main returns. */
static inline int flushed(void)
{
	if (!fflush(stdout) && !ferror(stdout))
		return 0;
	perror("stdout");
	return 1;
}

#endif
