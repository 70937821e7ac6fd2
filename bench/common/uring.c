/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uring.c - the two queues of io_uring
 */
#include "bench/common/uring.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bench/common/say.h"

bool uring_open(struct uring *r, unsigned depth)
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

void uring_close(struct uring *r)
{
	munmap(r->sqe, r->sqe_bytes);
	munmap(r->rings, r->rings_bytes);
	close(r->fd);
}

bool uring_can(void)
{
	struct uring r;
	bool can = uring_open(&r, 1);

	if (can)
		uring_close(&r);
	return can;
}

void uring_queue(struct uring *r, const struct io_uring_sqe *sqe)
{
	uint32_t tail = atomic_load_explicit(r->sq_tail, memory_order_relaxed), at = tail & (r->params.sq_entries - 1);

	r->sqe[at] = *sqe;
	r->sq_array[at] = at;
	atomic_store_explicit(r->sq_tail, tail + 1, memory_order_release);
	r->queued++;
}

void uring_enter(struct uring *r, unsigned wait_count)
{
	if (syscall(__NR_io_uring_enter, r->fd, r->queued, wait_count, wait_count ? IORING_ENTER_GETEVENTS : 0, NULL,
		    0) != (long)r->queued)
		bench_die("io_uring did not take %u requests", r->queued);
	r->queued = 0;
}

bool uring_next(struct uring *r, struct io_uring_cqe *out)
{
	uint32_t head = atomic_load_explicit(r->cq_head, memory_order_relaxed);

	if (head == atomic_load_explicit(r->cq_tail, memory_order_acquire))
		return false;
	*out = r->cqe[head & (r->params.cq_entries - 1)];
	atomic_store_explicit(r->cq_head, head + 1, memory_order_release);
	return true;
}
