/* SPDX-License-Identifier: Apache-2.0 */
/*
 * removal.c - remove folders, and what is in them, while others may be at the same
 */
#include "tools/common/removal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "tools/common/exit_code.h"
#include "tools/common/message.h"

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
	int code;
	bool at_end;
};

/* Some names of ours; none at the end, or after a failure. */
static unsigned next_names(struct removal *r, char name[REMOVE_NAMES][256])
{
	struct dirent *entry = NULL;
	unsigned n = 0;

	pthread_mutex_lock(&r->lock);
	while (!r->at_end && r->code == EXIT_DONE && n < REMOVE_NAMES && (errno = 0, entry = readdir(r->d)) != NULL)
		if (r->is_ours(entry->d_name))
			snprintf(name[n++], sizeof(name[0]), "%s", entry->d_name);
	if (!r->at_end && r->code == EXIT_DONE && n < REMOVE_NAMES) {
		r->at_end = true;
		if (errno)
			r->code = fail(EXIT_IO, "%s: cannot read this folder: %s", r->dir, strerror(errno));
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
			if (r->code == EXIT_DONE)
				r->code =
					fail(EXIT_IO, "%s/%s: cannot remove it: %s", r->dir, name[i], strerror(errno));
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
		r.code = fail(EXIT_IO, "%s: cannot read this folder: %s", dir, strerror(errno));
		close(fd);
		return r.code;
	}
	remove_some(&r, REMOVE_ALONE);
	if (!r.at_end && r.code == EXIT_DONE) {
		/* Fewer threads take longer, and that is all. */
		while (n < REMOVE_THREADS - 1 && pthread_create(&thread[n], NULL, remove_rest, &r) == 0)
			n++;
		remove_rest(&r);
	}
	while (n)
		pthread_join(thread[--n], NULL);
	closedir(r.d);
	pthread_mutex_destroy(&r.lock);
	return r.code;
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
	int fd, code = EXIT_DONE;

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
		code = fail(EXIT_IO, "%s: cannot read this folder: %s", path, strerror(errno));
	if (dir)
		closedir(dir);
	return code;
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
