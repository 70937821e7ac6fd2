/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_mapped.c - bytes that a mapped file lost are an answer, in any thread; other faults go to the
 * handler that was there
 */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/test.h"
#include "tools/shardpack/input/input.h"

#define PAGE  ((size_t)4096)
#define PAGES 8u

static sigjmp_buf elsewhere;
static volatile sig_atomic_t faults_elsewhere;

static void on_fault(int number)
{
	(void)number;
	faults_elsewhere++;
	siglongjmp(elsewhere, 1);
}

static int make_file(void)
{
	char path[4096];
	uint8_t page[PAGE];
	int fd;

	snprintf(path, sizeof(path), "%s/t_mapped.XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	fd = mkstemp(path);
	CHECK(fd >= 0);
	unlink(path);
	for (unsigned i = 0; i < PAGES; i++) {
		memset(page, (int)i + 1, sizeof(page));
		CHECK_EQ(write(fd, page, sizeof(page)), (ssize_t)sizeof(page));
	}
	return fd;
}

static const uint8_t *map;

static void *copy_many(void *context)
{
	uint8_t out[PAGE];

	(void)context;
	for (unsigned i = 0; i < 200; i++) {
		unsigned page = i % PAGES;

		memset(out, 0, sizeof(out));
		CHECK_EQ(mapped_copy(out, map + page * PAGE, PAGE), page < 2);
		if (page < 2)
			CHECK(out[0] == page + 1 && out[PAGE - 1] == page + 1);
	}
	return NULL;
}

TEST(bytes_that_are_gone_are_an_answer)
{
	struct sigaction mine = {.sa_handler = on_fault};
	pthread_t thread[4];
	uint8_t out[3 * PAGE];
	int fd = make_file();

	CHECK_EQ(sigaction(SIGBUS, &mine, NULL), 0);
	CHECK(!mapped_open(fd, 0));
	map = mapped_open(fd, PAGES * PAGE);
	CHECK(map);
	CHECK(mapped_copy(out, map + 5 * PAGE - 7, 14));
	CHECK(out[0] == 5 && out[13] == 6);
	CHECK_EQ(ftruncate(fd, 2 * PAGE), 0);
	/* The first part is there, and the copy as a whole is not. */
	CHECK(!mapped_copy(out, map + PAGE, 3 * PAGE));
	for (unsigned i = 0; i < 4; i++)
		CHECK_EQ(pthread_create(&thread[i], NULL, copy_many, NULL), 0);
	for (unsigned i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	CHECK_EQ(faults_elsewhere, 0);
	/* A fault outside of a copy is not ours. */
	if (!sigsetjmp(elsewhere, 1))
		CHECK(((const volatile uint8_t *)map)[3 * PAGE] == 0);
	CHECK_EQ(faults_elsewhere, 1);
	mapped_close(map, PAGES * PAGE);
	mapped_close(NULL, 7);
	close(fd);
}

TEST_MAIN()
