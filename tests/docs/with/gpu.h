/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu.h - a trainer on a GPU, around parts of programs on docs/GPU.md; the tests' driver is the GPU
 */
#include <dlfcn.h>
#include <shard_gpu.h>
#include <shard_transform.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t seen;

static void die(const char *why)
{
	fprintf(stderr, "%s\n", why);
	exit(1);
}

static void step(const void *images, const void *labels, uint32_t count, void *stream)
{
	(void)stream;
	seen += images && labels ? count : 0;
}

/* A function of the driver, which this program does not link. */
static void *driver(const char *name)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW), *call = NULL;
	int (*find)(const char *, void **, int, uint64_t, int *) = NULL, status;

	if (library)
		*(void **)&find = dlsym(library, "cuGetProcAddress_v2");
	if (!find || find(name, &call, 12000, 1, &status) || !call)
		die(name);
	return call;
}

/* The first device's own context, made current, as the runtime API does it. */
static void use_first_device(void)
{
	int (*init)(unsigned), (*get)(int *, int), (*retain)(void **, int), (*push)(void *), device;
	void *context;

	*(void **)&init = driver("cuInit");
	*(void **)&get = driver("cuDeviceGet");
	*(void **)&retain = driver("cuDevicePrimaryCtxRetain");
	*(void **)&push = driver("cuCtxPushCurrent");
	if (init(0) || get(&device, 0) || retain(&context, device) || push(context))
		die("no device");
}

static void *device_memory(uint64_t bytes)
{
	int (*alloc)(uint64_t *, size_t);
	uint64_t memory;

	*(void **)&alloc = driver("cuMemAlloc");
	if (alloc(&memory, bytes))
		die("no memory on the device");
	return (void *)(uintptr_t)memory;
}

static struct shard_dataset *open_dataset(void)
{
	struct shard_dataset *ds;
	struct shard_error err;

	use_first_device();
	if (shard_dataset_open(&ds, "ds/train", NULL, &err))
		die(err.message);
	return ds;
}
