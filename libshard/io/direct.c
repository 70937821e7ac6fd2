/* SPDX-License-Identifier: Apache-2.0 */
/*
 * direct.c - see direct.h
 */
#include "libshard/io/direct.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "libshard/io/io.h"

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

uint64_t memory_maps_most(void)
{
	uint64_t most = proc_number("/proc/sys/vm/max_map_count", "");

	return most == UINT64_MAX ? 65530 : most; /* the kernel's default */
}
