/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bound_uring.c - the bare io_uring loop over pieces of files, by system calls alone: a queue that
 * is kept full
 */
#include "bench/common/bound_uring.h"

#include <linux/io_uring.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

struct ring {
	int fd;
	struct io_uring_params params;
	struct io_uring_sqe *sqe;
	uint8_t *rings; /* both queues, since Linux 5.4 */
	size_t rings_bytes, sqe_bytes;
	_Atomic uint32_t *sq_tail, *cq_head, *cq_tail;
	uint32_t *sq_array;
	const struct io_uring_cqe *cqe;
};

static bool ring_open(struct ring *r, unsigned depth)
{
	size_t sq_bytes, cq_bytes;

	memset(r, 0, sizeof(*r));
	r->fd = (int)syscall(__NR_io_uring_setup, depth, &r->params);
	if (r->fd < 0 || !(r->params.features & IORING_FEAT_SINGLE_MMAP)) {
		if (r->fd >= 0)
			close(r->fd);
		return false;
	}
	sq_bytes = r->params.sq_off.array + r->params.sq_entries * sizeof(uint32_t);
	cq_bytes = r->params.cq_off.cqes + r->params.cq_entries * sizeof(struct io_uring_cqe);
	r->rings_bytes = sq_bytes > cq_bytes ? sq_bytes : cq_bytes;
	r->sqe_bytes = r->params.sq_entries * sizeof(struct io_uring_sqe);
	r->rings = mmap(NULL, r->rings_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, r->fd,
			IORING_OFF_SQ_RING);
	r->sqe = mmap(NULL, r->sqe_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, r->fd, IORING_OFF_SQES);
	if (r->rings == MAP_FAILED || r->sqe == MAP_FAILED)
		bench_die("the queues of io_uring cannot be mapped");
	r->sq_tail = (void *)(r->rings + r->params.sq_off.tail);
	r->sq_array = (void *)(r->rings + r->params.sq_off.array);
	r->cq_head = (void *)(r->rings + r->params.cq_off.head);
	r->cq_tail = (void *)(r->rings + r->params.cq_off.tail);
	r->cqe = (void *)(r->rings + r->params.cq_off.cqes);
	return true;
}

static void ring_close(struct ring *r)
{
	munmap(r->sqe, r->sqe_bytes);
	munmap(r->rings, r->rings_bytes);
	close(r->fd);
}

bool bound_uring_can(void)
{
	struct ring r;
	bool can = ring_open(&r, 1);

	if (can)
		ring_close(&r);
	return can;
}

static void queue_read(struct ring *r, const struct bound_pieces *p, const int *fd, size_t i)
{
	uint32_t tail = atomic_load_explicit(r->sq_tail, memory_order_relaxed), at = tail & (r->params.sq_entries - 1);

	r->sqe[at] = (struct io_uring_sqe){
		.opcode = IORING_OP_READ,
		.fd = fd[p->piece[i].file],
		.off = p->piece[i].offset,
		.addr = (uintptr_t)(p->ring + i % (p->ring_bytes / p->piece_most) * p->piece_most),
		.len = p->piece[i].bytes,
		.user_data = i,
	};
	r->sq_array[at] = at;
	atomic_store_explicit(r->sq_tail, tail + 1, memory_order_release);
}

/* Whatever is done; returns how many that were. */
static unsigned reap(struct ring *r, const struct bound_pieces *p)
{
	uint32_t head = atomic_load_explicit(r->cq_head, memory_order_relaxed);
	uint32_t tail = atomic_load_explicit(r->cq_tail, memory_order_acquire);
	unsigned n = tail - head;

	for (; head != tail; head++) {
		const struct io_uring_cqe *c = &r->cqe[head & (r->params.cq_entries - 1)];

		if (c->res != (int32_t)p->piece[c->user_data].bytes)
			bench_die("a read by io_uring gave %d of %u bytes", c->res, p->piece[c->user_data].bytes);
	}
	atomic_store_explicit(r->cq_head, head, memory_order_release);
	return n;
}

double bound_uring(const struct bound_pieces *p, unsigned depth)
{
	int *fd = bound_open_direct(p->files);
	struct ring r;
	double begin = bench_seconds(), seconds;

	if (!ring_open(&r, depth))
		bench_die("io_uring is not permitted");
	for (size_t next = 0, done = 0; done < p->count;) {
		unsigned queued = 0;

		for (; next < p->count && next - done < depth; next++, queued++)
			queue_read(&r, p, fd, next);
		if (syscall(__NR_io_uring_enter, r.fd, queued, 1, IORING_ENTER_GETEVENTS, NULL, 0) != (long)queued)
			bench_die("io_uring did not take %u reads", queued);
		done += reap(&r, p);
	}
	seconds = bench_seconds() - begin;
	ring_close(&r);
	bound_close_direct(p->files, fd);
	return (double)p->work_bytes / seconds / 1e9;
}
