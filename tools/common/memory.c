/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.c - the one way in which a tool ends without memory
 */
#include "tools/common/memory.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/common/message.h"

/*
 * _exit() and not exit(): this may be a worker thread, maybe with a lock held, while others use what
 * exit() would flush and free.  No file can be half written under its final name, because files get
 * that name when they are whole.  So it is as harmless as kill -9: a later run takes over claims and
 * removes temporary files.  What a verb of shardcat left in stdout's buffer is lost, and the exit
 * code says that the output is not whole.
 */
void exit_without_memory(size_t bytes)
{
	errno = ENOMEM; /* fail() has another meaning for EINTR */
	fail(EXIT_IO, "out of memory: the system refused %zu bytes", bytes);
	fflush(stderr);
	_exit(EXIT_IO);
}

static size_t product(size_t count, size_t item_bytes)
{
	size_t bytes;

	if (__builtin_mul_overflow(count, item_bytes, &bytes))
		exit_without_memory(SIZE_MAX);
	return bytes;
}

void *xmalloc(size_t count, size_t item_bytes)
{
	return xrealloc(NULL, count, item_bytes);
}

void *xcalloc(size_t count, size_t item_bytes)
{
	size_t bytes = product(count, item_bytes);
	void *data = calloc(1, bytes + !bytes); /* of nothing, it may be NULL */

	if (!data)
		exit_without_memory(bytes);
	return data;
}

void *xrealloc(void *data, size_t count, size_t item_bytes)
{
	size_t bytes = product(count, item_bytes);
	void *out = realloc(data, bytes + !bytes);

	if (!out)
		exit_without_memory(bytes);
	return out;
}

char *xstrdup(const char *text)
{
	return xstrndup(text, strlen(text));
}

char *xstrndup(const char *text, size_t bytes)
{
	char *copy = strndup(text, bytes);

	if (!copy)
		exit_without_memory(bytes + 1);
	return copy;
}

char *xasprintf(const char *fmt, ...)
{
	char *text;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		exit_without_memory(strlen(fmt));
	va_end(ap);
	return text;
}
