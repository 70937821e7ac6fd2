/* SPDX-License-Identifier: Apache-2.0 */
/*
 * h2d_stream.c - an epoch of batches in the memory of a GPU: the least that a program needs
 *
 *   cc -O2 h2d_stream.c -o h2d_stream -I/usr/local/cuda/include -L/usr/local/cuda/lib64 \
 *      $(pkg-config --cflags --libs libshard) -lcudart
 *   ./h2d_stream ds/train
 *
 * Prints how fast the batches came.  libshard itself finds the driver when it runs, so a program
 * that needs no other call of CUDA links nothing of it.
 */
#include <cuda_runtime_api.h>
#include <err.h>
#include <inttypes.h>
#include <stdio.h>

#include "shard.h"
#include "shard_gpu.h"

int main(int argc, char **argv)
{
	struct shard_loader_options o = {.size = sizeof(o), .batch_records = 256, .order.seed = 1, .tail = SHARD_KEEP};
	struct shard_loader_stats stats;
	struct shard_dataset *ds;
	struct shard_loader *loader;
	struct shard_batch batch;
	struct shard_error why;
	cudaStream_t stream;
	int rc;

	if (argc != 2)
		errx(1, "usage: h2d_stream DATASET");
	if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess)
		errx(1, "%s", cudaGetErrorString(cudaGetLastError()));
	if (shard_dataset_open(&ds, argv[1], NULL, &why) || shard_loader_open(&loader, ds, &o, &why))
		errx(1, "%s", why.message);

	while ((rc = shard_loader_next_device(loader, stream, &batch, &why)) == SHARD_OK) {
		/*
		 * batch.field[i].data is an address of the GPU: row r of the field is r x
		 * batch.field[i].stride bytes behind it.  Kernels and copies that are queued on
		 * `stream` here find the batch there; this thread waits for nothing.
		 */
		if (shard_loader_release_after(loader, &batch, stream, &why)) /* when all that has run */
			errx(1, "%s", why.message);
	}
	if (rc < 0)
		errx(1, "%s", why.message);
	if (cudaStreamSynchronize(stream) != cudaSuccess)
		errx(1, "%s", cudaGetErrorString(cudaGetLastError()));

	shard_loader_stats(loader, &stats);
	printf("%" PRIu64 " records, %" PRIu64 " bytes, %.2f GB/s\n", stats.record_count, stats.bytes,
	       (double)stats.bytes / (double)stats.elapsed_ns);
	if (shard_loader_pin_problem(loader, &why) == SHARD_OK)
		printf("through pageable memory, which is slower: %s\n", why.message);
	shard_loader_close(loader);
	shard_dataset_close(ds);
	cudaStreamDestroy(stream);
	return 0;
}
