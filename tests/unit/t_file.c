/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_file.c - opening, reading, mapping and listing; every refusal names the file and what was wrong
 * with it
 *
 * The names with 64 are what _FILE_OFFSET_BITS makes of the plain ones.
 *
 * LDFLAGS: -Wl,--wrap=pread64,--wrap=pwrite64,--wrap=preadv64v2
 */
#include "libshard/io/io.h"

#include <errno.h>
#include <sys/uio.h>

#include "libshard/base/mem.h"
#include "tests/store/fixture.h"

static int interruptions, fail_with; /* of the next calls: EINTR, then an errno, or small steps */
static size_t step;

ssize_t __real_pread64(int fd, void *buf, size_t n, off_t offset);
ssize_t __wrap_pread64(int fd, void *buf, size_t n, off_t offset);
ssize_t __real_pwrite64(int fd, const void *buf, size_t n, off_t offset);
ssize_t __wrap_pwrite64(int fd, const void *buf, size_t n, off_t offset);
ssize_t __real_preadv64v2(int fd, const struct iovec *v, int n, off_t offset, int flags);
ssize_t __wrap_preadv64v2(int fd, const struct iovec *v, int n, off_t offset, int flags);

static bool trouble(void)
{
	if (interruptions) {
		interruptions--;
		errno = EINTR;
		return true;
	}
	errno = fail_with;
	return fail_with;
}

ssize_t __wrap_pread64(int fd, void *buf, size_t n, off_t offset)
{
	return trouble() ? -1 : __real_pread64(fd, buf, step && n > step ? step : n, offset);
}

ssize_t __wrap_pwrite64(int fd, const void *buf, size_t n, off_t offset)
{
	return trouble() ? -1 : __real_pwrite64(fd, buf, step && n > step ? step : n, offset);
}

static int64_t uncached_from = -1; /* what preadv2 with NOWAIT finds in the cache ends here; -1: ask the system */
static int nowait_errno;
static unsigned nowait_calls;

ssize_t __wrap_preadv64v2(int fd, const struct iovec *v, int n, off_t offset, int flags)
{
	nowait_calls++;
	if (nowait_errno) {
		errno = nowait_errno;
		return -1;
	}
	if (uncached_from < 0)
		return __real_preadv64v2(fd, v, n, offset, flags);
	errno = EAGAIN;
	return offset < uncached_from ? 1 : -1;
}

TEST(only_regular_files_are_opened)
{
	struct path dir, p;
	struct shard_error err;
	uint64_t bytes = 7, inode = 7;
	int fd = -1;

	new_folder(&dir, "t_file");
	CHECK_EQ(file_open(tmp(&p, "t_file.%d/none", (int)getpid()), &fd, &bytes, &inode, &err), SHARD_E_IO);
	CHECK_EQ(err.os_code, ENOENT);
	CHECK(strstr(err.message, "/none: cannot be opened: No such file"));
	CHECK_EQ(file_open(dir.text, &fd, &bytes, &inode, &err), SHARD_E_IO);
	CHECK(strstr(err.message, "is a folder, not a file"));
	CHECK_EQ(file_open("/dev/null", &fd, &bytes, &inode, &err), SHARD_E_IO);
	CHECK_STR(err.message, "/dev/null: is a device or pipe, not a file");
	CHECK_EQ(mkfifo(tmp(&p, "t_file.%d/fifo", (int)getpid()), 0644), 0);
	CHECK_EQ(file_open(p.text, &fd, &bytes, &inode, &err), SHARD_E_IO); /* and does not wait for a writer */
	CHECK(strstr(err.message, "is a device or pipe"));
	CHECK_EQ(fd, -1);
	CHECK_EQ(bytes, 7);

	file_make(tmp(&p, "t_file.%d/real", (int)getpid()), "abc", 3);
	CHECK_EQ(symlink("real", tmp(&p, "t_file.%d/link", (int)getpid())), 0);
	CHECK_OK(file_open(p.text, &fd, &bytes, NULL, &fixture_err));
	CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	CHECK_EQ(bytes, 3);
	file_close(fd);
	file_close(-1);
	remove_tree(dir.text);
}

TEST(reads_and_writes_go_on_until_all_is_done)
{
	struct shard_error err;
	char buf[12] = "";
	struct path p;
	uint64_t bytes;
	int fd = open(tmp(&p, "t_file.rw.%d", (int)getpid()), O_RDWR | O_CREAT | O_TRUNC, 0644);

	CHECK(fd >= 0);
	interruptions = 5;
	step = 3;
	CHECK_OK(file_write_at(fd, "hello world", 11, 2, p.text, &fixture_err));
	interruptions = 5;
	CHECK_OK(file_read_at(fd, buf, 11, 2, p.text, &fixture_err));
	CHECK_STR(buf, "hello world");
	CHECK_EQ(file_read_at(fd, buf, 5, 10, p.text, &err), SHARD_E_IO); /* past the end */
	CHECK_EQ(err.os_code, 0);
	CHECK(strstr(err.message, "ends at 13, 2 bytes early"));
	fail_with = EIO;
	CHECK_EQ(file_read_at(fd, buf, 5, 1, p.text, &err), SHARD_E_IO);
	CHECK_EQ(err.os_code, EIO);
	CHECK(strstr(err.message, "reading 5 bytes at 1: Input/output error"));
	fail_with = ENOSPC;
	CHECK_EQ(file_write_at(fd, buf, 5, 1, p.text, &err), SHARD_E_IO);
	CHECK_EQ(err.os_code, ENOSPC);
	CHECK(strstr(err.message, "writing 5 bytes at 1: No space left"));
	fail_with = 0;
	step = 0;
	close(fd);
	CHECK_OK(file_open(p.text, &fd, &bytes, NULL, &fixture_err));
	CHECK_EQ(bytes, 13);
	close(fd);
	unlink(p.text);
}

TEST(a_map_shows_the_file)
{
	const void *map = NULL, *none = NULL;
	struct shard_error err;
	struct path p;
	uint64_t bytes;
	int fd;

	file_make(tmp(&p, "t_file.map.%d", (int)getpid()), "mapped", 6);
	CHECK_OK(file_open(p.text, &fd, &bytes, NULL, &fixture_err));
	CHECK_OK(file_map(fd, bytes, p.text, &map, &fixture_err));
	CHECK_MEM(map, "mapped", 6);
	/* more than there is of address space, as too many maps would be */
	CHECK_EQ(file_map(fd, UINT64_C(1) << 50, p.text, &none, &err), SHARD_E_IO);
	CHECK_EQ(err.os_code, ENOMEM);
	CHECK(strstr(err.message, "vm.max_map_count"));
	file_close(fd);
	file_flip(p.text, 0, 'm' ^ 'M');
	CHECK_MEM(map, "Mapped", 6); /* shared */
	file_unmap(map, bytes);
	file_unmap(NULL, 0);
	map = NULL;
	CHECK_EQ(file_map(-1, 6, p.text, &map, &err), SHARD_E_IO);
	CHECK_EQ(err.os_code, EBADF);
	CHECK(!map);
	unlink(p.text);
}

TEST(what_is_cached_is_sampled_at_both_ends)
{
	struct path p;
	int fd = open(tmp(&p, "t_file.cache.%d", (int)getpid()), O_RDWR | O_CREAT | O_TRUNC, 0644);

	CHECK(fd >= 0);
	CHECK_EQ(ftruncate(fd, 100000), 0);
	uncached_from = 100000;
	CHECK(file_is_cached(fd, 0, 100000));
	uncached_from = 99999; /* the last byte is not */
	CHECK(!file_is_cached(fd, 0, 100000));
	CHECK(file_is_cached(fd, 0, 99999));
	CHECK(file_is_cached(fd, 99998, 1));
	CHECK(!file_is_cached(fd, 99999, 1));
	uncached_from = 40000;
	CHECK(!file_is_cached(fd, 0, 60000));
	CHECK(file_is_cached(fd, 0, 40000));
	uncached_from = -1;
	nowait_errno = EOPNOTSUPP; /* a file system that cannot tell: it is nowhere but in memory */
	nowait_calls = 0;
	CHECK(file_is_cached(fd, 0, 60000));
	CHECK(nowait_calls >= 1);
	nowait_errno = EAGAIN;
	CHECK(!file_is_cached(fd, 0, 60000));
	nowait_errno = 0;
	close(fd);
	unlink(p.text);
}

struct list {
	char names[256];
	int stop_at, count;
};

static int on_name(void *context, const char *name)
{
	struct list *l = context;

	strcat(l->names, name);
	strcat(l->names, " ");
	return ++l->count == l->stop_at ? SHARD_E_MISMATCH : SHARD_OK;
}

TEST(a_folder_is_listed_by_suffix)
{
	struct list l = {.names = ""};
	struct shard_error err;
	struct path dir, p;

	new_folder(&dir, "t_file.list");
	CHECK_EQ(file_list(tmp(&p, "t_file.none"), ".shard", on_name, &l, &err), SHARD_E_IO);
	CHECK_EQ(err.os_code, ENOENT);
	file_make(tmp(&p, "t_file.list.%d/a.shard", (int)getpid()), "", 0);
	file_make(tmp(&p, "t_file.list.%d/shard", (int)getpid()), "", 0);
	file_make(tmp(&p, "t_file.list.%d/b.shards", (int)getpid()), "", 0);
	CHECK_EQ(mkdir(tmp(&p, "t_file.list.%d/folder.shard", (int)getpid()), 0755), 0);
	CHECK_OK(file_list(dir.text, ".shard", on_name, &l, &fixture_err));
	CHECK_STR(l.names, "a.shard "); /* a folder is no file, whatever its name */
	l = (struct list){.names = "", .stop_at = 1};
	CHECK_EQ(file_list(dir.text, "", on_name, &l, NULL), SHARD_E_MISMATCH);
	CHECK_EQ(l.count, 1);
	remove_tree(dir.text);
}

TEST_MAIN()
