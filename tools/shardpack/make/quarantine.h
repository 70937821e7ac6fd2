/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quarantine.h - inputs that were left out, kept for a person to look at
 *
 * A folder that mirrors the source: bad files under their own relative paths, and
 * quarantine.jsonl, which says of each what is wrong with it.
 */
#ifndef SHARD_CONVERT_QUARANTINE_H
#define SHARD_CONVERT_QUARANTINE_H

#include <stdbool.h>
#include <stddef.h>

struct account;
struct plan;

struct quarantine {
	char *dir; /* absolute */
};

/* Make the folder if it is not there; its parent must be.  Returns the exit code. */
int quarantine_open(struct quarantine *q, const char *dir);
void quarantine_close(struct quarantine *q);

/*
 * Copy a file into it.  Any thread.  A file that is there already with the same bytes is
 * fine: an earlier run was interrupted.  False, and `message` says why, if it cannot be.
 */
bool quarantine_keep(const struct quarantine *q, const char *path, const void *bytes, size_t size, char *message,
		     size_t message_bytes);

/* Write quarantine.jsonl, in ordinal order.  Returns the exit code. */
int quarantine_list(const struct quarantine *q, const struct plan *plan, const struct account *account);

#endif
