/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prog_pinned.c - a loader on the fake driver that has the system keep what it page-locks in memory
 *
 *   prog_pinned DATASET EPOCHS [blind]
 *
 * The fake driver page-locks nothing.  Here mlock() does, because those pages cannot leave memory
 * either.  With `blind` the loader sees no limit of a control group, only the memory of the machine.
 * Prints the most bytes that were page-locked in the page cache, as soon as they are more.
 *
 * LDFLAGS: -Wl,--disable-new-dtags,-rpath,$ORIGIN/../cuda/full
 * LDFLAGS: -Wl,--wrap=cuda_pin_map,--wrap=available_memory_bytes,--wrap=file_seems_cached
 */
#include <sys/mman.h>

#include "libshard/gpu/gpu.h"
#include "libshard/io/io.h"
#include "shard_gpu.h"
#include "tests/test.h"

static bool is_blind;

int __real_cuda_pin_map(const struct cuda_device *d, const void *map, uint64_t bytes, struct shard_error *e);
int __wrap_cuda_pin_map(const struct cuda_device *d, const void *map, uint64_t bytes, struct shard_error *e);
uint64_t __real_available_memory_bytes(void);
uint64_t __wrap_available_memory_bytes(void);
bool __wrap_file_seems_cached(int fd, uint64_t bytes, bool *whole);

int __wrap_cuda_pin_map(const struct cuda_device *d, const void *map, uint64_t bytes, struct shard_error *e)
{
	if (mlock(map, bytes)) { /* file_unmap() undoes it */
		perror("mlock");
		exit(5);
	}
	return __real_cuda_pin_map(d, map, bytes, e);
}

uint64_t __wrap_available_memory_bytes(void)
{
	return is_blind ? proc_number("/proc/meminfo", "MemTotal:") * 1024 : __real_available_memory_bytes();
}

/* In a group that is too small for the dataset, it depends on the kernel which shards are. */
bool __wrap_file_seems_cached(int fd, uint64_t bytes, bool *whole)
{
	(void)fd;
	(void)bytes;
	*whole = false;
	return true;
}

int main(int argc, char **argv)
{
	struct shard_loader_options o = {.size = sizeof(o),
					 .batch_records = 8,
					 .thread_count = 1,
					 .path = SHARD_PATH_MAP,
					 .order.shuffle = SHARD_SHUFFLE_GLOBAL,
					 .gpu.device = SHARD_GPU(0)};
	struct shard_error err = {.message = ""};
	struct shard_loader_stats s;
	struct shard_dataset *ds;
	struct shard_loader *l;
	struct shard_batch b;
	uint64_t most = 0;
	int rc, epochs = argc > 2 ? atoi(argv[2]) : 0;

	is_blind = argc > 3 && !strcmp(argv[3], "blind");
	rc = argc > 2 ? shard_dataset_open(&ds, argv[1], NULL, &err) : SHARD_E_ARGUMENT;
	if (!rc)
		rc = shard_loader_open(&l, ds, &o, &err);
	while (!rc && epochs) {
		rc = shard_loader_next_device(l, NULL, &b, &err);
		if (rc == SHARD_END) {
			epochs--;
			rc = SHARD_OK;
			continue;
		}
		if (!rc)
			rc = shard_loader_release_after(l, &b, NULL, &err);
		if (rc)
			break;
		shard_loader_stats(l, &s);
		if (s.registered_bytes > most) {
			most = s.registered_bytes;
			printf("%" PRIu64 "\n", most);
			fflush(stdout); /* it may be killed */
		}
	}
	if (rc) {
		fprintf(stderr, "prog_pinned: %s\n", err.message);
		return 1;
	}
	shard_loader_close(l);
	shard_dataset_close(ds);
	return 0;
}
