/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine_uring.c - io_uring, through liburing
 *
 * Reads are submitted in batches: a system call for each would cost more than the reads do.  No
 * buffers are registered, so RLIMIT_MEMLOCK does not matter; what huge pages save there is most of
 * what registering would.
 */
#include "libshard/io/io.h"

#include <errno.h>
#include <liburing.h>
#include <stdbool.h>
#include <string.h>

#include "libshard/base/bytes.h"
#include "libshard/base/mem.h"

struct uring {
	struct io_uring ring;
	uint32_t depth, batch;
	struct engine_read **queued; /* [depth] put, but not yet submitted to the kernel; oldest first from head */
	uint32_t head, queued_count, submitted; /* submitted, and not yet back */
	bool broken;				/* the kernel refuses what is queued: read it in other ways */
};

/*
 * What this thread does is not interrupted.  Where the system can (Linux 6.1), it is not even woken
 * before as many reads are done as it waits for; the ring then belongs to the thread that opens it.
 */
static int open_ring(struct io_uring *ring, uint32_t depth)
{
	static const unsigned flags[] = {IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
					 IORING_SETUP_COOP_TASKRUN, 0};
	int rc = -EINVAL;

	for (size_t i = 0; rc == -EINVAL && i < sizeof(flags) / sizeof(flags[0]); i++) {
		struct io_uring_params p = {.flags = flags[i]};

		rc = io_uring_queue_init_params(depth, ring, &p);
	}
	return rc;
}

struct uring *uring_open(uint32_t depth, uint32_t batch)
{
	struct uring *u = mem_zalloc(sizeof(*u));
	int rc;

	if (!u)
		return NULL;
	u->depth = depth;
	u->batch = batch;
	u->queued = mem_array(depth, sizeof(*u->queued));
	rc = u->queued ? open_ring(&u->ring, depth) : -ENOMEM;
	if (!rc)
		return u;
	mem_free(u->queued); /* EPERM, ENOSYS, ENOMEM: as in a build without io_uring, pread reads */
	mem_free(u);
	return NULL;
}

void uring_close(struct uring *u)
{
	if (!u)
		return;
	io_uring_queue_exit(&u->ring);
	mem_free(u->queued);
	mem_free(u);
}

/* Submit what is queued, and wait until `wanted` reads have come back. */
static void submit(struct uring *u, unsigned wanted)
{
	int n = io_uring_submit_and_wait(&u->ring, wanted);

	if (n >= 0) {
		u->head = (u->head + (uint32_t)n) % u->depth;
		u->queued_count -= (uint32_t)n;
		u->submitted += (uint32_t)n;
	} else if (n != -EINTR && n != -EAGAIN && n != -EBUSY) {
		u->broken = true;
	}
}

void uring_put(struct uring *u, struct engine_read *r)
{
	/* there is one: the ring has `depth` */
	struct io_uring_sqe *sqe = u->broken ? NULL : io_uring_get_sqe(&u->ring);

	u->queued[(u->head + u->queued_count++) % u->depth] = r;
	if (!sqe) {
		u->broken = true;
		return;
	}
	io_uring_prep_read(sqe, r->fd, r->dst, (unsigned)r->bytes, r->offset);
	io_uring_sqe_set_data(sqe, r);
	if (u->queued_count >= u->batch)
		submit(u, 0);
}

/* ThreadSanitizer does not see how rings are mapped: docs/libshard.tsan says more. */
__attribute__((no_sanitize_thread)) static int result_of(const struct io_uring_cqe *cqe)
{
	return cqe->res;
}

struct engine_read *uring_get(struct uring *u, int *result)
{
	struct io_uring_cqe *cqe = NULL;
	struct engine_read *r;

	while (io_uring_peek_cqe(&u->ring, &cqe)) {
		if (u->broken && u->queued_count) { /* the kernel has not seen it */
			r = u->queued[u->head];
			u->head = (u->head + 1) % u->depth;
			u->queued_count--;
			*result = 0;
			return r;
		}
		if (u->broken) /* nothing may be submitted: what was refused is still in the ring */
			io_uring_wait_cqe(&u->ring, &cqe);
		else
			submit(u, (uint32_t)min_u64(u->queued_count + u->submitted, u->batch));
	}
	u->submitted--;
	r = io_uring_cqe_get_data(cqe);
	*result = result_of(cqe);
	io_uring_cqe_seen(&u->ring, cqe);
	return r;
}

bool uring_has(const struct uring *u)
{
	return io_uring_cq_ready(&u->ring);
}
