/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bound_pieces.c - the bare O_DIRECT loop over pieces of files: each thread reads one after the
 * other
 */
#include "bench/common/bound_pieces.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

struct job {
	const struct bound_pieces *p;
	const int *fd;
	atomic_size_t next;
};

static void work(void *context)
{
	struct job *j = context;
	size_t slots = j->p->ring_bytes / j->p->piece_most;

	for (size_t i; (i = atomic_fetch_add(&j->next, 1)) < j->p->count;) {
		const struct bound_piece *piece = &j->p->piece[i];

		if (pread(j->fd[piece->file], j->p->ring + i % slots * j->p->piece_most, piece->bytes,
			  (off_t)piece->offset) != (ssize_t)piece->bytes)
			bench_die("a direct read failed");
	}
}

int *bound_open_direct(const struct data_files *files)
{
	int *fd = calloc(files->count, sizeof(*fd));

	if (!fd)
		bench_die("out of memory");
	for (size_t i = 0; i < files->count; i++) {
		fd[i] = open(files->file[i].path, O_RDONLY | O_CLOEXEC | O_DIRECT);
		if (fd[i] < 0)
			bench_die("%s: cannot be opened with O_DIRECT", files->file[i].path);
	}
	return fd;
}

void bound_close_direct(const struct data_files *files, int *fd)
{
	for (size_t i = 0; i < files->count; i++)
		close(fd[i]);
	free(fd);
}

double bound_pieces(const struct bound_pieces *p, unsigned thread_count)
{
	int *fd = bound_open_direct(p->files);
	struct job j = {.p = p, .fd = fd};
	double begin = bench_seconds(), seconds;

	bench_threads(thread_count, work, &j);
	seconds = bench_seconds() - begin;
	bound_close_direct(p->files, fd);
	return (double)p->work_bytes / seconds / 1e9;
}
