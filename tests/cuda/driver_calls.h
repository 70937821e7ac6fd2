/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver_calls.h - the driver's functions by their names, for a test that plays the program around
 * the library
 */
#ifndef TESTS_CUDA_DRIVER_CALLS_H
#define TESTS_CUDA_DRIVER_CALLS_H

#include <dlfcn.h>
#include <string.h>

#include "tests/cuda/fake_calls.h"
#include "tests/test.h"

#define CU_OK(call_) CHECK_EQ((call_), 0)

static struct {
#define DRIVER_POINTER(name_, since_, until_, parameters_) int(*name_) parameters_;
	FAKE_CALLS(DRIVER_POINTER)
#undef DRIVER_POINTER
} cu;

/*
 * Find them as a runtime API would.  Returns NULL, or why there is no driver.  Those that came after
 * CUDA 12.0 may be missing, and are NULL then.
 */
static inline const char *driver_find(void)
{
	int (*find)(const char *name, void **out, int version, uint64_t flags, int *status);
	void *library = dlopen("libcuda.so.1", RTLD_NOW), *p = library ? dlsym(library, "cuGetProcAddress_v2") : NULL;
	int status;

	if (!p)
		return library ? "libcuda.so.1 is older than CUDA 12.0" : dlerror();
	memcpy(&find, &p, sizeof(p));
#define DRIVER_FIND(name_, since_, until_, parameters_)       \
	if (find(#name_, &p, since_, 1, &status) || status) { \
		CHECK(since_ > 12000);                        \
		p = NULL;                                     \
	}                                                     \
	memcpy(&cu.name_, &p, sizeof(p));
	FAKE_CALLS(DRIVER_FIND)
#undef DRIVER_FIND
	return NULL;
}

#endif
