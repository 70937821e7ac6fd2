/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bound_read.c - the bare O_DIRECT loop: all bytes of all files, one block at a time for each
 * thread
 */
#include "bench/common/bound_read.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <unistd.h>

#define FILES_MAX   64
#define THREADS_MAX 64

struct job {
	const struct data_files *files;
	int fd[FILES_MAX];
	size_t block_bytes;
	uint8_t *buffer[THREADS_MAX];
	atomic_uint_fast64_t next, bytes;
	atomic_uint thread;
};

static void work(void *context)
{
	struct job *j = context;
	uint8_t *buffer = j->buffer[atomic_fetch_add(&j->thread, 1)];
	uint64_t per_file = (j->files->file[0].bytes + j->block_bytes - 1) / j->block_bytes; /* the same in all */

	for (uint64_t at; (at = atomic_fetch_add(&j->next, 1)) < per_file * j->files->count;) {
		ssize_t n =
			pread(j->fd[at / per_file], buffer, j->block_bytes, (off_t)(at % per_file * j->block_bytes));

		if (n <= 0)
			bench_die("a direct read failed");
		atomic_fetch_add(&j->bytes, (uint64_t)n);
	}
}

double bound_read(const struct data_files *files, size_t block_bytes, unsigned thread_count)
{
	static uint8_t *buffer[THREADS_MAX]; /* kept: a loader would, too */
	struct job j = {.files = files, .block_bytes = block_bytes};
	double begin, seconds;

	for (unsigned i = 0; i < thread_count; i++)
		j.buffer[i] = buffer[i] = buffer[i] ? buffer[i] : bench_memory(BOUND_BLOCK_MOST);
	for (size_t i = 0; i < files->count; i++)
		if (i == FILES_MAX || (j.fd[i] = open(files->file[i].path, O_RDONLY | O_CLOEXEC | O_DIRECT)) < 0)
			bench_die("%s: cannot be opened with O_DIRECT", files->file[i].path);
	begin = bench_seconds();
	bench_threads(thread_count, work, &j);
	seconds = bench_seconds() - begin;
	for (size_t i = 0; i < files->count; i++)
		close(j.fd[i]);
	return (double)j.bytes / seconds / 1e9;
}
