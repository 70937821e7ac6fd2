/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api.h - the entry points of NVIDIA's driver that we use, declared by ourselves
 *
 * This is all that we know of CUDA, so no toolkit is needed to build.  Signatures, numbers of
 * errors and flags are those of cuda.h and cudaTypedefs.h of the CUDA Toolkits 12.9 and 13.0
 * (PFN_<name>_v<version>).  tests/cuda/header.sh compares them with any toolkit that it finds.
 *
 * The driver keeps old versions of its functions.  Asked for a version, it gives the newest one
 * that is not newer than that.  So each name has the version beside it that we declare.
 *
 * Only files of this folder include this.
 */
#ifndef SHARD_GPU_API_H
#define SHARD_GPU_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "shard.h"

struct cu_context;
struct cu_stream;
struct cu_event;
struct cu_module;
struct cu_function;

enum {
	CU_SUCCESS = 0,
	CU_OUT_OF_MEMORY = 2,
	CU_NOT_INITIALIZED = 3,
	CU_STUB_LIBRARY = 34,
	CU_NO_DEVICE = 100,
	CU_NOT_READY = 600,
	CU_CAPTURE_FIRST = 900, /* from here to the last one: refusals because of a capture */
	CU_CAPTURE_IMPLICIT = 906,
	CU_CAPTURE_LAST = 908,

	CU_FIND_LEGACY_STREAM = 1, /* of cuGetProcAddress: NULL is the legacy default stream */
	CU_FIND_SUCCESS = 0,	   /* the last output of cuGetProcAddress */
	CU_STREAM_NON_BLOCKING = 1,
	CU_EVENT_BLOCKING_SYNC = 1,
	CU_EVENT_DISABLE_TIMING = 2,
	CU_REGISTER_PORTABLE = 1,
	CU_REGISTER_READ_ONLY = 8, /* GPUs only read it: memory that we may not write needs this */
	CU_COPY_IN_STREAM_ORDER = 1,
	CU_ATTRIBUTE_CONTEXT = 1,
	CU_ATTRIBUTE_MEMORY_TYPE = 2,
	CU_DEVICE_MULTIPROCESSORS = 16,
	CU_DEVICE_CAPABILITY_MAJOR = 75,
	CU_DEVICE_CAPABILITY_MINOR = 76,
	CU_DEVICE_HOST_ADDRESSES = 91, /* does it read page-locked memory by the addresses that the host has? */
	CU_DEVICE_SHARED_OPTIN = 97,   /* bytes of shared memory that a block may ask for */
	CU_FUNCTION_SHARED_BYTES = 8,
	CU_MEMORY_HOST = 1,
	CU_NOT_CAPTURING = 0,
	CU_CAPTURE_RELAXED = 2,
	CU_JIT_ERROR_LOG = 5, /* options of cuModuleLoadDataEx: memory for errors of the compiler */
	CU_JIT_ERROR_LOG_BYTES = 6,
	CU_STREAM_SPECIAL_MAX = 2, /* NULL, 1 and 2 are default streams of the current context */
};

/* Of copies in a batch.  The hints are for memory that has no fixed place, which ours has. */
struct cu_copy_attributes {
	int order; /* when the source is read */
	int from_hint[2], to_hint[2];
	unsigned int flags;
};

/* Name, version, parameters; each returns a CUresult, which is an int in C. */
/* It takes pointers in arguments of macros for products. */
/* clang-format off */
#define CUDA_CALLS(X)                                                                           \
	X(cuInit, 2000, (unsigned int flags))                                                   \
	X(cuGetErrorName, 6000, (int result, const char **text))                                \
	X(cuGetErrorString, 6000, (int result, const char **text))                              \
	X(cuDeviceGet, 2000, (int *device, int ordinal))                                        \
	X(cuDevicePrimaryCtxGetState, 7000, (int device, unsigned int *flags, int *active))     \
	X(cuDevicePrimaryCtxRetain, 7000, (struct cu_context **context, int device))            \
	X(cuDevicePrimaryCtxRelease, 11000, (int device))                                       \
	X(cuCtxGetCurrent, 4000, (struct cu_context **context))                                 \
	X(cuCtxGetDevice, 2000, (int *device))                                                  \
	X(cuCtxPushCurrent, 4000, (struct cu_context *context))                                 \
	X(cuCtxPopCurrent, 4000, (struct cu_context **context))                                 \
	X(cuThreadExchangeStreamCaptureMode, 10010, (int *mode))                                \
	X(cuStreamIsCapturing, 10000, (struct cu_stream *stream, int *status))                  \
	X(cuStreamGetCtx, 9020, (struct cu_stream *stream, struct cu_context **context))        \
	X(cuStreamCreate, 2000, (struct cu_stream **stream, unsigned int flags))                \
	X(cuStreamCreateWithPriority, 5050, (struct cu_stream **stream, unsigned int flags, int priority)) \
	X(cuCtxGetStreamPriorityRange, 5050, (int *least, int *greatest))                       \
	X(cuStreamDestroy, 4000, (struct cu_stream *stream))                                    \
	X(cuStreamWaitEvent, 3020, (struct cu_stream *stream, struct cu_event *event, unsigned int flags)) \
	X(cuStreamQuery, 2000, (struct cu_stream *stream))                                      \
	X(cuStreamSynchronize, 2000, (struct cu_stream *stream))                                \
	X(cuLaunchHostFunc, 10000, (struct cu_stream *stream, void (*call)(void *context), void *context)) \
	X(cuEventCreate, 2000, (struct cu_event **event, unsigned int flags))                   \
	X(cuEventDestroy, 4000, (struct cu_event *event))                                       \
	X(cuEventRecord, 2000, (struct cu_event *event, struct cu_stream *stream))              \
	X(cuEventQuery, 2000, (struct cu_event *event))                                         \
	X(cuEventSynchronize, 2000, (struct cu_event *event))                                   \
	X(cuMemAlloc, 3020, (uint64_t *memory, size_t bytes))                                   \
	X(cuMemFree, 3020, (uint64_t memory))                                                   \
	X(cuMemGetInfo, 3020, (size_t *free_bytes, size_t *bytes))                              \
	X(cuMemcpyHtoDAsync, 3020, (uint64_t to, const void *from, size_t bytes, struct cu_stream *stream)) \
	X(cuMemcpyDtoHAsync, 3020, (void *to, uint64_t from, size_t bytes, struct cu_stream *stream)) \
	X(cuMemHostRegister, 6050, (void *memory, size_t bytes, unsigned int flags))            \
	X(cuMemHostUnregister, 4000, (void *memory))                                            \
	X(cuPointerGetAttribute, 4000, (void *out, int attribute, uint64_t pointer))            \
	X(cuModuleLoadDataEx, 2010, (struct cu_module **module, const void *image, unsigned int count, \
				     int *option, void **value))                                \
	X(cuModuleGetFunction, 2000, (struct cu_function **function, struct cu_module *module, const char *name)) \
	X(cuFuncSetAttribute, 9000, (struct cu_function *function, int attribute, int value))   \
	X(cuModuleUnload, 2000, (struct cu_module *module))                                     \
	X(cuLaunchKernel, 4000, (struct cu_function *function, unsigned int grid_x, unsigned int grid_y, \
				 unsigned int grid_z, unsigned int block_x, unsigned int block_y, \
				 unsigned int block_z, unsigned int shared_bytes, struct cu_stream *stream, \
				 void **parameters, void **extra))
/* clang-format on */

/* The same of calls that tell which GPUs there are.  A loader works without them. */
/* It takes pointers in arguments of macros for products. */
/* clang-format off */
#define PROBE_CALLS(X)                                                                          \
	X(cuDriverGetVersion, 2020, (int *version))                                             \
	X(cuDeviceGetCount, 2000, (int *count))                                                 \
	X(cuDeviceGetName, 2000, (char *name, int bytes, int device))                           \
	X(cuDeviceTotalMem, 3020, (size_t *bytes, int device))                                  \
	X(cuDeviceGetPCIBusId, 4010, (char *bus_id, int bytes, int device))                     \
	X(cuDeviceGetAttribute, 2000, (int *out, int attribute, int device))
/* clang-format on */

/*
 * The same of calls that save time where the driver has them.  None is missed.
 *
 * Without cuMemcpyBatchAsync each piece is a cuMemcpyHtoDAsync: see cuda_copy_pieces().  As of CUDA
 * 13.0 it has another form, without `failed`.  Such a driver has this one, too.
 */
/* It takes pointers in arguments of macros for products. */
/* clang-format off */
#define OPTIONAL_CALLS(X)                                                                       \
	X(cuMemcpyBatchAsync, 12080, (uint64_t *to, const void **from, size_t *bytes, size_t count, \
				      struct cu_copy_attributes *attributes, size_t *attribute_first, \
				      size_t attribute_count, size_t *failed, struct cu_stream *stream))
/* clang-format on */

struct cuda_api {
#define CUDA_POINTER(name_, version_, parameters_) int(*name_) parameters_;
	CUDA_CALLS(CUDA_POINTER)
	PROBE_CALLS(CUDA_POINTER)
	OPTIONAL_CALLS(CUDA_POINTER)
#undef CUDA_POINTER
	char lacks[256]; /* a list of PROBE_CALLS that are NULL, as the driver is too old */
	pid_t pid;	 /* the process that has loaded it: it does not survive fork */
};

/* A context: see device.c. */
struct cuda_device {
	const struct cuda_api *api;
	struct cu_context *context;
	int ordinal;   /* the CUdevice of a primary context */
	bool retained; /* it is a primary context, and we hold it */
};

/* Is this a stream that has no context of its own, such as NULL? */
static inline bool cuda_is_special(const void *stream)
{
	return (uintptr_t)stream <= CU_STREAM_SPECIAL_MAX;
}

#endif
