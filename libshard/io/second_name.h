/* SPDX-License-Identifier: Apache-2.0 */
/*
 * second_name.h - the bytes of a file under a second name, without writing them again
 */
#ifndef SHARD_IO_SECOND_NAME_H
#define SHARD_IO_SECOND_NAME_H

#include <stdbool.h>

#include "libshard/io/publish.h"
#include "shard.h"

/*
 * Make `path` a hard link to the file at `from`, which may be a symbolic link, and is open as `fd`.
 * EXISTS if the name is taken.  UNSUPPORTED if that file cannot have a name there: on another file
 * system, with too many links, of another user, or where no file can be made durable.  The name is
 * durable after file_make_durable() of its folder.
 *
 * A program may put another file at `from` meanwhile.  Then the name is removed, and that is IO.  A
 * file system that numbers names and not files, as sshfs, cannot tell: then *is_seen is false, and
 * the caller compares what is at `path`, and calls file_link_undo() if it is something else.
 */
int file_link(const char *from, int fd, const char *path, bool *is_seen, struct shard_error *err);
int file_link_undo(const char *from, const char *path, struct shard_error *err); /* returns IO */

/*
 * Let the temporary file, which is empty, share the blocks of the file that is open as `fd` (a
 * reflink).  UNSUPPORTED if these file systems cannot.
 */
int file_temp_clone(struct file_temp *t, int fd, uint64_t bytes, struct shard_error *err);

bool file_exists(const char *path); /* as a link, too, wherever that leads */

/* Do both names lead to one file? */
bool file_is_same(const char *a, const char *b);

/* Make the bytes of a file, or the names in a folder, durable. */
int file_make_durable(const char *path, struct shard_error *err);

#endif
