/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_reuse.c - a shard of another dataset as a hard link, on file systems that number files, and on
 * those that number names, as sshfs: a file that was replaced meanwhile is never taken; nor are bytes
 * that the manifest does not know
 *
 * LDFLAGS: -Wl,--wrap=linkat,--wrap=fstatat64,--wrap=fstat64
 */
#include <errno.h>

#include "shard_pack.h"
#include "tests/store/fixture.h"

int __real_linkat(int a, const char *from, int b, const char *to, int flags);
int __wrap_linkat(int a, const char *from, int b, const char *to, int flags);
int __real_fstat64(int fd, struct stat *out);
int __wrap_fstat64(int fd, struct stat *out);
int __real_fstatat64(int dir, const char *path, struct stat *out, int flags);
int __wrap_fstatat64(int dir, const char *path, struct stat *out, int flags);

static bool names_are_numbered;
static const char *replace_by; /* what takes the place of the shard, right before the link */

int __wrap_linkat(int a, const char *from, int b, const char *to, int flags)
{
	if (replace_by)
		CHECK_EQ(rename(replace_by, from), 0);
	replace_by = NULL;
	return __real_linkat(a, from, b, to, flags);
}

int __wrap_fstat64(int fd, struct stat *out)
{
	int rc = __real_fstat64(fd, out);

	if (names_are_numbered && !rc)
		out->st_nlink = 1;
	return rc;
}

int __wrap_fstatat64(int dir, const char *path, struct stat *out, int flags)
{
	int rc = __real_fstatat64(dir, path, out, flags);

	if (names_are_numbered && !rc) {
		out->st_nlink = 1;
		if (strstr(path, "/to/"))
			out->st_ino ^= (ino_t)1 << 40; /* a number that no other file has */
	}
	return rc;
}

static struct path from, to, made, old, other;

/* A dataset of two shards at `from`, and a folder for the other one. */
static struct shard_dataset *begin(void)
{
	struct shard_schema s = photo_schema(8, SHARD_RAW);
	struct shard_dataset *ds;
	struct path folder;

	new_folder(&folder, "t_reuse");
	tmp(&from, "t_reuse.%d/from", (int)getpid());
	tmp(&to, "t_reuse.%d/to", (int)getpid());
	tmp(&made, "t_reuse.%d/to/0.shard", (int)getpid());
	tmp(&old, "t_reuse.%d/from/0.shard", (int)getpid());
	tmp(&other, "t_reuse.%d/from/1.shard", (int)getpid());
	CHECK(!mkdir(from.text, 0777) && !mkdir(to.text, 0777));
	write_dataset(from.text, &s, (const uint64_t[]){5, 5}, 2);
	CHECK_OK(shard_dataset_open(&ds, from.text, NULL, &fixture_err));
	return ds;
}

/* *how becomes what was done. */
static int reuse(struct shard_dataset *ds, uint32_t *how, struct shard_error *err)
{
	struct shard_seal_options o = {.size = sizeof(o)};
	struct shard_seal *seal;
	int rc;

	CHECK_OK(shard_seal_open(&seal, to.text, &o, &fixture_err));
	rc = shard_seal_reuse(seal, ds, 0, "0.shard", how, err);
	shard_seal_close(seal);
	return rc;
}

TEST(a_link_whatever_is_numbered)
{
	for (int numbered = 0; numbered < 2; numbered++) {
		struct shard_dataset *ds = begin();
		struct shard_error err;
		uint32_t how = SHARD_REUSE_LINK;

		STORY("numbered: %d", numbered);
		names_are_numbered = numbered;
		CHECK_OK(reuse(ds, &how, &err));
		CHECK_EQ(how, SHARD_REUSE_LINK);
		how = SHARD_REUSE_LINK;
		CHECK_OK(reuse(ds, &how, &err)); /* again, which finds it there */
		CHECK_EQ(how, SHARD_REUSE_THERE);
		names_are_numbered = false;
		shard_dataset_close(ds);
	}
}

TEST(what_took_its_place_is_not_taken)
{
	for (int numbered = 0; numbered < 2; numbered++)
		for (int is_shard = 0; is_shard < 2; is_shard++) {
			struct shard_dataset *ds = begin();
			struct shard_error err;
			uint32_t how = SHARD_REUSE_LINK;

			STORY("numbered: %d, shard: %d", numbered, is_shard);
			if (!is_shard)
				file_make(other.text, "other", 5);
			names_are_numbered = numbered;
			replace_by = other.text;
			CHECK_EQ(reuse(ds, &how, &err), SHARD_E_IO);
			CHECK(strstr(err.message, "was replaced while"));
			CHECK(!file_there(made.text));
			names_are_numbered = false;
			shard_dataset_close(ds);
		}
}

/* D6: a copy is compared with the manifest, and so is a shard that was there. */
TEST(bytes_that_are_read_have_the_sha256_of_the_manifest)
{
	for (int there = 0; there < 2; there++) {
		struct shard_dataset *ds = begin();
		struct shard_seal_options o = {.size = sizeof(o)};
		uint32_t how = SHARD_REUSE_COPY;
		struct shard_seal *seal;
		struct shard_error err;
		struct path manifest;

		STORY("there: %d", there);
		if (there)
			CHECK_OK(reuse(ds, &how, &err));
		shard_dataset_close(ds);
		tmp(&manifest, "t_reuse.%d/from/dataset.manifest", (int)getpid());
		CHECK_EQ(unlink(manifest.text), 0);
		CHECK_OK(shard_seal_open(&seal, from.text, &o, &err));
		CHECK_OK(shard_seal_add(seal, "0.shard", NULL, (const uint8_t[32]){0}, &err));
		CHECK_OK(shard_seal_finish(seal, &err));
		shard_seal_close(seal);
		CHECK_OK(shard_dataset_open(&ds, from.text, NULL, &err));
		how = SHARD_REUSE_COPY;
		CHECK_EQ(reuse(ds, &how, &err), SHARD_E_MISMATCH);
		CHECK(strstr(err.message, there ? "to/0.shard: D6: " : "from/0.shard: D6: "));
		CHECK_EQ(file_there(made.text), there);
		shard_dataset_close(ds);
	}
}

TEST_MAIN()
