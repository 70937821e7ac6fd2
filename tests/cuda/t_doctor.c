/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_doctor.c - the doctor of shardcat on the fake driver: what it says of GPUs, and of what the
 * driver refuses
 *
 * Machines of other kinds are tests/cli/cat_doctor_machine.sh.
 *
 * CPUID cannot be made to answer otherwise, so what asks it is wrapped.
 *
 * LDFLAGS: -Wl,--disable-new-dtags,-rpath,$ORIGIN/../cuda/full
 * LDFLAGS: -Wl,--wrap=cpu_has_avx2,--wrap=cpu_has_avx512f,--wrap=cpu_has_sha
 */
#include <sys/stat.h>

#include "libshard/base/cpu.h"
#include "tests/child.h"
#include "tests/cuda/trainer.h"
#include "tools/shardcat/doctor/doctor.h"

static struct shard_error err;

/* What was told, as lines: "name|verdict|found|so|advice". */
static char told[16384];

static void on_finding(void *context, const struct finding *f)
{
	size_t used = strlen(told);

	CHECK(context == told);
	snprintf(told + used, sizeof(told) - used, "%s|%u|%s|%s|%s\n", f->name, f->verdict, f->found, f->so, f->advice);
}

static int look(const char *path)
{
	const struct doctor d = {.path = path, .context = told, .tell = on_finding};

	told[0] = 0;
	return doctor_look(&d, &err);
}

static void check_told(const char *line)
{
	char whole[1024];

	snprintf(whole, sizeof(whole), "\n%s\n", line);
	if (!strstr(told, whole))
		test_fail(__FILE__, __LINE__, "nobody said\n  %s\nbut\n%s", line, told);
}

/* The first test, because its child must start the driver. */
TEST(a_driver_without_batches)
{
	pid_t pid;

	if (child_begin(&pid, 60)) {
		fake = fake_find();
		fake->hide("cuMemcpyBatchAsync");
		CHECK_EQ(look(NULL), 0);
		check_told("GPU driver|0|for CUDA 12.9, with all functions that libshard needs; 2 devices|batches can "
			   "be delivered on a GPU|");
		check_told("batch copies|1|the driver has no call for many copies, which CUDA 12.8 brought|copies of "
			   "many records to a GPU take more CPU time, and longer|update NVIDIA's driver");
		_exit(0);
	}
	CHECK_EQ(child_end(pid), 0);
}

TEST(a_driver_that_is_there)
{
	trainer_open();
	CHECK_EQ(look(NULL), 0);
	check_told("GPU driver|0|for CUDA 12.9, with all functions that libshard needs; 2 devices|batches can be "
		   "delivered on a GPU|");
	check_told("batch copies|0|the driver takes many copies in one call||");
	check_told("GPU 1|0|Fake GPU 1, 24.0 GiB, compute capability 8.6; the speed of its PCIe link is unknown||");
	CHECK(strstr(told, "\npage-locking|0|works; 64.0 MiB took "));
	CHECK(strstr(told, " ms|the GPU reads batches directly, without another copy|\n"));
	CHECK_STR(fake->leaks(), ""); /* not even the context that it was tried in */
	CHECK_EQ(fake->count("cuMemHostRegister"), 1);
	CHECK_EQ(fake->count("cuMemHostUnregister"), 1);
	for (int sin = 0; sin < FAKE_SINS; sin++)
		CHECK_EQ(fake->sins(sin), 0);
}

/* A file, a folder with a shard, a folder without one, and a file without bytes. */
TEST(a_file_is_page_locked_where_it_lies)
{
	static const struct {
		const char *name;
		int result; /* of the driver */
	} rows[] = {{"x.shard", 0}, {"", 0}, {"x.shard", 801}, {"empty", 0}, {"no bytes", 0}};
	char folder[3000], file[3100], path[3200];
	FILE *f;

	snprintf(folder, sizeof(folder), "%s/doctor", getenv("TMPDIR"));
	snprintf(file, sizeof(file), "%s/x.shard", folder);
	snprintf(path, sizeof(path), "%s/empty", folder);
	CHECK(!mkdir(folder, 0700) && !mkdir(path, 0700));
	f = fopen(file, "w");
	CHECK(f && !fseek(f, 10000, SEEK_SET) && fputs("the end", f) >= 0 && !fclose(f));
	snprintf(path, sizeof(path), "%s/no bytes", folder);
	f = fopen(path, "w");
	CHECK(f && !fclose(f));
	trainer_open();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		bool has_file = strcmp(rows[i].name, "empty") && strcmp(rows[i].name, "no bytes");

		STORY("%s, the driver says %d", rows[i].name, rows[i].result);
		snprintf(path, sizeof(path), "%s/%s", folder, rows[i].name);
		fake->reset();
		if (rows[i].result)
			fake->fail("cuMemHostRegister", 2, rows[i].result);
		CHECK_EQ(look(path), 0);
		CHECK_EQ(fake->count("cuMemHostRegister"), has_file ? 2 : 1);
		CHECK_EQ(strstr(told, "\npage cache|") != NULL, has_file);
		if (has_file && !rows[i].result)
			CHECK(strstr(told, "\npage cache|0|can be page-locked; 9.8 KiB of a file took "));
		if (rows[i].result)
			check_told("page cache|1|cuMemHostRegister of 0.0 MiB of a file, read-only: "
				   "CUDA_ERROR_NOT_SUPPORTED|threads copy each record to the "
				   "slots of the loader, from where the GPU reads it|keep the dataset on a local disk, "
				   "such as ext4, or in tmpfs");
		trainer_check_clean();
	}
}

TEST(page_locking_that_is_refused_says_why)
{
	trainer_open();
	fake->fail("cuMemHostRegister", 1, 2);
	CHECK_EQ(look(NULL), 0);
	check_told("page-locking|1|cuMemHostRegister of 64.0 MiB: CUDA_ERROR_OUT_OF_MEMORY (out of memory)|the driver "
		   "copies each batch once more "
		   "on its way to the GPU|free memory, and raise the container's memory limit if the ring exceeds it");
	fake->fail("cuDevicePrimaryCtxRetain", 1, 2);
	CHECK_EQ(look(NULL), 0);
	check_told("page-locking|1|retaining the primary context of GPU 0: CUDA_ERROR_OUT_OF_MEMORY (out of "
		   "memory)|the driver copies each batch once more "
		   "on its way to the GPU|free memory, and raise the container's memory limit if the ring exceeds it");
	CHECK_STR(fake->leaks(), "");
}

TEST(whatever_else_the_driver_refuses_is_told_and_the_rest_goes_on)
{
	static const struct {
		const char *call, *line;
	} rows[] = {
		{"cuDriverGetVersion", "GPU driver|2|cuDriverGetVersion: CUDA_ERROR_INVALID_VALUE|no batches can be "
				       "delivered on a GPU; in host memory everything works|"},
		{"cuDeviceGetCount", "GPU driver|2|cuDeviceGetCount: CUDA_ERROR_INVALID_VALUE|no batches can be "
				     "delivered on a GPU; in host memory everything works|"},
		{"cuDeviceGet", "GPU 0|3|reading the properties of GPU 0: CUDA_ERROR_INVALID_VALUE||"},
		{"cuDeviceGetName", "GPU 0|3|reading the properties of GPU 0: CUDA_ERROR_INVALID_VALUE||"},
		{"cuDeviceGetPCIBusId", "GPU 0|3|reading the properties of GPU 0: CUDA_ERROR_INVALID_VALUE||"},
		{"cuDeviceTotalMem", "GPU 0|3|reading the properties of GPU 0: CUDA_ERROR_INVALID_VALUE||"},
		{"cuDeviceGetAttribute", "GPU 0|3|reading the properties of GPU 0: CUDA_ERROR_INVALID_VALUE||"},
	};

	trainer_open();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		STORY("%s", rows[i].call);
		fake->fail(rows[i].call, 1, 1);
		CHECK_EQ(look(NULL), 0);
		check_told(rows[i].line);
		CHECK((strstr(told, "\nGPU 1|0|") != NULL) == (i > 1));
	}
	CHECK_STR(fake->leaks(), "");
}

#define AVX2   1u
#define AVX512 2u
#define SHA    4u
#define REAL   8u
static unsigned cpu = REAL;

bool __real_cpu_has_avx2(void);
bool __wrap_cpu_has_avx2(void);
bool __real_cpu_has_avx512f(void);
bool __wrap_cpu_has_avx512f(void);
bool __real_cpu_has_sha(void);
bool __wrap_cpu_has_sha(void);

bool __wrap_cpu_has_avx2(void)
{
	return cpu == REAL ? __real_cpu_has_avx2() : cpu & AVX2;
}

bool __wrap_cpu_has_avx512f(void)
{
	return cpu == REAL ? __real_cpu_has_avx512f() : cpu & AVX512;
}

bool __wrap_cpu_has_sha(void)
{
	return cpu == REAL ? __real_cpu_has_sha() : cpu & SHA;
}

TEST(what_a_cpu_has)
{
#if defined(__x86_64__)
	static const char slower[] = "|hashing and shuffling use portable code, which is slower|in a virtual machine, "
				     "pass the host's CPU model through\n";
	static const struct {
		unsigned cpu;
		uint32_t verdict;
		const char *features;
	} rows[] = {
		{AVX2 | AVX512 | SHA, VERDICT_GOOD, "; AVX2, AVX-512, SHA"},
		{AVX2, VERDICT_GOOD, "; AVX2"},
		{SHA, VERDICT_SLOWER, "; SHA"},
		{0, VERDICT_SLOWER, ""},
	};
	char end[256];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		STORY("row %zu", i);
		cpu = rows[i].cpu;
		CHECK_EQ(look(NULL), 0);
		cpu = REAL;
		snprintf(end, sizeof(end), "%s%s", rows[i].features, rows[i].verdict ? slower : "||\n");
		CHECK(!strncmp(told, "CPUs|", 5));
		CHECK_EQ((uint32_t)(told[5] - '0'), rows[i].verdict);
		CHECK(strstr(told, end) && strchr(told, '\n') == strstr(told, end) + strlen(end) - 1);
		CHECK(rows[i].features[0] || strchr(told, ';') > strchr(told, '\n'));
	}
#endif
}

TEST(nowhere_to_look)
{
	CHECK_EQ(look("no/such/folder"), SHARD_E_IO);
	CHECK_STR(err.message, "no/such/folder: cannot be looked at: No such file or directory");
	CHECK_EQ(look("/dev/null"), SHARD_E_ARGUMENT);
	CHECK_STR(err.message, "/dev/null: must be a folder or a file");
	CHECK_EQ(look("format/golden/dataset"), 0);
	CHECK(strstr(told, "\ndisk|") && strstr(told, "\ndataset|0|56.0 KiB in 2 shards; "));
}

TEST(what_lanes_carry)
{
	static const struct {
		double gt_per_s;
		uint64_t width;
		double want;
	} rows[] = {{2.5, 1, 0.25}, {5, 16, 8}, {8, 16, 15.754}, {16, 16, 31.508}, {32, 16, 63.015}, {64, 16, 121}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		double got = link_gb_per_s(rows[i].gt_per_s, rows[i].width);

		STORY("%.1f GT/s x%" PRIu64, rows[i].gt_per_s, rows[i].width);
		CHECK(got > rows[i].want * 0.9999 && got < rows[i].want * 1.0001);
	}
}

TEST_MAIN()
