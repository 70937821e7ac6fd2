/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file.c - files: opened, read, mapped, written, and what the page cache knows
 */
#include "libshard/io/io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "libshard/base/error.h"
#include "libshard/base/words.h"

#define CACHE_PARTS 16 /* of a file that are looked at, */
#define SAMPLES	    4  /* at this many places each */

#define ALIGN_UNKNOWN 4096u /* before Linux 6.1 no call tells */
#ifdef MADV_POPULATE_READ
#define POPULATE_READ MADV_POPULATE_READ
#else
#define POPULATE_READ 22 /* of Linux 5.14; older headers lack it */
#endif

int file_open(const char *path, int *fd, uint64_t *bytes, uint64_t *inode, struct shard_error *err)
{
	int f = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st;
	struct shown s;

	if (f < 0 && errno == ENOENT && text_is_url(path))
		return error_os(err, errno, "%s: " URL_REMEDY, show(&s, path));
	if (f < 0 && errno == ENOTDIR)
		return error_os(err, errno, "%s: has a file where a folder must be; a dataset is opened by its folder",
				show(&s, path));
	if (f < 0)
		return error_os(err, errno, "%s: cannot be opened", show(&s, path));
	if (fstat(f, &st)) {
		int code = errno;

		close(f);
		return error_os(err, code, "%s: cannot be examined", show(&s, path));
	}
	if (!S_ISREG(st.st_mode)) {
		close(f);
		return error_set(err, SHARD_E_IO, "%s: is %s, not a file", show(&s, path),
				 S_ISDIR(st.st_mode) ? "a folder" : "a device or pipe");
	}
	*fd = f;
	*bytes = (uint64_t)st.st_size;
	if (inode)
		*inode = (uint64_t)st.st_ino;
	return SHARD_OK;
}

void file_close(int fd)
{
	if (fd >= 0)
		close(fd);
}

bool file_is_refusal(int code)
{
	return code == EXDEV || code == EMLINK || code == EPERM || code == ENOSYS || code == EOPNOTSUPP ||
	       code == EINVAL || code == ENOTTY;
}

int file_read_at(int fd, void *out, size_t bytes, uint64_t offset, const char *path, struct shard_error *err)
{
	uint8_t *at = out;
	struct shown s;

	while (bytes) {
		ssize_t n = pread(fd, at, bytes, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return error_os(err, errno, "%s: reading %zu bytes at %" PRIu64, show(&s, path), bytes, offset);
		if (!n)
			return error_set(err, SHARD_E_IO,
					 "%s: ends at %" PRIu64 ", %zu bytes early (was it cut while in use?)",
					 show(&s, path), offset, bytes);
		at += n;
		bytes -= (size_t)n;
		offset += (uint64_t)n;
	}
	return SHARD_OK;
}

int file_map(int fd, uint64_t bytes, const char *path, const void **out, struct shard_error *err)
{
	return file_map_part(fd, 0, bytes, path, out, err);
}

int file_map_part(int fd, uint64_t offset, uint64_t bytes, const char *path, const void **out, struct shard_error *err)
{
	void *map = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, (off_t)offset);
	struct shown s;

	if (map == MAP_FAILED && errno == ENOMEM)
		return error_os(err, errno,
				"%s: cannot be mapped (%" PRIu64 " bytes): this process has no room for another "
				"map; each shard in use takes one, and vm.max_map_count limits them: raise it "
				"with sysctl, or pack fewer and larger shards",
				show(&s, path), bytes);
	if (map == MAP_FAILED)
		return error_os(err, errno, "%s: cannot be mapped (%" PRIu64 " bytes)", show(&s, path), bytes);
	madvise(map, bytes, MADV_RANDOM); /* advice: where it is not taken, more is read than needed */
	*out = map;
	return SHARD_OK;
}

void file_will_need(const void *begin, size_t bytes)
{
	uintptr_t first = (uintptr_t)begin & ~(uintptr_t)4095;

	madvise((void *)first, (uintptr_t)begin + bytes - first, MADV_WILLNEED); /* advice as well */
}

void file_await(const void *begin, size_t bytes)
{
	uintptr_t first = (uintptr_t)begin & ~(uintptr_t)4095;

	madvise((void *)first, (uintptr_t)begin + bytes - first, POPULATE_READ);
}

void file_ask_for_huge_pages(const void *begin, size_t bytes)
{
	madvise((void *)(uintptr_t)begin, bytes, MADV_HUGEPAGE);
}

void file_unmap(const void *map, uint64_t bytes)
{
	if (map)
		munmap((void *)(uintptr_t)map, bytes);
}

/* The first byte, the last, and two between: windows are read and dropped as a whole, mostly. */
static uint64_t sample_at(uint64_t offset, uint64_t bytes, uint64_t i)
{
	return offset + (bytes - 1) * i / (SAMPLES - 1);
}

bool file_is_cached(int fd, uint64_t offset, uint64_t bytes)
{
	char byte;
	struct iovec one = {&byte, 1};

	for (uint64_t i = 0; i < SAMPLES; i++) {
		ssize_t n = preadv2(fd, &one, 1, (off_t)sample_at(offset, bytes, i), RWF_NOWAIT);

		if (n < 0 && (errno == EOPNOTSUPP || errno == ENOSYS))
			return true; /* tmpfs: it is nowhere else */
		if (n != 1)
			return false;
	}
	return true;
}

/*
 * Parts of which a page is certainly missing.  For files of others the kernel says that all is
 * there, so 0 says little.
 */
static uint64_t parts_missing(int fd, uint64_t bytes)
{
	uint64_t part = bytes / CACHE_PARTS, page = 4096, missing = 0;
	uint8_t *map = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
	unsigned char there;

	if (map == MAP_FAILED)
		return 0;
	for (uint64_t i = 0; i < CACHE_PARTS; i++) {
		bool all = true;

		for (uint64_t k = 0; all && k < SAMPLES && part; k++)
			all = mincore(map + sample_at(i * part, part, k) / page * page, 1, &there) || (there & 1);
		missing += !all;
	}
	munmap(map, bytes);
	return missing;
}

bool file_seems_cached(int fd, uint64_t bytes, bool *whole)
{
	uint64_t part = bytes / CACHE_PARTS, missing = 0, known = parts_missing(fd, bytes);

	for (uint64_t i = 0; i < CACHE_PARTS && missing <= 1 && known <= 1; i++)
		missing += !file_is_cached(fd, i * part, part);
	if (whole)
		*whole = !known && !missing;
	return known <= 1 && missing <= 1;
}

bool file_read_cached(int fd, void *out, size_t bytes, uint64_t offset)
{
	struct iovec all = {out, bytes};

	return preadv2(fd, &all, 1, (off_t)offset, RWF_NOWAIT) == (ssize_t)bytes;
}

uint64_t file_changed_ns(int fd, const char *path, uint64_t inode)
{
	struct stat st;

	if (fd >= 0 ? fstat(fd, &st) : stat(path, &st))
		return 0;
	if ((uint64_t)st.st_ino != inode)
		return 0;
	return (uint64_t)st.st_ctim.tv_sec * 1000000000u + (uint64_t)st.st_ctim.tv_nsec;
}

uint64_t file_major_faults(void)
{
	struct rusage usage = {0};

	getrusage(RUSAGE_THREAD, &usage); /* cannot fail: the arguments are right */
	return (uint64_t)usage.ru_majflt;
}

uint64_t file_blocks_read(void)
{
	struct rusage usage = {0};

	getrusage(RUSAGE_THREAD, &usage);
	return (uint64_t)usage.ru_inblock;
}

void file_drop_cache(int fd)
{
	/* advice: if it is not taken, the next read is merely faster */
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
}

int file_write_at(int fd, const void *data, size_t bytes, uint64_t offset, const char *path, struct shard_error *err)
{
	const uint8_t *at = data;
	struct shown s;

	while (bytes) {
		ssize_t n = pwrite(fd, at, bytes, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return error_os(err, n ? errno : EIO, "%s: writing %zu bytes at %" PRIu64, show(&s, path),
					bytes, offset);
		at += n;
		bytes -= (size_t)n;
		offset += (uint64_t)n;
	}
	return SHARD_OK;
}

int file_list(const char *dir, const char *suffix, int (*on_name)(void *context, const char *name), void *context,
	      struct shard_error *err)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	struct shown s;
	int rc = SHARD_OK;

	if (!d)
		return error_os(err, errno, "%s: cannot be listed", show(&s, dir));
	while (!rc && (errno = 0, e = readdir(d))) {
		size_t name = strlen(e->d_name), end = strlen(suffix);
		struct stat st;

		if (name < end || strcmp(e->d_name + name - end, suffix))
			continue;
		/* a link to a file counts, one to nothing does not */
		if (!fstatat(dirfd(d), e->d_name, &st, 0) && S_ISREG(st.st_mode))
			rc = on_name(context, e->d_name);
	}
	if (!rc && errno)
		rc = error_os(err, errno, "%s: cannot be listed", show(&s, dir));
	closedir(d);
	return rc;
}

/* ---- past the page cache ---- */

int file_open_direct(const char *path)
{
	return open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_DIRECT);
}

const char *file_change(uint64_t inode, uint64_t bytes, uint64_t inode_now, uint64_t bytes_now)
{
	if (inode != inode_now)
		return "replaced";
	if (bytes != bytes_now)
		return bytes_now < bytes ? "cut" : "extended";
	return NULL;
}

static int open_one(const char *path, int flags, uint64_t inode, uint64_t bytes, struct direct_file *out)
{
	const char *change;
	struct stat st;
	int rc;

	out->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | flags);
	if (out->fd < 0 || fstat(out->fd, &st)) {
		rc = errno;
		change = "replaced"; /* where NFS says ESTALE: its server has another file there */
	} else {
		change = file_change(inode, bytes, (uint64_t)st.st_ino, (uint64_t)st.st_size);
		rc = change ? ESTALE : 0;
	}
	if (rc) {
		direct_close(out);
		out->change = change;
	}
	return rc;
}

int direct_open(const char *path, uint64_t inode, uint64_t bytes, bool want_direct, struct direct_file *out)
{
	struct statx st;
	int rc;

	*out = (struct direct_file){.fd = -1};
	if (want_direct && !open_one(path, O_DIRECT, inode, bytes, out)) {
		bool known = !statx(out->fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &st) && st.stx_mask & STATX_DIOALIGN;

		out->direct = true;
		out->offset_align = known ? st.stx_dio_offset_align : ALIGN_UNKNOWN;
		out->memory_align = known ? st.stx_dio_mem_align : ALIGN_UNKNOWN;
		if (out->offset_align)
			return 0;
		direct_close(out); /* it says that it cannot */
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
	 * The numbers are the ones that <linux/magic.h> does not have: Lustre, GPFS, CIFS, SMB2, FUSE (as s3fs and
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
