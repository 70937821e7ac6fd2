/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_copy.c - copies of records: the same bytes as memcpy, none beside them, from the front to the
 * back
 *
 * The order is seen from outside: the source's pages are closed, and a handler opens each when it
 * is first touched.  A copy that goes backwards, one that misses a byte and one that writes too
 * many show that the tests would notice.
 */
#include <signal.h>
#include <sys/mman.h>

#include "libshard/format/format.h"
#include "tests/store/fixture.h"

#define PAGE	   4096u
#define PAGES	   40u
#define BYTES_MAX  (200u << 10)
#define GUARD	   128u /* bytes on either side that must stay as they are */
#define GUARD_BYTE 0xa5

/* ---- what copies, and what would be wrong ---- */

static void copy_hashed(void *dst, const void *src, size_t bytes)
{
	CHECK_EQ(copy_stream_hashed(dst, src, bytes), checksum64(src, bytes));
}

/* Pages from the last to the first, each of them forward. */
static void copy_backwards(void *dst, const void *src, size_t bytes)
{
	while (bytes) {
		size_t n = bytes % PAGE ? bytes % PAGE : PAGE;

		bytes -= n;
		copy_portable((uint8_t *)dst + bytes, (const uint8_t *)src + bytes, n);
	}
}

static void copy_without_the_tail(void *dst, const void *src, size_t bytes)
{
	copy_portable(dst, src, bytes & ~(size_t)15);
}

static void copy_whole_lines(void *dst, const void *src, size_t bytes)
{
	copy_portable(dst, src, (bytes + 63) & ~(size_t)63);
}

static const struct way {
	const char *name;
	void (*copy)(void *dst, const void *src, size_t bytes);
} ways[] = {{"stream", copy_stream}, {"stream hashed", copy_hashed}, {"portable", copy_portable}};

/* ---- bytes ---- */

static uint8_t source[BYTES_MAX + 2 * GUARD] __attribute__((aligned(64)));
static uint8_t target[BYTES_MAX + 3 * GUARD] __attribute__((aligned(64)));
static uint8_t untouched[GUARD];

/* The target is as memcpy would have left it, and all around it as it was. */
static bool copies(const struct way *way, size_t to, size_t from, size_t bytes)
{
	uint8_t *dst = target + GUARD + to;
	const uint8_t *src = source + from;

	memset(dst - GUARD, GUARD_BYTE, bytes + 2 * GUARD);
	way->copy(dst, src, bytes);
	copy_fence();
	return !memcmp(dst, src, bytes) && !memcmp(dst - GUARD, untouched, GUARD) &&
	       !memcmp(dst + bytes, untouched, GUARD);
}

static void fill_source(void)
{
	struct prng p = {42};

	memset(untouched, GUARD_BYTE, GUARD);
	prng_fill(&p, source, sizeof(source));
	for (size_t i = 0; i < sizeof(source); i++)
		source[i] = source[i] == GUARD_BYTE ? 0 : source[i]; /* so that a byte that was copied too far shows */
}

TEST(small_copies_of_every_size_and_alignment)
{
	fill_source();
	for (size_t w = 0; w < COUNT(ways); w++)
		for (size_t bytes = 0; bytes <= 300; bytes++)
			for (size_t to = 0; to < 64; to++)
				for (size_t from = 0; from < 64; from += bytes % 8 == to % 8 ? 1 : 9) {
					STORY("%s, %zu bytes, from %zu to %zu mod 64", ways[w].name, bytes, from, to);
					CHECK(copies(&ways[w], to, from, bytes));
				}
}

TEST(large_copies_of_random_size_and_alignment)
{
	struct prng p = {7};

	fill_source();
	for (int round = 0; round < 600; round++) {
		size_t bytes = prng_below(&p, round % 3 ? BYTES_MAX + 1 : 8192), to = prng_below(&p, 64),
		       from = prng_below(&p, 64);

		for (size_t w = 0; w < COUNT(ways); w++) {
			STORY("%s, %zu bytes, from %zu to %zu mod 64", ways[w].name, bytes, from, to);
			CHECK(copies(&ways[w], to, from, bytes));
		}
	}
	for (size_t bytes = 2000; bytes <= 2100; bytes++) /* where hashing begins to go in pieces */
		CHECK(copies(&ways[1], bytes % 64, 0, bytes) && copies(&ways[1], 0, 1, 2 * bytes));
}

TEST(a_copy_that_misses_a_byte_or_writes_too_many_is_noticed)
{
	const struct way tail = {"no tail", copy_without_the_tail}, lines = {"whole lines", copy_whole_lines};

	fill_source();
	CHECK(copies(&tail, 0, 0, 160) && !copies(&tail, 0, 0, 161));
	CHECK(copies(&lines, 0, 0, 128) && !copies(&lines, 0, 0, 127) && !copies(&lines, 3, 5, 100));
}

/* A hash of what was there before it changed is no hash of what was copied. */
TEST(the_hash_is_that_of_the_bytes)
{
	fill_source();
	for (size_t bytes = 1; bytes < 9000; bytes += 97) {
		uint64_t before = copy_stream_hashed(target, source, bytes), after;

		STORY("%zu bytes", bytes);
		source[bytes - 1] ^= 1;
		after = copy_stream_hashed(target, source, bytes);
		CHECK(before != after);
		CHECK_EQ(after, checksum64(target, bytes));
		source[bytes - 1] ^= 1;
		CHECK_EQ(copy_stream_hashed(target, source, bytes), before);
	}
}

/* ---- the order of first touch ---- */

static struct {
	uint8_t *at; /* PAGES pages, closed until they are touched */
	unsigned page[PAGES + 1];
	volatile unsigned count;
} watched;

static void on_touch(int number, siginfo_t *info, void *machine)
{
	uintptr_t at = (uintptr_t)info->si_addr, begin = (uintptr_t)watched.at;

	(void)number;
	(void)machine;
	if (at < begin || at >= begin + PAGES * PAGE || watched.count == PAGES)
		_exit(3); /* a fault of another kind */
	watched.page[watched.count++] = (unsigned)((at - begin) / PAGE);
	mprotect((void *)(at & ~(uintptr_t)(PAGE - 1)), PAGE, PROT_READ);
}

/* Which pages of the source were touched, in their order, by a copy of all of them. */
static void watch(void (*copy)(void *dst, const void *src, size_t bytes), uint8_t *dst)
{
	struct sigaction sa = {.sa_sigaction = on_touch, .sa_flags = SA_SIGINFO | SA_NODEFER}, before;

	watched.count = 0;
	watched.at = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(watched.at != MAP_FAILED);
	memcpy(watched.at, source, PAGES * PAGE);
	CHECK_EQ(mprotect(watched.at, PAGES * PAGE, PROT_NONE), 0);
	CHECK_EQ(sigaction(SIGSEGV, &sa, &before), 0);
	copy(dst, watched.at, PAGES * PAGE);
	CHECK_EQ(sigaction(SIGSEGV, &before, NULL), 0);
	copy_fence();
	CHECK_MEM(dst, source, PAGES * PAGE);
	munmap(watched.at, PAGES * PAGE);
	CHECK_EQ(watched.count, PAGES);
}

static bool ascending(void)
{
	for (unsigned i = 0; i < PAGES; i++)
		if (watched.page[i] != i)
			return false;
	return true;
}

static void hashed_only(void *dst, const void *src, size_t bytes)
{
	copy_stream_hashed(dst, src, bytes); /* nothing else may touch the pages before it */
}

TEST(pages_are_touched_from_the_first_to_the_last)
{
	uint8_t *dst = mmap(NULL, (PAGES + 1) * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(dst != MAP_FAILED);
	fill_source();
	for (size_t shift = 0; shift <= 64; shift += 32) {
		STORY("target %zu behind a page", shift);
		watch(copy_stream, dst + shift);
		CHECK(ascending());
		watch(hashed_only, dst + shift);
		CHECK(ascending());
		watch(copy_portable, dst + shift);
		CHECK(ascending());
	}
	STORY("backwards");
	watch(copy_backwards, dst);
	CHECK(!ascending());
	for (unsigned i = 0; i < PAGES; i++)
		CHECK_EQ(watched.page[i], PAGES - 1 - i);
	munmap(dst, (PAGES + 1) * PAGE);
}

TEST_MAIN()
