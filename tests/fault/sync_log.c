/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sync_log.c - writes down what a tool makes durable; preloaded by pack_durable.sh
 *
 * SYNC_LOG names the file.  It gets a line for each folder that is made, each fsync, each new final
 * name, and each addition to receipts, with absolute paths.  For the negative controls, with
 * SYNC_FORGET=folders fsync of a folder does nothing, and with SYNC_FORGET=data neither does
 * fdatasync.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static void path_of(int fd, char out[PATH_MAX])
{
	char link[64];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, out, PATH_MAX - 1);
	if (n < 0)
		abort();
	out[n] = '\0';
}

static void note(const char *what, const char *folder, const char *name)
{
	char line[2 * PATH_MAX + 64];
	int bytes = snprintf(line, sizeof(line), "%s %s%s%s\n", what, folder, *name ? "/" : "", name),
	    fd = open(getenv("SYNC_LOG"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);

	if (fd < 0 || write(fd, line, (size_t)bytes) != bytes)
		abort();
	close(fd);
}

int mkdir(const char *path, mode_t mode)
{
	int rc = REAL(mkdir)(path, mode);
	char *full = rc ? NULL : realpath(path, NULL);

	if (full)
		note("mkdir", full, "");
	free(full);
	return rc;
}

/* Receipts are added to a file that has its final name. */
int open64(const char *path, int flags, ...)
{
	char full[PATH_MAX];
	va_list list;
	mode_t mode;
	int fd;

	va_start(list, flags);
	mode = flags & O_CREAT ? va_arg(list, mode_t) : 0;
	va_end(list);
	fd = REAL(open64)(path, flags, mode);
	if (fd >= 0 && (flags & O_CREAT) && strstr(path, "/receipts-")) {
		path_of(fd, full);
		note("name", full, "");
	}
	return fd;
}

/* An addition that is not synced would be a promise not kept, too. */
int fdatasync(int fd)
{
	char path[PATH_MAX];

	if (getenv("SYNC_FORGET") && !strcmp(getenv("SYNC_FORGET"), "data"))
		return 0;
	path_of(fd, path);
	note("fsync", path, "");
	return REAL(fdatasync)(fd);
}

ssize_t write(int fd, const void *data, size_t bytes)
{
	char path[PATH_MAX];

	path_of(fd, path);
	if (strstr(path, "/receipts-"))
		note("added", path, "");
	return REAL(write)(fd, data, bytes);
}

int fsync(int fd)
{
	char path[PATH_MAX];
	struct stat st;

	path_of(fd, path);
	if (getenv("SYNC_FORGET") && !fstat(fd, &st) && S_ISDIR(st.st_mode))
		return 0;
	note("fsync", path, "");
	return REAL(fsync)(fd);
}

int renameat2(int old_dir, const char *old, int new_dir, const char *new, unsigned flags)
{
	int rc = REAL(renameat2)(old_dir, old, new_dir, new, flags);
	char folder[PATH_MAX];

	if (!rc && new_dir != AT_FDCWD) {
		path_of(new_dir, folder);
		note("temp", folder, old);
		note("name", folder, new);
	}
	return rc;
}
