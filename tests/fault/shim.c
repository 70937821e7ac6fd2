/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shim.c - calls of a tool that go wrong on purpose; preloaded by the scripts beside it
 *
 * The environment variable SHIM names what happens, several at once if need be:
 *
 *   delay   reads and opens take up to SHIM_DELAY_US microseconds, random by SHIM_SEED, so that
 *           threads finish in another order each time; nothing else changes
 *   die     kill -9 at the SHIM_DIE_AT-th call that changes a folder, adds to receipts or makes
 *           either durable; SHIM_COUNT names a file that then gets one byte per such call, so that
 *           the calls of several processes are counted together; SHIM_ALL names a process that is
 *           killed first
 *   writes  with `die`: calls that write to a file count, too
 *   blind   what has a path that ends in SHIM_PATH cannot be looked at: EIO
 *   gone    the same, as if nothing had that name: ENOENT
 *   hold    the first open of what has a path that ends in SHIM_HOLD waits until there is a file
 *           with the name in SHIM_UNTIL.  While it waits there is a link with this name and ".held"
 *           behind it
 *   usurp   the first claim that takes another one's place is taken over at once: what SHIM_CLAIM
 *           names gets its name
 *   stop    the first shard that is begun asks the process to stop: SIGUSR1
 *   await   a shard that is begun waits until there is a file with the name in SHIM_UNTIL, but for
 *           the first SHIM_FREE of a process
 *   unnamed no shard gets its name: EIO
 *   room    the file system claims to have room, so that a full disk is met only by writing
 *           (SHIM_ROOM: it claims to have so many bytes)
 *   remote  all file systems claim to be NFS: names are not given by renameat2(), which knows no
 *           flags there, and each link is said to be there already, as if its reply was lost
 *   stale   the first addition to receipts is to a file that another machine has removed: ESTALE
 *   silly   what this process has open is not removed, but gets a name of its own, as on NFS
 *   lonely  locks are seen by their process alone, and SHIM_BOOT names a file in the place of the
 *           kernel's that says which boot this is: as on two machines
 *
 * and, for the negative controls, what a broken shardpack would do:
 *
 *   thread  a worker's number changes what it reads, so that the result depends on who did what
 *   direct  files are written under their final names at once
 *   litter  temporary files are never removed
 *   local   all file systems claim to be ext4, so that locks are trusted where they cannot be; but
 *           not to the thread that just made a link, which must know whether it can be seen
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static bool wants(const char *what)
{
	const char *shim = getenv("SHIM");

	return shim && strstr(shim, what);
}

static uint64_t number(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 10) : otherwise;
}

/* Threads are numbered as they come here first, and each draws from a sequence of its own. */
static unsigned thread_number(void)
{
	static _Atomic unsigned count;
	static _Thread_local unsigned mine;

	if (!mine)
		mine = ++count;
	return mine;
}

static void maybe_wait(void)
{
	static _Thread_local uint64_t state;
	int saved = errno;

	if (!wants("delay"))
		return;
	if (!state)
		state = number("SHIM_SEED", 1) * 1000003 + thread_number() * 7919;
	state = state * 6364136223846793005u + 1442695040888963407u;
	if (state >> 62 == 0) /* one call in four */
		usleep((useconds_t)((state >> 32) % number("SHIM_DELAY_US", 2000)));
	errno = saved;
}

/* Before a call whose effect lasts: each is a moment at which a kill may come. */
static void moment(void)
{
	static _Atomic uint64_t count;
	const char *log = getenv("SHIM_COUNT");
	uint64_t at = ++count;
	int saved = errno;

	if (!wants("die"))
		return;
	if (log) {
		int fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0644);

		if (fd < 0 || write(fd, ".", 1) != 1)
			abort();
		at = (uint64_t)lseek(fd, 0, SEEK_CUR);
		close(fd);
	}
	if (at == number("SHIM_DIE_AT", 0)) {
		if (getenv("SHIM_ALL"))
			kill((pid_t)number("SHIM_ALL", 0), SIGKILL);
		raise(SIGKILL);
	}
	errno = saved;
}

ssize_t read(int fd, void *buffer, size_t bytes)
{
	ssize_t n = REAL(read)(fd, buffer, bytes);
	uint8_t *b = buffer;

	maybe_wait();
	/* A JPEG of Pillow's: its first quantisation value is byte 25, and any value decodes. */
	if (n > 600 && b[0] == 0xFF && b[1] == 0xD8 && wants("thread") && thread_number() % 2 == 0)
		b[25] ^= 1;
	return n;
}

/* ".tmp.NAME.0123456789abcdef" to NAME. */
static bool final_name(const char *temp, char *out)
{
	size_t bytes = strlen(temp);

	if (strncmp(temp, ".tmp.", 5) != 0 || bytes < 5 + 17 || bytes > 255)
		return false;
	memcpy(out, temp + 5, bytes - 5 - 17);
	out[bytes - 5 - 17] = 0;
	return true;
}

/* Does a path end as the variable says? */
static bool ends_as(const char *path, const char *variable)
{
	const char *end = getenv(variable);
	size_t bytes = strlen(path), end_bytes = end ? strlen(end) : 0;

	return end_bytes && bytes >= end_bytes && !strcmp(path + bytes - end_bytes, end);
}

static void maybe_hold(const char *path)
{
	static _Atomic unsigned count;
	char held[4096];

	if (!wants("hold") || !ends_as(path, "SHIM_HOLD") || ++count != 1)
		return;
	snprintf(held, sizeof(held), "%s.held", getenv("SHIM_UNTIL"));
	if (symlink("here", held) != 0)
		abort();
	while (access(getenv("SHIM_UNTIL"), F_OK) != 0)
		usleep(1000);
}

static void shard_begins(const char *path)
{
	static _Atomic unsigned count;
	char name[256];

	if (!final_name(path, name) || !strstr(name, ".shard"))
		return;
	count++;
	if (wants("stop") && count == 1)
		raise(SIGUSR1);
	while (wants("await") && count > number("SHIM_FREE", 0) && access(getenv("SHIM_UNTIL"), F_OK) != 0)
		usleep(20000);
}

int openat(int dir_fd, const char *path, int flags, ...)
{
	char name[256];
	mode_t mode = 0;
	va_list ap;

	va_start(ap, flags);
	if (flags & (O_CREAT | O_TMPFILE))
		mode = va_arg(ap, mode_t);
	va_end(ap);
	maybe_wait();
	maybe_hold(path);
	if (flags & O_CREAT) {
		moment();
		shard_begins(path);
	}
	if (wants("direct") && flags & O_CREAT && final_name(path, name))
		path = name;
	return REAL(openat)(dir_fd, path, flags, mode);
}

int openat64(int dir_fd, const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list ap;

	va_start(ap, flags);
	if (flags & (O_CREAT | O_TMPFILE))
		mode = va_arg(ap, mode_t);
	va_end(ap);
	return openat(dir_fd, path, flags, mode);
}

/* For `direct`, what is read back must be found; and the boot of a `lonely` machine. */
static const char *redirected(const char *path, char *room)
{
	const char *slash = strrchr(path, '/');
	char name[256];

	if (wants("lonely") && !strcmp(path, "/proc/sys/kernel/random/boot_id"))
		return getenv("SHIM_BOOT");
	if (!wants("direct") || !final_name(slash ? slash + 1 : path, name) || strlen(path) >= 4096)
		return path;
	snprintf(room, 4096, "%.*s%s", slash ? (int)(slash + 1 - path) : 0, path, name);
	return room;
}

FILE *fopen64(const char *path, const char *how)
{
	char room[4096];

	return REAL(fopen64)(redirected(path, room), how);
}

int open(const char *path, int flags, ...)
{
	char room[4096];
	mode_t mode = 0;
	va_list ap;

	va_start(ap, flags);
	if (flags & (O_CREAT | O_TMPFILE))
		mode = va_arg(ap, mode_t);
	va_end(ap);
	return REAL(open)(redirected(path, room), flags, mode);
}

int open64(const char *path, int flags, ...)
{
	char room[4096];
	mode_t mode = 0;
	va_list ap;

	va_start(ap, flags);
	if (flags & (O_CREAT | O_TMPFILE))
		mode = va_arg(ap, mode_t);
	va_end(ap);
	if (flags & O_CREAT)
		moment();
	return REAL(open64)(redirected(path, room), flags, mode);
}

int renameat2(int old_dir, const char *old, int new_dir, const char *new, unsigned flags)
{
	char name[256];

	moment();
	if (wants("direct") && final_name(old, name))
		return 0;
	if (wants("unnamed") && strstr(new, ".shard")) {
		errno = EIO;
		return -1;
	}
	if (wants("remote") && flags) {
		errno = EINVAL;
		return -1;
	}
	return REAL(renameat2)(old_dir, old, new_dir, new, flags);
}

/* A receipt goes in two pieces, so that a kill between them tears it. */
ssize_t write(int fd, const void *data, size_t bytes)
{
	ssize_t first, n;

	if (!wants("die") || bytes < 16 || memcmp(data, "receipt ", 8))
		return REAL(write)(fd, data, bytes);
	first = REAL(write)(fd, data, bytes / 2);
	moment();
	if (first != (ssize_t)(bytes / 2))
		return first;
	n = REAL(write)(fd, (const char *)data + first, bytes - (size_t)first);
	return n < 0 ? first : first + n;
}

ssize_t pwrite64(int fd, const void *data, size_t bytes, off64_t offset)
{
	if (wants("writes"))
		moment();
	return REAL(pwrite64)(fd, data, bytes, offset);
}

static _Thread_local bool linked;

int linkat(int old_dir, const char *old, int new_dir, const char *new, int flags)
{
	int rc;

	moment();
	rc = REAL(linkat)(old_dir, old, new_dir, new, flags);
	linked = !rc;
	if (!rc && wants("remote")) {
		errno = EEXIST;
		rc = -1;
	}
	return rc;
}

int flock(int fd, int how)
{
	return wants("lonely") ? 0 : REAL(flock)(fd, how);
}

int statfs64(const char *path, struct statfs64 *out)
{
	int rc = REAL(statfs64)(path, out);

	if (!rc && (wants("remote") || (wants("local") && !linked)))
		out->f_type = wants("local") ? 0xEF53 : 0x6969;
	linked = false;
	return rc;
}

int renameat(int old_dir, const char *old, int new_dir, const char *new)
{
	static _Atomic unsigned count;
	int rc;

	moment();
	rc = REAL(renameat)(old_dir, old, new_dir, new);
	if (!rc && wants("usurp") && !strncmp(new, "claim-", 6) && !count++ &&
	    (REAL(unlinkat)(new_dir, new, 0) || linkat(AT_FDCWD, getenv("SHIM_CLAIM"), new_dir, new, 0)))
		abort();
	return rc;
}

/* Has this process a file of that name open? */
static bool is_open(const char *name)
{
	char link[64], to[4096];
	bool found = false;

	for (int fd = 3; fd < 256 && !found; fd++) {
		ssize_t n;

		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		n = readlink(link, to, sizeof(to) - 1);
		if (n <= 0)
			continue;
		to[n] = '\0';
		found = strrchr(to, '/') && !strcmp(strrchr(to, '/') + 1, name);
	}
	return found;
}

int unlinkat(int dir_fd, const char *path, int flags)
{
	moment();
	if (wants("silly") && is_open(path))
		return REAL(renameat)(dir_fd, path, dir_fd, ".nfs000000000000000000000001");
	if (wants("litter") && !strncmp(path, ".tmp.", 5))
		return 0;
	return REAL(unlinkat)(dir_fd, path, flags);
}

int unlink(const char *path)
{
	moment();
	return REAL(unlink)(path);
}

int rmdir(const char *path)
{
	moment();
	return REAL(rmdir)(path);
}

int mkdir(const char *path, mode_t mode)
{
	moment();
	return REAL(mkdir)(path, mode);
}

int fsync(int fd)
{
	moment();
	return REAL(fsync)(fd);
}

int fdatasync(int fd)
{
	static atomic_bool told;

	moment();
	if (wants("stale") && !atomic_exchange(&told, true)) {
		errno = ESTALE;
		return -1;
	}
	return REAL(fdatasync)(fd);
}

/* Room for 2^40 blocks, or for $SHIM_ROOM bytes. */
static uint64_t blocks_claimed(uint64_t block_bytes)
{
	const char *bytes = getenv("SHIM_ROOM");

	return bytes ? strtoull(bytes, NULL, 10) / block_bytes : UINT64_C(1) << 40;
}

int statvfs(const char *path, struct statvfs *out)
{
	int rc = REAL(statvfs)(path, out);

	if (!rc && wants("room"))
		out->f_bavail = (fsblkcnt_t)blocks_claimed(out->f_frsize);
	return rc;
}

int statvfs64(const char *path, struct statvfs64 *out)
{
	int rc = REAL(statvfs64)(path, out);

	if (!rc && wants("room"))
		out->f_bavail = (fsblkcnt64_t)blocks_claimed(out->f_frsize);
	return rc;
}

/* ---- blind: a look at one name fails ---- */

static bool is_hidden(const char *path)
{
	if ((!wants("blind") && !wants("gone")) || !ends_as(path, "SHIM_PATH"))
		return false;
	errno = wants("gone") ? ENOENT : EIO;
	return true;
}

/* The names of programs with offsets of 64 bits. */
int fstatat64(int dir, const char *restrict path, struct stat64 *restrict st, int flags)
{
	return is_hidden(path) ? -1 : REAL(fstatat64)(dir, path, st, flags);
}

int stat64(const char *restrict path, struct stat64 *restrict st)
{
	return is_hidden(path) ? -1 : REAL(stat64)(path, st);
}

int lstat64(const char *restrict path, struct stat64 *restrict st)
{
	return is_hidden(path) ? -1 : REAL(lstat64)(path, st);
}
