/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_publish.c - a name is absent or complete: temporary names and their locks, every way to the
 * final name, and systems that lie about it
 *
 * The names with 64 are what _FILE_OFFSET_BITS makes of the plain ones.
 *
 * LDFLAGS: -Wl,--wrap=renameat2,--wrap=linkat,--wrap=renameat,--wrap=fsync,--wrap=fallocate64
 * LDFLAGS: -Wl,--wrap=open64,--wrap=flock,--wrap=fstat64,--wrap=fstatat64,--wrap=statfs64
 */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/file.h>
#include <sys/vfs.h>
#include <sys/wait.h>

#include "libshard/io/io.h"
#include "shard_pack.h"
#include "tests/store/fixture.h"

/*
 * What the system answers, instead of doing it: an errno; SWALLOW says yes and does nothing; LOST
 * does it and says no; OVERTAKEN does it, and another process does the same right behind it; TWICE
 * does it and says that the name was taken, as to a request that is sent again.
 */
enum { DO_IT = 0, SWALLOW = -1, LOST = -2, OVERTAKEN = -3, TWICE = -4 };
static int on_renameat2, on_linkat, on_renameat, on_fsync, on_fallocate, on_tmpfile, on_flock;
static unsigned fsyncs, links, refused_tmpfiles, held_by_others;
static bool cut_behind_fsync, names_are_numbered, is_local;

int __real_renameat2(int a, const char *from, int b, const char *to, unsigned flags);
int __wrap_renameat2(int a, const char *from, int b, const char *to, unsigned flags);
int __real_linkat(int a, const char *from, int b, const char *to, int flags);
int __wrap_linkat(int a, const char *from, int b, const char *to, int flags);
int __real_renameat(int a, const char *from, int b, const char *to);
int __wrap_renameat(int a, const char *from, int b, const char *to);
int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __real_fallocate64(int fd, int mode, off_t offset, off_t bytes);
int __wrap_fallocate64(int fd, int mode, off_t offset, off_t bytes);
int __real_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);
int __real_flock(int fd, int how);
int __wrap_flock(int fd, int how);
int __real_fstat64(int fd, struct stat *out);
int __wrap_fstat64(int fd, struct stat *out);
int __real_fstatat64(int dir, const char *path, struct stat *out, int flags);
int __wrap_fstatat64(int dir, const char *path, struct stat *out, int flags);
int __real_statfs64(const char *path, struct statfs *out);
int __wrap_statfs64(const char *path, struct statfs *out);

static int answer(int how, int done)
{
	if (how == TWICE && done)
		return done;
	if (how > 0 || how == LOST || how == TWICE)
		errno = how == LOST ? ETIMEDOUT : how == TWICE ? EEXIST : how;
	return how == SWALLOW ? 0 : how == DO_IT ? done : -1;
}

int __wrap_renameat2(int a, const char *from, int b, const char *to, unsigned flags)
{
	return answer(on_renameat2,
		      on_renameat2 == DO_IT || on_renameat2 == LOST ? __real_renameat2(a, from, b, to, flags) : 0);
}

int __wrap_linkat(int a, const char *from, int b, const char *to, int flags)
{
	links++;
	return answer(on_linkat, on_linkat == DO_IT || on_linkat == LOST || on_linkat == TWICE
					 ? __real_linkat(a, from, b, to, flags)
					 : 0);
}

int __wrap_renameat(int a, const char *from, int b, const char *to)
{
	if (on_renameat == OVERTAKEN)
		return __real_renameat(a, from, b, to) || __real_renameat(a, "another", b, to);
	return answer(on_renameat, on_renameat == DO_IT || on_renameat == LOST ? __real_renameat(a, from, b, to) : 0);
}

int __wrap_fsync(int fd)
{
	struct stat st;
	bool folder = !fstat(fd, &st) && S_ISDIR(st.st_mode);

	fsyncs++;
	if (on_fsync && folder == (on_fsync == ESTALE)) { /* ESTALE is for the folder, others for the file */
		errno = on_fsync;
		return -1;
	}
	return __real_fsync(fd);
}

int __wrap_fallocate64(int fd, int mode, off_t offset, off_t bytes)
{
	return answer(on_fallocate, on_fallocate ? 0 : __real_fallocate64(fd, mode, offset, bytes));
}

int __wrap_open64(const char *path, int flags, ...)
{
	va_list ap;
	mode_t mode;

	va_start(ap, flags);
	mode = va_arg(ap, mode_t);
	va_end(ap);
	if ((flags & O_TMPFILE) == O_TMPFILE && on_tmpfile) {
		refused_tmpfiles++;
		errno = on_tmpfile;
		return -1;
	}
	return __real_open64(path, flags, mode);
}

int __wrap_fstat64(int fd, struct stat *out)
{
	int rc = __real_fstat64(fd, out);

	if (cut_behind_fsync && fsyncs && !rc)
		out->st_size--;
	if (names_are_numbered && !rc)
		out->st_nlink = 1;
	return rc;
}

int __wrap_statfs64(const char *path, struct statfs *out)
{
	int rc = __real_statfs64(path, out);

	if (names_are_numbered && !is_local && !rc)
		out->f_type = 0x65735546; /* FUSE */
	return rc;
}

/* As of sshfs: each name has a number of its own, and one link. */
int __wrap_fstatat64(int dir, const char *path, struct stat *out, int flags)
{
	int rc = __real_fstatat64(dir, path, out, flags);

	if (names_are_numbered && !rc) {
		out->st_nlink = 1;
		out->st_ino += (ino_t)(strncmp(path, ".tmp.", 5) != 0) << 40;
	}
	return rc;
}

int __wrap_flock(int fd, int how)
{
	if (held_by_others && held_by_others--) {
		errno = EWOULDBLOCK;
		return -1;
	}
	return answer(on_flock, on_flock ? 0 : __real_flock(fd, how));
}

static void system_is_well(void)
{
	on_renameat2 = on_linkat = on_renameat = on_fsync = on_fallocate = on_tmpfile = on_flock = DO_IT;
	fsyncs = links = refused_tmpfiles = held_by_others = 0;
	cut_behind_fsync = names_are_numbered = is_local = false;
}

static struct path folder, final;

static void begin(void)
{
	system_is_well();
	new_folder(&folder, "t_publish");
	tmp(&final, "t_publish.%d/x.shard", (int)getpid());
}

/* To a file called `final` with these words. */
static int publish(const char *words, bool replace, struct file_temp *t, struct shard_error *err)
{
	int rc;

	CHECK_OK(file_temp_create(t, final.text, &fixture_err));
	CHECK_OK(file_temp_write(t, words, strlen(words), &fixture_err));
	rc = file_temp_sync(t, err);
	return rc ? rc : file_temp_publish(t, replace, err);
}

static void check_holds(const char *path, const char *words)
{
	size_t bytes;
	uint8_t *data = file_bytes(path, &bytes);

	CHECK_EQ(bytes, strlen(words));
	CHECK_MEM(data, words, bytes);
	free(data);
}

/* ---- temporary files ---- */

TEST(temporary_names_begin_with_a_dot_and_end_in_sixteen_digits)
{
	struct file_temp a, b;

	begin();
	CHECK_OK(file_temp_create(&a, final.text, &fixture_err));
	CHECK_OK(file_temp_create(&b, final.text, &fixture_err));
	CHECK(!strncmp(a.temp, ".tmp.x.shard.", 13));
	CHECK_EQ(strlen(a.temp), 29);
	CHECK_EQ(strspn(a.temp + 13, "0123456789abcdef"), 16);
	CHECK(strcmp(a.temp, b.temp));
	CHECK_EQ(entries(folder.text, ".tmp.x.shard."), 2);
	CHECK(!file_there(final.text));
	file_temp_discard(&a);
	file_temp_discard(&b);
	CHECK_EQ(entries(folder.text, ""), 0);
	file_temp_discard(&a); /* twice is fine */
}

TEST(paths_that_cannot_be_a_file)
{
	static const char *const bad[] = {"", "a/", ".", "..", "a/..", "a/."};
	char longest[300];
	struct shard_error err;
	struct file_temp t;
	struct path p;

	begin();
	for (size_t i = 0; i < COUNT(bad); i++) {
		STORY("'%s'", bad[i]);
		CHECK_EQ(file_temp_create(&t, bad[i], &err), SHARD_E_ARGUMENT);
	}
	CHECK_EQ(file_temp_create(&t, tmp(&p, "t_publish.none/x"), &err), SHARD_E_IO);
	CHECK_EQ(err.os_code, ENOENT);
	CHECK(strstr(err.message, "t_publish.none/x: the folder that holds it cannot be opened"));
	CHECK_EQ(file_temp_create(&t, "s3://bucket/x", &err), SHARD_E_ARGUMENT);
	CHECK_STR(err.message, "s3://bucket/x: is a URL; only files and folders of this machine are read and written");
	CHECK_EQ(file_temp_create(&t, "./s3://bucket/x", &err), SHARD_E_IO); /* a folder that is not there */
	memset(longest, 'x', sizeof(longest));
	longest[234] = 0;
	CHECK_EQ(file_temp_create(&t, tmp(&p, "t_publish.%d/%s", (int)getpid(), longest), &err), SHARD_E_ARGUMENT);
	CHECK(strstr(err.message, "1 to 233 bytes"));
	longest[233] = 0;
	CHECK_OK(file_temp_create(&t, tmp(&p, "t_publish.%d/%s", (int)getpid(), longest), &fixture_err));
	CHECK_EQ(strlen(t.temp), 255);
	file_temp_discard(&t);
}

TEST(names_without_a_folder_are_in_this_one)
{
	struct file_temp t;
	char here[512];

	begin();
	CHECK(getcwd(here, sizeof(here)));
	CHECK_EQ(chdir(folder.text), 0);
	CHECK_OK(file_temp_create(&t, "plain", &fixture_err));
	CHECK_OK(file_temp_sync(&t, &fixture_err));
	CHECK_OK(file_temp_publish(&t, false, &fixture_err));
	file_temp_discard(&t);
	CHECK(file_there("plain"));
	CHECK_EQ(chdir(here), 0);
}

TEST(a_killed_owner_leaves_what_others_may_remove)
{
	struct file_temp mine;
	uint64_t count = 99;
	int ready[2], status;
	struct path p;
	pid_t living, dead;
	char c;

	begin();
	CHECK_EQ(pipe(ready), 0);
	living = fork();
	if (!living) {
		struct file_temp t;

		_exit(file_temp_create(&t, final.text, NULL) || write(ready[1], "x", 1) != 1 || pause());
	}
	CHECK_EQ(read(ready[0], &c, 1), 1);
	dead = fork();
	if (!dead) {
		struct file_temp t;

		/* and no discard */
		_exit(file_temp_create(&t, final.text, NULL) || file_temp_write(&t, "half", 4, NULL));
	}
	CHECK_EQ(waitpid(dead, &status, 0), dead);
	CHECK_EQ(status, 0);
	CHECK_OK(file_temp_create(&mine, final.text, &fixture_err));
	/* names that are no temporary files of ours */
	file_make(tmp(&p, "t_publish.%d/.tmp.x", (int)getpid()), "", 0);
	file_make(tmp(&p, "t_publish.%d/.tmp.x.0123456789abcdeF", (int)getpid()), "", 0);
	file_make(tmp(&p, "t_publish.%d/.tmp.x-0123456789abcdef", (int)getpid()), "", 0);
	file_make(tmp(&p, "t_publish.%d/tmp.x.0123456789abcdef", (int)getpid()), "", 0);
	CHECK_EQ(mkdir(tmp(&p, "t_publish.%d/.tmp.folder.0123456789abcdef", (int)getpid()), 0755), 0);
	CHECK_EQ(symlink("/dev/null", tmp(&p, "t_publish.%d/.tmp.link.0123456789abcdef", (int)getpid())), 0);
	CHECK_EQ(entries(folder.text, ".tmp.x.shard."), 3);

	CHECK_OK(shard_remove_temps(folder.text, &count, &fixture_err));
	CHECK_EQ(count, 1);
	CHECK_EQ(entries(folder.text, ".tmp.x.shard."), 2); /* the living child's and mine */
	CHECK_EQ(entries(folder.text, ""), 8);
	CHECK_EQ(kill(living, SIGKILL), 0);
	CHECK_EQ(waitpid(living, &status, 0), living);
	CHECK_OK(shard_remove_temps(folder.text, &count, &fixture_err));
	CHECK_EQ(count, 1);
	file_temp_discard(&mine);
	CHECK_OK(shard_remove_temps(folder.text, NULL, &fixture_err));
	CHECK_EQ(entries(folder.text, ".tmp.x.shard."), 0);
	CHECK_EQ(entries(folder.text, ""), 6);
	close(ready[0]);
	close(ready[1]);
}

TEST(a_folder_that_is_not_there_has_no_temps_to_remove)
{
	struct shard_error err;
	uint64_t count = 99;
	struct path p;

	CHECK_EQ(shard_remove_temps(tmp(&p, "t_publish.none"), &count, &err), SHARD_E_IO);
	CHECK_EQ(err.os_code, ENOENT);
	CHECK_EQ(count, 99);
}

TEST(without_locks_nothing_is_removed)
{
	struct file_temp t;
	uint64_t count = 99;

	begin();
	CHECK_OK(file_temp_create(&t, final.text, &fixture_err));
	on_flock = ENOLCK; /* as some network file systems say: then nobody can know who lives */
	CHECK_OK(shard_remove_temps(folder.text, &count, &fixture_err));
	CHECK_EQ(count, 0);
	CHECK_EQ(entries(folder.text, ".tmp."), 1);
	file_temp_discard(&t);
	CHECK_OK(file_temp_create(&t, final.text, &fixture_err)); /* and writing goes on without them */
	file_temp_discard(&t);
	CHECK_EQ(entries(folder.text, ".tmp."), 0);
}

TEST(room_is_reserved_where_it_can_be_had)
{
	struct shard_error err;
	struct file_temp t;
	struct stat st;

	begin();
	CHECK_OK(file_temp_create(&t, final.text, &fixture_err));
	CHECK_OK(file_temp_reserve(&t, 1 << 20, &fixture_err));
	CHECK_OK(file_temp_write(&t, "abc", 3, &fixture_err));
	CHECK_OK(file_temp_sync(&t, &fixture_err));
	CHECK_EQ(fstat(t.fd, &st), 0);
	CHECK_EQ(st.st_size, 3);
	CHECK(st.st_blocks * 512 < 1 << 20); /* the rest was given back */
	on_fallocate = EOPNOTSUPP;
	CHECK_OK(file_temp_reserve(&t, 1 << 20, &fixture_err));
	on_fallocate = ENOSPC;
	CHECK_EQ(file_temp_reserve(&t, 123456, &err), SHARD_E_IO);
	CHECK_EQ(err.os_code, ENOSPC);
	CHECK(strstr(err.message, "x.shard: no room for its 123456 bytes"));
	file_temp_discard(&t);
}

/* ---- the final name ---- */

static const struct {
	const char *story;
	int renameat2, linkat, renameat, fsync;
	bool there, replace; /* the name is taken; it shall be replaced */
	int want;
	const char *holds; /* what the name leads to afterwards, NULL: nothing */
	bool temp_left;
} rows[] = {
	{"as it should be", 0, 0, 0, 0, false, false, SHARD_OK, "new", false},
	{"taken", 0, 0, 0, 0, true, false, SHARD_E_EXISTS, "old", true},
	{"replaced", 0, 0, 0, 0, true, true, SHARD_OK, "new", false},
	{"nothing to replace", 0, 0, 0, 0, false, true, SHARD_OK, "new", false},
	{"no flags: by link", EINVAL, 0, 0, 0, false, false, SHARD_OK, "new", false},
	{"no flags (ENOSYS)", ENOSYS, 0, 0, 0, false, false, SHARD_OK, "new", false},
	{"no flags: taken", EINVAL, 0, 0, 0, true, false, SHARD_E_EXISTS, "old", true},
	{"nor links: by rename", EINVAL, EPERM, 0, 0, false, false, SHARD_OK, "new", false},
	{"nor links (EOPNOTSUPP)", EOPNOTSUPP, EOPNOTSUPP, 0, 0, false, false, SHARD_OK, "new", false},
	{"nor links: taken", EINVAL, EPERM, 0, 0, true, false, SHARD_E_EXISTS, "old", true},
	{"nor links, and rename fails", EINVAL, EPERM, EIO, 0, false, false, SHARD_E_IO, NULL, true},
	{"a rename that was said to be done", SWALLOW, 0, 0, 0, false, false, SHARD_E_IO, NULL, true},
	{"the same, and the name is another's", SWALLOW, 0, 0, 0, true, false, SHARD_E_IO, "old", true},
	{"a link that was said to be made", EINVAL, SWALLOW, 0, 0, false, false, SHARD_E_IO, NULL, true},
	{"a replacing that was said to be done", 0, 0, SWALLOW, 0, true, true, SHARD_E_IO, "old", true},
	{"a rename whose answer was lost", LOST, 0, 0, 0, false, false, SHARD_OK, "new", false},
	{"a link whose answer was lost", EINVAL, LOST, 0, 0, false, false, SHARD_OK, "new", false},
	{"a link that was asked for twice", EINVAL, TWICE, 0, 0, false, false, SHARD_OK, "new", false},
	{"a link, and the server is gone", EINVAL, ENOTCONN, 0, 0, false, false, SHARD_E_IO, NULL, true},
	{"not allowed", EACCES, 0, 0, 0, false, false, SHARD_E_IO, NULL, true},
	{"no room for the name", ENOSPC, 0, 0, 0, true, false, SHARD_E_IO, "old", true},
	{"fsync of the file fails", 0, 0, 0, EIO, false, false, SHARD_E_IO, NULL, true},
	{"fsync of the folder fails", 0, 0, 0, ESTALE, false, false, SHARD_E_IO, "new", false},
};

TEST(every_way_to_the_final_name)
{
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct shard_error err = {.message = ""};
		struct file_temp t;
		unsigned temps;
		int rc;

		STORY("%s", rows[i].story);
		begin();
		if (rows[i].there)
			file_make(final.text, "old", 3);
		on_renameat2 = rows[i].renameat2;
		on_linkat = rows[i].linkat;
		on_renameat = rows[i].renameat;
		on_fsync = rows[i].fsync;
		rc = publish("new", rows[i].replace, &t, &err);
		CHECK_EQ(rc, rows[i].want);
		CHECK(!rc || strstr(err.message, "/x.shard: "));
		CHECK_EQ(file_there(final.text), rows[i].holds != NULL);
		if (rows[i].holds)
			check_holds(final.text, rows[i].holds);
		temps = entries(folder.text, ".tmp.");
		CHECK_EQ(temps, rows[i].temp_left);
		CHECK(!rows[i].renameat2 || rows[i].renameat2 == EACCES || rows[i].renameat2 == ENOSPC ||
		      rows[i].renameat2 < 0 || links);
		system_is_well();
		file_temp_discard(&t);
		CHECK_EQ(entries(folder.text, ".tmp."), 0);
	}
}

static const struct {
	const char *story;
	int linkat;
	const char *there; /* what has the name before */
	int want;
	const char *holds;
} numbered[] = {
	{"a link", DO_IT, NULL, SHARD_OK, "new"},
	{"taken", DO_IT, "old", SHARD_E_EXISTS, "old"},
	{"a link that was said to be made", SWALLOW, NULL, SHARD_E_IO, NULL},
	{"the same on a local disk, and the name is as long", SWALLOW, "old", SHARD_E_IO, "old"},
	{"the same, and the name is another's", SWALLOW, "another", SHARD_E_IO, "another"},
	{"a link that was asked for twice: nobody can tell", TWICE, NULL, SHARD_E_EXISTS, "new"},
};

TEST(links_where_each_name_has_a_number_of_its_own)
{
	for (size_t i = 0; i < COUNT(numbered); i++) {
		struct shard_error err;
		struct file_temp t;

		STORY("%s", numbered[i].story);
		begin();
		if (numbered[i].there)
			file_make(final.text, numbered[i].there, strlen(numbered[i].there));
		names_are_numbered = true;
		is_local = strstr(numbered[i].story, "local") != NULL;
		on_renameat2 = EINVAL;
		on_linkat = numbered[i].linkat;
		CHECK_EQ(publish("new", false, &t, &err), numbered[i].want);
		CHECK_EQ(file_there(final.text), numbered[i].holds != NULL);
		if (numbered[i].holds)
			check_holds(final.text, numbered[i].holds);
		CHECK_EQ(entries(folder.text, ".tmp."), numbered[i].want != SHARD_OK);
		system_is_well();
		file_temp_discard(&t);
		CHECK_EQ(entries(folder.text, ".tmp."), 0);
	}
}

TEST(a_temporary_file_that_was_removed)
{
	for (int taken = 0; taken < 2; taken++) {
		struct shard_error err;
		struct file_temp t;
		struct path p;

		begin();
		CHECK_OK(file_temp_create(&t, final.text, &fixture_err));
		CHECK_OK(file_temp_sync(&t, &fixture_err));
		CHECK_EQ(unlink(tmp(&p, "t_publish.%d/%s", (int)getpid(), t.temp)), 0);
		if (taken)
			file_make(final.text, "old", 3);
		CHECK_EQ(file_temp_publish(&t, false, &err), taken ? SHARD_E_EXISTS : SHARD_E_IO);
		CHECK(taken || err.os_code == ENOENT);
		file_temp_discard(&t);
		CHECK_EQ(entries(folder.text, ""), (unsigned)taken);
	}
}

TEST(a_failed_fsync_is_not_tried_again)
{
	struct shard_error err;
	struct file_temp t;

	begin();
	on_fsync = EIO;
	CHECK_EQ(publish("new", false, &t, &err), SHARD_E_IO);
	CHECK_EQ(fsyncs, 1);
	CHECK(strstr(err.message, "making it durable (fsync): Input/output error"));
	file_temp_discard(&t);
	system_is_well();
	CHECK_OK(publish("new", false, &t, &fixture_err));
	CHECK_EQ(fsyncs, 2); /* the file, then the folder */
	file_temp_discard(&t);
	check_holds(final.text, "new");
}

TEST(a_file_of_another_size_is_not_published)
{
	struct shard_error err;
	struct file_temp t;

	begin();
	cut_behind_fsync = true;
	CHECK_EQ(publish("new", false, &t, &err), SHARD_E_IO);
	CHECK(strstr(err.message, "its size differs from the bytes written"));
	cut_behind_fsync = false;
	file_temp_discard(&t);
	CHECK(!file_there(final.text));
	CHECK_EQ(entries(folder.text, ".tmp."), 0);
}

/* Somebody who removes what dead processes left had the lock first; then it is his. */
TEST(a_temporary_file_that_another_holds_is_left_for_a_new_one)
{
	struct shard_error err;
	struct file_temp t;

	begin();
	held_by_others = 3;
	CHECK_OK(publish("new", false, &t, &err));
	CHECK_EQ(held_by_others, 0);
	file_temp_discard(&t);
	check_holds(final.text, "new");
	CHECK_EQ(entries(folder.text, ".tmp."), 0);
}

TEST(small_files_are_published)
{
	struct shard_error err;

	begin();
	CHECK_OK(shard_publish(final.text, "one", 3, 0, &fixture_err));
	CHECK_EQ(shard_publish(final.text, "two", 3, 0, &err), SHARD_E_EXISTS);
	check_holds(final.text, "one");
	CHECK_OK(shard_publish(final.text, "", 0, 1, &fixture_err));
	check_holds(final.text, "");
	CHECK_EQ(entries(folder.text, ""), 1);
	on_fsync = EIO;
	CHECK_EQ(shard_publish(final.text, "three", 5, 1, &err), SHARD_E_IO);
	check_holds(final.text, "");
	CHECK_EQ(entries(folder.text, ""), 1);
}

/* ---- files without a name ---- */

TEST(two_may_replace_one_name_at_the_same_moment)
{
	struct path another;

	begin();
	tmp(&another, "t_publish.%d/another", (int)getpid());
	file_make(another.text, "theirs", 6);
	CHECK_OK(shard_publish(final.text, "before", 6, 1, &fixture_err));
	on_renameat = OVERTAKEN;
	CHECK_OK(shard_publish(final.text, "ours", 4, 1, &fixture_err));
	check_holds(final.text, "theirs");
	on_renameat = SWALLOW; /* and this is still noticed */
	CHECK_EQ(shard_publish(final.text, "ours", 4, 1, NULL), SHARD_E_IO);
	check_holds(final.text, "theirs");
}

TEST(spools_have_no_name)
{
	for (int fallback = 0; fallback < 2; fallback++) {
		struct shard_error err;
		char back[5] = "";
		struct path p;
		int fd = -1;

		STORY("%s", fallback ? "made and removed" : "O_TMPFILE");
		begin();
		on_tmpfile = fallback ? EOPNOTSUPP : 0;
		CHECK_OK(file_unnamed(final.text, &fd, &fixture_err));
		CHECK_EQ(refused_tmpfiles, fallback);
		CHECK_EQ(entries(folder.text, ""), 0);
		CHECK_OK(file_write_at(fd, "abcd", 4, 0, final.text, &fixture_err));
		CHECK_OK(file_read_at(fd, back, 4, 0, final.text, &fixture_err));
		CHECK_STR(back, "abcd");
		close(fd);
		CHECK_EQ(file_unnamed(tmp(&p, "t_publish.none/x"), &fd, &err), SHARD_E_IO);
		CHECK(strstr(err.message, "t_publish.none/x"));
		CHECK_EQ(file_unnamed(p.text, &fd, NULL), SHARD_E_IO);
	}
}

TEST(cleaning_up)
{
	begin();
	remove_tree(folder.text);
	CHECK(!file_there(folder.text));
}

TEST_MAIN()
