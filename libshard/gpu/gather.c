/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gather.c - see gather.h
 */
#include "libshard/gpu/gather.h"

#include "libshard/gpu/gpu.h"

int cuda_gather_open(const struct cuda_device *d, struct cuda_gather *out, struct shard_error *err)
{
	struct cuda_gather g = {.module = NULL};
	int rc = cuda_module_get(d, gather_ptx, &g.module, err);

	if (!rc)
		rc = cuda_kernel_find(d, g.module, "gather_rows", &g.kernel, err);
	if (rc)
		cuda_module_drop(d, g.module);
	else
		*out = g;
	return rc;
}

void cuda_gather_close(const struct cuda_device *d, struct cuda_gather *g)
{
	cuda_module_drop(d, g->module);
	*g = (struct cuda_gather){.module = NULL};
}

int cuda_gather_launch(const struct cuda_device *d, const struct cuda_gather *g, const struct gather_call *call,
		       void *stream, struct shard_error *err)
{
	uint32_t longest = 1;

	for (uint32_t i = 0; i < call->piece_count; i++)
		longest = call->piece[i].bytes > longest ? call->piece[i].bytes : longest;
	return cuda_launch(d, g->kernel, call->row_count, (longest + GATHER_PART - 1) / GATHER_PART, GATHER_THREADS, 0,
			   call, stream, err);
}
