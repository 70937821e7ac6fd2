/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gather.c - see gather.h
 */
#include "libshard/cuda/gather.h"

#include "libshard/cuda/api.h"
#include "libshard/cuda/device.h"

static int refused(int result, struct shard_error *err, const char *call)
{
	const struct cuda_api *api;
	int rc = cuda_api_get(&api, err);

	return rc ? rc : cuda_refused(api, result, err, "%s, for the pool's kernel", call);
}

int cuda_gather_open(const struct cuda_device *d, struct cuda_gather *out, struct shard_error *err)
{
	const struct cuda_api *api;
	struct cu_module *module;
	struct cu_function *kernel;
	int rc = cuda_api_get(&api, err), result;

	(void)d; /* its context is the current one */
	if (rc)
		return rc;
	result = api->cuModuleLoadData(&module, gather_ptx);
	if (result)
		return refused(result, err, "cuModuleLoadData");
	result = api->cuModuleGetFunction(&kernel, module, "gather_rows");
	if (result) {
		api->cuModuleUnload(module);
		return refused(result, err, "cuModuleGetFunction");
	}
	*out = (struct cuda_gather){module, kernel};
	return SHARD_OK;
}

void cuda_gather_close(const struct cuda_device *d, struct cuda_gather *g)
{
	const struct cuda_api *api;

	(void)d;
	if (g->module && !cuda_api_get(&api, NULL))
		api->cuModuleUnload(g->module);
	*g = (struct cuda_gather){.module = NULL};
}

int cuda_gather_launch(const struct cuda_device *d, const struct cuda_gather *g, const struct gather_call *call, void *stream,
		       struct shard_error *err)
{
	const struct cuda_api *api;
	void *parameters[] = {(void *)(uintptr_t)call};
	uint32_t longest = 1;
	int rc = cuda_api_get(&api, err), result;

	(void)d;
	if (rc)
		return rc;
	for (uint32_t i = 0; i < call->piece_count; i++)
		longest = call->piece[i].bytes > longest ? call->piece[i].bytes : longest;
	result = api->cuLaunchKernel(g->kernel, call->row_count, (longest + GATHER_PART - 1) / GATHER_PART, 1, GATHER_THREADS, 1, 1, 0, stream,
				     parameters, NULL);
	return result ? refused(result, err, "cuLaunchKernel") : SHARD_OK;
}
