/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine_uring_stub.c - a build without io_uring
 */
#include "libshard/io/io.h"

struct uring *uring_open(uint32_t depth, uint32_t batch)
{
	(void)depth;
	(void)batch;
	return NULL;
}

void uring_close(struct uring *u)
{
	(void)u;
}

void uring_put(struct uring *u, struct engine_read *r)
{
	(void)u;
	(void)r;
}

struct engine_read *uring_get(struct uring *u, int *result)
{
	(void)u;
	*result = 0;
	return NULL;
}

bool uring_has(const struct uring *u)
{
	(void)u;
	return false;
}
