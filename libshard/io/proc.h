/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proc.h - what the kernel says in small files, such as those of /proc
 *
 * The tools link this file, too.
 */
#ifndef SHARD_IO_PROC_H
#define SHARD_IO_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROC_BYTES 8192 /* room for all of such a file that anyone looks at */

/* The beginning of the file, and a NUL, into `room` bytes.  False, and an empty text, without any. */
bool proc_read(const char *path, char *text, size_t room);

/* The number behind `word` in the file; UINT64_MAX if there is none, or if it says "max". */
uint64_t proc_number(const char *path, const char *word);

#endif
