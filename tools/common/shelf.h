/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shelf.h - memory that grows, and that lies in unnamed files once it is large
 *
 * A list of 10^8 inputs has more bytes than many machines have memory.  What is put on a shelf is
 * plain memory while it is small.  Past SHELF_MEMORY_BYTES it is moved into an unnamed file of its
 * own, which is mapped.  The system may then write it out and read it back as it likes, as with any
 * other file.  On a file system in memory, such as tmpfs, nothing is gained.
 *
 * The disk's blocks are taken before they are used, so a full disk is a refusal and not a signal.
 * All of a shelf is used by one thread.  Others may read what lies on it.
 */
#ifndef SHARD_COMMON_SHELF_H
#define SHARD_COMMON_SHELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define SHELF_MEMORY_BYTES ((size_t)4 << 20) /* of each thing on it */

struct shelf;

/* A shelf in a folder that exists.  There is no file yet. */
struct shelf *shelf_open(const char *dir);

/* All that lies on it is gone.  NULL is nothing. */
void shelf_close(struct shelf *s);

/*
 * As realloc(): room for at least `need` bytes, of which the first *room are those of `data`.  More
 * than was asked for, so that adding a little many times takes time in proportion; *room says how
 * much.  Without a shelf, all of it is plain memory.  Returns NULL, with nothing changed, if a file
 * has no room; never without a shelf, see memory.h.
 */
void *shelf_grow(struct shelf *s, void *data, size_t *room, size_t need);

/* Give back what shelf_grow() returned, to the same shelf; NULL is nothing. */
void shelf_free(struct shelf *s, void *data);

/* Say why the last shelf_grow() failed.  `fmt` is what needs room.  Returns the exit code. */
int shelf_refuse(const struct shelf *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/*
 * qsort_r() for what may be large: it needs half as much room again, on the shelf.  Items that
 * compare equal may come in any order.  False, with the order as it was, if there is no room.
 */
bool shelf_sort(struct shelf *s, void *items, uint64_t count, size_t item_bytes,
		int (*compare)(const void *a, const void *b, void *context), void *context);

/*
 * The numbers from 0 to count - 1, on the shelf, in the order of what they stand for; where two
 * compare equal, the smaller one comes first.  NULL if there is no room.
 */
uint64_t *shelf_number(struct shelf *s, uint64_t count, int (*compare)(const void *a, const void *b, void *context),
		       void *context);

/*
 * A file without a name, which is gone when it is closed, in a folder that exists.  Where there are
 * no such files, it has for a moment a name that any packer removes.  -1 with errno if that cannot
 * be.
 */
int shelf_open_unnamed(const char *dir);

/* ---- arrays that grow as they are filled ---- */

/*
 * Make room for `need` items of `item_bytes` each.  `array` is the address of the pointer to them,
 * NULL while *capacity is 0, which free() gives back.  The room at least doubles, so that adding
 * items one by one takes time in proportion to their number.
 */
void grow(void *array, uint64_t *capacity, uint64_t need, size_t item_bytes);

/* The same for what an input makes large.  False, with nothing changed, if there is no memory. */
bool grow_if_room(void *array, uint64_t *capacity, uint64_t need, size_t item_bytes);

/*
 * The same on a shelf, for arrays that may be large.  shelf_free() gives them back, and
 * shelf_refuse() says why it failed.
 */
bool grow_on(struct shelf *s, void *array, uint64_t *capacity, uint64_t need, size_t item_bytes);

/* ---- a stream whose bytes are kept in memory ---- */

/*
 * open_memstream() would do, but there fclose() succeeds although the last bytes had no memory.
 */

struct memory_file {
	FILE *stream; /* write here */
	char *data;   /* after the close: what was written, and a NUL behind it; free() it */
	uint64_t bytes, capacity;
};

/* It may not be moved while it is open. */
void memory_file_open(struct memory_file *m);

/* All that was written is in m->data. */
void memory_file_close(struct memory_file *m);

#endif
