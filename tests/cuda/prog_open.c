/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prog_open.c - opens the GPU of the libcuda.so.1 that the system finds, twice, and prints what came of it
 *
 *   prog_open [hide CALL | fail CALL RESULT]...    steers the fake, if that is what it finds
 */
#include "libshard/cuda/device.h"
#include "tests/cuda/fake.h"
#include "tests/test.h"

static int open_once(void)
{
	struct shard_error err = {.message = ""};
	struct cuda_device *d;
	int rc = cuda_open(&d, NULL, &err);

	printf("%d %d %s\n", rc, err.os_code, err.message);
	if (!rc)
		cuda_close(d);
	return rc;
}

int main(int argc, char **argv)
{
	const struct fake_control *fake = fake_find();
	int first;

	for (int i = 1; i < argc; i++) {
		if (!fake)
			return 3;
		if (!strcmp(argv[i], "hide") && i + 1 < argc)
			fake->hide(argv[++i]);
		else if (!strcmp(argv[i], "fail") && i + 2 < argc) {
			fake->fail(argv[i + 1], 1, atoi(argv[i + 2]));
			i += 2;
		} else
			return 2;
	}
	first = open_once();
	if (first != open_once() && first == SHARD_E_UNSUPPORTED)
		return 4; /* what is missing does not come back */
	if (fake && (fake->leaks()[0] || fake->sins(FAKE_BAD_VERSION)))
		return 5;
	return 0;
}
