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

/* ---- file.c: files opened, read, mapped, written ---- */

/*
 * Open a regular file for reading, following links; never waits for a FIFO.  `bytes` and `inode`
 * (may be NULL) are its.
 */
int file_open(const char *path, int *fd, uint64_t *bytes, uint64_t *inode, struct shard_error *err);
void file_close(int fd); /* -1 is fine */

/* The errno says that a file cannot get a name, or another's blocks, this way; another may do. */
bool file_is_refusal(int code);

/* Exactly `bytes` bytes, or an error: the end of the file counts as one. */
int file_read_at(int fd, void *out, size_t bytes, uint64_t offset, const char *path, struct shard_error *err);

/*
 * A shared read-only map that lives until unmapped.  The kernel does not read ahead around a
 * touched page: on a machine set up for streaming that can be 8 MiB for one record.  So call
 * file_will_need() before touching pages that may not be in memory.
 */
int file_map(int fd, uint64_t bytes, const char *path, const void **out, struct shard_error *err);
/* The same of a part; `offset` is a multiple of the size of a page. */
int file_map_part(int fd, uint64_t offset, uint64_t bytes, const char *path, const void **out, struct shard_error *err);
/* starts reading that part of a map; costs a microsecond if it is there */
void file_will_need(const void *begin, size_t bytes);
/*
 * Wait until that part of a map is in memory, and can be touched without a fault.  Where the kernel
 * cannot do this (before Linux 5.14), or the file cannot be read, touching shows it.
 */
void file_await(const void *begin, size_t bytes);
/*
 * Have the kernel read whole huge pages into that part of a map, 2 MiB at a time, each with one
 * request to the disk and one entry in the page table (0.015 CPU seconds for a GB; small pages take
 * 0.3 to 0.5).  It does so where file system and kernel know large folios: XFS since Linux 5.18,
 * ext4 since 6.16.  Others read as many small pages, or take no notice.
 */
void file_ask_for_huge_pages(const void *begin, size_t bytes);
void file_unmap(const void *map, uint64_t bytes);

/* Open the file again for reads past the page cache.  Returns -1 if the file system has none. */
int file_open_direct(const char *path);
/* Are samples of [offset, offset + bytes) in the page cache? */
bool file_is_cached(int fd, uint64_t offset, uint64_t bytes);

/*
 * Do the first `bytes` bytes of a file lie in the page cache?  Up to one sixteenth of them may be
 * missing: reading that is cheaper than giving up the rest.  *whole says whether no sample was
 * missing; `whole` may be NULL.  The answer can be too good: in a file of another user, a sample
 * that is missing is read to examine it, and a fast disk may deliver it before the answer.  So
 * callers that rely on this also watch file_major_faults().
 */
bool file_seems_cached(int fd, uint64_t bytes, bool *whole);

/*
 * Read bytes that all lie in the page cache.  Returns false if not all of them were read.  Bytes
 * that were missing may be there all the same, if the kernel fetched them before it answered; then
 * file_blocks_read() has grown.
 */
bool file_read_cached(int fd, void *out, size_t bytes, uint64_t offset);

/*
 * When the file last changed.  It is open as `fd`; if that is -1, it still has this path.  Returns
 * 0 if it cannot be examined.
 */
uint64_t file_changed_ns(int fd, const char *path, uint64_t inode);

/*
 * How often this thread has waited for the disk because a page that it touched was not in memory.
 */
uint64_t file_major_faults(void);
/* What this thread has read from devices, in 512 bytes; 0 where the kernel counts none. */
uint64_t file_blocks_read(void);
void file_drop_cache(int fd);

int file_write_at(int fd, const void *data, size_t bytes, uint64_t offset, const char *path, struct shard_error *err);

/* Call on_name for each regular file of a folder whose name ends in `suffix`. */
int file_list(const char *dir, const char *suffix, int (*on_name)(void *context, const char *name), void *context,
	      struct shard_error *err);

/*
 * What happened to a file that had that inode and length and now has others: "replaced", "cut" or
 * "extended".  NULL: it is the same one.
 */
const char *file_change(uint64_t inode, uint64_t bytes, uint64_t inode_now, uint64_t bytes_now);

struct direct_file {
	int fd;		       /* -1: not open */
	bool direct;	       /* past the page cache; else an ordinary file, and aligns are 1 */
	uint32_t offset_align; /* of offsets and lengths */
	uint32_t memory_align;
	const char *change; /* where direct_open() fails with ESTALE: what happened to the file */
};

/*
 * Open `path`, which must be the file with that inode and length.  With `want_direct` past the page
 * cache, if the file system has that.  Fails as open does, and with ESTALE if it is another one now.
 */
int direct_open(const char *path, uint64_t inode, uint64_t bytes, bool want_direct, struct direct_file *out);
void direct_close(struct direct_file *f);

/*
 * Is the folder or file on a file system of another machine, where a map answers a lost connection
 * with SIGBUS?
 */
bool file_is_remote(const char *path);

/* ---- guard.c: a map that was cut short is an error, not the end of the process ---- */

/*
 * The kernel answers a load from such a page with SIGBUS.  A guarded call arms the range that it
 * will read, for this thread; the handler jumps back if the fault lies in it, and hands every other
 * SIGBUS to the handler that was there before.
 */

/*
 * Put the handler in place, once per process.  False if the system refuses.  If another
 * handler is put in its place later, guard_ask() puts ours above that one.
 */
bool guard_install(void);

/*
 * Run work(context), which reads [begin, begin + bytes) and may neither take locks nor allocate.
 * False if it was cut off by a fault in that range.  guard_install() came before.  Calls do not
 * nest.
 *
 * No handler runs in a thread that blocks SIGBUS: the kernel ends the process.  So SIGBUS is
 * unblocked while work runs, and blocked again.  Whether this thread blocks it is asked once, at
 * its first call in this process, because asking takes longer than copying a small record.
 */
bool guard_run(const void *begin, size_t bytes, void (*work)(void *context), void *context);

/*
 * The same for work that reads several ranges: is_ours() says whether an address lies in one of
 * them.  It runs in the handler, so it may only look at memory.
 */
bool guard_run_where(bool (*is_ours)(void *context, uintptr_t at), void (*work)(void *context), void *context);

/*
 * Ask again whether this thread blocks SIGBUS.  One system call.  Each
 * GUARD_LOOK_EVERY-th time, beginning with the thread's first, this also looks whether our handler is
 * there, which takes longer.
 */
#define GUARD_LOOK_EVERY 16u
void guard_ask(void);
/* For short work: both, but only each GUARD_LOOK_EVERY-th time. */
void guard_ask_at_times(void);

/* ---- buffer.c: memory that disks read into ---- */

#define HUGE_PAGE_BYTES ((size_t)2 << 20)

/*
 * Aligned to 2 MiB, and made of huge pages where the system has them.  A direct read into small
 * pages is cut into requests of as many pages as the device takes segments, each a page; into huge
 * ones it is 2 to 3 times as fast (bench/common/bound_read.c: 0.7 and 2.2 GB/s).  Not zeroed; NULL
 * if there is no memory; mem_free() takes it back, or buffer_close().
 */
void *buffer_open(size_t bytes);

/*
 * The kernel clears a page when it is touched first.  This clears all pages of a buffer that were
 * not yet, and changes no other one, so that another thread that writes to it finds them cleared.
 */
void buffer_clear_pages(void *buffer, size_t bytes);

/*
 * Children of this process shall not have it: a device that writes to it while the process forks
 * would write into the copy of one of the two.  `bytes` are those of buffer_open(); such a buffer
 * goes back through buffer_close(), in this process.
 */
void buffer_keep(void *buffer, size_t bytes);
void buffer_close(void *buffer, size_t bytes);

/* ---- engine.c: many reads under way at once ---- */

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

struct engine;

/*
 * At most `depth` reads will be under way.  They are started, and waited for, `batch` at a time: to
 * fall asleep and wake up costs as much as a small read.  NULL if there is no memory.
 */
struct engine *engine_open(uint32_t depth, uint32_t batch);
/* Nothing may be under way. */
void engine_close(struct engine *e);

bool engine_is_uring(const struct engine *e);
bool engine_is_full(const struct engine *e);

/* Start a read, now or with the next ones.  The engine is not full. */
void engine_put(struct engine *e, struct engine_read *r);

/* Wait for a read to come back, any of those under way; NULL if there are none. */
struct engine_read *engine_get(struct engine *e);

/* True if a read by io_uring has come back, so that engine_get() does not wait. */
bool engine_has(const struct engine *e);

/* ---- engine_uring.c: the way of an engine through io_uring; a build without it has a stub ---- */

/* uring_open() returns NULL where io_uring cannot be used; then nothing else is called. */

struct uring;
struct uring *uring_open(uint32_t depth, uint32_t batch);
void uring_close(struct uring *u);
void uring_put(struct uring *u, struct engine_read *r);
struct engine_read *uring_get(struct uring *u, int *result); /* bytes, or -errno */
bool uring_has(const struct uring *u);

/* ---- publish.c: files written so that nobody ever sees half of one ---- */

#define FILE_TEMP_ID	  16 /* digits at the end of the name of a temporary file; */
#define TEMP_PLACE_DIGITS 8  /* the first of them, which say on network file systems where it was made */

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

/*
 * Remove the files that file_temp_create() made in `dir` and that no process holds any more; and on
 * network file systems those of shards that are there.
 */
int file_remove_temps(const char *dir, uint64_t *count, struct shard_error *err);

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

/* ---- proc.c: what the kernel says in small files ---- */

#define PROC_BYTES 8192 /* room for all of such a file that is used */

/* The beginning of the file, and a NUL, into `room` bytes.  False, and an empty text, without any. */
bool proc_read(const char *path, char *text, size_t room);

/* The number behind `word` in the file; UINT64_MAX if there is none, or if it says "max". */
uint64_t proc_number(const char *path, const char *word);

/* How many GPUs the driver of NVIDIA has found in this machine; 0: it does not say. */
uint32_t gpu_count_of_host(void);
/* How many maps a process may have: vm.max_map_count. */
uint64_t memory_maps_most(void);

/*
 * The least of what the system has available and of what each limit of this process's control group
 * and of all its parents leaves, in versions 1 and 2.  Page cache that can be dropped counts as
 * available.  UINT64_MAX if the system does not say.
 */
uint64_t available_memory_bytes(void);
/* How much memory and swap together this process may have, also of what others use now; as above. */
uint64_t memory_limit_bytes(void);

#endif
