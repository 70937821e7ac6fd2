/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calls.h - every file call of the library, made to fail on purpose; for one test program each
 *
 * The linker hands the library these functions instead of the C library's (--wrap of all names in
 * calls_wrapped).  A plan says which occurrence of which call goes wrong, and how; a habit is what
 * a whole file system cannot do.  Beside that, the calls keep account of what a crash of the
 * machine would have lost: a file that got a name before it was synced, a folder that was not
 * synced, a sync that was tried again after it failed.  Nothing here reaches the disk: syncs are
 * only counted, and the cache is not dropped.
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
	CALL_OPEN,
	CALL_OPENAT,
	CALL_CLOSE,
	CALL_DUP,
	CALL_PREAD,
	CALL_PWRITE,
	CALL_PREADV2,
	CALL_FSYNC,
	CALL_FTRUNCATE,
	CALL_FALLOCATE,
	CALL_RENAMEAT2,
	CALL_RENAMEAT,
	CALL_LINKAT,
	CALL_UNLINKAT,
	CALL_FSTAT,
	CALL_FSTATAT,
	CALL_FLOCK,
	CALL_MMAP,
	CALL_MUNMAP,
	CALL_GETRANDOM,
	CALL_OPENDIR,
	CALL_READDIR,
	CALL_CLOSEDIR,
	CALL_SYNC_RANGE,
	CALL_FADVISE,
	CALL_FCNTL,
	CALL_IOCTL,
	CALLS,
	CALL_ANY, /* for a plan: occurrences of all calls together */
	CALL_NONE,
};

/*
 * By the names that the library's objects ask for: with 64-bit file offsets, those are others than
 * in the source.
 */
static const char *const calls_wrapped[CALLS] = {
	"open64",	   "openat64",	"close",       "dup",	      "pread64",   "pwrite64",
	"preadv64v2",	   "fsync",	"ftruncate64", "fallocate64", "renameat2", "renameat",
	"linkat",	   "unlinkat",	"fstat64",     "fstatat64",   "flock",	   "mmap64",
	"munmap",	   "getrandom", "opendir",     "readdir64",   "closedir",  "sync_file_range",
	"posix_fadvise64", "fcntl64",	"ioctl",
};

enum how {
	HOW_WELL,
	HOW_FAIL, /* does nothing, and says so with plan.code */
	HOW_FAKE, /* does nothing, and says that it did */
	HOW_LIE,  /* does it, and says with plan.code that it did not: a reply that was lost */
	HOW_HALF, /* reads and writes: half of it */
	HOW_BYTE, /* one byte of it */
	HOW_ZERO, /* none of it, without an error */
	HOW_DIE_BEFORE,
	HOW_DIE_AFTER,
	HOW_DIE_HALF, /* kill -9 of this process; half-way in writes */
	HOW_STOP,     /* SIGSTOP before it */
};

/* What a file system may not have. */
enum habit {
	NO_NOREPLACE = 1,
	NO_LINK = 2,
	NO_TMPFILE = 4,
	NO_FLOCK = 8,
	NO_FALLOCATE = 16,
	NO_DIRECT = 32,
	NO_NOWAIT = 64,
	NOT_CACHED = 128 /* as far as the system tells */,
	ODD_DIRECT = 256 /* past the page cache only with another alignment than ours */,
	HAS_CLONE = 512 /* FICLONE works; here it copies */
};

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
	bool dirty, sync_failed, is_folder, has_name;
};
static struct call_file call_file[64];
static unsigned call_file_count;

static inline void calls_reset(void)
{
	memset(calls_seen, 0, sizeof(calls_seen));
	calls_total = 0;
	calls_hit = false;
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
#define PLAIN(call, real)                     \
	enum how how = calls_meet(call);      \
	if (how == HOW_FAIL)                  \
		return calls_fail(plan.code); \
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

/* Of folders, or of files with a name that are none: is one not durable? */
static bool calls_dirty(bool folders)
{
	for (unsigned i = 0; i < call_file_count; i++)
		if (call_file[i].dirty && call_file[i].is_folder == folders && (folders || call_file[i].has_name))
			return true;
	return false;
}

/* The folder of a name is no longer durable. */
static void calls_marks_folder(int dir, const char *name)
{
	const char *slash = strrchr(name, '/');
	char path[8192];
	struct stat st;
	struct call_file *f;

	snprintf(path, sizeof(path), "%.*s", slash ? (int)(slash - name) : 1, slash ? name : ".");
	if (__real_fstatat64(dir, path, &st, 0))
		return;
	f = calls_file(&st);
	f->dirty = f->is_folder = true;
}

/* A file is about to get its final name. */
static void calls_named(int dir, const char *old, const char *new)
{
	struct stat st;
	int code = errno;

	if (calls_armed && !__real_fstatat64(dir, old, &st, AT_SYMLINK_NOFOLLOW)) {
		struct call_file *f = calls_file(&st);

		if (f->dirty || f->sync_failed)
			calls_wrong("a file got its name before its bytes were durable");
		f->has_name = true;
		if (strstr(new, "dataset.manifest") && calls_dirty(true))
			calls_wrong("the manifest got its name before those of the shards were durable");
		if (strstr(new, "dataset.manifest") && calls_dirty(false))
			calls_wrong("the manifest got its name before a shard that was there was durable");
		calls_marks_folder(dir, new);
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
	else if (!S_ISDIR(st.st_mode) || !calls_forget_folders)
		f->dirty = false;
	errno = code;
}

#endif
