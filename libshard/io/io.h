/* SPDX-License-Identifier: Apache-2.0 */
/*
 * io.h - every file system call, io_uring, and maps that may be cut
 */
#ifndef SHARD_IO_IO_H
#define SHARD_IO_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shard.h"

/*
 * A read that an engine is given, and gives back
 */

struct engine_read {
	int fd; /* open until the read comes back, or at least until it was started */
	uint64_t offset;
	size_t bytes;
	void *dst;
	bool asks;   /* see first whether all bytes lie in the page cache */
	bool cached; /* of one that came back and asked: they did, and no device was read */
	bool there;  /* the engine's own: all bytes were delivered at once */
	/*
	 * of one that came back: errno, 0 if all bytes are there, ENODATA if the file ended before
	 */
	int os_code;
};

/*
 * engine.c - many reads under way at once: io_uring where the system has and allows it, else one
 * after the other
 *
 * An engine belongs to one thread.  The reads that it is given belong to the caller, and must stay
 * where they are until they come back.
 */

struct engine;

/* At most `depth` reads will be under way.  NULL if there is no memory. */
struct engine *engine_open(uint32_t depth);
/* Nothing may be under way. */
void engine_close(struct engine *e);

bool engine_is_uring(const struct engine *e);
bool engine_is_full(const struct engine *e);

/* Start a read, now or with the next ones.  The engine is not full. */
void engine_put(struct engine *e, struct engine_read *r);

/* Wait for a read to come back, any of those under way; NULL if there are none. */
struct engine_read *engine_get(struct engine *e);

/*
 * engine_uring.c - an engine's way through io_uring; a build without it has a stub
 *
 * These do what those of engine.c do.  uring_open() returns NULL where io_uring is not to be had, and
 * then nothing else is called.
 */

struct uring;
struct uring *uring_open(uint32_t depth);
void uring_close(struct uring *u);
void uring_put(struct uring *u, struct engine_read *r);
struct engine_read *uring_get(struct uring *u, int *result); /* bytes, or -errno */

/* ---- proc.c ---- */

#define PROC_BYTES 8192 /* room for all of such a file that anyone looks at */

/* The beginning of the file, and a NUL, into `room` bytes.  False, and an empty text, without any. */
bool proc_read(const char *path, char *text, size_t room);

/* The number behind `word` in the file; UINT64_MAX if there is none, or if it says "max". */
uint64_t proc_number(const char *path, const char *word);

/*
 * temp_names.c
 *
 * A file that has no final name yet is locked by its owner.  But a lock says that the owner lives
 * only where both see it.  On network file systems it may hold on its own machine alone, or even on
 * its own mount, and nobody can ask.  There the first digits say where the file was made.  Others
 * leave it alone until the shard that it was for is there.
 */

#define FILE_TEMP_PREFIX    ".tmp."
#define FILE_TEMP_ID	    16 /* digits at the end of the name */
#define TEMP_PLACE_DIGITS   8  /* of FILE_TEMP_ID */
#define TEMP_NAME_BYTES_MAX (255 - (sizeof(FILE_TEMP_PREFIX) - 1) - 1 - FILE_TEMP_ID) /* of a final name */

/* Where a lock on a file of a folder is seen, and the digits that say so in names. */
struct temp_place {
	bool everywhere;
	char digits[TEMP_PLACE_DIGITS + 1]; /* of this boot of this kernel and this mount; empty: unknown */
};

void temp_place_find(struct temp_place *p, const char *dir, int dir_fd);

bool temp_is_id(const char *id); /* so many digits of 0-9a-f */

/* Digits for a new name.  Returns an errno. */
int temp_draw(char hex[FILE_TEMP_ID + 1], const struct temp_place *p);

/*
 * Remove the files that file_temp_create() made in `dir` and that no process holds any more; and on
 * network file systems those of shards that are there.
 */
int file_remove_temps(const char *dir, uint64_t *count, struct shard_error *err);

/*
 * publish.c - files written so that nobody ever sees half of one
 */

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

/* ---- second_name.c ---- */

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
