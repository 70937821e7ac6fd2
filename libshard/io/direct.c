/* SPDX-License-Identifier: Apache-2.0 */
/*
 * direct.c - see direct.h
 */
#include "libshard/io/direct.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define PATH_BYTES    4096
#define ALIGN_UNKNOWN 4096u /* before Linux 6.1 nobody tells */

static void ask_alignment(struct direct_file *f)
{
	struct statx st;

	f->offset_align = f->memory_align = ALIGN_UNKNOWN;
	if (statx(f->fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &st) || !(st.stx_mask & STATX_DIOALIGN))
		return;
	if (!st.stx_dio_offset_align) { /* it says that it cannot */
		f->direct = false;
		return;
	}
	f->offset_align = st.stx_dio_offset_align;
	f->memory_align = st.stx_dio_mem_align;
}

static int open_one(const char *path, int flags, uint64_t inode, uint64_t bytes, struct direct_file *out)
{
	struct stat st;

	out->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | flags);
	if (out->fd < 0)
		return errno;
	if (!fstat(out->fd, &st) && (uint64_t)st.st_ino == inode && (uint64_t)st.st_size == bytes)
		return 0;
	direct_close(out);
	return ESTALE;
}

int direct_open(const char *path, uint64_t inode, uint64_t bytes, bool want_direct, struct direct_file *out)
{
	int rc;

	*out = (struct direct_file){.fd = -1};
	if (want_direct && !open_one(path, O_DIRECT, inode, bytes, out)) {
		out->direct = true;
		ask_alignment(out);
		if (out->direct)
			return 0;
		direct_close(out);
	}
	rc = open_one(path, 0, inode, bytes, out);
	out->offset_align = out->memory_align = 1;
	return rc;
}

void direct_close(struct direct_file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	*f = (struct direct_file){.fd = -1};
}

bool file_is_remote(const char *path)
{
	/*
	 * Of those that <linux/magic.h> does not have: Lustre, GPFS, CIFS, SMB2, FUSE (as s3fs and
	 * sshfs use it), BeeGFS.
	 */
	static const uint32_t remote[] = {
		NFS_SUPER_MAGIC, AFS_SUPER_MAGIC, CODA_SUPER_MAGIC, V9FS_MAGIC, 0x00c36400 /* Ceph */,
		0x0bd00bd0,	 0x47504653,	  0xff534d42,	    0xfe534d42, 0x65735546,
		0x19830326};
	struct statfs st;

	if (statfs(path, &st))
		return false;
	for (size_t i = 0; i < sizeof(remote) / sizeof(remote[0]); i++)
		if ((uint32_t)st.f_type == remote[i])
			return true;
	return false;
}

/* The number in a small file of the kernel's, behind `word`; UINT64_MAX if there is none. */
static uint64_t number_in(const char *path, const char *word)
{
	char text[4096];
	const char *at;
	unsigned long long value;
	ssize_t n;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return UINT64_MAX;
	n = pread(fd, text, sizeof(text) - 1, 0);
	close(fd);
	if (n <= 0)
		return UINT64_MAX;
	text[n] = 0;
	at = strstr(text, word);
	return at && sscanf(at + strlen(word), "%llu", &value) == 1 ? value : UINT64_MAX;
}

/* What a control group leaves, page cache that it can drop counted as free. */
static uint64_t left_of(const char *folder, const char *limit_name, const char *used_name, const char *file_word)
{
	char path[PATH_BYTES];
	uint64_t limit, used, file;

	snprintf(path, sizeof(path), "%s/%s", folder, limit_name);
	limit = number_in(path, "");
	snprintf(path, sizeof(path), "%s/%s", folder, used_name);
	used = number_in(path, "");
	snprintf(path, sizeof(path), "%s/memory.stat", folder);
	file = number_in(path, file_word);
	if (limit == UINT64_MAX || used == UINT64_MAX) /* "max": none */
		return UINT64_MAX;
	used -= file != UINT64_MAX && file < used ? file : 0;
	return limit > used ? limit - used : 0;
}

/* Version 2: the group that /proc/self/cgroup names; version 1, as containers show it. */
static uint64_t group_available(void)
{
	char folder[PATH_BYTES / 2] = "/sys/fs/cgroup", line[PATH_BYTES / 4];
	uint64_t two, one = left_of("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
				    "\ntotal_inactive_file ");
	FILE *f = fopen("/proc/self/cgroup", "re");

	if (f && fgets(line, sizeof(line), f) && !strncmp(line, "0::", 3)) {
		line[strcspn(line, "\n")] = 0;
		snprintf(folder, sizeof(folder), "/sys/fs/cgroup%s", line + 3);
	}
	if (f)
		fclose(f);
	two = left_of(folder, "memory.max", "memory.current", "\ninactive_file ");
	return two < one ? two : one;
}

uint64_t memory_maps_most(void)
{
	uint64_t most = number_in("/proc/sys/vm/max_map_count", "");

	return most == UINT64_MAX ? 65530 : most; /* the kernel's default */
}

uint64_t memory_available_bytes(void)
{
	uint64_t group = group_available(), kib = number_in("/proc/meminfo", "MemAvailable:");
	uint64_t machine = kib > UINT64_MAX / 1024 ? UINT64_MAX : kib * 1024;

	return group < machine ? group : machine;
}
