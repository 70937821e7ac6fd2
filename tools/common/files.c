/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files.c - what tools do with files that are not images or shards
 */
#include "tools/common/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "shard_pack.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/shelf.h"
#include "tools/common/signals.h"

int files_path(char *out, const char *dir, const char *name)
{
	int bytes = snprintf(out, FILES_PATH_BYTES, "%s/%s", dir, name);

	if (bytes < 0 || bytes >= FILES_PATH_BYTES)
		return fail(EXIT_USAGE, "%s/%s: a path of %d bytes; the limit is 4095", dir, name, bytes);
	return EXIT_DONE;
}

int files_numbered(char *out, const char *dir, const char *prefix, uint64_t number, const char *suffix)
{
	char name[128];

	snprintf(name, sizeof(name), "%s%05" PRIu64 "%s", prefix, number, suffix);
	return files_path(out, dir, name);
}

uint64_t files_read_at(int fd, void *out, uint64_t bytes, uint64_t offset)
{
	uint64_t have = 0;

	while (have < bytes) {
		ssize_t n = pread(fd, (uint8_t *)out + have, (size_t)(bytes - have), (off_t)(offset + have));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			errno = n < 0 ? errno : 0;
			break;
		}
		have += (uint64_t)n;
	}
	return have;
}

uint64_t files_ns(const struct timespec *t)
{
	return (uint64_t)t->tv_sec * UINT64_C(1000000000) + (uint64_t)t->tv_nsec;
}

int files_read(const char *path, struct text *out, bool *found)
{
	size_t before = out->bytes;
	char chunk[65536];
	struct stat st;
	ssize_t n = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), rc = EXIT_DONE;

	*found = fd >= 0;
	if (fd < 0)
		return errno == ENOENT ? EXIT_DONE : fail(EXIT_IO, "%s: %s", path, strerror(errno));
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
		close(fd);
		return fail(EXIT_IO, "%s: not a regular file", path);
	}
	text_add(out, "", 0);
	while (!rc && !text_failed(out) && ((n = read(fd, chunk, sizeof(chunk))) > 0 || (n < 0 && errno == EINTR))) {
		/* Nothing but zeros, as a hole of any size reads. */
		if (n == (ssize_t)sizeof(chunk) && !chunk[0] && !memcmp(chunk, chunk + 1, sizeof(chunk) - 1))
			rc = fail(EXIT_BAD, "%s: %zu zeros at byte %zu: it is not a text", path, sizeof(chunk),
				  out->bytes - before);
		else if (n > 0)
			text_add(out, chunk, (size_t)n);
	}
	if (!rc && n < 0)
		rc = fail(EXIT_IO, "%s: %s", path, strerror(errno));
	else if (!rc && text_failed(out))
		rc = shelf_refuse(out->shelf, "%s, after %zu bytes", path, out->bytes);
	close(fd);
	return rc;
}

int files_list(const char *dir, void (*each)(void *context, const char *name), void *context, bool *absent)
{
	DIR *d = opendir(dir);
	const struct dirent *entry;
	int rc = EXIT_DONE;

	if (absent)
		*absent = !d && errno == ENOENT;
	if (!d)
		return absent && *absent ? EXIT_DONE
					 : fail(EXIT_IO, "%s: cannot read this folder: %s", dir, strerror(errno));
	while ((errno = 0, entry = readdir(d)) != NULL)
		each(context, entry->d_name);
	if (errno)
		rc = fail(EXIT_IO, "%s: cannot read this folder: %s", dir, strerror(errno));
	closedir(d);
	return rc;
}

size_t files_folder_bytes(const char *path)
{
	size_t bytes = strlen(path);

	while (bytes > 1 && path[bytes - 1] == '/')
		bytes--;
	while (bytes && path[bytes - 1] != '/')
		bytes--;
	while (bytes > 1 && path[bytes - 1] == '/')
		bytes--;
	return bytes;
}

/* Cut the last component off; what is above "a" is ".". */
static void cut_last_name(char *path)
{
	size_t bytes = files_folder_bytes(path);

	if (bytes)
		path[bytes] = '\0';
	else
		strcpy(path, ".");
}

/* EINVAL: a file system without such a thing. */
bool files_sync_names(const char *dir)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), error = 0;

	if (fd < 0)
		return false;
	if (fsync(fd) != 0 && errno != EINVAL)
		error = errno;
	close(fd);
	errno = error;
	return !error;
}

bool files_make_dir(const char *path)
{
	char above[FILES_PATH_BYTES];
	bool ok;
	int fd;

	if (mkdir(path, 0777) != 0)
		return errno == EEXIST;
	if (snprintf(above, sizeof(above), "%s", path) >= (int)sizeof(above)) {
		errno = ENAMETOOLONG;
		return false;
	}
	cut_last_name(above);
	if (files_sync_names(above) || errno != EACCES)
		return !errno;
	/* A folder that one may write into and not list: sync its whole file system. */
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ok = fd >= 0 && syncfs(fd) == 0;
	if (fd >= 0)
		close(fd);
	return ok;
}

bool files_make_parents(char *path, size_t at)
{
	char *slash = path + at;
	bool ok = true;

	while (ok && (slash = strchr(slash, '/')) != NULL) {
		*slash = '\0';
		ok = files_make_dir(path);
		*slash++ = '/';
	}
	return ok;
}

bool files_nearest(char *path)
{
	struct stat st;

	while (stat(path, &st) != 0) {
		if (errno != ENOENT || !strcmp(path, ".") || !strcmp(path, "/"))
			return false;
		cut_last_name(path);
	}
	return true;
}

char *files_above_resolved(const char *path)
{
	size_t bytes = files_folder_bytes(path), name_at = bytes;
	char *folder = bytes ? xstrndup(path, bytes) : xstrdup("."), *above = realpath(folder, NULL), *out = NULL;
	int length;

	while (path[name_at] == '/')
		name_at++;
	length = (int)strlen(path + name_at);
	while (length > 1 && path[name_at + (size_t)length - 1] == '/')
		length--;
	if (above && ((length == 1 && path[name_at] == '.') || (length == 2 && !memcmp(path + name_at, "..", 2))))
		out = realpath(path, NULL);
	else if (above)
		out = xasprintf("%s/%.*s", !strcmp(above, "/") ? "" : above, length, path + name_at);
	free(folder);
	free(above);
	return out;
}

/* Is one of the components ".."? */
static bool leads_up(const char *path)
{
	for (const char *dots = path; (dots = strstr(dots, "..")) != NULL; dots++)
		if ((dots == path || dots[-1] == '/') && (dots[2] == '\0' || dots[2] == '/'))
			return true;
	return false;
}

char *files_absolute(const char *dir)
{
	char *near = xstrdup(dir), *above = NULL, *out = NULL;
	const char *rest;

	if (files_nearest(near))
		above = realpath(near, NULL);
	if (!above) {
		fail(EXIT_IO, "%s: %s", dir, strerror(errno));
	} else {
		/*
		 * What is left of "a/b" above nothing is ".", which it does not begin with; nor
		 * does ".a".
		 */
		rest = !strcmp(near, ".") && dir[strspn(dir, ".")] != '/' && strcmp(dir, ".") ? dir
											      : dir + strlen(near);
		rest += strspn(rest, "/");
		if (leads_up(rest))
			fail(EXIT_IO, "%s: leads through a folder that does not exist", dir);
		else
			out = xasprintf("%s%s%s", !strcmp(above, "/") && *rest ? "" : above, *rest ? "/" : "", rest);
	}
	while (out && strlen(out) > 1 && out[strlen(out) - 1] == '/')
		out[strlen(out) - 1] = '\0';
	free(above);
	free(near);
	return out;
}

bool files_is_below(const char *inner, const char *outer)
{
	size_t bytes = strlen(outer);

	if (!strcmp(outer, "/"))
		return true;
	return !strncmp(inner, outer, bytes) && (inner[bytes] == '\0' || inner[bytes] == '/');
}

bool files_has_bytes(const char *path, const void *data, size_t bytes)
{
	const uint8_t *wanted = data;
	uint8_t chunk[16384];
	size_t at = 0;
	ssize_t n = -1;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return false;
	while ((n = read(fd, chunk, sizeof(chunk))) > 0) {
		if ((size_t)n > bytes - at || memcmp(chunk, wanted + at, (size_t)n))
			break;
		at += (size_t)n;
	}
	close(fd);
	return n == 0 && at == bytes;
}

int files_publish(const char *path, const void *data, size_t bytes, struct shard_error *err)
{
	int rc = shard_publish(path, data, bytes, 0, err);

	if (rc != SHARD_E_EXISTS)
		return rc;
	return files_has_bytes(path, data, bytes) ? SHARD_OK : shard_publish(path, data, bytes, 1, err);
}

int files_sha256(const char *path, uint8_t out[32])
{
	struct stat st;
	void *map = MAP_FAILED;
	int fd = open(path, O_RDONLY | O_CLOEXEC), rc = EXIT_DONE;

	/* A shard is never empty, and was verified through a map of its own just before. */
	if (fd >= 0 && fstat(fd, &st) == 0)
		map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED) {
		rc = fail(EXIT_IO, "%s: %s", path, strerror(errno));
	} else {
		shard_sha256(map, (size_t)st.st_size, out);
		munmap(map, (size_t)st.st_size);
	}
	if (fd >= 0)
		close(fd);
	return rc;
}

int files_sync_dir(const char *dir)
{
	return files_sync_names(dir) ? EXIT_DONE : fail(EXIT_IO, "%s: %s", dir, strerror(errno));
}

int files_remove(const char *path)
{
	if (unlink(path) != 0 && errno != ENOENT)
		return fail(EXIT_IO, "%s: cannot remove it: %s", path, strerror(errno));
	return EXIT_DONE;
}

/* ---- remove folders, and what is in them ---- */

/*
 * To remove a file is mostly to wait: for a disk that is told of free blocks, or for a server.  So
 * where there are many, threads do it.  They take names in turn, some at a time.
 */
#define REMOVE_THREADS 4 /* with the caller's */
#define REMOVE_NAMES   32
#define REMOVE_ALONE   256 /* names that one thread removes before others help it */

struct removal {
	const char *dir;
	bool (*is_ours)(const char *name);
	DIR *d; /* lock, as the next two */
	pthread_mutex_t lock;
	int rc;
	bool at_end;
};

/* Some names of ours; none at the end, or after a failure. */
static unsigned next_names(struct removal *r, char name[REMOVE_NAMES][256])
{
	struct dirent *entry = NULL;
	unsigned n = 0;

	pthread_mutex_lock(&r->lock);
	while (!r->at_end && !r->rc && n < REMOVE_NAMES && (errno = 0, entry = readdir(r->d)) != NULL)
		if (r->is_ours(entry->d_name))
			snprintf(name[n++], sizeof(name[0]), "%s", entry->d_name);
	if (!r->at_end && !r->rc && n < REMOVE_NAMES) {
		r->at_end = true;
		if (errno)
			r->rc = fail(EXIT_IO, "%s: cannot read this folder: %s", r->dir, strerror(errno));
	}
	pthread_mutex_unlock(&r->lock);
	return n;
}

/* Up to `most` names, or a few more. */
static void remove_some(struct removal *r, uint64_t most)
{
	char name[REMOVE_NAMES][256];
	uint64_t done = 0;
	unsigned n = 1;

	for (; n && done < most; done += n) {
		n = next_names(r, name);
		for (unsigned i = 0; i < n; i++) {
			if (unlinkat(dirfd(r->d), name[i], 0) == 0 || errno == ENOENT)
				continue;
			pthread_mutex_lock(&r->lock);
			if (!r->rc)
				r->rc = fail(EXIT_IO, "%s/%s: cannot remove it: %s", r->dir, name[i], strerror(errno));
			pthread_mutex_unlock(&r->lock);
			return;
		}
	}
}

static void *remove_rest(void *removal)
{
	remove_some(removal, UINT64_MAX);
	return NULL;
}

int remove_names(const char *dir, int fd, bool (*is_ours)(const char *name))
{
	struct removal r = {.dir = dir, .is_ours = is_ours, .d = fdopendir(fd), .lock = PTHREAD_MUTEX_INITIALIZER};
	pthread_t thread[REMOVE_THREADS - 1];
	unsigned n = 0;

	if (!r.d) {
		r.rc = fail(EXIT_IO, "%s: cannot read this folder: %s", dir, strerror(errno));
		close(fd);
		return r.rc;
	}
	remove_some(&r, REMOVE_ALONE);
	if (!r.at_end && !r.rc) {
		/* Fewer threads take longer, and that is all. */
		while (n < REMOVE_THREADS - 1 && pthread_create(&thread[n], NULL, remove_rest, &r) == 0)
			n++;
		remove_rest(&r);
	}
	while (n)
		pthread_join(thread[--n], NULL);
	closedir(r.d);
	pthread_mutex_destroy(&r.lock);
	return r.rc;
}

/* Behind `prefix` comes `text`, and `digits` hexadecimal digits end it. */
static bool is_name(const char *name, const char *prefix, const char *text, size_t digits)
{
	size_t bytes = strlen(name), least = strlen(prefix) + strlen(text) + digits;

	return bytes >= least && !strncmp(name, prefix, strlen(prefix)) &&
	       !strncmp(name + bytes - digits - strlen(text), text, strlen(text)) &&
	       strspn(name + bytes - digits, "0123456789abcdef") == digits;
}

int remove_temps(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry = NULL;
	int fd, rc = EXIT_DONE;

	while (dir && (errno = 0, entry = readdir(dir)) != NULL) {
		if (!is_name(entry->d_name, ".tmp.", ".", 16))
			continue;
		fd = openat(dirfd(dir), entry->d_name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
		if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
			unlinkat(dirfd(dir), entry->d_name, 0);
		if (fd >= 0)
			close(fd);
	}
	if (errno && errno != ENOENT)
		rc = fail(EXIT_IO, "%s: cannot read this folder: %s", path, strerror(errno));
	if (dir)
		closedir(dir);
	return rc;
}

bool remove_folder(const char *path)
{
	for (int tries = 0; rmdir(path) != 0; tries++) {
		if ((errno != ENOTEMPTY && errno != EEXIST) || tries == 20)
			return false;
		nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	}
	return true;
}

bool is_removed_name(const char *name)
{
	return (strlen(name) == 4 + 24 && is_name(name, ".nfs", "", 24)) ||
	       (strlen(name) == 12 + 16 && is_name(name, ".fuse_hidden", "", 16));
}

/* ---- devices and pipes ---- */

bool files_is_device_or_pipe(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
}

/* Wait for a FIFO's reader until interrupted. */
static int open_patiently(const char *path)
{
	const struct timespec pause = {.tv_nsec = 20000000};
	int fd;

	while ((fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)) < 0 && errno == ENXIO && !interrupted())
		nanosleep(&pause, NULL);
	if (fd >= 0)
		fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
	return fd;
}

int files_write_in_place(const char *path, const void *data, size_t bytes)
{
	const char *at = data;
	int fd = open_patiently(path), rc = EXIT_DONE;

	if (fd < 0)
		return interrupted() ? EXIT_INTERRUPTED : fail(EXIT_IO, "%s: %s", path, strerror(errno));
	while (!rc && bytes) {
		ssize_t n = write(fd, at, bytes);

		if (n > 0) {
			at += n;
			bytes -= (size_t)n;
		} else if (n < 0 && errno == EINTR) {
			rc = interrupted() ? EXIT_INTERRUPTED : EXIT_DONE;
		} else {
			rc = fail(EXIT_IO, "%s: %s", path, strerror(n ? errno : EIO));
		}
	}
	if (close(fd) != 0 && !rc)
		rc = fail(EXIT_IO, "%s: %s", path, strerror(errno));
	return rc;
}
