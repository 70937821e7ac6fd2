/* SPDX-License-Identifier: Apache-2.0 */
/*
 * child.h - a part of a test in a process of its own, which may crash, hang or be killed
 *
 *   if (child_begin(&pid, 20))
 *           _exit(story());
 *   CHECK(WIFSIGNALED(child_end(pid)));
 */
#ifndef TESTS_CHILD_H
#define TESTS_CHILD_H

#include <sys/wait.h>

#include "tests/test.h"

/* True in the child, which SIGALRM ends after so many seconds; 0: it may take any time. */
static inline bool child_begin(pid_t *pid, unsigned seconds)
{
	fflush(stdout);
	*pid = fork();
	CHECK(*pid >= 0);
	if (!*pid)
		alarm(seconds);
	return !*pid;
}

/* Its wait status. */
static inline int child_end(pid_t pid)
{
	int status;

	CHECK_EQ(waitpid(pid, &status, 0), pid);
	return status;
}

#endif
