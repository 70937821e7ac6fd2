/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.h - memory that is there, or the program ends
 *
 * None of these returns NULL.  Without memory the program says so in one line and exits with EXIT_IO
 * at once.  Not for what an input makes large, such as the pixels of an image: there a message must
 * name the input and its limit.  Not in a sandboxed process either, whose exit code nobody reads.
 */
#ifndef SHARD_COMMON_MEMORY_H
#define SHARD_COMMON_MEMORY_H

#include <stddef.h>

/* The size is a count of items and the bytes of each; their product is checked. */
void *xmalloc(size_t count, size_t item_bytes);
void *xcalloc(size_t count, size_t item_bytes);
void *xrealloc(void *data, size_t count, size_t item_bytes);

char *xstrdup(const char *text);
char *xstrndup(const char *text, size_t bytes);
char *xasprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* There were no `bytes` bytes: say so and exit.  Any thread may call it. */
_Noreturn void exit_without_memory(size_t bytes);

#endif
