/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token_windows.h - the windows of a plan of packed documents, computed from the documents' lengths
 *
 * Memory follows the length of a window, not the number of documents.  Where each piece lies, 8
 * bytes of it, is in an unnamed file that is mapped.
 */
#ifndef SHARD_SHARDPACK_INPUT_TOKEN_WINDOWS_H
#define SHARD_SHARDPACK_INPUT_TOKEN_WINDOWS_H

#include <stdint.h>

struct plan;
struct progress;
struct stored;

/*
 * Of a new plan, whose streams are known: fill in all the rest of plan->pack.  Says why it fails
 * and returns the exit code.
 */
int token_windows_make(const struct stored *s, struct plan *plan, uint32_t room, struct progress *progress);

/*
 * Of a plan that was read: the same, and EXIT_MISMATCH if the documents are not those of the plan.
 * Nothing is done for other plans.  `anew` says how to pack all anew.
 */
int token_windows_again(const struct stored *s, struct plan *plan, const char *anew);

#endif
