/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_killed.c - what is left of a process that is killed in the middle of loading: nothing
 *
 * A process that leaves a file behind must be noticed.
 *
 * LDFLAGS: -Wl,--wrap=slot_fill
 */
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "tests/load/inject.h"

static const uint64_t sizes[] = {40, 1, 0, 62};
static struct wanted wanted;

/*
 * Does a process have anything in its hands that would outlive it: named memory, or a file below
 * `dir` that is no shard?  `dir` may be in memory.
 */
static bool holds_something(pid_t pid, const char *dir)
{
	char line[4096], name[64];
	bool found = false;
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%d/maps", (int)pid);
	f = fopen(name, "r");
	CHECK(f);
	while (fgets(line, sizeof(line), f))
		if (!strstr(line, "(deleted)")) /* that goes with the process */
			found = found || (strstr(line, "/dev/shm") && !strstr(line, dir)) || strstr(line, "/SYSV") ||
				(strstr(line, dir) && !strstr(line, ".shard") && !strstr(line, "/tests/load/"));
	fclose(f);
	return found;
}

static int reporting; /* the pipe on which a child says that it is at work */

static int work_until_killed(bool leaks)
{
	struct lent lent = {.count = 0};
	struct prng p = {4};
	struct shard_loader *l;
	struct path leak;
	int fd;

	wanted_seek(&wanted, 0, 0);
	l = loader_of(&wanted);
	consume(&wanted, l, &lent, &p, 5, 3);
	if (leaks) { /* the control: a file beside the shards, mapped */
		fd = open(tmp(&leak, "ring"), O_CREAT | O_RDWR, 0600);
		if (fd < 0 || ftruncate(fd, 4096) || mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED)
			return 1;
	}
	if (write(reporting, "x", 1) != 1)
		return 1;
	for (;;) {
		wanted_seek(&wanted, 0, 0);
		if (shard_loader_seek(l, 0, 0, NULL))
			return 1;
		consume(&wanted, l, &lent, &p, 10, 3);
	}
}

/* Did a process that was killed in the middle of loading leave anything? */
static bool killed_leaves_something(bool leaks)
{
	struct path dir;
	unsigned before = entries(tmp(&dir, "."), "");
	int ends[2], status;
	bool held;
	char byte;
	pid_t pid;

	CHECK_EQ(pipe(ends), 0);
	reporting = ends[1];
	fflush(stdout);
	pid = fork();
	if (!pid) {
		alarm(120);
		_exit(work_until_killed(leaks));
	}
	close(ends[1]);
	if (read(ends[0], &byte, 1) != 1) { /* it ended by itself: how? */
		waitpid(pid, &status, 0);
		CHECK_EQ(status, SIGKILL);
	}
	dir.text[strlen(dir.text) - 2] = 0; /* without the "/." */
	held = holds_something(pid, dir.text);
	usleep(2000);
	kill(pid, SIGKILL);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, SIGKILL);
	close(ends[0]);
	return held || entries(dir.text, "") != before;
}

TEST(a_killed_process_leaves_nothing)
{
	struct path leak;

	inject_nothing();
	inject.delay_us = 500;
	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	wanted_open(&wanted, (struct shard_loader_options){.batch_records = 7, .slot_count = 5, .thread_count = 3});
	for (int round = 0; round < 10; round++)
		CHECK(!killed_leaves_something(false));
	CHECK(killed_leaves_something(true));
	unlink(tmp(&leak, "ring"));
}

TEST_MAIN()
