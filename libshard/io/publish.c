/* SPDX-License-Identifier: Apache-2.0 */
/*
 * publish.c - write, sync, rename: a name is either absent or complete
 *
 * The protocol: a temporary file in the same folder, locked while its owner lives; write; fsync,
 * which is never retried, because after a failed one the kernel may have dropped the bytes and call
 * the next one a success; rename without replacing; look whether the name now leads to our inode,
 * because a network file system may lose the reply; fsync the folder.
 */
#include "libshard/io/io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "libshard/base/bytes.h"
#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/base/words.h"

#define SYNC_STEP	    (8u << 20) /* ask for writeback that often, so that fsync has little left to do */
#define FILE_TEMP_PREFIX    ".tmp."
#define TEMP_NAME_BYTES_MAX (255 - (sizeof(FILE_TEMP_PREFIX) - 1) - 1 - FILE_TEMP_ID) /* of a final name */
#define BOOT_ID		    "/proc/sys/kernel/random/boot_id"
#define SHARD_SUFFIX	    ".shard"

/*
 * ---- temporary names ----
 *
 * A file that has no final name yet is locked by its owner.  But a lock says that the owner lives
 * only where both see it.  On network file systems it may hold on its own machine alone, or even on
 * its own mount, and no call tells.  There the first digits say where the file was made.  Others
 * leave it alone until the shard that it was for is there.
 */

/* Where a lock on a file of a folder is seen, and the digits that say so in names. */
struct temp_place {
	bool everywhere;
	char digits[TEMP_PLACE_DIGITS + 1]; /* of this boot of this kernel and this mount; empty: unknown */
};

static void temp_place_find(struct temp_place *p, const char *dir, int dir_fd)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a; libshard/io knows no other hash */
	char boot[64];
	uint8_t bytes[TEMP_PLACE_DIGITS / 2];
	struct stat st;

	*p = (struct temp_place){.everywhere = !file_is_remote(dir)};
	if (p->everywhere)
		return;
	if (!proc_read(BOOT_ID, boot, sizeof(boot)) || fstat(dir_fd, &st))
		return;
	for (size_t i = 0; boot[i]; i++)
		hash = (hash ^ (uint8_t)boot[i]) * UINT64_C(0x100000001b3);
	for (unsigned i = 0; i < 8; i++)
		hash = (hash ^ (uint8_t)((uint64_t)st.st_dev >> 8 * i)) * UINT64_C(0x100000001b3);
	for (unsigned i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(hash >> 8 * i);
	hex_from_bytes(p->digits, bytes, sizeof(bytes));
}

static bool temp_is_id(const char *id)
{
	uint8_t nonce[FILE_TEMP_ID / 2];

	return strlen(id) == FILE_TEMP_ID && hex_to_bytes(nonce, id, sizeof(nonce));
}

/* ---- files that are left ---- */

/* ".tmp." NAME "." and 16 hex digits */
static bool is_temp_name(const char *name)
{
	size_t bytes = strlen(name), prefix = sizeof(FILE_TEMP_PREFIX) - 1;

	return bytes > prefix + 1 + FILE_TEMP_ID && !memcmp(name, FILE_TEMP_PREFIX, prefix) &&
	       name[bytes - FILE_TEMP_ID - 1] == '.' && temp_is_id(name + bytes - FILE_TEMP_ID);
}

/* Its shard is there.  A writer that still works on it finds that, and compares. */
static bool is_of_no_use(const struct temp_place *p, int dir_fd, const char *name)
{
	char final[TEMP_NAME_BYTES_MAX + 1];
	size_t bytes = strlen(name) - (sizeof(FILE_TEMP_PREFIX) - 1) - 1 - FILE_TEMP_ID, suffix = strlen(SHARD_SUFFIX);
	struct stat st;

	if (p->everywhere || bytes <= suffix || bytes > TEMP_NAME_BYTES_MAX)
		return false;
	memcpy(final, name + sizeof(FILE_TEMP_PREFIX) - 1, bytes);
	final[bytes] = 0;
	return !strcmp(final + bytes - suffix, SHARD_SUFFIX) && !fstatat(dir_fd, final, &st, AT_SYMLINK_NOFOLLOW);
}

/*
 * A lock that cannot be had says that the owner lives.  One that can be had says that it is dead,
 * if the owner saw ours; it is held until the name is gone.
 */
static bool remove_temp(const struct temp_place *p, int dir_fd, const char *name)
{
	const char *id = name + strlen(name) - FILE_TEMP_ID;
	bool lock_is_seen = p->everywhere || (p->digits[0] && !memcmp(id, p->digits, TEMP_PLACE_DIGITS));
	int fd = openat(dir_fd, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	bool removed = fd >= 0 && !flock(fd, LOCK_EX | LOCK_NB) && (lock_is_seen || is_of_no_use(p, dir_fd, name)) &&
		       !unlinkat(dir_fd, name, 0);

	file_close(fd);
	return removed;
}

int file_remove_temps(const char *dir, uint64_t *count, struct shard_error *err)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	struct temp_place place;
	struct shown s;
	uint64_t removed = 0;
	int rc = SHARD_OK;

	if (!d)
		return error_os(err, errno, "%s: cannot be listed", show(&s, dir));
	temp_place_find(&place, dir, dirfd(d));
	while ((errno = 0, e = readdir(d)))
		removed += is_temp_name(e->d_name) && remove_temp(&place, dirfd(d), e->d_name);
	if (errno)
		rc = error_os(err, errno, "%s: cannot be listed", show(&s, dir));
	closedir(d);
	if (!rc && count)
		*count = removed;
	return rc;
}

/* ---- write, sync, rename ---- */

static int fail_os(struct shard_error *err, const struct file_temp *t, const char *what)
{
	int code = errno;
	struct shown s;

	return error_os(err, code, "%s: %s", show(&s, t->path), what);
}

/* "a/b" into folder and name; the name stays a pointer into the path. */
static int split(struct file_temp *t, const char *path, struct shard_error *err)
{
	const char *slash = strrchr(path, '/');
	size_t dir_bytes = slash ? (size_t)(slash - path) : 0;
	struct shown s;

	t->path = path;
	t->name = slash ? slash + 1 : path;
	if (text_is_url(path))
		return error_set(err, SHARD_E_ARGUMENT, "%s: " URL_REMEDY, show(&s, path));
	if (!*t->name || !strcmp(t->name, ".") || !strcmp(t->name, "..") || strlen(t->name) > TEMP_NAME_BYTES_MAX)
		return error_set(err, SHARD_E_ARGUMENT, "%s: its last part must be a file name of 1 to %zu bytes",
				 show(&s, path), TEMP_NAME_BYTES_MAX);
	t->dir = mem_zalloc(dir_bytes + 2);
	if (!t->dir)
		return error_set(err, SHARD_E_MEMORY, "%s: no memory for its name", show(&s, path));
	memcpy(t->dir, slash ? path : ".", slash ? dir_bytes : 1);
	if (slash && !dir_bytes)
		t->dir[0] = '/';
	return SHARD_OK;
}

/*
 * One try: a new name, locked.  Returns an errno: EEXIST also if another process took it for left
 * behind before we had the lock.
 */
static int create_once(struct file_temp *t, const char *id)
{
	struct stat st;
	int code;

	snprintf(t->temp, sizeof(t->temp), FILE_TEMP_PREFIX "%s.%s", t->name, id);
	t->fd = openat(t->dir_fd, t->temp, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (t->fd < 0)
		return errno;
	if (flock(t->fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
		code = EEXIST;
	else if (fstat(t->fd, &st))
		code = errno;
	else if (!st.st_nlink)
		code = EEXIST;
	else
		return 0;
	unlinkat(t->dir_fd, t->temp, 0); /* ours, by its digits, if it is still there */
	close(t->fd);
	t->fd = -1;
	return code;
}

/* With digits of its own, which no other file has.  Returns an errno. */
static int create_drawn(struct file_temp *t)
{
	uint8_t nonce[FILE_TEMP_ID / 2];
	char id[FILE_TEMP_ID + 1];
	struct temp_place place;
	int code = EEXIST;

	temp_place_find(&place, t->dir, t->dir_fd);
	for (int tries = 0; code == EEXIST && tries < 8; tries++) {
		/* A process that removes what was left behind may find one new name after the other. */
		const struct timespec pause = {.tv_nsec = 1000000L * tries};
		ssize_t n;

		if (tries)
			nanosleep(&pause, NULL);
		do {
			n = getrandom(nonce, sizeof(nonce), 0);
		} while (n < 0 && errno == EINTR);
		if (n != sizeof(nonce))
			return n < 0 ? errno : EIO;
		hex_from_bytes(id, nonce, sizeof(nonce));
		memcpy(id, place.digits, strlen(place.digits));
		code = create_once(t, id);
	}
	return code;
}

int file_temp_create(struct file_temp *t, const char *path, struct shard_error *err)
{
	return file_temp_create_as(t, path, NULL, err);
}

int file_temp_create_as(struct file_temp *t, const char *path, const char *id, struct shard_error *err)
{
	struct shown shown;
	int rc, code;

	*t = FILE_TEMP_NONE;
	rc = split(t, path, err);
	if (!rc && id && !temp_is_id(id))
		rc = error_set(err, SHARD_E_ARGUMENT, "temp_id is '%s'; must be %d digits of 0-9a-f, or NULL",
			       show(&shown, id), FILE_TEMP_ID);
	if (rc)
		goto fail;
	t->dir_fd = open(t->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (t->dir_fd < 0) {
		rc = fail_os(err, t, "the folder that holds it cannot be opened");
		goto fail;
	}
	code = id ? create_once(t, id) : EEXIST;
	if (code == EEXIST)
		code = create_drawn(t);
	if (!code)
		return SHARD_OK;
	t->temp[0] = 0;
	errno = code;
	rc = fail_os(err, t, "no temporary file can be made in its folder");
fail:
	file_temp_discard(t);
	return rc;
}

int file_temp_reserve(struct file_temp *t, uint64_t bytes, struct shard_error *err)
{
	int code;

	do {
		code = fallocate(t->fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)bytes) ? errno : 0;
	} while (code == EINTR);
	if (code == ENOSPC || code == EDQUOT || code == EFBIG) {
		struct shown s;

		return error_os(err, code, "%s: no room for its %" PRIu64 " bytes", show(&s, t->path), bytes);
	}
	return SHARD_OK; /* any other answer: this file system does not reserve, so writing will tell */
}

void file_temp_direct(struct file_temp *t)
{
	t->may_direct = !file_is_remote(t->dir); /* a server is faster when it may collect writes */
}

/*
 * O_DIRECT on or off.  Where it cannot be had the page cache does; where it cannot be left again
 * that is an error.
 */
static int set_direct(struct file_temp *t, bool on, struct shard_error *err)
{
	int flags;

	if (t->direct == on)
		return SHARD_OK;
	flags = fcntl(t->fd, F_GETFL);
	if (flags < 0 || fcntl(t->fd, F_SETFL, on ? flags | O_DIRECT : flags & ~O_DIRECT)) {
		t->may_direct = false;
		return on ? SHARD_OK : fail_os(err, t, "switching direct writes (O_DIRECT) off");
	}
	t->direct = on;
	return SHARD_OK;
}

int file_temp_write(struct file_temp *t, const void *data, size_t bytes, struct shard_error *err)
{
	bool is_aligned = !(((uintptr_t)data | bytes | t->bytes) & (FILE_DIRECT_ALIGN - 1));
	struct shard_error why = {0};
	int rc = set_direct(t, t->may_direct && is_aligned, &why);

	if (!rc)
		rc = file_write_at(t->fd, data, bytes, t->bytes, t->path, &why);
	if (rc && t->direct && why.os_code == EINVAL) { /* a device that wants more than a page */
		t->may_direct = false;
		rc = set_direct(t, false, &why);
		if (!rc)
			rc = file_write_at(t->fd, data, bytes, t->bytes, t->path, &why);
	}
	if (rc) {
		if (err)
			*err = why;
		return rc;
	}
	t->bytes += bytes;
	if (!t->direct && t->bytes - t->synced >= SYNC_STEP) {
		/* a hint */
		sync_file_range(t->fd, (off_t)t->synced, (off_t)(t->bytes - t->synced), SYNC_FILE_RANGE_WRITE);
		t->synced = t->bytes;
	}
	return SHARD_OK;
}

int file_temp_sync(struct file_temp *t, struct shard_error *err)
{
	struct stat st;

	if (ftruncate(t->fd, (off_t)t->bytes)) /* gives back what was reserved and not used */
		return fail_os(err, t, "setting its size");
	if (fsync(t->fd))
		return fail_os(err, t, "making it durable (fsync)");
	if (fstat(t->fd, &st))
		return fail_os(err, t, "reading its size (fstat)");
	if ((uint64_t)st.st_size != t->bytes) {
		errno = EIO;
		return fail_os(err, t, "its size differs from the bytes written");
	}
	return SHARD_OK;
}

/* Does the final name lead to the file that we hold? */
static bool name_is_ours(const struct file_temp *t)
{
	struct stat ours, named;

	return !fstat(t->fd, &ours) && !fstatat(t->dir_fd, t->name, &named, AT_SYMLINK_NOFOLLOW) &&
	       ours.st_ino == named.st_ino && ours.st_dev == named.st_dev;
}

/*
 * A link was made, but the name seems to be another file.  A file system that counts no links, as
 * sshfs, numbers names and not files.  Then the name must lead to as many bytes.  A local one that
 * says so did not make the link.
 */
static bool is_uncounted_link(const struct file_temp *t)
{
	struct stat ours, named;

	return file_is_remote(t->dir) && !fstat(t->fd, &ours) && ours.st_nlink < 2 &&
	       !fstatat(t->dir_fd, t->name, &named, AT_SYMLINK_NOFOLLOW) && S_ISREG(named.st_mode) &&
	       named.st_dev == ours.st_dev && named.st_size == ours.st_size;
}

/* Closed first: network file systems give a file that is open another name, in its folder. */
static void remove_name(struct file_temp *t)
{
	file_close(t->fd);
	t->fd = -1;
	unlinkat(t->dir_fd, t->temp, 0);
}

/*
 * errno of giving it its name, 0 if that worked.  `linked`: its temporary name may still be there
 * as well.
 */
static int rename_temp(const struct file_temp *t, bool replace, bool *linked)
{
	struct stat st;

	if (replace)
		return renameat(t->dir_fd, t->temp, t->dir_fd, t->name) ? errno : 0;
	if (!renameat2(t->dir_fd, t->temp, t->dir_fd, t->name, RENAME_NOREPLACE))
		return 0;
	if (errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP)
		return errno;
	/* A file system without that flag: a hard link does not replace either. */
	*linked = true;
	if (!linkat(t->dir_fd, t->temp, t->dir_fd, t->name, 0))
		return 0;
	if (!file_is_refusal(errno))
		return errno;
	/*
	 * Nor hard links: the gap between look and rename is harmless, since equal plans write
	 * equal bytes.
	 */
	if (!fstatat(t->dir_fd, t->name, &st, AT_SYMLINK_NOFOLLOW))
		return EEXIST;
	if (errno != ENOENT)
		return errno; /* it may be there, so nothing is replaced */
	return renameat(t->dir_fd, t->temp, t->dir_fd, t->name) ? errno : 0;
}

int file_temp_publish(struct file_temp *t, bool replace, struct shard_error *err)
{
	bool linked = false, is_done;
	int code = rename_temp(t, replace, &linked);
	struct shown s;
	struct stat st;

	is_done = name_is_ours(t);
	if (!is_done && !code && linked)
		is_done = is_uncounted_link(t);
	if (!is_done && !code && replace) /* did another process replace it in the same moment? */
		is_done = fstatat(t->dir_fd, t->temp, &st, AT_SYMLINK_NOFOLLOW) && errno == ENOENT;
	if (!is_done) {
		if (code == ENOENT && !replace && !fstatat(t->dir_fd, t->name, &st, AT_SYMLINK_NOFOLLOW))
			code = EEXIST; /* another process was faster, and removed what is no longer needed */
		if (code == EEXIST)
			return error_set(err, SHARD_E_EXISTS, "%s: already exists", show(&s, t->path));
		errno = code ? code : EIO;
		return fail_os(err, t, "renaming the temporary file to it");
	}
	if (linked) /* if that fails it is as if we had been killed here: file_remove_temps() does it */
		remove_name(t);
	t->temp[0] = 0; /* published: no longer to be removed */
	if (fsync(t->dir_fd))
		return fail_os(err, t, "published, but its folder could not be made durable (fsync); run again");
	return SHARD_OK;
}

void file_temp_discard(struct file_temp *t)
{
	if (t->fd >= 0 && t->temp[0])
		remove_name(t);
	file_close(t->fd);
	file_close(t->dir_fd);
	mem_free(t->dir);
	*t = FILE_TEMP_NONE;
}

int file_unnamed(const char *beside, int *fd, struct shard_error *err)
{
	struct file_temp t;
	struct shard_error ignored;
	const char *slash = strrchr(beside, '/');
	char *dir = slash ? mem_text(beside) : NULL;
	struct shown s;
	int rc;

	if (slash && !dir)
		return error_set(err, SHARD_E_MEMORY, "%s: no memory for its name", show(&s, beside));
	if (dir)
		dir[slash == beside ? 1 : slash - beside] = 0;
	*fd = open(dir ? dir : ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	mem_free(dir);
	if (*fd >= 0)
		return SHARD_OK;
	rc = file_temp_create(&t, beside, err ? err : &ignored); /* no O_TMPFILE there: a name for a moment */
	if (rc)
		return rc;
	*fd = dup(t.fd);
	rc = *fd < 0 ? fail_os(err, &t, "a spool file cannot be made") : SHARD_OK;
	file_temp_discard(&t);
	return rc;
}

/* ---- the bytes of a file under a second name, without writing them again ---- */

int file_link_undo(const char *from, const char *path, struct shard_error *err)
{
	struct shown a, b;

	unlinkat(AT_FDCWD, path, 0);
	return error_set(err, SHARD_E_IO, "%s: was replaced while %s was made a hard link to it; run again",
			 show(&a, from), show(&b, path));
}

int file_link(const char *from, int fd, const char *path, bool *is_seen, struct shard_error *err)
{
	struct stat ours, named;
	struct shown a, b;

	*is_seen = true;

	/*
	 * Before it has the name: the program that wrote it may not have made it durable.  Images
	 * that are only read, as of squashfs, know no fsync; they also take no other name.
	 */
	if (fsync(fd)) {
		int code = errno;

		if (code == EINVAL || code == EROFS)
			return error_set(err, SHARD_E_UNSUPPORTED, "%s: cannot be made durable", show(&a, from));
		return error_os(err, code, "%s: making it durable (fsync)", show(&a, from));
	}
	if (linkat(AT_FDCWD, from, AT_FDCWD, path, AT_SYMLINK_FOLLOW)) {
		int code = errno;

		if (code == EEXIST)
			return error_set(err, SHARD_E_EXISTS, "%s: already exists", show(&b, path));
		if (file_is_refusal(code))
			return error_set(err, SHARD_E_UNSUPPORTED, "%s: %s cannot be a hard link to it", show(&a, from),
					 show(&b, path));
		return error_os(err, code, "%s: making %s a hard link to it", show(&a, from), show(&b, path));
	}
	if (fstat(fd, &ours) || fstatat(AT_FDCWD, path, &named, AT_SYMLINK_NOFOLLOW))
		return error_os(err, errno, "%s: looking at it, a hard link to %s", show(&b, path), show(&a, from));
	if (ours.st_ino == named.st_ino && ours.st_dev == named.st_dev)
		return SHARD_OK;
	*is_seen = ours.st_nlink > 1 || named.st_nlink > 1 || ours.st_dev != named.st_dev;
	return *is_seen ? file_link_undo(from, path, err) : SHARD_OK;
}

int file_temp_clone(struct file_temp *t, int fd, uint64_t bytes, struct shard_error *err)
{
	struct shown s;

	if (ioctl(t->fd, FICLONE, fd)) {
		int code = errno;

		return file_is_refusal(code)
			       ? error_set(err, SHARD_E_UNSUPPORTED, "%s: blocks cannot be shared", show(&s, t->path))
			       : error_os(err, code, "%s: sharing blocks (FICLONE)", show(&s, t->path));
	}
	t->bytes = bytes;
	return SHARD_OK;
}

bool file_exists(const char *path)
{
	struct stat st;

	return !fstatat(AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW);
}

bool file_is_same(const char *a, const char *b)
{
	struct stat one, two;

	return !fstatat(AT_FDCWD, a, &one, 0) && !fstatat(AT_FDCWD, b, &two, 0) && one.st_ino == two.st_ino &&
	       one.st_dev == two.st_dev;
}

int file_make_durable(const char *path, struct shard_error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int code = fd < 0 || fsync(fd) ? errno : 0;
	struct shown s;

	file_close(fd);
	return code ? error_os(err, code, "%s: making it durable (fsync)", show(&s, path)) : SHARD_OK;
}
