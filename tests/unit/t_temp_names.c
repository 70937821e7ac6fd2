/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_temp_names.c - who may remove a temporary file: by its lock where all see it; on network file
 * systems only where it was made, or when its shard is there
 *
 * LDFLAGS: -Wl,--wrap=file_is_remote
 */
#include <errno.h>
#include <stddef.h>
#include <sys/wait.h>

#include "libshard/io/io.h"
#include "shard_pack.h"
#include "tests/store/fixture.h"

bool __wrap_file_is_remote(const char *path);

static bool remote;

bool __wrap_file_is_remote(const char *path)
{
	(void)path;
	return remote;
}

static struct path folder;

/* What a killed process leaves: a file that nobody has locked, with the digits of this place. */
static void leave(const char *name)
{
	struct file_temp t;
	struct path p;
	pid_t child;
	int status;

	tmp(&p, "t_temp_names.%d/%s", (int)getpid(), name);
	child = fork();
	if (!child)
		_exit(file_temp_create(&t, p.text, NULL) != SHARD_OK); /* and no discard */
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
}

static void leave_elsewhere(const char *name)
{
	struct path p;

	file_make(tmp(&p, "t_temp_names.%d/.tmp.%s.0123456789abcdef", (int)getpid(), name), "half", 4);
}

static void begin(bool is_remote)
{
	remote = is_remote;
	new_folder(&folder, "t_temp_names");
}

static uint64_t removed(void)
{
	uint64_t count = 99;

	CHECK_OK(shard_remove_temps(folder.text, &count, &fixture_err));
	return count;
}

TEST(on_a_local_disk_a_lock_says_all)
{
	begin(false);
	leave("a.shard");
	leave_elsewhere("b.shard");
	CHECK_EQ(removed(), 2);
	CHECK_EQ(entries(folder.text, ""), 0);
}

TEST(on_a_network_file_system_each_removes_its_own)
{
	struct file_temp mine;
	struct path p;

	begin(true);
	CHECK_OK(file_temp_create(&mine, tmp(&p, "t_temp_names.%d/c.shard", (int)getpid()), &fixture_err));
	leave("a.shard");
	leave_elsewhere("b.shard");
	CHECK_EQ(removed(), 1);
	CHECK_EQ(entries(folder.text, ".tmp.b.shard.0123456789abcdef"), 1);
	CHECK_EQ(entries(folder.text, ".tmp.c.shard."), 1);
	file_temp_discard(&mine);
}

TEST(what_was_made_elsewhere_goes_when_its_shard_is_there)
{
	struct path p;

	begin(true);
	leave_elsewhere("a.shard");
	leave_elsewhere("dataset.manifest");
	leave_elsewhere(".shard");
	file_make(tmp(&p, "t_temp_names.%d/dataset.manifest", (int)getpid()), "", 0);
	file_make(tmp(&p, "t_temp_names.%d/.shard", (int)getpid()), "", 0);
	CHECK_EQ(removed(), 0);
	file_make(tmp(&p, "t_temp_names.%d/a.shard", (int)getpid()), "", 0);
	CHECK_EQ(removed(), 1);
	CHECK_EQ(entries(folder.text, ".tmp."), 2);
	remote = false; /* where locks are seen they decide, and nobody has these */
	CHECK_EQ(removed(), 2);
}

TEST(a_living_owner_keeps_its_file_though_the_shard_is_there)
{
	struct file_temp t;
	struct path p;

	begin(false);
	tmp(&p, "t_temp_names.%d/a.shard", (int)getpid());
	CHECK_OK(file_temp_create(&t, p.text, &fixture_err));
	file_make(p.text, "", 0);
	CHECK_EQ(removed(), 0);
	file_temp_discard(&t);
}

TEST(the_digits_of_a_place)
{
	struct file_temp a, b;
	struct path p;
	size_t at = strlen(".tmp.x.");

	for (int is_remote = 0; is_remote < 2; is_remote++) {
		begin(is_remote);
		tmp(&p, "t_temp_names.%d/x", (int)getpid());
		CHECK_OK(file_temp_create(&a, p.text, &fixture_err));
		CHECK_OK(file_temp_create(&b, p.text, &fixture_err));
		CHECK_EQ(strlen(a.temp), at + FILE_TEMP_ID);
		CHECK_EQ(!memcmp(a.temp + at, b.temp + at, TEMP_PLACE_DIGITS), is_remote);
		CHECK(strcmp(a.temp, b.temp));
		file_temp_discard(&a);
		file_temp_discard(&b);
	}
}

TEST(digits_that_the_caller_wants)
{
	static const char *const bad[] = {"", "0123456789abcde", "0123456789abcdeF", "0123456789abcdef0",
					  "../56789abcdef01"};
	struct shard_error err;
	struct file_temp a, b;
	struct path p;

	begin(false);
	tmp(&p, "t_temp_names.%d/x", (int)getpid());
	for (size_t i = 0; i < COUNT(bad); i++) {
		STORY("'%s'", bad[i]);
		CHECK_EQ(file_temp_create_as(&a, p.text, bad[i], &err), SHARD_E_ARGUMENT);
		CHECK(strstr(err.message, "must be 16 digits of 0-9a-f"));
	}
	CHECK_OK(file_temp_create_as(&a, p.text, "0123456789abcdef", &fixture_err));
	CHECK_STR(a.temp, ".tmp.x.0123456789abcdef");
	CHECK_OK(file_temp_create_as(&b, p.text, "0123456789abcdef", &fixture_err)); /* taken: others will do */
	CHECK(strcmp(a.temp, b.temp));
	file_temp_discard(&a);
	file_temp_discard(&b);
	CHECK_EQ(entries(folder.text, ""), 0);
}

TEST(a_writer_takes_digits_and_older_programs_give_none)
{
	struct shard_schema s = photo_schema(8, SHARD_RAW);
	struct shard_writer_options o = {.size = sizeof(o), .planned_records = 1, .temp_id = "fedcba9876543210"};
	struct shard_writer *w;
	struct path p;

	begin(false);
	tmp(&p, "t_temp_names.%d/x.shard", (int)getpid());
	CHECK_OK(shard_writer_open(&w, p.text, &s, &o, &fixture_err));
	CHECK_EQ(entries(folder.text, ".tmp.x.shard.fedcba9876543210"), 1);
	shard_writer_close(w);
	o.size = offsetof(struct shard_writer_options, temp_id);
	CHECK_OK(shard_writer_open(&w, p.text, &s, &o, &fixture_err));
	CHECK_EQ(entries(folder.text, ".tmp.x.shard."), 1);
	CHECK_EQ(entries(folder.text, ".tmp.x.shard.fedcba9876543210"), 0);
	shard_writer_close(w);
	CHECK_EQ(entries(folder.text, ""), 0);
}

TEST(cleaning_up)
{
	begin(false);
	remove_tree(folder.text);
	CHECK(!file_there(folder.text));
}

TEST_MAIN()
