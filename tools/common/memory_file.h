/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_file.h - a stream whose bytes are kept in memory
 *
 * open_memstream() would do, but there fclose() succeeds although the last bytes had no memory.
 */
#ifndef SHARD_COMMON_MEMORY_FILE_H
#define SHARD_COMMON_MEMORY_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct memory_file {
	FILE *stream; /* write here; NULL if it could not be opened */
	char *data;   /* after the close: what was written, and a NUL behind it; free() it */
	uint64_t bytes, capacity;
	bool failed;
};

/* It may not be moved while it is open.  False if memory ran out; then closing it does nothing. */
bool memory_file_open(struct memory_file *m);

/* True if all that was written is in m->data, which is not NULL then. */
bool memory_file_close(struct memory_file *m);

#endif
