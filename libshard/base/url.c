/* SPDX-License-Identifier: Apache-2.0 */
/*
 * url.c - see url.h
 */
#include "libshard/base/url.h"

#include <stddef.h>
#include <string.h>

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

bool text_is_url(const char *text)
{
	size_t letters = strspn(text, LETTERS), bytes = strspn(text, LETTERS "0123456789+.-");

	return letters && bytes > 1 && !strncmp(text + bytes, "://", 3);
}
