/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cold.c - what lies in the page cache, and what comes from the device
 *
 * Residency is asked of mincore(), which tells the truth to the owner of a file.  Cold is cold for
 * this system: what a host beneath a virtual machine keeps is out of sight.
 */
#include "bench/common/cold.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE_BYTES    4096u
#define RESIDENT_MOST 0.01

static const uint8_t *map_file(const struct data_file *f, int flags)
{
	int fd = open(f->path, O_RDONLY | O_CLOEXEC);
	void *map = fd < 0 ? MAP_FAILED : mmap(NULL, f->bytes, PROT_READ, MAP_SHARED | flags, fd, 0);

	if (map == MAP_FAILED)
		bench_die("%s: cannot be mapped: %s", f->path, strerror(errno));
	close(fd);
	return map;
}

const uint8_t **data_map(const struct data_files *files, bool populated)
{
	const uint8_t **map = calloc(files->count, sizeof(*map));

	if (!map)
		bench_die("out of memory");
	for (size_t i = 0; i < files->count; i++)
		map[i] = map_file(&files->file[i], populated ? MAP_POPULATE : 0);
	return map;
}

void data_unmap(const struct data_files *files, const uint8_t **map)
{
	for (size_t i = 0; map && i < files->count; i++)
		munmap((void *)(uintptr_t)map[i], files->file[i].bytes);
	free(map);
}

double data_residency(const struct data_files *files)
{
	uint64_t pages = 0, resident = 0;

	for (size_t i = 0; i < files->count; i++) {
		const struct data_file *f = &files->file[i];
		size_t n = (f->bytes + PAGE_BYTES - 1) / PAGE_BYTES;
		const uint8_t *map = map_file(f, 0);
		unsigned char *in = malloc(n);

		if (!in || mincore((void *)(uintptr_t)map, f->bytes, in))
			bench_die("%s: the system does not say what of it is in memory", f->path);
		for (size_t p = 0; p < n; p++)
			resident += in[p] & 1;
		pages += n;
		free(in);
		munmap((void *)(uintptr_t)map, f->bytes);
	}
	return pages ? (double)resident / (double)pages : 0;
}

bool data_evict(const struct data_files *files)
{
	double in = 1;

	for (int attempt = 0; attempt < 20 && in >= RESIDENT_MOST; attempt++) {
		for (size_t i = 0; i < files->count; i++) {
			int fd = open(files->file[i].path, O_RDONLY | O_CLOEXEC);

			if (fd < 0)
				bench_die("%s: cannot be opened", files->file[i].path);
			if (fdatasync(fd) || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED))
				bench_die("%s: cannot be dropped from memory", files->file[i].path);
			close(fd);
		}
		in = data_residency(files);
		if (in >= RESIDENT_MOST)
			usleep(20000); /* pages on their way through another CPU's list */
	}
	return in < RESIDENT_MOST || bench_skip("not cold: %.1f %% stays in memory (is it a tmpfs?)", 100 * in);
}

/* Some systems take away what was read only once, even where memory is free. */
bool data_warm(const struct data_files *files)
{
	size_t bytes = (size_t)1 << 20;
	char *buffer = malloc(bytes);
	double in = 0;

	if (!buffer)
		bench_die("out of memory");
	if (!data_evict(files)) {
		free(buffer);
		return false;
	}
	for (int attempt = 0; attempt < 5 && in <= 1 - RESIDENT_MOST; attempt++) {
		for (size_t i = 0; i < files->count; i++) {
			int fd = open(files->file[i].path, O_RDONLY | O_CLOEXEC);

			while (fd >= 0 && read(fd, buffer, bytes) > 0)
				;
			if (fd >= 0)
				close(fd);
		}
		in = data_residency(files);
	}
	free(buffer);
	return in > 1 - RESIDENT_MOST || bench_skip("not hot: only %.1f %% stays in memory", 100 * in);
}

bool data_warm_dir(const char *dir)
{
	struct data_files files;
	bool hot;

	data_files_open(&files, dir);
	hot = data_warm(&files);
	data_files_close(&files);
	return hot;
}

bool data_make_cold(const struct data_files *files, uint64_t *device_before)
{
	if (!data_evict(files))
		return false;
	*device_before = data_device_bytes();
	return true;
}

void data_touch_free_memory(uint64_t bytes)
{
	uint8_t *memory =
		mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED)
		bench_die("no %.1f GB of memory: %s", (double)bytes / 1e9, strerror(errno));
	madvise(memory, (size_t)bytes, MADV_HUGEPAGE);
	for (uint64_t i = 0; i < bytes; i += PAGE_BYTES)
		memory[i] = 1;
	munmap(memory, (size_t)bytes);
}

uint64_t data_device_bytes(void)
{
	FILE *f = fopen("/proc/self/io", "re");
	unsigned long long bytes;
	char line[128];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "read_bytes: %llu", &bytes) == 1) {
			fclose(f);
			return bytes;
		}
	bench_die("/proc/self/io does not say how much was read");
}
