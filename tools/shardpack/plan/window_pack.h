/* SPDX-License-Identifier: Apache-2.0 */
/*
 * window_pack.h - which pieces of documents share a window: best fit decreasing, over lengths alone
 *
 * The longest piece comes first.  Each goes into the fullest window that has room for it, or into a
 * new one.  Pieces of one length are alike, and so are windows with equal room.  So whole groups
 * are moved at once, and memory follows the number of different lengths, not of pieces.  A window
 * with as many pieces as it may have is full, whatever room is left.
 *
 * A piece is known by its place: its number when pieces are sorted by length, longest first, and
 * within a length by where they lie.  Pure.
 */
#ifndef SHARD_TOKEN_PACK_WINDOW_PACK_H
#define SHARD_TOKEN_PACK_WINDOW_PACK_H

#include <stdbool.h>
#include <stdint.h>

/* `times` pieces of one length went into each of some windows, of which `window` is the first. */
struct window_step {
	uint64_t window, place; /* of the first piece in it; the next `times` are those of the next window */
	uint32_t length, times;
	uint32_t before; /* the step that came before in these windows; WINDOW_STEP_NONE */
};

/* Windows [first, first + count) that were filled by the same steps. */
struct window_range {
	uint64_t first, count;
	uint32_t step; /* the last one */
	uint32_t pieces;
	uint32_t next; /* while packing: another range with the same room */
};

#define WINDOW_STEP_NONE UINT32_MAX

struct window_pack { /* start it zeroed */
	struct window_step *step;
	struct window_range *range; /* at the end by window, without holes */
	uint64_t step_count, range_count, step_capacity, range_capacity;
	uint64_t window_count;
	uint32_t piece_max; /* most pieces in a window */
};

struct window_piece {
	uint64_t place;
	uint32_t length;
};

/*
 * count[length], for lengths 1 to `room`, are how many pieces there are.  A window has at most
 * `most_pieces`, 1 or more.  False: no memory.
 */
bool window_pack_make(struct window_pack *p, const uint64_t *count, uint32_t room, uint32_t most_pieces);
void window_pack_free(struct window_pack *p);

/* The pieces of a window, longest first, into out[piece_max].  Returns how many. */
uint32_t window_pack_pieces(const struct window_pack *p, uint64_t window, struct window_piece *out);

#endif
