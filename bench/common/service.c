/* SPDX-License-Identifier: Apache-2.0 */
/*
 * service.c - clocks, memory and threads of the benchmarks
 */
#include "bench/common/service.h"

#include <fts.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bench/common/say.h"

#define HUGE_PAGE_BYTES ((size_t)2 << 20)
#define THREADS_MAX	64

static double usage_seconds(int who)
{
	struct rusage u;

	if (getrusage(who, &u))
		bench_die("the system does not say how much CPU was used");
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

double bench_cpu_seconds(void)
{
	return usage_seconds(RUSAGE_SELF) + usage_seconds(RUSAGE_CHILDREN);
}

void *bench_memory(size_t bytes)
{
	void *p;

	bytes = (bytes + HUGE_PAGE_BYTES - 1) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
	p = aligned_alloc(HUGE_PAGE_BYTES, bytes);
	if (!p)
		bench_die("no memory for %zu bytes", bytes);
	madvise(p, bytes, MADV_HUGEPAGE); /* small pages are slower, and no other difference */
	memset(p, 0, bytes);
	return p;
}

size_t bench_llc_bytes(void)
{
	size_t largest = 0;

	/* sysconf() adds up caches of cores that a virtual machine does not have. */
	for (int i = 0; i < 8; i++) {
		char path[64];
		unsigned kib;
		FILE *f;

		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu0/cache/index%d/size", i);
		f = fopen(path, "re");
		if (!f)
			break;
		if (fscanf(f, "%uK", &kib) == 1 && (size_t)kib << 10 > largest)
			largest = (size_t)kib << 10;
		fclose(f);
	}
	return largest ? largest : (size_t)32 << 20;
}

void bench_random_fill(void *out, size_t bytes, uint64_t seed)
{
	uint64_t *word = out, x = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;

	for (size_t i = 0; i < bytes / 8; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		word[i] = x;
	}
}

struct start {
	void (*work)(void *context);
	void *context;
};

static void *begin(void *p)
{
	const struct start *s = p;

	s->work(s->context);
	return NULL;
}

void bench_threads(unsigned count, void (*work)(void *context), void *context)
{
	struct start s = {work, context};
	pthread_t thread[THREADS_MAX];

	if (count > THREADS_MAX)
		bench_die("%u threads; at most %u", count, THREADS_MAX);
	for (unsigned i = 1; i < count; i++)
		if (pthread_create(&thread[i], NULL, begin, &s))
			bench_die("cannot start a thread");
	work(context);
	for (unsigned i = 1; i < count; i++)
		pthread_join(thread[i], NULL);
}

void bench_remove(char *path)
{
	char *const roots[] = {path, NULL};
	FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_NOSTAT, NULL);
	FTSENT *e;

	while (tree && (e = fts_read(tree)))
		if (e->fts_info == FTS_DP)
			rmdir(e->fts_accpath);
		else if (e->fts_info != FTS_D)
			unlink(e->fts_accpath);
	if (tree)
		fts_close(tree);
	if (access(path, F_OK) == 0)
		bench_die("%s: cannot be removed", path);
}
