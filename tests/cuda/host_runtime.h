/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_runtime.h - as much of the runtime API as examples/cuda use, without a GPU
 *
 * Included as cuda_runtime.h.  Streams, events, copies and page-locks are those of the fake driver
 * (fake.h), which is where libshard finds its own, so what an example forgets to wait for comes
 * late here as it would there.  A kernel is compiled for the host; its threads run one after the
 * other when its turn comes on its stream.  Such kernels know no __shared__ memory and no
 * __syncthreads().  Shows that an example does what it says, and nothing about its speed.
 */
#ifndef TESTS_CUDA_HOST_RUNTIME_H
#define TESTS_CUDA_HOST_RUNTIME_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/cuda/fake.h"

typedef int cudaError_t;
typedef struct CUstream_st *cudaStream_t;
typedef struct host_event {
	void *event;
	double ms; /* when its turn came */
} * cudaEvent_t;
enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2, cudaMemcpyDeviceToDevice = 3 };
enum {
	cudaSuccess = 0,
	cudaErrorNotReady = 600,
	cudaHostRegisterDefault = 0,
	cudaStreamNonBlocking = 1,
	cudaDeviceScheduleBlockingSync = 4
};

/*
 * A function of the driver.  The thread's context is the primary one of the first device, as the
 * runtime API has it.
 */
static inline void *host_driver(const char *name)
{
	static void *library;
	static __thread void *context;
	int (*find)(const char *, void **, int, uint64_t, int *), (*act)(void *), (*init)(unsigned);
	int (*get)(int *, int), (*retain)(void **, int), status, device;
	void *call = NULL;

	if (!library)
		library = dlopen("libcuda.so.1", RTLD_NOW);
	if (!library)
		abort();
	*(void **)&find = dlsym(library, "cuGetProcAddress_v2");
	if (!context) {
		find("cuInit", (void **)&init, 12000, 0, &status);
		find("cuDeviceGet", (void **)&get, 12000, 0, &status);
		find("cuDevicePrimaryCtxRetain", (void **)&retain, 12000, 0, &status);
		find("cuCtxPushCurrent", (void **)&act, 12000, 0, &status);
		if (init(0) || get(&device, 0) || retain(&context, device) || act(context))
			abort();
	}
	if (find(name, &call, 12000, 0, &status) || !call) {
		fprintf(stderr, "the fake driver has no %s\n", name);
		abort();
	}
	return call;
}
#define HOST_CALL(name, parameters, ...) (((int(*) parameters)host_driver(name))(__VA_ARGS__))

/* Where device memory lies. */
static inline void *host_at(const void *device)
{
	static const struct fake_control *fake;
	void *at;

	if (!fake)
		fake = fake_find();
	at = fake->at((uint64_t)device);

	if (!at) {
		fprintf(stderr, "a kernel was given %p, where nothing lives\n", device);
		abort();
	}
	return at;
}

static inline cudaError_t cudaGetLastError(void)
{
	return cudaSuccess;
}

static inline const char *cudaGetErrorString(cudaError_t result)
{
	const char *text = "?";

	HOST_CALL("cuGetErrorString", (int, const char **), result, &text);
	return text;
}

static inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
	return HOST_CALL("cuStreamCreate", (void *, unsigned), stream, flags);
}

static inline cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
	return HOST_CALL("cuStreamDestroy", (void *), stream);
}

static inline cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
	return HOST_CALL("cuStreamSynchronize", (void *), stream);
}

#ifdef __cplusplus
static inline cudaError_t cudaDeviceSynchronize(void)
{
	return HOST_CALL("cuCtxSynchronize", (void));
}

static inline cudaError_t cudaMalloc(void **memory, size_t bytes)
{
	return HOST_CALL("cuMemAlloc", (uint64_t *, size_t), (uint64_t *)memory, bytes);
}

static inline cudaError_t cudaFree(void *memory)
{
	return HOST_CALL("cuMemFree", (uint64_t), (uint64_t)memory);
}

static inline cudaError_t cudaHostRegister(void *memory, size_t bytes, unsigned flags)
{
	return HOST_CALL("cuMemHostRegister", (void *, size_t, unsigned), memory, bytes, flags);
}

static inline cudaError_t cudaHostUnregister(void *memory)
{
	return HOST_CALL("cuMemHostUnregister", (void *), memory);
}

/* Anything, when its turn comes on a stream. */
template <class F> static cudaError_t host_queue(cudaStream_t stream, F what)
{
	return HOST_CALL(
		"cuLaunchHostFunc", (void *, void (*)(void *), void *), stream,
		[](void *it) {
			(*(F *)it)();
			delete (F *)it;
		},
		new F(what));
}

static inline cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t stream)
{
	return host_queue(stream, [=] { memset(host_at(memory), value, bytes); });
}

static inline cudaError_t cudaMemset(void *memory, int value, size_t bytes)
{
	return cudaMemsetAsync(memory, value, bytes, NULL);
}

static inline cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
					  cudaStream_t stream)
{
	if (kind == cudaMemcpyDeviceToDevice)
		return host_queue(stream, [=] { memcpy(host_at(to), host_at(from), bytes); });
	if (kind == cudaMemcpyDeviceToHost)
		return HOST_CALL("cuMemcpyDtoHAsync", (void *, const void *, size_t, void *), to, from, bytes, stream);
	return HOST_CALL("cuMemcpyHtoDAsync", (void *, const void *, size_t, void *), to, from, bytes, stream);
}

static inline cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind)
{
	cudaError_t result = cudaMemcpyAsync(to, from, bytes, kind, NULL);

	return result ? result : cudaStreamSynchronize(NULL);
}

static inline cudaError_t cudaEventCreate(cudaEvent_t *event)
{
	*event = new host_event();
	return HOST_CALL("cuEventCreate", (void **, unsigned), &(*event)->event, 0);
}

static inline cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
	host_queue(stream, [=] {
		struct timespec t;

		clock_gettime(CLOCK_MONOTONIC, &t);
		event->ms = t.tv_sec * 1e3 + t.tv_nsec * 1e-6;
	});
	return HOST_CALL("cuEventRecord", (void *, void *), event->event, stream);
}

static inline cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
	return HOST_CALL("cuStreamWaitEvent", (void *, void *, unsigned), stream, event->event, flags);
}

static inline cudaError_t cudaEventQuery(cudaEvent_t event)
{
	return HOST_CALL("cuEventQuery", (void *), event->event);
}

static inline cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
	return HOST_CALL("cuEventSynchronize", (void *), event->event);
}

static inline cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t begin, cudaEvent_t end)
{
	if (cudaEventQuery(begin) || cudaEventQuery(end))
		return cudaErrorNotReady;
	*ms = (float)(end->ms - begin->ms);
	return cudaSuccess;
}

static inline cudaError_t cudaEventDestroy(cudaEvent_t event)
{
	void *it = event->event;

	delete event;
	return HOST_CALL("cuEventDestroy", (void *), it);
}

struct cudaDeviceProp {
	char name[32];
	int major, minor, multiProcessorCount, maxThreadsPerMultiProcessor, pciDomainID, pciBusID, pciDeviceID,
		l2CacheSize;
};

static inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp *out, int)
{
	*out = {"Host 9/A", 0, 0, 1, 1, 0, 0, 0, 1 << 20};
	return cudaSuccess;
}

static inline cudaError_t cudaSetDeviceFlags(unsigned)
{
	return cudaSuccess;
}

static inline cudaError_t cudaDriverGetVersion(int *version)
{
	*version = 12000;
	return cudaSuccess;
}

/* ---- kernels ---- */

static inline long long clock64(void) /* of a clock of 1 GHz */
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

#define __global__ static
struct host_index {
	unsigned x, y, z;
};
inline __thread host_index blockIdx, blockDim, threadIdx;

template <class T, class U> static void atomicAdd(T *at, U value)
{
	*at += value;
}

template <class T> static T host_argument(T value)
{
	return value;
}

template <class T> static T *host_argument(T *value)
{
	return (T *)host_at(value);
}

/*
 * What `kernel<<<grid, block, 0, stream>>>(...)` is made of: HOST_LAUNCH(kernel, grid, block, 0,
 * stream)(...).
 */
#define HOST_LAUNCH(kernel, grid, block, shared, stream)                                       \
	[=](auto... argument) {                                                                \
		host_queue(stream, [=] {                                                       \
			blockDim.x = (block);                                                  \
			for (blockIdx.x = 0; blockIdx.x < (unsigned)(grid); blockIdx.x++)      \
				for (threadIdx.x = 0; threadIdx.x < blockDim.x; threadIdx.x++) \
					kernel(host_argument(argument)...);                    \
		});                                                                            \
	}
#endif

#endif
