/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bound_uring.c - the bare io_uring loop over pieces of files: a queue that is kept full
 */
#include "bench/common/bound_uring.h"

#include "bench/common/uring.h"

bool bound_uring_can(void)
{
	return uring_can();
}

static void queue_read(struct uring *r, const struct bound_pieces *p, const int *fd, size_t i)
{
	struct io_uring_sqe sqe = {
		.opcode = IORING_OP_READ,
		.fd = fd[p->piece[i].file],
		.off = p->piece[i].offset,
		.addr = (uintptr_t)(p->ring + i % (p->ring_bytes / p->piece_most) * p->piece_most),
		.len = p->piece[i].bytes,
		.user_data = i,
	};

	uring_queue(r, &sqe);
}

double bound_uring(const struct bound_pieces *p, unsigned depth)
{
	int *fd = bound_open_direct(p->files);
	struct io_uring_cqe c;
	struct uring r;
	double begin = bench_seconds(), seconds;

	if (!uring_open(&r, depth))
		bench_die("io_uring is not permitted");
	for (size_t next = 0, done = 0; done < p->count;) {
		for (; next < p->count && next - done < depth; next++)
			queue_read(&r, p, fd, next);
		uring_enter(&r, 1);
		for (; uring_next(&r, &c); done++)
			if (c.res != (int32_t)p->piece[c.user_data].bytes)
				bench_die("a read by io_uring gave %d of %u bytes", c.res, p->piece[c.user_data].bytes);
	}
	seconds = bench_seconds() - begin;
	uring_close(&r);
	bound_close_direct(p->files, fd);
	return (double)p->work_bytes / seconds / 1e9;
}
