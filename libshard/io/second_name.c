/* SPDX-License-Identifier: Apache-2.0 */
/*
 * second_name.c - the bytes of a file under a second name, without writing them again
 */
#include "libshard/io/io.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libshard/base/error.h"
#include "libshard/io/file.h"

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
