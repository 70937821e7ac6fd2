/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader.h - one mapped shard, as this room and those above it see it
 *
 * The members that threads share never change after open, but for what is remembered of checks.
 * Two threads may check the same unit twice.  Bits of `seen` are cleared when bytes may have come
 * from a device again.  A thread that uses such a unit at that moment may have looked before.
 */
#ifndef SHARD_READ_READER_H
#define SHARD_READ_READER_H

#include <stdatomic.h>
#include <stdbool.h>

#include "libshard/format/format.h"
#include "shard.h"
#include "shard_pack.h"

struct chunk; /* format/format.h */

struct reader_group { /* const after open */
	uint64_t stride;
	uint32_t unit_records;
	bool compressed;
	const uint8_t *data; /* raw records, or chunks */
	const uint8_t *leaf; /* HASH: 8 bytes a unit */
	const struct disk_chunk *index;
	_Atomic(_Atomic uint64_t *) seen; /* bit u: unit u was checked; made when first needed */
	atomic_bool has_seen;		  /* a bit may be set */
	atomic_bool tables_checked;	  /* I43 of HASH and CIDX */
};

struct shard_reader {
	char *path;
	const uint8_t *map;
	uint64_t file_bytes, inode;
	uint32_t check;
	bool guard;
	struct pages *pages;		   /* owned; may end behind its sections: see reader_share_schema() */
	const struct shard_schema *schema; /* in pages, or the dataset's equal one */
	struct shard_reader *next_retired; /* of a dataset: see dataset_readers.c */
	atomic_uint sections_checked;	   /* bit i: I43 of section i */
	atomic_uint ready;		   /* bit g: a loader may use group g, whose tables are checked */
	atomic_bool has_regions;	   /* reader_ask_for_regions() was called */
	_Atomic uint64_t changed_ns;	   /* when the file last changed, as far as that was noticed */
	struct reader_group group[];	   /* [schema->group_count] */
};

/*
 * Open the file that is `path` now, known to others as `shown_path`.  The writer reads back its
 * temporary file so.
 */
int reader_open_as(struct shard_reader **out, const char *path, const char *shown_path,
		   const struct shard_reader_options *opt, struct shard_error *err);

/*
 * Use `schema`, which is equal to the shard's own and outlives the reader, and give the memory of
 * that back.  Before anybody else knows the reader, which may move.
 */
void reader_share_schema(struct shard_reader **r, const struct shard_schema *schema);

/*
 * Run work(context), which reads the map; with guard, a fault there is IO.  It may not lock or
 * allocate.  First this asks the system whether the thread blocks SIGBUS, which takes 0.2 us.  The
 * brief one trusts the thread's last answer: for work that takes less time than that.
 */
int reader_guarded(const struct shard_reader *r, void (*work)(void *context), void *context, struct shard_error *err);
int reader_guarded_brief(const struct shard_reader *r, void (*work)(void *context), void *context,
			 struct shard_error *err);
/* The error of both. */
int reader_cut(const struct shard_reader *r, struct shard_error *err);

uint64_t reader_unit_count(const struct shard_reader *r, uint32_t group);
uint64_t reader_unit_bytes(const struct shard_reader *r, uint32_t group, uint64_t unit); /* decoded */

/* I43 of a section, once.  Then the section's bytes can be taken from the map. */
int reader_check_section(struct shard_reader *r, const struct section *s, struct shard_error *err);
const uint8_t *reader_section_bytes(const struct shard_reader *r, const struct section *s);

/* I43 of the tables that a group's records need. */
int reader_check_tables(struct shard_reader *r, uint32_t group, struct shard_error *err);

/* Which units of a group were checked: bit u % 64 of word u / 64.  NULL if there is no memory. */
_Atomic uint64_t *reader_seen(struct shard_reader *r, uint32_t group);

static inline bool reader_remembers(const struct shard_reader *r)
{
	return r->check == SHARD_CHECK_DEVICE || r->check == SHARD_CHECK_FIRST;
}

/* Returns whether the bit was clear. */
static inline bool reader_set_seen(struct reader_group *g, _Atomic uint64_t *word, uint64_t bit)
{
	bool first = !(atomic_fetch_or_explicit(word, bit, memory_order_release) & bit);

	if (first && !atomic_load_explicit(&g->has_seen, memory_order_relaxed))
		atomic_store_explicit(&g->has_seen, true, memory_order_release);
	return first;
}

/* Where the records of a raw group lie in the file. */
static inline uint64_t reader_raw_begin(const struct shard_reader *r, uint32_t group)
{
	return (uint64_t)(r->group[group].data - r->map);
}

static inline uint64_t reader_raw_end(const struct shard_reader *r, uint32_t group)
{
	return reader_raw_begin(r, group) + r->pages->record_count * r->group[group].stride;
}

/*
 * A region is what the kernel reads at once, if the map asks for huge pages: so many bytes of the
 * file, at a multiple of that.  Only regions that lie in one raw group are read so.
 */
#define READER_REGION_BYTES (UINT64_C(2) << 20)
void reader_ask_for_regions(struct shard_reader *r);

/*
 * With SHARD_CHECK_DEVICE, forget that units were checked: those of these records and of others
 * that share a page or region with them; those with bytes in [begin, end) of the file, of a raw
 * group; of a group; of all groups.  Other checks remember for ever.
 */
void reader_forget(struct shard_reader *r, uint32_t group, uint64_t first, uint64_t count);
void reader_forget_bytes(struct shard_reader *r, uint32_t group, uint64_t begin, uint64_t end);
void reader_forget_group(struct shard_reader *r, uint32_t group);
void reader_forget_all(struct shard_reader *r);

/*
 * If somebody has written to the file since this was asked last, or since it was opened, forget all
 * groups.  The file may be open as `fd`, else that is -1.
 */
void reader_look_for_changes(struct shard_reader *r, int fd);

/* shard_reader_read() without a second look. */
int reader_read(struct shard_reader *r, uint32_t group, uint64_t first, uint64_t count, void *dst,
		struct shard_error *err);
/* Has this thread had to wait for pages since it asked last? */
bool reader_had_faults(void);

/* I44 for a unit whose hash is `got`, and for decoded bytes. */
int reader_check_hash(const struct shard_reader *r, uint32_t group, uint64_t unit, uint64_t got,
		      struct shard_error *err);
int reader_check_unit(const struct shard_reader *r, uint32_t group, uint64_t unit, const void *decoded,
		      struct shard_error *err);

/* I45: chunk `idx` of a group.  Reads the map, so it belongs under the guard. */
int reader_chunk(const struct shard_reader *r, uint32_t group, uint64_t idx, struct chunk *out,
		 struct shard_error *err);
/* I46 with `check`, I47: decode `stored`, the chunk's padded bytes, into decoded_bytes at dst. */
int reader_decode_chunk(uint32_t group, uint64_t idx, const struct chunk *c, const void *stored, bool check, void *dst,
			struct shard_error *err);

#endif
