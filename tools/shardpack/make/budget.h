/* SPDX-License-Identifier: Apache-2.0 */
/*
 * budget.h - memory for large images, shared by all workers
 *
 * Small images need no budget.  A large image takes its bytes from the budget before it is decoded.
 * If too few are left, it waits until others give theirs back.  An image that is larger than the
 * whole budget waits until no other image holds any of it.  So memory is at most BUDGET_SMALL_BYTES
 * for each worker, plus the budget or the largest image.
 *
 * An image takes from the budget at most once, before it holds anything that another one could wait
 * for.  So there is no deadlock.
 */
#ifndef SHARD_CONVERT_BUDGET_H
#define SHARD_CONVERT_BUDGET_H

#include <pthread.h>
#include <stdint.h>

#define BUDGET_SMALL_BYTES (UINT64_C(16) << 20)	 /* up to this size an image needs no budget */
#define BUDGET_BYTES	   (UINT64_C(256) << 20) /* 58 megapixels of progressive 4:2:0, or some photos at once */

struct budget {
	pthread_mutex_t lock;
	pthread_cond_t given; /* with lock: `used` became less */
	uint64_t used;	      /* lock */
};

void budget_init(struct budget *b);
void budget_destroy(struct budget *b);

/*
 * Waits until there is enough.  This always ends: images that hold some are being decoded and give
 * it back.
 */
void budget_take(struct budget *b, uint64_t bytes);
void budget_give(struct budget *b, uint64_t bytes);

#endif
