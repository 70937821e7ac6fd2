/* SPDX-License-Identifier: Apache-2.0 */
/*
 * publish.h - files written so that nobody ever sees half of one
 */
#ifndef SHARD_IO_PUBLISH_H
#define SHARD_IO_PUBLISH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libshard/io/temp_names.h"
#include "shard.h"

/* A file that has no final name yet: locked by its owner, in the folder where it is to appear. */
struct file_temp {
	int dir_fd, fd;
	char *dir;	  /* "." if the path had none */
	const char *name; /* of the final file, within the caller's path */
	const char *path; /* the caller's, for messages; must outlive the struct */
	char temp[256];	  /* name in dir */
	uint64_t bytes;	  /* written so far */
	uint64_t synced;  /* up to there writeback was asked for */
	bool may_direct;  /* file_temp_direct() was called, and no write was refused for it */
	bool direct;	  /* the next write goes past the page cache */
};
#define FILE_TEMP_NONE ((struct file_temp){.dir_fd = -1, .fd = -1})

int file_temp_create(struct file_temp *t, const char *path, struct shard_error *err);
/* The same, with FILE_TEMP_ID digits behind its name, if nothing has them; `id` may be NULL. */
int file_temp_create_as(struct file_temp *t, const char *path, const char *id, struct shard_error *err);
/* room on disk, where it can be had */
int file_temp_reserve(struct file_temp *t, uint64_t bytes, struct shard_error *err);
int file_temp_write(struct file_temp *t, const void *data, size_t bytes, struct shard_error *err);

/*
 * From now on, aligned writes go past the page cache, if the disk is local and allows it.  This
 * saves a copy, leaves the page cache to others, and makes reading back read the disk.  Such writes
 * wait for the disk.
 */
void file_temp_direct(struct file_temp *t);
#define FILE_DIRECT_ALIGN 4096u /* of memory, offset and length: enough for nearly all devices; the others refuse */
/* durable; gives back reserved room; never retried */
int file_temp_sync(struct file_temp *t, struct shard_error *err);

/*
 * Give the file its final name, atomically and durably.  Fails with EXISTS if the name is taken and
 * `replace` is not set.  The temporary file is then still there.  After OK or any other error the
 * only call that may follow is file_temp_discard().
 */
int file_temp_publish(struct file_temp *t, bool replace, struct shard_error *err);
void file_temp_discard(struct file_temp *t); /* removes it if it was not published, frees the rest */

/* A file without a name, for a while. */
int file_unnamed(const char *beside, int *fd, struct shard_error *err);

#endif
