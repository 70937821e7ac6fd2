/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe.c - see probe.h
 */
#include "libshard/gpu/probe.h"

#include "libshard/gpu/gpu.h"

int cuda_probe(struct cuda_driver *out, struct shard_error *err)
{
	const struct cuda_api *api;
	int rc = cuda_api_get(&api, err), version = 0, count = 0, result;

	*out = (struct cuda_driver){.is_loaded = cuda_api_is_loaded(), .lacks = rc ? "" : api->lacks};
	if (rc)
		return rc;
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

static int find_device(const struct cuda_api *api, void *stream, int *device)
{
	struct cu_context *context = NULL;
	int result = cuda_context_of(api, stream, &context);

	if (result)
		return result;
	return context ? cuda_device_of(api, context, device) : api->cuDeviceGet(device, 0);
}

int cuda_probe_stream(void *stream, uint32_t *ordinal, struct shard_error *err)
{
	const struct cuda_api *api;
	int rc = cuda_api_get(&api, err), device, other, result;

	if (rc)
		return rc;
	result = find_device(api, stream, &device);
	for (*ordinal = 0; !result; ++*ordinal) { /* the driver has no call for this direction */
		result = api->cuDeviceGet(&other, (int)*ordinal);
		if (!result && other == device)
			return SHARD_OK;
	}
	return cuda_refused(api, result, err, "finding the GPU of stream %p", stream);
}
