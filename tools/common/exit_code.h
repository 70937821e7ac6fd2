/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exit_code.h - the exit code of a failed call of the library, and the end of a tool's stdout
 */
#ifndef SHARD_COMMON_EXIT_CODE_H
#define SHARD_COMMON_EXIT_CODE_H

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

struct shard_error;

/* The exit code for a status of the library. */
int exit_code_of_status(int shard_status);

/* Print the message of a call of the library that failed, and return its exit code. */
int fail_of_library(const struct shard_error *err);

/*
 * Make sure that descriptors 0, 1 and 2 are open.  A descriptor that the caller had closed is
 * opened so that each use of it fails.  Without this, the first shard opened would become stdout.
 */
void reserve_standard_descriptors(void);

/*
 * Close stdout.  The answer is EXIT_DONE if everything was written.  Else the cause is printed and
 * the answer is EXIT_IO.  Nothing is printed if the reader left early (`| head`), which is EXIT_IO,
 * too, or if a signal came while it waited for the reader: EXIT_INTERRUPTED.  A tool that writes
 * much checks ferror(stdout) now and then and stops.
 */
int finish_stdout(void);

#endif
