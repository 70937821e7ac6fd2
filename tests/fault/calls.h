/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calls.h - every file call of the library, made to fail on purpose; for one test program each
 *
 * The linker hands the library these functions instead of the C library's (--wrap of all names in calls_wrapped).  A
 * plan says which occurrence of which call goes wrong, and how; a habit is what a whole file system cannot do.  Beside
 * that, the calls keep account of what a crash of the machine would have lost: a file that got a name before it was
 * synced, a folder that was not synced, a sync that was tried again after it failed.  Nothing here reaches the disk:
 * syncs are only counted, and the cache is not dropped.
 */
#ifndef TESTS_FAULT_CALLS_H
#define TESTS_FAULT_CALLS_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "tests/test.h"

enum call {
	CALL_OPEN, CALL_OPENAT, CALL_CLOSE, CALL_DUP, CALL_PREAD, CALL_PWRITE, CALL_PREADV2, CALL_FSYNC, CALL_FTRUNCATE,
	CALL_FALLOCATE, CALL_RENAMEAT2, CALL_RENAMEAT, CALL_LINKAT, CALL_UNLINKAT, CALL_FSTAT, CALL_FSTATAT, CALL_FLOCK,
	CALL_MMAP, CALL_MUNMAP, CALL_GETRANDOM, CALL_OPENDIR, CALL_READDIR, CALL_CLOSEDIR, CALL_SYNC_RANGE, CALL_FADVISE,
	CALLS,
	CALL_ANY, /* for a plan: occurrences of all calls together */
	CALL_NONE,
};

/* By the names that the library's objects ask for: with 64-bit file offsets, those are others than in the source. */
static const char *const calls_wrapped[CALLS] = {
	"open64", "openat64", "close", "dup", "pread64", "pwrite64", "preadv64v2", "fsync", "ftruncate64",
	"fallocate64", "renameat2", "renameat", "linkat", "unlinkat", "fstat64", "fstatat64", "flock",
	"mmap64", "munmap", "getrandom", "opendir", "readdir64", "closedir", "sync_file_range", "posix_fadvise64",
};

enum how {
	HOW_WELL,
	HOW_FAIL,  /* does nothing, and says so with plan.code */
	HOW_FAKE,  /* does nothing, and says that it did */
	HOW_LIE,   /* does it, and says with plan.code that it did not: a reply that was lost */
	HOW_HALF,  /* reads and writes: half of it */
	HOW_BYTE,  /* one byte of it */
	HOW_ZERO,  /* none of it, without an error */
	HOW_DIE_BEFORE, HOW_DIE_AFTER, HOW_DIE_HALF, /* kill -9 of this process; half-way in writes */
	HOW_STOP,  /* SIGSTOP before it */
};

/* What a file system may not have. */
enum habit { NO_NOREPLACE = 1, NO_LINK = 2, NO_TMPFILE = 4, NO_FLOCK = 8, NO_FALLOCATE = 16, NO_DIRECT = 32, NO_NOWAIT = 64,
	     NOT_CACHED = 128 /* as far as the system tells */ };

static struct {
	enum call call;
	unsigned long nth; /* from 1 */
	bool on;	   /* and every one after it */
	enum how how;
	int code;
	unsigned habits;
} plan = {.call = CALL_NONE};

static bool calls_armed, calls_hit, calls_forget_folders /* a control */, calls_replace /* another */;
static unsigned long calls_seen[CALLS], calls_total;
static const char *calls_broken; /* what a crash would have lost; NULL for nothing */

struct call_file { /* what is known of an inode */
	dev_t dev;
	ino_t ino;
	bool dirty, sync_failed;
};
static struct call_file call_file[64];
static unsigned call_file_count;
static bool call_folder_dirty;

static inline void calls_reset(void)
{
	memset(calls_seen, 0, sizeof(calls_seen));
	calls_total = 0;
	calls_hit = call_folder_dirty = false;
	calls_broken = NULL;
	call_file_count = 0;
}

static inline void calls_off(void)
{
	plan = (__typeof__(plan)){.call = CALL_NONE};
}

/* How this occurrence goes. */
static enum how calls_meet(enum call c)
{
	unsigned long n, *count = plan.call == CALL_ANY ? &calls_total : &calls_seen[c];

	if (!calls_armed)
		return HOW_WELL;
	calls_total++;
	calls_seen[c]++;
	n = *count;
	if ((plan.call != c && plan.call != CALL_ANY) || (plan.on ? n < plan.nth : n != plan.nth))
		return HOW_WELL;
	calls_hit = true;
	if (plan.how == HOW_DIE_BEFORE)
		raise(SIGKILL);
	if (plan.how == HOW_STOP)
		raise(SIGSTOP);
	return plan.how;
}

static int calls_fail(int code)
{
	errno = code;
	return -1;
}

/* The result of a call that was made. */
static int calls_end(enum how how, int rc)
{
	if (how == HOW_DIE_AFTER)
		raise(SIGKILL);
	return how == HOW_LIE && !rc ? calls_fail(plan.code) : rc;
}

/* Of several things that are wrong the first counts. */
static void calls_wrong(const char *what)
{
	calls_broken = calls_broken ? calls_broken : what;
}

static bool calls_lacks(unsigned h)
{
	return calls_armed && (plan.habits & h);
}

#define WRAPPED(type, name, ...)         \
	type __real_##name(__VA_ARGS__); \
	type __wrap_##name(__VA_ARGS__); \
	type __wrap_##name(__VA_ARGS__)

/* A call that answers 0 or -1 with errno. */
#define PLAIN(call, real)                       \
	enum how how = calls_meet(call);        \
	if (how == HOW_FAIL)                    \
		return calls_fail(plan.code);   \
	return how == HOW_FAKE ? 0 : calls_end(how, (real))

WRAPPED(int, fstat64, int fd, struct stat *out)
{
	PLAIN(CALL_FSTAT, __real_fstat64(fd, out));
}

WRAPPED(int, fstatat64, int dir, const char *name, struct stat *out, int flags)
{
	PLAIN(CALL_FSTATAT, __real_fstatat64(dir, name, out, flags));
}

/* ---- account ---- */

static struct call_file *calls_file(const struct stat *st)
{
	for (unsigned i = 0; i < call_file_count; i++)
		if (call_file[i].dev == st->st_dev && call_file[i].ino == st->st_ino)
			return &call_file[i];
	if (call_file_count == 64)
		abort();
	call_file[call_file_count] = (struct call_file){.dev = st->st_dev, .ino = st->st_ino};
	return &call_file[call_file_count++];
}

static void calls_wrote(int fd)
{
	struct stat st;
	int code = errno;

	if (calls_armed && !__real_fstat64(fd, &st))
		calls_file(&st)->dirty = true;
	errno = code;
}

/* A new file may have the number of one that is gone. */
static int calls_created(int fd)
{
	struct stat st;
	struct call_file *f;

	if (calls_armed && fd >= 0 && !__real_fstat64(fd, &st)) {
		f = calls_file(&st);
		*f = (struct call_file){.dev = st.st_dev, .ino = st.st_ino};
	}
	return fd;
}

/* A file is about to get its final name. */
static void calls_named(int dir, const char *old)
{
	struct stat st;
	int code = errno;

	if (calls_armed && !__real_fstatat64(dir, old, &st, AT_SYMLINK_NOFOLLOW)) {
		const struct call_file *f = calls_file(&st);

		if (f->dirty || f->sync_failed)
			calls_wrong("a file got its name before its bytes were durable");
		call_folder_dirty = true;
	}
	errno = code;
}

static void calls_synced(int fd, bool well)
{
	struct stat st;
	struct call_file *f;
	int code = errno;

	if (!calls_armed || __real_fstat64(fd, &st))
		return;
	f = calls_file(&st);
	if (f->sync_failed)
		calls_wrong("a sync that failed was tried again");
	if (!well)
		f->sync_failed = true;
	else if (S_ISDIR(st.st_mode))
		call_folder_dirty = call_folder_dirty && calls_forget_folders;
	else
		f->dirty = false;
	errno = code;
}

/* ---- the calls ---- */

WRAPPED(int, open64, const char *path, int flags, ...)
{
	enum how how = calls_meet(CALL_OPEN);
	bool makes = (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE;
	mode_t mode = 0;
	va_list ap;
	int fd;

	va_start(ap, flags);
	if (makes)
		mode = va_arg(ap, mode_t);
	va_end(ap);
	if (how == HOW_FAIL)
		return calls_fail(plan.code);
	if ((flags & O_TMPFILE) == O_TMPFILE && calls_lacks(NO_TMPFILE))
		return calls_end(how, calls_fail(EOPNOTSUPP));
	if ((flags & O_DIRECT) && calls_lacks(NO_DIRECT))
		return calls_end(how, calls_fail(EINVAL));
	fd = __real_open64(path, flags, mode);
	return calls_end(how, makes ? calls_created(fd) : fd);
}

WRAPPED(int, openat64, int dir, const char *path, int flags, ...)
{
	enum how how = calls_meet(CALL_OPENAT);
	mode_t mode = 0;
	va_list ap;
	int fd;

	va_start(ap, flags);
	if (flags & O_CREAT)
		mode = va_arg(ap, mode_t);
	va_end(ap);
	if (how == HOW_FAIL)
		return calls_fail(plan.code);
	fd = __real_openat64(dir, path, flags, mode);
	return calls_end(how, flags & O_CREAT ? calls_created(fd) : fd);
}

/* Even a close that fails lets the file go, on Linux. */
WRAPPED(int, close, int fd)
{
	enum how how = calls_meet(CALL_CLOSE);
	int rc = __real_close(fd);

	return how == HOW_FAIL ? calls_fail(plan.code) : calls_end(how, rc);
}

WRAPPED(int, dup, int fd)
{
	enum how how = calls_meet(CALL_DUP);

	return how == HOW_FAIL ? calls_fail(plan.code) : calls_end(how, __real_dup(fd));
}

/* How many of `bytes` bytes a disturbed read or write gets to see; -1 for an error. */
static ssize_t calls_part(enum how how, size_t bytes)
{
	switch (how) {
	case HOW_FAIL: return calls_fail(plan.code);
	case HOW_ZERO: return 0;
	case HOW_BYTE: return bytes ? 1 : 0;
	case HOW_HALF: case HOW_DIE_HALF: return (ssize_t)(bytes + 1) / 2;
	default: return (ssize_t)bytes;
	}
}

WRAPPED(ssize_t, pread64, int fd, void *out, size_t bytes, off_t offset)
{
	enum how how = calls_meet(CALL_PREAD);
	ssize_t n = calls_part(how, bytes);

	if (n <= 0 || how == HOW_FAKE)
		return n;
	n = __real_pread64(fd, out, (size_t)n, offset);
	calls_end(how, 0);
	return n;
}

WRAPPED(ssize_t, pwrite64, int fd, const void *data, size_t bytes, off_t offset)
{
	enum how how = calls_meet(CALL_PWRITE);
	ssize_t n = calls_part(how, bytes);

	calls_wrote(fd);
	if (n <= 0 || how == HOW_FAKE)
		return n;
	n = __real_pwrite64(fd, data, (size_t)n, offset);
	if (how == HOW_DIE_HALF)
		raise(SIGKILL);
	calls_end(how, 0);
	return n;
}

WRAPPED(ssize_t, preadv64v2, int fd, const struct iovec *v, int count, off_t offset, int flags)
{
	enum how how = calls_meet(CALL_PREADV2);

	if (how == HOW_FAIL || calls_lacks(NO_NOWAIT | NOT_CACHED))
		return calls_end(how, calls_fail(how == HOW_FAIL ? plan.code : calls_lacks(NO_NOWAIT) ? EOPNOTSUPP : EAGAIN));
	if (how == HOW_ZERO)
		return 0;
	calls_end(how, 0);
	return __real_preadv64v2(fd, v, count, offset, flags);
}

WRAPPED(int, fsync, int fd)
{
	enum how how = calls_meet(CALL_FSYNC);

	calls_synced(fd, how != HOW_FAIL);
	if (how == HOW_FAIL)
		return calls_fail(plan.code);
	return calls_armed ? calls_end(how, 0) : __real_fsync(fd);
}

WRAPPED(int, ftruncate64, int fd, off_t bytes)
{
	calls_wrote(fd);
	PLAIN(CALL_FTRUNCATE, __real_ftruncate64(fd, bytes));
}

WRAPPED(int, fallocate64, int fd, int mode, off_t offset, off_t bytes)
{
	if (calls_lacks(NO_FALLOCATE))
		return calls_fail(EOPNOTSUPP);
	PLAIN(CALL_FALLOCATE, __real_fallocate64(fd, mode, offset, bytes));
}

WRAPPED(int, renameat, int old_dir, const char *old, int new_dir, const char *new)
{
	enum how how = calls_meet(CALL_RENAMEAT);

	if (how == HOW_FAIL)
		return calls_fail(plan.code);
	if (how == HOW_FAKE)
		return 0;
	calls_named(old_dir, old);
	return calls_end(how, __real_renameat(old_dir, old, new_dir, new));
}

WRAPPED(int, renameat2, int old_dir, const char *old, int new_dir, const char *new, unsigned flags)
{
	enum how how = calls_meet(CALL_RENAMEAT2);

	if (how == HOW_FAIL || calls_lacks(NO_NOREPLACE))
		return calls_end(how, calls_fail(how == HOW_FAIL ? plan.code : EINVAL));
	if (how == HOW_FAKE)
		return 0;
	calls_named(old_dir, old);
	return calls_end(how, __real_renameat2(old_dir, old, new_dir, new, calls_replace ? 0 : flags));
}

WRAPPED(int, linkat, int old_dir, const char *old, int new_dir, const char *new, int flags)
{
	enum how how = calls_meet(CALL_LINKAT);

	if (how == HOW_FAIL || calls_lacks(NO_LINK))
		return calls_end(how, calls_fail(how == HOW_FAIL ? plan.code : EPERM));
	if (how == HOW_FAKE)
		return 0;
	calls_named(old_dir, old);
	return calls_end(how, __real_linkat(old_dir, old, new_dir, new, flags));
}

WRAPPED(int, unlinkat, int dir, const char *name, int flags)
{
	PLAIN(CALL_UNLINKAT, __real_unlinkat(dir, name, flags));
}

WRAPPED(int, flock, int fd, int what)
{
	if (calls_lacks(NO_FLOCK))
		return calls_fail(ENOLCK);
	PLAIN(CALL_FLOCK, __real_flock(fd, what));
}

WRAPPED(void *, mmap64, void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	enum how how = calls_meet(CALL_MMAP);
	void *map;

	if (how == HOW_FAIL) {
		errno = plan.code;
		return MAP_FAILED;
	}
	map = __real_mmap64(at, bytes, protection, flags, fd, offset);
	calls_end(how, 0);
	return map;
}

WRAPPED(int, munmap, void *at, size_t bytes)
{
	enum how how = calls_meet(CALL_MUNMAP);

	return calls_end(how == HOW_FAIL ? HOW_WELL : how, __real_munmap(at, bytes));
}

WRAPPED(ssize_t, getrandom, void *out, size_t bytes, unsigned flags)
{
	enum how how = calls_meet(CALL_GETRANDOM);
	ssize_t n = calls_part(how, bytes);

	if (n <= 0 || how == HOW_FAKE)
		return n;
	calls_end(how, 0);
	return __real_getrandom(out, (size_t)n, flags);
}

WRAPPED(DIR *, opendir, const char *path)
{
	enum how how = calls_meet(CALL_OPENDIR);

	if (how == HOW_FAIL) {
		errno = plan.code;
		return NULL;
	}
	calls_end(how, 0);
	return __real_opendir(path);
}

WRAPPED(struct dirent *, readdir64, DIR *d)
{
	enum how how = calls_meet(CALL_READDIR);

	if (how == HOW_FAIL) {
		errno = plan.code;
		return NULL;
	}
	calls_end(how, 0);
	return __real_readdir64(d);
}

WRAPPED(int, closedir, DIR *d)
{
	enum how how = calls_meet(CALL_CLOSEDIR);

	return calls_end(how == HOW_FAIL ? HOW_WELL : how, __real_closedir(d));
}

WRAPPED(int, sync_file_range, int fd, off_t offset, off_t bytes, unsigned flags)
{
	PLAIN(CALL_SYNC_RANGE, __real_sync_file_range(fd, offset, bytes, flags));
}

/* Answers with the code itself. */
WRAPPED(int, posix_fadvise64, int fd, off_t offset, off_t bytes, int advice)
{
	enum how how = calls_meet(CALL_FADVISE);

	if (how == HOW_FAIL)
		return plan.code;
	return calls_end(how, calls_armed ? 0 : __real_posix_fadvise64(fd, offset, bytes, advice));
}

#endif
