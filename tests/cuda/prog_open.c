/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prog_open.c - opens the GPU of the libcuda.so.1 that the system finds, twice, and prints what
 * came of it
 *
 *   prog_open [hide CALL | fail CALL RESULT]... [doctor]
 *
 * The words steer the fake, if that is what it finds; the last one has the doctor of shardcat say what it finds
 * of GPUs, with its verdicts.
 */
#include "libshard/gpu/gpu.h"
#include "shard_gpu.h"
#include "tests/cuda/fake.h"
#include "tests/test.h"
#include "tools/shardcat/doctor/doctor.h"

static int open_once(void)
{
	struct shard_error err = {.message = ""};
	struct cuda_device *d;
	int rc = cuda_open(&d, SHARD_GPU_OF_STREAM, NULL, &err);

	printf("%d %d %s\n", rc, err.os_code, err.message);
	if (!rc)
		cuda_close(d);
	return rc;
}

static void on_finding(void *context, const struct finding *f)
{
	(void)context;
	if (!strcmp(f->name, "GPU driver") || !strcmp(f->name, "batch copies") || !strcmp(f->name, "page-locking"))
		printf("%u %s\n", f->verdict, f->found);
}

int main(int argc, char **argv)
{
	const struct fake_control *fake = fake_find();
	const struct doctor doctor = {.tell = on_finding};
	bool has_doctor = false;
	struct shard_error err;
	int first;

	for (int i = 1; i < argc; i++) {
		if (!fake)
			return 3;
		if (!strcmp(argv[i], "doctor"))
			has_doctor = true;
		else if (!strcmp(argv[i], "hide") && i + 1 < argc)
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
	if (has_doctor && doctor_look(&doctor, &err))
		return 6;
	if (fake && (fake->leaks()[0] || fake->sins(FAKE_BAD_VERSION)))
		return 5;
	return 0;
}
