/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test.h - what a test program is made of
 *
 *   TEST(slice_refuses_overflow) { STORY("offset %d", 7); CHECK_EQ(slice(b, 7), SHARD_E_CORRUPT); }
 *   TEST_MAIN()
 *
 * Tests register themselves and run in the order they are written.  A failed CHECK prints its place
 * and what it found, and ends that one test from any depth of calls; the next test still runs.  A
 * program takes an optional name filter, works from the root of the tree, writes only below
 * $TMPDIR, and exits 0 (all passed), 1 (one failed) or 77 (none failed, one skipped; the last line
 * printed says how many passed, and the reason).  It declares in its opening
 * comment what it needs: a line `LDFLAGS: ...`, `LDLIBS: ...` or `TIMEOUT: seconds` of its own.
 */
#ifndef TESTS_TEST_H
#define TESTS_TEST_H

#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct test {
	const char *name;
	void (*run)(void);
	struct test *next;
};

static struct test *test_first, **test_end = &test_first;
static const char *test_name = "(outside a test)";
static char test_story[256];	   /* says which row of a table is at work; empty for none */
static char test_skip_reason[256]; /* the last SKIP's, after the name of its test */
static bool test_skipped;	   /* the running test */
static bool test_failed;	   /* of the running test; written under test_lock */
static pthread_mutex_t test_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_t test_thread; /* the one that may jump back to the runner */
static pid_t test_pid;	      /* a forked child must not run the remaining tests */
static jmp_buf test_out;

static inline void test_add(struct test *t)
{
	*test_end = t;
	test_end = &t->next;
}

/*
 * Leave the running test.  Only its own thread can jump out of it; other threads and children just
 * end.
 */
__attribute__((noreturn)) static inline void test_leave(void)
{
	if (getpid() != test_pid)
		_exit(1);
	if (pthread_equal(pthread_self(), test_thread))
		longjmp(test_out, 1);
	pthread_exit(NULL);
}

__attribute__((noreturn, format(printf, 1, 2))) static inline void test_skip(const char *fmt, ...)
{
	int bytes = snprintf(test_skip_reason, sizeof(test_skip_reason), "%s: ", test_name);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(test_skip_reason + bytes, sizeof(test_skip_reason) - (size_t)bytes, fmt, ap);
	va_end(ap);
	test_skipped = true;
	test_leave();
}

__attribute__((noreturn, format(printf, 3, 4))) static inline void test_fail(const char *file, int line,
									     const char *fmt, ...)
{
	va_list ap;

	pthread_mutex_lock(&test_lock);
	test_failed = true;
	printf("%s:%d: %s%s%s: ", file, line, test_name, test_story[0] ? ": " : "", test_story);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	pthread_mutex_unlock(&test_lock);
	test_leave();
}

/* 128 bits hold every integer of either sign, so -1 never equals UINT64_MAX by accident. */
static inline const char *test_int(char *buf, size_t bytes, __int128 v)
{
	if (v < 0)
		snprintf(buf, bytes, "%" PRId64, (int64_t)v);
	else
		snprintf(buf, bytes, "%" PRIu64 " (0x%" PRIx64 ")", (uint64_t)v, (uint64_t)v);
	return buf;
}

static inline void test_eq(const char *file, int line, const char *what, __int128 a, __int128 b)
{
	char l[64], r[64];

	if (a != b)
		test_fail(file, line, "%s: %s is not %s", what, test_int(l, sizeof(l), a), test_int(r, sizeof(r), b));
}

static inline void test_str(const char *file, int line, const char *what, const char *a, const char *b)
{
	if (a != b && (!a || !b || strcmp(a, b)))
		test_fail(file, line, "%s:\n\t\"%s\" is not\n\t\"%s\"", what, a ? a : "(null)", b ? b : "(null)");
}

static inline void test_mem(const char *file, int line, const char *what, const void *a, const void *b, size_t n)
{
	const uint8_t *l = a, *r = b;

	if (!n || !memcmp(a, b, n))
		return; /* in one go: a sanitizer looks at each byte of the loop below */
	for (size_t i = 0; i < n; i++)
		if (l[i] != r[i])
			test_fail(file, line, "%s: byte %zu of %zu: 0x%02x is not 0x%02x", what, i, n, l[i], r[i]);
}

#define TEST(name_)                                                     \
	static void case_##name_(void);                                 \
	static struct test node_##name_ = {#name_, case_##name_, NULL}; \
	__attribute__((constructor)) static void add_##name_(void)      \
	{                                                               \
		test_add(&node_##name_);                                \
	}                                                               \
	static void case_##name_(void)

/* Names the row of a table; failures print it until the next STORY or the end of the test. */
#define STORY(...)	   ((void)snprintf(test_story, sizeof(test_story), __VA_ARGS__))
#define CHECK(cond)	   ((cond) ? (void)0 : test_fail(__FILE__, __LINE__, "%s", #cond))
#define CHECK_EQ(a, b)	   test_eq(__FILE__, __LINE__, #a " == " #b, (a), (b))
#define CHECK_STR(a, b)	   test_str(__FILE__, __LINE__, #a " == " #b, (a), (b))
#define CHECK_MEM(a, b, n) test_mem(__FILE__, __LINE__, #a " == " #b, (a), (b), (n))
#define SKIP(...)	   test_skip(__VA_ARGS__)

/* By itself, so that longjmp finds no local variable of the runner in a register. */
__attribute__((noinline)) static bool test_run(const struct test *t)
{
	test_name = t->name;
	test_story[0] = 0;
	test_failed = false;
	if (!setjmp(test_out))
		t->run();
	return !test_failed;
}

static inline int test_main(int argc, char **argv)
{
	unsigned count = 0, failed = 0, skipped = 0;

	setvbuf(stdout, NULL, _IOLBF, 0); /* a crash must not swallow what was said before it */
	test_thread = pthread_self();
	test_pid = getpid();
	for (const struct test *t = test_first; t; t = t->next) {
		if (argc > 1 && !strstr(t->name, argv[1]))
			continue;
		count++;
		test_skipped = false;
		failed += !test_run(t);
		skipped += test_skipped;
	}
	if (failed)
		printf("%u of %u tests failed\n", failed, count);
	else if (skipped)
		printf("%u of %u tests passed; skipped: %s\n", count - skipped, count, test_skip_reason);
	else
		printf("%u tests\n", count);
	if (!count)
		printf("no test is called like \"%s\"\n", argc > 1 ? argv[1] : "");
	if (failed || !count)
		return 1;
	return skipped ? 77 : 0;
}

#define TEST_MAIN()                           \
	int main(int argc, char **argv)       \
	{                                     \
		return test_main(argc, argv); \
	}

#endif
