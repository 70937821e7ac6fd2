/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trainer.h - what a test needs that plays the program around the library: the driver's functions
 * by their names
 *
 * trainer_open() finds them as a runtime API would, so the fake may be steered (fake->...) and used
 * (cu.cuStreamCreate) by one program that knows nothing of libshard's own way to it.
 */
#ifndef TESTS_CUDA_TRAINER_H
#define TESTS_CUDA_TRAINER_H

#include <sys/mman.h>

#include "tests/cuda/driver_calls.h"
#include "tests/cuda/fake.h"

#define DEFAULT_STREAM NULL

static const struct fake_control *fake;

/* The driver is found and started; nothing that a test before this one left behind is there. */
static inline void trainer_open(void)
{
	fake = fake_find();
	CHECK(fake);
	CHECK(!driver_find());
	fake->hold(0);
	fake->fail(NULL, 0, 0);
	fake->break_down(0);
	fake->seed(1, 0);
	fake->settle();
	CU_OK(cu.cuInit(0));
	fake->reset();
}

/* No sin since the last reset. */
static inline void trainer_check_sins(void)
{
	static const char *const names[FAKE_SINS] = {"copy from memory that is not page-locked",
						     "wrong context",
						     "freed in use",
						     "bad handle",
						     "bad version",
						     "driver called from a host function",
						     "broke a capture",
						     "page-locked a private map of a file",
						     "unmapped while it was page-locked"};

	for (int sin = 0; sin < FAKE_SINS; sin++)
		if (fake->sins(sin))
			test_fail(__FILE__, __LINE__, "%s, %" PRIu64 " times", names[sin], fake->sins(sin));
}

/* No sin, nor anything that lives. */
static inline void trainer_check_clean(void)
{
	trainer_check_sins();
	CHECK_STR(fake->leaks(), "");
}

/* Map a new file below $TMPDIR.  Its bytes differ; mmap() gets `protection` and `flags`. */
static inline uint8_t *trainer_map_file(size_t bytes, int protection, int flags)
{
	uint8_t *pattern = malloc(bytes), *map;
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/map.XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	fd = mkstemp(path);
	CHECK(fd >= 0);
	for (size_t i = 0; i < bytes; i++)
		pattern[i] = (uint8_t)(i * 7 + i / 251);
	CHECK_EQ(write(fd, pattern, bytes), bytes);
	map = mmap(NULL, bytes, protection, flags, fd, 0);
	CHECK(map != MAP_FAILED);
	free(pattern);
	close(fd);
	return map;
}

#endif
