/* SPDX-License-Identifier: Apache-2.0 */
/*
 * say.c - a benchmark's words besides its rows
 */
#include "bench/common/say.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static char skip_reason[512];

void bench_die(const char *format, ...)
{
	va_list args;

	fflush(stdout);
	fputs("bench: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

bool bench_skip(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(skip_reason, sizeof(skip_reason), format, args);
	va_end(args);
	return false;
}

const char *bench_skip_reason(void)
{
	return skip_reason;
}

void bench_note(const char *format, ...)
{
	va_list args;

	fputs("    ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
}
