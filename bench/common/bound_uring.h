/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bound_uring.h - the bare io_uring loop over pieces of files
 */
#ifndef SHARD_COMMON_BOUND_URING_H
#define SHARD_COMMON_BOUND_URING_H

#include "bench/common/bound_pieces.h"

/* As bound_pieces(): one thread, that many reads in flight.  Not every system permits it. */
double bound_uring(const struct bound_pieces *p, unsigned depth);
bool bound_uring_can(void);

#endif
