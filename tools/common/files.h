/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files.h - what tools do with files that are not images or shards
 *
 * Functions that may fail say why and return the exit code, unless they say otherwise.
 */
#ifndef SHARD_COMMON_FILES_H
#define SHARD_COMMON_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "shard.h"
#include "tools/common/text.h"

#define FILES_PATH_BYTES \
	4352 /* the system's limit of 4,096, and a name behind it for the message that it is too long */

/* DIR/NAME, and DIR/PREFIX00005SUFFIX, into `out` of FILES_PATH_BYTES. */
int files_path(char *out, const char *dir, const char *name);
int files_numbered(char *out, const char *dir, const char *prefix, uint64_t number, const char *suffix);

/*
 * All of a file of text, read as it grows; a hole in it is an error.  *found is false if the file
 * does not exist.  What is in the text already stays before it; the text may be on a shelf.
 */
int files_read(const char *path, struct text *out, bool *found);

/*
 * Read at an offset.  Returns the bytes that were read; if those are fewer, errno says why, and is
 * 0 at the end of the file.  Says nothing.
 */
uint64_t files_read_at(int fd, void *out, uint64_t bytes, uint64_t offset);

/* A time of stat(), as nanoseconds since 1970. */
uint64_t files_ns(const struct timespec *t);

/* Bytes of "a/b" in "a/b/c", 0 if there is no slash; trailing slashes belong to the last name. */
size_t files_folder_bytes(const char *path);

/* Make a folder, durably in the one above it.  One that is there is fine.  False with errno. */
bool files_make_dir(const char *path);

/*
 * Make the folders above the last component; `at` is where to begin in the path.  False with errno.
 */
bool files_make_parents(char *path, size_t at);

/*
 * Shorten the path to the nearest thing that exists, itself if it does.  False with errno if that
 * cannot be told.
 */
bool files_nearest(char *path);

/* The path from "/", without links above its last name.  NULL with errno; to be freed. */
char *files_above_resolved(const char *path);

/*
 * The folder's own path, or that of a folder that could be made there.  NULL, and a message, if
 * neither; to be freed.
 */
char *files_absolute(const char *dir);

/* Is `inner` the folder `outer` or below it?  Both as from files_absolute(). */
bool files_is_below(const char *inner, const char *outer);

/*
 * Write a small file durably and at once.  One that is there with the same bytes stays, so that
 * processes that write the same do not race; another one is replaced.  Returns SHARD_OK or a
 * status.
 */
int files_publish(const char *path, const void *data, size_t bytes, struct shard_error *err);

/* Is there a file with exactly these bytes? */
bool files_has_bytes(const char *path, const void *data, size_t bytes);

/*
 * Call `each` with each name in a folder, in no order.  With `absent` a folder that is not there is
 * not a failure: *absent then becomes true, else false.
 */
int files_list(const char *dir, void (*each)(void *context, const char *name), void *context, bool *absent);

/* SHA-256 of a file. */
int files_sha256(const char *path, uint8_t out[32]);

/* Make the changes of names in a folder durable; and the same without a word, false with errno. */
int files_sync_dir(const char *dir);
bool files_sync_names(const char *dir);

/* Remove a file; it is fine if there is none. */
int files_remove(const char *path);

/* ---- remove folders, and what is in them, while others may be at the same ---- */

/* Remove what `is_ours` says from the folder `dir`, open as `fd`, and close it. */
int remove_names(const char *dir, int fd, bool (*is_ours)(const char *name));

/*
 * Remove the temporary files in a folder that no process has locked, as far as this machine knows.
 * A folder that does not exist is not a failure.
 */
int remove_temps(const char *path);

/*
 * Remove a folder that is empty, or will be in a moment: on network file systems a file that was
 * removed may stay until the system has closed it.  False, and errno, if that cannot be.
 */
bool remove_folder(const char *path);

/*
 * Is it a file that was removed while it was open, as NFS and FUSE rename it until it is closed?
 * That of a machine that died stays.
 */
bool is_removed_name(const char *name);

/* ---- output to /dev/null, a pipe, a FIFO ---- */

/*
 * Such a file is written in place: to rename a new file over it would destroy the device or pipe.
 */

/* Is there something under this name that is neither a regular file nor a folder? */
bool files_is_device_or_pipe(const char *path);

/*
 * Write into it.  Waits for a FIFO's reader, until interrupted.  Returns the exit code; messages
 * begin with the path.
 */
int files_write_in_place(const char *path, const void *data, size_t bytes);

#endif
