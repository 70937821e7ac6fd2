/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandbox_page.h - the memory that a worker process shares with the thread that it works for
 *
 *   this page | what comes out | what goes in
 *
 * The thread alone sets its size, and has room for all of it reserved: a write to it can then not
 * fail.  It believes nothing that stands there: it copies first and looks then.
 */
#ifndef SHARD_SANDBOX_SANDBOX_PAGE_H
#define SHARD_SANDBOX_SANDBOX_PAGE_H

#include <stddef.h>
#include <stdint.h>

#define SANDBOX_PAGE_BYTES    4096
#define SANDBOX_MESSAGE_BYTES 1024
#define SANDBOX_IN_MAX	      (UINT64_C(1) << 30)

struct sandbox_page {
	uint64_t in_bytes;
	uint32_t call;					     /* one that was forbidden, + 1; or 0 */
	uint32_t os_code;				     /* why the worker could not send a note and ended; or 0 */
	_Alignas(16) uint8_t message[SANDBOX_MESSAGE_BYTES]; /* the request, then the answer */
};

/* Where what comes in begins, behind what goes out. */
static inline size_t sandbox_page_in(size_t out_bytes)
{
	return SANDBOX_PAGE_BYTES + ((out_bytes + SANDBOX_PAGE_BYTES - 1) & ~(size_t)(SANDBOX_PAGE_BYTES - 1));
}

/* What is sent beside it, through the socket of the two. */
struct sandbox_note {
	uint64_t kind; /* enum sandbox_note_kind */
	uint64_t value;
};

enum sandbox_note_kind {
	NOTE_WORK = 1, /* to the worker: there is a request */
	NOTE_GO,       /* to the worker: what it asked for is there */
	NOTE_READY,    /* from the worker, when it is locked up */
	NOTE_REFUSED,  /* from the worker: it could not be; the value is an errno, 0 for a filter without effect */
	NOTE_DONE,     /* from the worker: there is an answer */
	NOTE_ASK,      /* from the worker: may it have so many bytes? */
};

#endif
