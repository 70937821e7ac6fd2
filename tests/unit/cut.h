/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cut.h - a map that was cut short, for the tests of the guard, and work that reads it
 */
#ifndef TESTS_UNIT_CUT_H
#define TESTS_UNIT_CUT_H

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>

#include "tests/child.h"
#include "tests/store/fixture.h"

#define PAGES 8
#define BYTES ((size_t)PAGES * 4096)

/* A mapped file of eight pages, cut to one while it is mapped. */
struct cut {
	struct path path;
	const uint8_t *map;
	uint64_t sum;
};

static inline void cut_make(struct cut *c)
{
	uint8_t data[BYTES];
	int fd;

	memset(data, 1, sizeof(data));
	file_make(tmp(&c->path, "cut.%d", (int)getpid()), data, sizeof(data));
	fd = open(c->path.text, O_RDWR);
	c->map = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, fd, 0);
	CHECK(fd >= 0 && c->map != MAP_FAILED);
	CHECK_EQ(ftruncate(fd, 4096), 0);
	close(fd);
}

static inline void cut_end(struct cut *c)
{
	munmap((void *)(uintptr_t)c->map, BYTES);
	unlink(c->path.text);
}

static inline void read_all(void *context)
{
	struct cut *c = context;

	c->sum = 0;
	for (size_t i = 0; i < BYTES; i += 512)
		c->sum += ((volatile const uint8_t *)c->map)[i];
}

static inline void read_first_page(void *context)
{
	struct cut *c = context;

	c->sum = 0;
	for (size_t i = 0; i < 4096; i += 512)
		c->sum += ((volatile const uint8_t *)c->map)[i];
}

/* ---- in a child: its wait status is returned ---- */

static inline int in_child(void (*work)(struct cut *c))
{
	struct cut c;
	int status;
	pid_t pid;

	cut_make(&c);
	if (child_begin(&pid, 0)) {
		work(&c);
		_exit(0);
	}
	status = child_end(pid);
	cut_end(&c);
	return status;
}

static inline void fresh(void)
{
	struct sigaction plain = {.sa_handler = SIG_DFL};

	/*
	 * guard_install() ran in the parent, so its handler is there, above a sanitizer's perhaps:
	 * begin with nothing
	 */
	sigaction(SIGBUS, &plain, NULL);
}

#endif
