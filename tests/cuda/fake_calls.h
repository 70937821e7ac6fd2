/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_calls.h - the driver's functions that the fake has
 *
 * Declared here by themselves, and not through libshard/gpu/api.h, so that a mistake there is not
 * made twice: versions and signatures are those of cudaTypedefs.h (CUDA Toolkit 12.9), with void *
 * for handles.
 */
#ifndef TESTS_CUDA_FAKE_CALLS_H
#define TESTS_CUDA_FAKE_CALLS_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

/* Name, first version that has this form, first one that has another, parameters. */
/* clang-format off */
#define FAKE_CALLS(X)                                                                                      \
	X(cuInit, 2000, INT_MAX, (unsigned flags))                                                         \
	X(cuGetErrorName, 6000, INT_MAX, (int result, const char **text))                                  \
	X(cuGetErrorString, 6000, INT_MAX, (int result, const char **text))                                \
	X(cuDriverGetVersion, 2020, INT_MAX, (int *version))                                               \
	X(cuDeviceGetCount, 2000, INT_MAX, (int *count))                                                   \
	X(cuDeviceGet, 2000, INT_MAX, (int *device, int ordinal))                                          \
	X(cuDeviceGetName, 2000, INT_MAX, (char *name, int bytes, int device))                             \
	X(cuDeviceTotalMem, 3020, INT_MAX, (size_t *bytes, int device))                                    \
	X(cuDeviceGetPCIBusId, 4010, INT_MAX, (char *bus_id, int bytes, int device))                       \
	X(cuDeviceGetAttribute, 2000, INT_MAX, (int *out, int attribute, int device))                      \
	X(cuDevicePrimaryCtxGetState, 7000, INT_MAX, (int device, unsigned *flags, int *active))           \
	X(cuDevicePrimaryCtxRetain, 7000, INT_MAX, (void **context, int device))                           \
	X(cuDevicePrimaryCtxRelease, 7000, INT_MAX, (int device))                                          \
	X(cuCtxGetCurrent, 4000, INT_MAX, (void **context))                                                \
	X(cuCtxGetDevice, 2000, 13000, (int *device))                                                      \
	X(cuCtxPushCurrent, 4000, INT_MAX, (void *context))                                                \
	X(cuCtxPopCurrent, 4000, INT_MAX, (void **context))                                                \
	X(cuCtxSynchronize, 2000, 13000, (void))                                                           \
	X(cuThreadExchangeStreamCaptureMode, 10010, INT_MAX, (int *mode))                                  \
	X(cuStreamBeginCapture, 10010, INT_MAX, (void *stream, int mode))                                  \
	X(cuStreamEndCapture, 10000, INT_MAX, (void *stream, void **graph))                                \
	X(cuStreamIsCapturing, 10000, INT_MAX, (void *stream, int *status))                                \
	X(cuGraphDestroy, 10000, INT_MAX, (void *graph))                                                   \
	X(cuStreamGetCtx, 9020, 12050, (void *stream, void **context))                                     \
	X(cuStreamCreate, 2000, INT_MAX, (void **stream, unsigned flags))                                  \
	X(cuStreamCreateWithPriority, 5050, INT_MAX, (void **stream, unsigned flags, int priority))        \
	X(cuCtxGetStreamPriorityRange, 5050, INT_MAX, (int *least, int *greatest))                         \
	X(cuStreamGetPriority, 5050, INT_MAX, (void *stream, int *priority))                               \
	X(cuStreamDestroy, 4000, INT_MAX, (void *stream))                                                  \
	X(cuStreamWaitEvent, 3020, INT_MAX, (void *stream, void *event, unsigned flags))                   \
	X(cuStreamQuery, 2000, INT_MAX, (void *stream))                                                    \
	X(cuStreamSynchronize, 2000, INT_MAX, (void *stream))                                              \
	X(cuLaunchHostFunc, 10000, INT_MAX, (void *stream, void (*call)(void *context), void *context))    \
	X(cuEventCreate, 2000, INT_MAX, (void **event, unsigned flags))                                    \
	X(cuEventDestroy, 4000, INT_MAX, (void *event))                                                    \
	X(cuEventRecord, 2000, INT_MAX, (void *event, void *stream))                                       \
	X(cuEventQuery, 2000, INT_MAX, (void *event))                                                      \
	X(cuEventSynchronize, 2000, INT_MAX, (void *event))                                                \
	X(cuMemAlloc, 3020, INT_MAX, (uint64_t *memory, size_t bytes))                                     \
	X(cuMemFree, 3020, INT_MAX, (uint64_t memory))                                                     \
	X(cuMemGetInfo, 3020, INT_MAX, (size_t *free_bytes, size_t *bytes))                                \
	X(cuMemcpyHtoDAsync, 3020, INT_MAX, (uint64_t to, const void *from, size_t bytes, void *stream))   \
	X(cuMemcpyDtoHAsync, 3020, INT_MAX, (void *to, uint64_t from, size_t bytes, void *stream))         \
	X(cuMemcpyBatchAsync, 12080, 13000, (uint64_t *to, uint64_t *from, size_t *bytes, size_t count,    \
					     int (*attributes)[6], size_t *firsts, size_t attribute_count, \
					     size_t *failed, void *stream))                                \
	X(cuMemHostRegister, 4000, INT_MAX, (void *memory, size_t bytes, unsigned flags))                  \
	X(cuMemHostUnregister, 4000, INT_MAX, (void *memory))                                              \
	X(cuPointerGetAttribute, 4000, INT_MAX, (void *out, int attribute, uint64_t pointer))              \
	X(cuModuleLoadData, 2000, INT_MAX, (void **module, const void *image))                             \
	X(cuModuleLoadDataEx, 2010, INT_MAX, (void **module, const void *image, unsigned count,            \
					      int *options, void **values))                                \
	X(cuModuleGetFunction, 2000, INT_MAX, (void **function, void *module, const char *name))           \
	X(cuFuncSetAttribute, 9000, INT_MAX, (void *function, int attribute, int value))                   \
	X(cuModuleUnload, 2000, INT_MAX, (void *module))                                                   \
	X(cuLaunchKernel, 4000, INT_MAX, (void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, \
					  unsigned block_x, unsigned block_y, unsigned block_z,            \
					  unsigned shared_bytes, void *stream, void **arguments,           \
					  void **extra))
/* clang-format on */

#endif
