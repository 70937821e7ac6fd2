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

/* No sin since the last reset, nor anything that lives. */
static inline void trainer_check_clean(void)
{
	static const char *const names[FAKE_SINS] = {"copy from memory that is not page-locked",
						     "wrong context",
						     "freed in use",
						     "bad handle",
						     "bad version",
						     "driver called from a host function",
						     "broke a capture"};

	for (int sin = 0; sin < FAKE_SINS; sin++)
		if (fake->sins(sin))
			test_fail(__FILE__, __LINE__, "%s, %" PRIu64 " times", names[sin], fake->sins(sin));
	CHECK_STR(fake->leaks(), "");
}

#endif
