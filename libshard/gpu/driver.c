/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver.c - NVIDIA's driver, found at run time, and the GPUs that it tells of
 *
 * One binary serves machines with and without a GPU.  libcuda.so.1 is opened by its name when it is
 * first needed, and each entry point is asked for in the version that api.h declares.  The library
 * is never closed again, because it has threads of its own.
 */
#include "libshard/gpu/gpu.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "libshard/base/error.h"

#define DRIVER	      "libcuda.so.1" /* only developers have libcuda.so */
#define GO_ON_WITHOUT "batches in host memory need no GPU"
#define TEXT_BYTES    768

typedef int (*find_11030)(const char *name, void **out, int version, uint64_t flags);
typedef int (*find_12000)(const char *name, void **out, int version, uint64_t flags, int *status);

/* The function that finds entry points: a driver has one of the two. */
struct finder {
	find_11030 old;
	find_12000 now;
};

static const struct {
	const char *name;
	int version;
	size_t at; /* in struct cuda_api */
	enum { OF_LOADERS, OF_THE_PROBE, OPTIONAL } use;
} calls[] = {
#define LOADERS(name_, version_, parameters_) {#name_, version_, offsetof(struct cuda_api, name_), OF_LOADERS},
#define PROBE(name_, version_, parameters_)   {#name_, version_, offsetof(struct cuda_api, name_), OF_THE_PROBE},
#define ANYONE(name_, version_, parameters_)  {#name_, version_, offsetof(struct cuda_api, name_), OPTIONAL},
	CUDA_CALLS(LOADERS) PROBE_CALLS(PROBE) OPTIONAL_CALLS(ANYONE)
#undef LOADERS
#undef PROBE
#undef ANYONE
};

/* Of this process.  They are written once, under `once`. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct cuda_api driver;
static bool is_loaded;
static struct shard_error driver_why; /* status 0: the driver is there */

/* ---- what it says ---- */

int cuda_refused(const struct cuda_api *api, int result, struct shard_error *err, const char *fmt, ...)
{
	const char *name = NULL, *text = NULL;
	char said[TEXT_BYTES];
	va_list args;

	va_start(args, fmt);
	vsnprintf(said, sizeof(said), fmt, args);
	va_end(args);
	if (api->cuGetErrorName(result, &name) || !name)
		error_set(err, SHARD_E_DEVICE, "%s: error %d of the GPU driver, which has no name for it", said,
			  result);
	else if (api->cuGetErrorString(result, &text) || !text)
		error_set(err, SHARD_E_DEVICE, "%s: %s", said, name);
	else
		error_set(err, SHARD_E_DEVICE, "%s: %s (%s)", said, name, text);
	if (err)
		err->os_code = result;
	return SHARD_E_DEVICE;
}

/* ---- loading ---- */

/* Add a name to a list.  A list that is too long is cut. */
static void add_name(char *list, size_t bytes, size_t which)
{
	size_t used = strlen(list);

	snprintf(list + used, bytes - used, "%s%s (CUDA %d.%d)", used ? ", " : "", calls[which].name,
		 calls[which].version / 1000, calls[which].version % 1000 / 10);
}

static void find_all(const struct finder *f)
{
	char missing[TEXT_BYTES] = "";

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		int status = CU_FIND_SUCCESS, result;
		void *p = NULL;

		result = f->now ? f->now(calls[i].name, &p, calls[i].version, CU_FIND_LEGACY_STREAM, &status)
				: f->old(calls[i].name, &p, calls[i].version, CU_FIND_LEGACY_STREAM);
		if (!result && status == CU_FIND_SUCCESS && p)
			memcpy((uint8_t *)&driver + calls[i].at, &p, sizeof(p));
		else if (calls[i].use == OF_LOADERS)
			add_name(missing, sizeof(missing), i);
		else if (calls[i].use == OF_THE_PROBE)
			add_name(driver.lacks, sizeof(driver.lacks), i);
	}
	if (missing[0])
		error_set(&driver_why, SHARD_E_UNSUPPORTED,
			  DRIVER " does not have %s; update NVIDIA's driver; " GO_ON_WITHOUT, missing);
}

static void start(void)
{
	int result = driver.cuInit(0);

	if (!result)
		return;
	cuda_refused(&driver, result, &driver_why,
		     result == CU_NOT_INITIALIZED
			     ? "cuInit (was the driver used before this process was forked? use it only after the fork)"
			     : "cuInit");
	if (result == CU_NO_DEVICE || result == CU_STUB_LIBRARY)
		driver_why.status = SHARD_E_UNSUPPORTED;
}

static void load(void)
{
	void *library = dlopen(DRIVER, RTLD_NOW | RTLD_LOCAL), *now, *old;
	struct finder f;
	const char *why;

	driver.pid = getpid();
	if (!library) {
		why = dlerror();
		error_set(&driver_why, SHARD_E_UNSUPPORTED,
			  "no GPU driver: %s; install NVIDIA's driver, or in a container pass in the host's driver "
			  "libraries; " GO_ON_WITHOUT,
			  why ? why : DRIVER " cannot be opened");
		return;
	}
	is_loaded = true;
	/* Pointers are copied, because C cannot convert a data pointer to a function pointer. */
	now = dlsym(library, "cuGetProcAddress_v2");
	old = dlsym(library, "cuGetProcAddress");
	memcpy(&f.now, &now, sizeof(now));
	memcpy(&f.old, &old, sizeof(old));
	if (!f.now && !f.old) {
		error_set(
			&driver_why, SHARD_E_UNSUPPORTED,
			DRIVER
			" has no cuGetProcAddress: it is older than CUDA 11.3; update NVIDIA's driver; " GO_ON_WITHOUT);
		return;
	}
	find_all(&f);
	if (!driver_why.status)
		start();
}

int cuda_api_get(const struct cuda_api **out, struct shard_error *err)
{
	pthread_once(&once, load);
	if (driver_why.status) {
		if (err)
			*err = driver_why;
		return driver_why.status;
	}
	if (driver.pid != getpid())
		return error_set(err, SHARD_E_ARGUMENT,
				 "the GPU driver was started by process %ld and does not work in its children; fork "
				 "before the first use of the GPU, or start a new program",
				 (long)driver.pid);
	*out = &driver;
	return SHARD_OK;
}

/* ---- contexts ---- */

int cuda_context_of(const struct cuda_api *api, void *stream, struct cu_context **out)
{
	return cuda_is_special(stream) ? api->cuCtxGetCurrent(out) : api->cuStreamGetCtx(stream, out);
}

int cuda_device_of(const struct cuda_api *api, struct cu_context *context, int *device)
{
	struct cu_context *popped;
	int result = api->cuCtxPushCurrent(context), popping;

	if (result)
		return result;
	result = api->cuCtxGetDevice(device);
	popping = api->cuCtxPopCurrent(&popped);
	return result ? result : popping;
}

/* ---- which GPUs there are, without making a context ---- */

int cuda_probe(struct cuda_driver *out, struct shard_error *err)
{
	const struct cuda_api *api;
	int rc = cuda_api_get(&api, err), version = 0, count = 0, result;

	*out = (struct cuda_driver){.is_loaded = is_loaded, .lacks = rc ? "" : api->lacks};
	if (rc)
		return rc;
	out->has_batches = api->cuMemcpyBatchAsync;
	if (api->lacks[0])
		return SHARD_OK;
	result = api->cuDriverGetVersion(&version);
	if (result)
		return cuda_refused(api, result, err, "cuDriverGetVersion");
	result = api->cuDeviceGetCount(&count);
	if (result)
		return cuda_refused(api, result, err, "cuDeviceGetCount");
	out->major = (uint32_t)version / 1000;
	out->minor = (uint32_t)version % 1000 / 10;
	out->device_count = (uint32_t)count;
	return SHARD_OK;
}

int cuda_probe_gpu(uint32_t ordinal, struct cuda_gpu *out, struct shard_error *err)
{
	const struct cuda_api *api;
	struct cuda_gpu gpu = {.name = ""};
	int rc = cuda_api_get(&api, err), device, major = 0, minor = 0, result;
	size_t bytes = 0;

	if (rc)
		return rc;
	result = api->cuDeviceGet(&device, (int)ordinal);
	if (!result)
		result = api->cuDeviceGetName(gpu.name, sizeof(gpu.name), device);
	if (!result)
		result = api->cuDeviceGetPCIBusId(gpu.bus_id, sizeof(gpu.bus_id), device);
	if (!result)
		result = api->cuDeviceTotalMem(&bytes, device);
	if (!result)
		result = api->cuDeviceGetAttribute(&major, CU_DEVICE_CAPABILITY_MAJOR, device);
	if (!result)
		result = api->cuDeviceGetAttribute(&minor, CU_DEVICE_CAPABILITY_MINOR, device);
	if (result)
		return cuda_refused(api, result, err, "reading the properties of GPU %u", ordinal);
	gpu.memory_bytes = bytes;
	gpu.capability_major = (uint32_t)major;
	gpu.capability_minor = (uint32_t)minor;
	*out = gpu;
	return SHARD_OK;
}

int cuda_probe_stream(void *stream, uint32_t *ordinal, struct shard_error *err)
{
	const struct cuda_api *api;
	struct cu_context *context = NULL;
	int rc = cuda_api_get(&api, err), device, other, result;

	if (rc)
		return rc;
	result = cuda_context_of(api, stream, &context);
	if (!result)
		result = context ? cuda_device_of(api, context, &device) : api->cuDeviceGet(&device, 0);
	for (*ordinal = 0; !result; ++*ordinal) { /* the driver has no call for this direction */
		result = api->cuDeviceGet(&other, (int)*ordinal);
		if (!result && other == device)
			return SHARD_OK;
	}
	return cuda_refused(api, result, err, "finding the GPU of stream %p", stream);
}
