/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_publish_direct.c - writes past the page cache: when, what stands in where a system refuses, and
 * the same bytes either way
 *
 * The names with 64 are what _FILE_OFFSET_BITS makes of the plain ones.
 *
 * LDFLAGS: -Wl,--wrap=pwrite64,--wrap=fcntl64,--wrap=file_is_remote
 */
#include <errno.h>
#include <stdarg.h>

#include "libshard/io/io.h"
#include "tests/store/fixture.h"

/* What the system says to O_DIRECT, and to a write with it: 0, or an errno. */
static int on_direct, on_direct_write;
static bool on_server;
static unsigned direct_writes, cached_writes;
static struct path folder, final;

ssize_t __real_pwrite64(int fd, const void *data, size_t bytes, off_t offset);
ssize_t __wrap_pwrite64(int fd, const void *data, size_t bytes, off_t offset);
int __real_fcntl64(int fd, int command, ...);
int __wrap_fcntl64(int fd, int command, ...);
bool __wrap_file_is_remote(const char *path);

static int refuse(int code)
{
	errno = code;
	return -1;
}

ssize_t __wrap_pwrite64(int fd, const void *data, size_t bytes, off_t offset)
{
	bool direct = __real_fcntl64(fd, F_GETFL) & O_DIRECT;

	if (direct && on_direct_write)
		return refuse(on_direct_write);
	direct_writes += direct;
	cached_writes += !direct;
	return __real_pwrite64(fd, data, bytes, offset);
}

int __wrap_fcntl64(int fd, int command, ...)
{
	va_list ap;
	int flags;

	va_start(ap, command);
	flags = command == F_SETFL ? va_arg(ap, int) : 0;
	va_end(ap);
	return (flags & O_DIRECT) && on_direct ? refuse(on_direct) : __real_fcntl64(fd, command, flags);
}

bool __wrap_file_is_remote(const char *path)
{
	CHECK_STR(path, folder.text);
	return on_server;
}

static void system_is_well(void)
{
	on_direct = on_direct_write = 0;
	on_server = false;
	direct_writes = cached_writes = 0;
}

static void begin(void)
{
	system_is_well();
	new_folder(&folder, "t_publish_direct");
	tmp(&final, "t_publish_direct.%d/x.shard", (int)getpid());
}

static bool system_has_direct(void)
{
	int fd = open(folder.text, O_TMPFILE | O_RDWR | O_DIRECT | O_CLOEXEC, 0600);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

TEST(aligned_writes_go_past_the_page_cache)
{
	static const struct {
		const char *story;
		bool asked, server;
		int direct, direct_write;
		unsigned want_direct, want_cached;
	} way[] = {
		{"as it should be", true, false, 0, 0, 2, 3},
		{"nobody asked for it", false, false, 0, 0, 0, 5},
		{"files of a server", true, true, 0, 0, 0, 5},
		{"the file system has no such way", true, false, EINVAL, 0, 0, 5},
		{"the device wants another alignment", true, false, 0, EINVAL, 0, 5},
	};
	/* the third leaves an offset that no page begins at */
	static const size_t piece[] = {16384, 4096, 100, 4096, 7};
	uint8_t *data = aligned_alloc(FILE_DIRECT_ALIGN, 32768), *read;
	size_t bytes;

	begin();
	CHECK(data);
	for (size_t i = 0; i < 32768; i++)
		data[i] = (uint8_t)(i * 7 + i / 251);
	for (size_t i = 0; i < sizeof(way) / sizeof(way[0]); i++) {
		struct file_temp t;
		size_t at = 0;

		system_is_well();
		on_server = way[i].server;
		on_direct = way[i].direct;
		on_direct_write = way[i].direct_write;
		CHECK_OK(file_temp_create(&t, final.text, &fixture_err));
		if (way[i].asked)
			file_temp_direct(&t);
		CHECK_OK(file_temp_reserve(&t, 1 << 20, &fixture_err));
		for (size_t p = 0; p < sizeof(piece) / sizeof(piece[0]); at += piece[p++])
			CHECK_OK(file_temp_write(&t, data + at, piece[p], &fixture_err));
		CHECK_OK(file_temp_sync(&t, &fixture_err));
		CHECK_OK(file_temp_publish(&t, true, &fixture_err));
		file_temp_discard(&t);
		printf("%s: %u direct, %u through the page cache\n", way[i].story, direct_writes, cached_writes);
		CHECK_EQ(direct_writes, system_has_direct() ? way[i].want_direct : 0);
		CHECK_EQ(direct_writes + cached_writes, 5);
		read = file_bytes(final.text, &bytes);
		CHECK_EQ(bytes, at);
		CHECK_MEM(read, data, at);
		free(read);
	}
	free(data);
}

TEST(a_direct_write_that_fails_is_not_tried_otherwise)
{
	uint8_t *data = aligned_alloc(FILE_DIRECT_ALIGN, FILE_DIRECT_ALIGN);
	struct shard_error err;
	struct file_temp t;

	begin();
	if (!system_has_direct()) {
		free(data);
		return;
	}
	CHECK(data);
	memset(data, 1, FILE_DIRECT_ALIGN);
	on_direct_write = EIO;
	CHECK_OK(file_temp_create(&t, final.text, &fixture_err));
	file_temp_direct(&t);
	CHECK_EQ(file_temp_write(&t, data, FILE_DIRECT_ALIGN, &err), SHARD_E_IO);
	CHECK_EQ(err.os_code, EIO);
	CHECK(strstr(err.message, "x.shard: writing 4096 bytes at 0"));
	CHECK_EQ(cached_writes, 0);
	file_temp_discard(&t);
	free(data);
}

TEST(cleaning_up)
{
	begin();
	remove_tree(folder.text);
	CHECK(!file_there(folder.text));
}

TEST_MAIN()
