/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exit_codes.h - the meaning of a tool's exit code
 */
#ifndef SHARD_COMMON_EXIT_CODES_H
#define SHARD_COMMON_EXIT_CODES_H

enum exit_code {
	EXIT_DONE = 0,
	EXIT_BAD = 1,	      /* corrupt shard, or bad input beyond what the policy allows */
	EXIT_USAGE = 2,	      /* fix the command */
	EXIT_IO = 3,	      /* the system refused: disk, memory, device */
	EXIT_UNSUPPORTED = 4, /* well-formed, but needs a newer or fuller build */
	EXIT_MISMATCH = 5,    /* sound, but not as the manifest says */
	EXIT_STOPPED = 75,    /* asked to stop with work left: run again */
	EXIT_INTERRUPTED = 130,
};

#endif
