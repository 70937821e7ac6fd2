/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uring.h - io_uring by system calls alone, for the bare loops
 */
#ifndef SHARD_COMMON_URING_H
#define SHARD_COMMON_URING_H

#include <linux/io_uring.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct uring {
	int fd;
	struct io_uring_params params;
	struct io_uring_sqe *sqe;
	uint8_t *rings; /* both queues, since Linux 5.4 */
	size_t rings_bytes, sqe_bytes;
	_Atomic uint32_t *sq_tail, *cq_head, *cq_tail;
	uint32_t *sq_array;
	const struct io_uring_cqe *cqe;
	unsigned queued; /* that the kernel was not told of */
};

bool uring_can(void); /* not every system permits it */
bool uring_open(struct uring *r, unsigned depth);
void uring_close(struct uring *r);

/* At most `depth` may be queued or in flight. */
void uring_queue(struct uring *r, const struct io_uring_sqe *sqe);

/* Hand over what is queued, and wait until that many are done. */
void uring_enter(struct uring *r, unsigned wait_count);

/* The next that is done; false if there is none. */
bool uring_next(struct uring *r, struct io_uring_cqe *out);

#endif
