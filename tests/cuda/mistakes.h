/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mistakes.h - jobs with one mistake each, and what of the fake driver or the trainer notices it
 *
 * Each runs in a child, whose driver is its own: what is left behind by one is not found by the
 * next.  Mistake 0 is none, and must be found without fault.
 */
#ifndef TESTS_CUDA_MISTAKES_H
#define TESTS_CUDA_MISTAKES_H

#include "tests/child.h"
#include "tests/cuda/training.h"

#if defined(__SANITIZE_THREAD__)
#define SEEDS 8 /* it is slow, and sees mistakes of order at once */
#else
#define SEEDS 30
#endif

enum noticed { HOST = 1, GPU = 2, SIN_UNREGISTERED = 4, SIN_CONTEXT = 8, SIN_FREED = 16, SIN_OTHER = 32, LEAK = 64 };

static int mistake; /* the program's own numbers */

struct mistake_row {
	const char *story;
	int mistake;
	int noticed; /* one of these */
	bool always;
};

/* Behind a job, whose loader and trainer have gone. */
static inline int noticed_now(void)
{
	return (wanted.complaint[0] ? HOST : 0) | (gpu.complaint[0] ? GPU : 0) |
	       (fake->sins(FAKE_UNREGISTERED) ? SIN_UNREGISTERED : 0) |
	       (fake->sins(FAKE_WRONG_CONTEXT) ? SIN_CONTEXT : 0) | (fake->sins(FAKE_FREED_IN_USE) ? SIN_FREED : 0) |
	       (fake->sins(FAKE_BAD_HANDLE) || fake->sins(FAKE_CALLS_BACK) || fake->sins(FAKE_BAD_VERSION) ||
				fake->sins(FAKE_COPIED_FILE) || fake->sins(FAKE_UNMAPPED)
			? SIN_OTHER
			: 0) |
	       (fake->leaks()[0] ? LEAK : 0);
}

/* The end of a job: its loader and trainer go, and what was noticed is its answer. */
static inline int leave_and_tell(struct training *t)
{
	close_loader(t->l);
	fake->settle();
	trainer_leave(t);
	return noticed_now();
}

/* Of one seed; a sanitizer's verdict, or an assertion, is SIN_OTHER. */
static inline int notice(int (*job)(uint64_t seed), uint64_t seed)
{
	int status;
	pid_t pid;

	if (child_begin(&pid, 60)) {
		if (mistake && !freopen("/dev/null", "w", stderr)) /* a sanitizer would tell of it at length */
			_exit(1);
		_exit(job(seed));
	}
	status = child_end(pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : SIN_OTHER;
}

static inline void check_mistakes(const struct mistake_row *rows, size_t count, int (*job)(uint64_t seed))
{
	for (size_t i = 0; i < count; i++) {
		int seen = 0;

		STORY("%s", rows[i].story);
		mistake = rows[i].mistake;
		for (uint64_t seed = 0; seed < SEEDS; seed++) {
			int now = notice(job, seed);

			seen |= now;
			if (!mistake) {
				CHECK_EQ(now, 0);
				continue;
			}
			if (rows[i].always)
				CHECK(now & (rows[i].noticed | SIN_OTHER));
			if (seen & rows[i].noticed || (rows[i].always && seed == 1))
				break;
		}
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
		CHECK(!rows[i].noticed || seen); /* it may have spoken first */
#else
		CHECK_EQ(seen & rows[i].noticed, rows[i].noticed);
#endif
	}
}

#endif
