/* SPDX-License-Identifier: Apache-2.0 */
/*
 * temp_names.c - what the digits behind a temporary name say: who may remove a file that was left
 */
#include "libshard/io/io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libshard/base/digits.h"
#include "libshard/base/error.h"
#include "libshard/io/direct.h"
#include "libshard/io/file.h"

#define BOOT_ID	     "/proc/sys/kernel/random/boot_id"
#define SHARD_SUFFIX ".shard"

void temp_place_find(struct temp_place *p, const char *dir, int dir_fd)
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

int temp_draw(char hex[FILE_TEMP_ID + 1], const struct temp_place *p)
{
	uint8_t nonce[FILE_TEMP_ID / 2];
	ssize_t n;

	do {
		n = getrandom(nonce, sizeof(nonce), 0);
	} while (n < 0 && errno == EINTR);
	if (n != sizeof(nonce))
		return n < 0 ? errno : EIO;
	hex_from_bytes(hex, nonce, sizeof(nonce));
	memcpy(hex, p->digits, strlen(p->digits));
	return 0;
}

bool temp_is_id(const char *id)
{
	uint8_t nonce[FILE_TEMP_ID / 2];

	return strlen(id) == FILE_TEMP_ID && hex_to_bytes(nonce, id, sizeof(nonce));
}

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

/* Was it made where our lock is seen? */
static bool is_of_here(const struct temp_place *p, const char *name)
{
	return p->everywhere ||
	       (p->digits[0] && !memcmp(name + strlen(name) - FILE_TEMP_ID, p->digits, TEMP_PLACE_DIGITS));
}

/*
 * A lock that cannot be had says that the owner lives.  One that can be had says that it is dead,
 * if the owner saw ours; it is held until the name is gone.
 */
static bool remove_temp(const struct temp_place *p, int dir_fd, const char *name)
{
	int fd = openat(dir_fd, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	bool removed = fd >= 0 && !flock(fd, LOCK_EX | LOCK_NB) &&
		       (is_of_here(p, name) || is_of_no_use(p, dir_fd, name)) && !unlinkat(dir_fd, name, 0);

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
