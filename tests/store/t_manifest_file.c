/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_manifest_file.c - how much is read and allocated before a file is known to be a manifest
 *
 * Files with holes say that they are as large as anybody likes.  What is read is counted where io/
 * reads, and memory where it is asked for.
 *
 * LDFLAGS: -Wl,--wrap=file_read_at,--wrap=mem_resize,--wrap=mem_alloc
 */
#include <fcntl.h>

#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/base/words.h"
#include "libshard/dataset/dataset.h"
#include "libshard/format/format.h"
#include "shard_pack.h"
#include "tests/store/fixture.h"

#define MIB	  (UINT64_C(1) << 20)
#define END_BYTES 102u

static uint64_t read_bytes, most_bytes; /* read, and the largest block that was asked for */
static uint64_t fail_after;		/* not 0: reading fails when so much was read */

int __real_file_read_at(int fd, void *out, size_t bytes, uint64_t offset, const char *path, struct shard_error *err);
int __wrap_file_read_at(int fd, void *out, size_t bytes, uint64_t offset, const char *path, struct shard_error *err);
void *__real_mem_resize(void *old, size_t count, size_t item_bytes);
void *__wrap_mem_resize(void *old, size_t count, size_t item_bytes);
void *__real_mem_alloc(size_t bytes);
void *__wrap_mem_alloc(size_t bytes);

int __wrap_file_read_at(int fd, void *out, size_t bytes, uint64_t offset, const char *path, struct shard_error *err)
{
	read_bytes += bytes;
	if (fail_after && read_bytes > fail_after)
		return error_set(err, SHARD_E_IO, "the disk fails");
	return __real_file_read_at(fd, out, bytes, offset, path, err);
}

void *__wrap_mem_resize(void *old, size_t count, size_t item_bytes)
{
	if (count * item_bytes > most_bytes)
		most_bytes = count * item_bytes;
	return __real_mem_resize(old, count, item_bytes);
}

void *__wrap_mem_alloc(size_t bytes)
{
	if (bytes > most_bytes)
		most_bytes = bytes;
	return __real_mem_alloc(bytes);
}

static struct path folder, file;

static int make_folder(void)
{
	int fd;

	new_folder(&folder, "t_manifest_file");
	fd = open(tmp(&file, "t_manifest_file.%d/dataset.manifest", (int)getpid()), O_RDWR | O_CREAT | O_TRUNC, 0666);
	CHECK(fd >= 0);
	return fd;
}

/* The end line for a text, whose bytes before that line are `text`. */
static void make_end(char end[END_BYTES + 1], const uint8_t *text, size_t bytes, bool right)
{
	uint8_t sha256[32], hash[16], *whole = malloc(bytes + 69);

	CHECK(whole);
	shard_sha256(text, bytes, sha256);
	memcpy(end, "end ", 4);
	hex_from_bytes(end + 4, sha256, 32);
	end[68] = ' ';
	memcpy(whole, text, bytes);
	memcpy(whole + bytes, end, 69);
	shard_xxh128(whole, bytes + 69, hash);
	hash[0] ^= !right;
	manifest_hash_text(end + 69, hash);
	end[101] = '\n';
	free(whole);
}

static int open_and_count(struct shard_error *err)
{
	struct shard_dataset *ds = NULL;
	int rc;

	read_bytes = most_bytes = 0;
	rc = shard_dataset_open(&ds, folder.text, NULL, err);
	shard_dataset_close(ds);
	return rc;
}

TEST(what_is_no_manifest_is_refused_by_its_ends)
{
	static const struct {
		const char *story, *head, *tail;
		uint64_t bytes;
		const char *want;
	} rows[] = {
		{"a hole of 3 GiB", "", "", 3072 * MIB, "M1: "},
		{"a hole of 40 GiB", "", "", 40960 * MIB, "M1: "},
		{"a hole with a first line", "shardset 1\n", "", 3072 * MIB, "M2: "},
		{"a hole with an end line that is too short", "shardset 1\n", "\nend 00 00\n", 3072 * MIB, "M2: "},
		{"a hole as large as the limit and a byte", "shardset 1\n", "", (UINT64_C(1) << 36) + 1, "at most"},
		{"nothing", "", "", 0, "M1: "},
		{"a byte", "s", "", 1, "M1: "},
		{"a first line", "shardset 1\n", "", 11, "M2: "},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct shard_error err = {.message = ""};
		size_t tail = strlen(rows[i].tail), head = strlen(rows[i].head);
		int fd = make_folder();

		STORY("%s", rows[i].story);
		CHECK_EQ(ftruncate(fd, (off_t)rows[i].bytes), 0);
		CHECK_EQ(pwrite(fd, rows[i].head, head, 0), head);
		CHECK_EQ(pwrite(fd, rows[i].tail, tail, (off_t)(rows[i].bytes - tail)), tail);
		close(fd);
		CHECK_EQ(open_and_count(&err), SHARD_E_CORRUPT);
		CHECK(strstr(err.message, rows[i].want) && strstr(err.message, file.text));
		CHECK(read_bytes <= 4096 && most_bytes <= 4096);
	}
	unlink(file.text);
}

TEST(a_hole_between_good_ends_takes_no_memory)
{
	static const struct {
		const char *story;
		uint64_t text_bytes; /* 'a' in lines of 64, behind the first line and before the hole */
		bool right;
		const char *want;
	} rows[] = {
		{"at once, damaged", 0, false, "M3: "},
		{"at once, sealed by its maker", 0, true, "M5: line 2 "},
		{"behind 1 MiB of lines, damaged", MIB, false, "M3: "},
		{"behind 1 MiB of lines, sealed by its maker", MIB, true, "M6: "}, /* the first broken rule */
	};
	size_t hole = 64 * MIB;

	for (size_t i = 0; i < COUNT(rows); i++) {
		size_t bytes = 11 + (size_t)rows[i].text_bytes + hole;
		uint8_t *text = calloc(bytes, 1);
		struct shard_error err = {.message = ""};
		char end[END_BYTES + 1];
		int fd = make_folder();

		STORY("%s", rows[i].story);
		CHECK(text);
		memcpy(text, "shardset 1\n", 11);
		for (size_t k = 0; k < rows[i].text_bytes; k++)
			text[11 + k] = k % 64 == 63 ? '\n' : 'a';
		text[bytes - 1] = '\n';
		make_end(end, text, bytes, rows[i].right);
		CHECK_EQ(ftruncate(fd, (off_t)bytes), 0);
		CHECK_EQ(pwrite(fd, text, 11 + rows[i].text_bytes, 0), 11 + rows[i].text_bytes);
		CHECK_EQ(pwrite(fd, "\n", 1, (off_t)bytes - 1), 1);
		CHECK_EQ(pwrite(fd, end, END_BYTES, (off_t)bytes), END_BYTES);
		close(fd);
		free(text);
		CHECK_EQ(open_and_count(&err), SHARD_E_CORRUPT);
		CHECK(strstr(err.message, rows[i].want));
		CHECK(most_bytes <= 2 * rows[i].text_bytes + MIB);
	}
	unlink(file.text);
}

/* Longer than many pieces, so that lines lie across their edges. */
TEST(a_long_manifest_is_read_whole)
{
	enum { LINES = 60000 };
	uint8_t *text = malloc(LINES * 64);
	size_t bytes = (size_t)sprintf((char *)text, "shardset 1\n");
	struct manifest_file got;
	struct shard_error err;
	char end[END_BYTES + 1];
	int fd = make_folder();

	for (unsigned i = 0; i < LINES; i++)
		bytes += (size_t)sprintf((char *)text + bytes, "class %u %.*s\n", i, (int)(i % 40) + 1,
					 "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz");
	make_end(end, text, bytes, true);
	CHECK_EQ(pwrite(fd, text, bytes, 0), bytes);
	CHECK_EQ(pwrite(fd, end, END_BYTES, (off_t)bytes), END_BYTES);
	close(fd);
	CHECK(bytes > 8 << 17);
	read_bytes = most_bytes = 0;
	CHECK_OK(manifest_file_read(&got, file.text, &fixture_err));
	CHECK_EQ(got.bytes, bytes + END_BYTES);
	CHECK_EQ(got.end.end_at, bytes);
	CHECK_MEM(got.text, text, bytes);
	CHECK_MEM(got.text + bytes, end, END_BYTES);
	CHECK_EQ(got.text[got.bytes], 0);
	CHECK_EQ(most_bytes, bytes + END_BYTES + 1); /* never more than the file has */
	mem_free(got.text);
	for (fail_after = 100; fail_after < bytes; fail_after += bytes / 5) {
		STORY("reading fails after %u bytes", (unsigned)fail_after);
		got.text = NULL;
		read_bytes = 0;
		CHECK_EQ(manifest_file_read(&got, file.text, &err), SHARD_E_IO);
		CHECK(!got.text);
	}
	fail_after = 0;
	free(text);
	unlink(file.text);
}

TEST_MAIN()
