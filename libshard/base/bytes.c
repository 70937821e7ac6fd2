/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bytes.c - the longer helpers of bytes.h
 */
#include "libshard/base/bytes.h"

size_t first_nonzero(const void *p, size_t bytes)
{
	const uint8_t *b = p;
	size_t i = 0;
	uint64_t word[4];

	for (; bytes - i >= sizeof(word); i += sizeof(word)) {
		memcpy(word, b + i, sizeof(word));
		if (word[0] | word[1] | word[2] | word[3])
			break;
	}
	while (i < bytes && !b[i])
		i++;
	return i;
}
