/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress.h - the progress of the work, shown on stderr
 *
 *   packing 412,300/1,281,167 images   32%  5,312/s  762.4 MiB/s  ETA 2m 43s  3 bad
 *
 * On a terminal this is one line at the bottom, redrawn at most ten times a second.  In a
 * file it is a line at most every ten seconds.  Both end with a summary line.  With -q
 * there is nothing.  Workers add from any thread; one thread, the one that waits for them,
 * calls the rest.
 */
#ifndef SHARD_COMMON_PROGRESS_H
#define SHARD_COMMON_PROGRESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROGRESS_TICK_NS UINT64_C(100000000) /* a good pause between two progress_tick() */
#define PROGRESS_MARKS	 32

struct progress_mark {
	uint64_t now_ns, count, bytes;
};

struct progress {
	const char *label;    /* const: "packing" */
	const char *unit;     /* const: "images"; NULL: bytes are counted */
	uint64_t total_count; /* const: 0 if unknown */

	_Atomic uint64_t count, bytes, bad; /* any thread, through progress_add() */

	/* The rest is the ticking thread's own. */
	uint64_t start_ns, drawn_ns;		    /* drawn_ns 0: never */
	uint64_t resumed_count, resumed_bytes;	    /* done by an earlier process: in count, in no rate */
	struct progress_mark marks[PROGRESS_MARKS]; /* a ring of past states, half a second apart */
	uint64_t mark_count;			    /* ever made; the newest is mark_count - 1 */
};

/*
 * `label` and `unit` are kept, not copied.  Without a unit the total is of bytes, and
 * progress_add() gets them twice.
 */
void progress_start(struct progress *p, const char *label, const char *unit, uint64_t total_count);

/* Right after the start: the share that an earlier run had done already. */
void progress_resume(struct progress *p, uint64_t count, uint64_t bytes);

/* May be called from any thread.  A bad input is counted in `count` too. */
void progress_add(struct progress *p, uint64_t count, uint64_t bytes, uint64_t bad);

/* Draws if enough time has passed since the last drawing.  Cheap enough to call after each wait. */
void progress_tick(struct progress *p);

/* Remove the line and print the summary; or remove it only, when something went wrong. */
void progress_finish(struct progress *p);
void progress_abandon(struct progress *p);

/* The contents of a line.  Rates at or below 0 are not known. */
struct progress_state {
	const char *label, *unit;
	uint64_t count, total_count, bytes, bad;
	double count_per_second, bytes_per_second;
};

/* Compose the line in at most `columns` characters, leaving out the least important parts first. */
void progress_line(char *out, size_t out_bytes, const struct progress_state *state, unsigned columns);

/* The state at `now_ns` (CLOCK_MONOTONIC), with rates over about the last 15 seconds. */
void progress_state_at(struct progress *p, uint64_t now_ns, struct progress_state *state);

#endif
