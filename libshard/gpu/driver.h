/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver.h - NVIDIA's driver, found at run time
 *
 * Only files of this folder include this.
 */
#ifndef SHARD_CUDA_DRIVER_H
#define SHARD_CUDA_DRIVER_H

#include "libshard/gpu/api.h"

/*
 * The driver.  The first call in this process loads and starts it, and later calls return what that
 * one found.  Fails with UNSUPPORTED if there is no driver or no device, or the driver is too old.
 * Fails with ARGUMENT in a child of the process that has started it.
 */
int cuda_api_get(const struct cuda_api **out, struct shard_error *err);

/* Does this machine have the driver's library?  True also for a driver that does not work. */
bool cuda_api_is_loaded(void);

/*
 * The context of a stream.  That of a special stream is the context of this thread, or NULL.
 * Returns the result of the driver, as the next function does.
 */
int cuda_context_of(const struct cuda_api *api, void *stream, struct cu_context **out);
/* The CUdevice of a context. */
int cuda_device_of(const struct cuda_api *api, struct cu_context *context, int *device);

/*
 * Fail with DEVICE.  The driver's name and text for `result` stand behind the sentence, and the
 * result becomes os_code.
 */
int cuda_refused(const struct cuda_api *api, int result, struct shard_error *err, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

#endif
