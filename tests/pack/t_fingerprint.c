/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_fingerprint.c - every byte of a small file counts, and of a large one the bytes of its pages
 */
#include "tools/shardpack/input/fingerprint.h"

#include <errno.h>
#include <fcntl.h>

#include "tests/pack/prng.h"
#include "tests/test.h"

static int temporary(uint64_t bytes)
{
	char name[] = "fingerprint.XXXXXX";
	int fd = mkstemp(name);

	CHECK(fd >= 0);
	CHECK_EQ(unlink(name), 0);
	CHECK_EQ(ftruncate(fd, (off_t)bytes), 0);
	return fd;
}

/* Does another byte there make another fingerprint?  It is put back. */
static bool counts(int fd, uint64_t bytes, const struct fingerprint_rule *rule, uint64_t offset)
{
	uint8_t before[FINGERPRINT_BYTES], after[FINGERPRINT_BYTES];

	CHECK(fingerprint_take(fd, bytes, rule, before));
	CHECK_EQ(pwrite(fd, "x", 1, (off_t)offset), 1);
	CHECK(fingerprint_take(fd, bytes, rule, after));
	CHECK_EQ(pwrite(fd, "", 1, (off_t)offset), 1);
	return memcmp(before, after, sizeof(before)) != 0;
}

/* The page that has this byte, or the first behind it. */
static uint64_t page_near(const struct fingerprint_rule *rule, uint64_t bytes, uint64_t offset)
{
	uint64_t i = 0;

	while (i < rule->page_count - 1 && fingerprint_page(rule, bytes, i) + FINGERPRINT_PAGE_BYTES <= offset)
		i++;
	return fingerprint_page(rule, bytes, i);
}

TEST(what_is_read_is_bounded_for_any_number_of_files)
{
	static const uint64_t counts_of_files[] = {0, 1, 2, 63, 64, 65, 256, 1000, 4096, 16384, 100000, UINT64_MAX};

	for (size_t i = 0; i < sizeof(counts_of_files) / sizeof(counts_of_files[0]); i++) {
		struct fingerprint_rule rule = fingerprint_rule(counts_of_files[i]);

		STORY("%llu files", (unsigned long long)counts_of_files[i]);
		CHECK(rule.whole_bytes >= 65536 && rule.whole_bytes <= UINT64_C(16) << 20);
		CHECK(rule.page_count >= 16 && rule.page_count <= 1024);
		if (counts_of_files[i] <= 16384)
			CHECK(rule.whole_bytes * counts_of_files[i] <= UINT64_C(1) << 30);
		/* Each page of the smallest large file has room in its stretch. */
		CHECK(rule.whole_bytes / rule.page_count >= FINGERPRINT_PAGE_BYTES);
	}
}

TEST(pages_are_apart_from_the_first_byte_to_the_last)
{
	for (uint64_t files = 1; files < 20000; files = 3 * files + 1) {
		struct fingerprint_rule rule = fingerprint_rule(files);

		for (uint64_t k = 0; k < 40; k++) {
			uint64_t bytes = rule.whole_bytes + 1 + (k ? prng_at(files, k) >> (k + 20) : 0);

			STORY("%llu files, %llu bytes", (unsigned long long)files, (unsigned long long)bytes);
			CHECK_EQ(fingerprint_page(&rule, bytes, 0), 0);
			CHECK_EQ(fingerprint_page(&rule, bytes, rule.page_count - 1), bytes - FINGERPRINT_PAGE_BYTES);
			for (uint64_t i = 1; i < rule.page_count; i++)
				CHECK(fingerprint_page(&rule, bytes, i) >=
				      fingerprint_page(&rule, bytes, i - 1) + FINGERPRINT_PAGE_BYTES);
		}
	}
}

TEST(every_byte_of_a_small_file_counts)
{
	struct fingerprint_rule rule = fingerprint_rule(20000);
	int fd = temporary(rule.whole_bytes);

	CHECK(counts(fd, rule.whole_bytes, &rule, 0));
	CHECK(counts(fd, rule.whole_bytes, &rule, rule.whole_bytes - 1));
	for (uint64_t i = 0; i < 100; i++)
		CHECK(counts(fd, rule.whole_bytes, &rule, prng_at(1, i) % rule.whole_bytes));
	close(fd);
}

TEST(of_a_large_file_the_bytes_of_pages_count_and_no_others)
{
	struct fingerprint_rule rule = fingerprint_rule(1);
	uint64_t bytes = UINT64_C(40) << 20, seen = 0;
	int fd = temporary(bytes);

	CHECK(counts(fd, bytes, &rule, 0));
	CHECK(counts(fd, bytes, &rule, bytes - 1));
	for (uint64_t i = 0; i < 60; i++) {
		uint64_t offset = prng_at(2, i) % bytes, page = page_near(&rule, bytes, offset);
		bool within = offset >= page && offset < page + FINGERPRINT_PAGE_BYTES;

		STORY("byte %llu", (unsigned long long)offset);
		CHECK_EQ(counts(fd, bytes, &rule, offset), within);
		CHECK(counts(fd, bytes, &rule, page) && counts(fd, bytes, &rule, page + FINGERPRINT_PAGE_BYTES - 1));
		seen += within;
	}
	CHECK(seen > 0 && seen < 20); /* a tenth of the file */
	close(fd);
}

TEST(a_file_that_became_shorter_has_none)
{
	struct fingerprint_rule rule = fingerprint_rule(1);
	uint8_t print[FINGERPRINT_BYTES];
	int fd = temporary(1000);

	CHECK(fingerprint_take(fd, 1000, &rule, print));
	CHECK(!fingerprint_take(fd, 1001, &rule, print));
	CHECK_EQ(errno, 0);
	CHECK(!fingerprint_take(fd, rule.whole_bytes + 1, &rule, print));
	CHECK_EQ(errno, 0);
	close(fd);
	CHECK(!fingerprint_take(fd, 1000, &rule, print));
	CHECK_EQ(errno, EBADF);
}

TEST_MAIN()
