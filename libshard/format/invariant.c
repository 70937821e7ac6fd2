/* SPDX-License-Identifier: Apache-2.0 */
/*
 * invariant.c - alone in its file so that the linker can wrap it
 */
#include "libshard/format/format.h"

#include <stdarg.h>
#include <stdio.h>

#include "libshard/base/error.h"

int invariant_broken(struct shard_error *err, int status, const char *number, const char *fmt, ...)
{
	char text[900];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	return error_set(err, status, "%s: %s", number, text);
}
