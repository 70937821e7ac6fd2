/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dataset.h - what can be loaded: shards, datasets, selections and mixtures
 */
#ifndef LIBSHARD_DATASET_DATASET_H
#define LIBSHARD_DATASET_DATASET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libshard/base/bytes.h"
#include "libshard/format/format.h"
#include "libshard/order/order.h"
#include "shard.h"
#include "shard_inspect.h"

/*
 * ---- reader.c: one mapped shard ----
 *
 * The members that threads share never change after open, but for what is remembered of checks.
 * Two threads may check the same unit twice.  Bits of `seen` are cleared when bytes may have come
 * from a device again.  A thread that uses such a unit at that moment may have looked before.
 */

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
	const uint8_t *map; /* NULL: pages_only */
	uint64_t file_bytes, inode;
	uint32_t check;
	bool guard;
	struct pages *pages;		   /* owned; may end behind its sections: see reader_share_schema() */
	const struct shard_schema *schema; /* in pages, or the dataset's equal one */
	_Atomic(uint8_t *) stat_bytes;	   /* a copy, checked; NULL until reader_need_stat() */
	struct shard_reader *next_retired; /* of a dataset: see struct readers */
	atomic_uint sections_checked;	   /* bit i: I43 of section i */
	atomic_uint ready;		   /* bit g: a loader may use group g, whose tables are checked */
	atomic_bool has_regions;	   /* reader_ask_for_regions() was called */
	_Atomic uint64_t changed_ns;	   /* when the file last changed, as far as that was noticed */
	struct reader_group group[];	   /* [schema->group_count] */
};

/*
 * Open the file that is `path` now, and name it `shown_path` in messages.  So the
 * writer reads its temporary file back.
 */
int reader_open_as(struct shard_reader **out, const char *path, const char *shown_path,
		   const struct shard_reader_options *opt, struct shard_error *err);

/*
 * Use `schema`, which is equal to the shard's own and outlives the reader, and give the memory of
 * that back.  Call it before anybody else knows the reader, which may move.
 */
void reader_share_schema(struct shard_reader **r, const struct shard_schema *schema);

/*
 * Run work(context), which reads the map; with guard, a fault there is IO.  It may not lock or
 * allocate.  First this asks the system whether the thread blocks SIGBUS, which takes 0.2 us.  The
 * brief one trusts the thread's last answer: for work that takes less time than that.
 */
#define READER_ASK_BYTES 65536u /* to copy these takes much longer than to ask */
int reader_guarded(const struct shard_reader *r, void (*work)(void *context), void *context, struct shard_error *err);
int reader_guarded_brief(const struct shard_reader *r, void (*work)(void *context), void *context,
			 struct shard_error *err);
/* Copy bytes of the map, guarded so. */
int reader_copy(const struct shard_reader *r, void *to, const void *from, size_t bytes, struct shard_error *err);
/* The error of all three. */
int reader_cut(const struct shard_reader *r, struct shard_error *err);

uint64_t reader_unit_count(const struct shard_reader *r, uint32_t group);

/* I43 of a section whose bytes hash to that. */
int reader_check_section_hash(const struct section *s, const uint8_t hash[16], struct shard_error *err);

/* I43 of a section, once.  Then the bytes of the section can be taken from the map. */
int reader_check_section(struct shard_reader *r, const struct section *s, struct shard_error *err);

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
 * A region is what the kernel reads at once, if the map asks for huge pages: this many bytes of the
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

/* The leaf hash of a unit.  It lies on the map, and its table was checked. */
static inline uint64_t reader_leaf(const struct shard_reader *r, uint32_t group, uint64_t unit)
{
	return load64(r->group[group].leaf + 8 * unit);
}

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

/*
 * Decode the whole chunk `idx` of a compressed group.  If the reader checks hashes, the group's
 * tables must have been checked before.  With `check` the stored and the decoded bytes are hashed.
 */
int reader_read_chunk(struct shard_reader *r, uint32_t group, uint64_t idx, bool check, uint8_t *dst,
		      struct shard_error *err);
/* I44 for a chunk that was decoded without a check.  `decoded` is not on the map. */
int reader_check_chunk(struct shard_reader *r, uint32_t group, uint64_t idx, uint8_t *decoded, struct shard_error *err);
/* Ask the kernel to fetch `count` chunks, 1 or more, ahead of their use. */
void reader_fetch_chunks(struct shard_reader *r, uint32_t group, uint64_t idx, uint64_t count);

/* shard_reader_read(), but it does not read again where pages came from a device. */
int reader_read(struct shard_reader *r, uint32_t group, uint64_t first, uint64_t count, void *dst,
		struct shard_error *err);
/*
 * Where a record lies in the map that reader_read() would copy from there without a hash: its unit was
 * checked, or nothing is.  Else NULL.  `idx` must be below record_count.
 */
const uint8_t *reader_checked(const struct shard_reader *r, uint32_t group, uint64_t idx);
/* Has this thread had to wait for pages since it asked last? */
bool reader_had_faults(void);

/* Refuse what a reader of pages_only cannot do. */
int reader_need_map(const struct shard_reader *r, struct shard_error *err);

/* ---- reader_tables.c: what a shard holds besides records ---- */

/* Larger statistics, of thousands of classes, are read when needed: many such readers are kept. */
#define READER_STAT_BYTES 16384

/* Get and check statistics that were not yet (I43, I53, I54).  `open_fd` is -1, or the open file. */
int reader_need_stat(struct shard_reader *r, int open_fd, struct shard_error *err);

/* After that: the statistics of a field, `kind` of enum shard_stat_kind, and how many; NULL if none. */
const uint8_t *reader_stat(const struct shard_reader *r, uint32_t kind, uint32_t field, uint64_t *items);

/* ---- manifest_file.c: the text of a dataset ---- */

#define MANIFEST_FILE_BYTES_MAX (UINT64_C(1) << 36)

struct manifest_file {
	char *text; /* with a NUL behind it; to free with mem_free() */
	size_t bytes;
	struct manifest_end end;
};

/*
 * M1 to M3.  The first and the last line are looked at before anything is read or allocated.  Then
 * the text is read as it grows, up to a line that is longer than M5 allows: `text` ends in that
 * line then, where manifest_parse() finds it, and the rest is hashed but not kept.
 */
int manifest_file_read(struct manifest_file *out, const char *path, struct shard_error *err);

/* M15, and the id: `got` is the SHA-256 of the text, computed from its bytes. */
int manifest_file_check_id(const char *text, const struct manifest_end *end, uint8_t got[32], struct shard_error *err);

/* For qsort(): names that end at a space, LF or NUL, which sort before any byte of a name. */
int manifest_by_name(const void *a, const void *b);

/* ---- dataset.c: a manifest and its shards as one index space ---- */

/* The readers that are open: see dataset.c. */
#define READERS_KEPT  1u /* in a word: it stays open */
#define READERS_USED  2u /* in a word: it was used since readers_make_room() has passed */
#define READERS_FLAGS ((uintptr_t)3)

struct readers {
	_Atomic uintptr_t *word; /* [count]: a reader, with flags; 0 if the shard is not open */
	uint64_t count, most;	 /* const after open; a process shall have fewer than `most` readers */
	/*
	 * A reader that is taken out of the table waits in the list of its era.  The next era
	 * begins once nobody is inside of the one before.  Then nobody can have what waited there.
	 */
	atomic_uint era, inside[2];
	atomic_flag busy; /* a thread makes room, and owns: */
	struct shard_reader *retired[2];
	uint64_t hand; /* the next word to look at */
};

#define DATASET_MANIFEST "dataset.manifest"

struct shard_dataset { /* const after open, but for the readers, which come and go */
	char *dir;
	char *manifest_path;
	struct manifest_file text;
	struct manifest m;
	struct shard_dataset_options o;
	uint64_t *first_record;				 /* [shard_count + 1]: shard s holds [first[s], first[s + 1]) */
	const char **line;				 /* [shard_count]: where in the text its file name starts */
	uint64_t data_bytes;				 /* of all shard files */
	char *class_names;				 /* NUL-terminated, one behind the other */
	uint64_t *class_at;				 /* [class_count]: where in class_names */
	struct shard_moments *moments[SHARD_FIELDS_MAX]; /* one per channel, or NULL */
	uint64_t *class_records[SHARD_FIELDS_MAX];
	uint64_t stat_count[2][SHARD_FIELDS_MAX]; /* [kind - 1] */
	struct readers readers;			  /* of the shards that are open */

	/* Of a joined dataset (mixture.c), which has readers of its own, and no manifest. */
	struct shard_dataset **part; /* [part_count] */
	uint64_t *part_shard;	     /* [part_count + 1]: part p has the shards [part_shard[p], part_shard[p + 1]) */
	uint32_t part_count;	     /* 0: it is an ordinary dataset */
	bool parts_differ;	     /* not all have their records stored as the schema says */
	uint32_t uneven_groups;	     /* a bit for each group that is not stored alike in all parts */
};

/* Returns false if there is no memory. */
bool readers_open(struct readers *t, uint64_t count);
void readers_close(struct readers *t); /* and all readers */

unsigned readers_enter(struct readers *t); /* returns what leave wants */
void readers_leave(struct readers *t, unsigned entered);

/* The reader of a shard, or NULL.  Inside. */
static inline struct shard_reader *readers_peek(const struct readers *t, uint64_t idx)
{
	uintptr_t word = atomic_load_explicit(&t->word[idx], memory_order_acquire);

	return (struct shard_reader *)(word & ~READERS_FLAGS); /* NOLINT(performance-no-int-to-ptr) */
}

/*
 * If too many are open, close some.  With `all`, close all that are not kept, however many are
 * open.  Returns whether one was taken out of the table or closed.
 */
bool readers_make_room(struct readers *t, bool all);

/* Which shard holds record `idx`, which must be below record_count. */
uint64_t dataset_shard_of(const struct shard_dataset *ds, uint64_t idx);

/*
 * A reader of a shard, opened if it is not open yet, for a caller between readers_enter() and
 * readers_leave().
 */
int dataset_use_shard(struct shard_dataset *ds, uint64_t idx, struct shard_reader **out, struct shard_error *err);

/* A reader of a shard for a caller who closes it before the dataset. */
int dataset_open_shard(const struct shard_dataset *ds, uint64_t idx, struct shard_reader **out,
		       struct shard_error *err);

/* Which dataset it is: the manifest's SHA-256, in hex, as shard_dataset_info() says it. */
void dataset_id(const struct shard_dataset *ds, char id[65]);
/* MISMATCH if `want` is the id of another one.  `what` is of that dataset, for the message: "the selection is". */
int dataset_check_id(const struct shard_dataset *ds, const char want[65], const char *what, struct shard_error *err);

/*
 * The dataset `id`, which a token names, may be this one before others were appended.  Then its
 * manifest is kept beside this one's.  The first call only looks whether there is such a file.  The
 * other one reads how many records it had.  MISMATCH if it is not there, or if this dataset does not
 * begin with the same shards.
 */
bool dataset_has_old_manifest(const struct shard_dataset *ds, const char *id);
int dataset_records_before(const struct shard_dataset *ds, const char *id, uint64_t *records, struct shard_error *err);

/* Returns whether it, or a part of it, lies on a network file system. */
bool dataset_is_remote(const struct shard_dataset *ds);

/*
 * ---- fetch.c: have the kernel read what a mapped shard lacks, once in an epoch, before it is used ----
 *
 * The records of a dataset that fits the page cache are fetched in regions of 2 MiB: see
 * reader_ask_for_regions().  Two threads of our own wait for the disk meanwhile.  What a thread
 * needs and they have not begun to read, it reads itself.  Of a dataset that does not fit only the
 * run of records is fetched that the order uses together.
 *
 * With SHARD_CHECK_DEVICE a reader forgets its checks of what is fetched.
 */

#define FETCH_RUN_BYTES (UINT64_C(256) << 10) /* of neighbours: worth one request to a disk */

struct fetch_thread;

/* The epochs in which the fetch of a piece began, and in which it ended. */
struct fetch_marks {
	_Atomic uint8_t begun, there;
};

struct fetch {
	uint64_t shard_count; /* const after open, as: */
	uint64_t run_records;
	uint64_t apart_records; /* to fetch one of as many neighbours fetches all of them */
	bool fits;
	bool asks;			       /* for regions, which takes maps */
	atomic_bool reads_small;	       /* the kernel reads page by page where it shall read regions */
	atomic_bool wants_threads;	       /* they were needed, so they were started, or could not be */
	_Atomic(struct fetch_thread *) thread; /* [FETCH_THREADS]; NULL: there are none */
	/* [shard_count] [piece][group] */
	_Atomic(struct fetch_marks *) *marks;
};

/*
 * `record_bytes` are those of all groups; `has_maps`: a shard may take more than one.  Returns NULL
 * if there is no memory.
 */
struct fetch *fetch_open(uint64_t shard_count, uint64_t record_bytes, bool fits, bool has_maps);
void fetch_close(struct fetch *f, bool inherited); /* NULL is fine; inherited: the caller is a forked child */

/* A mapped shard is not hot: its records will be fetched. */
void fetch_expect(const struct fetch *f, struct shard_reader *r);

static inline uint8_t fetch_mark(uint64_t epoch)
{
	return (uint8_t)(epoch % 255 + 1);
}

static inline bool fetch_has_regions(const struct fetch *f, const struct reader_group *g)
{
	return f->fits && !g->compressed;
}

/* The pieces that a record lies in: regions, by their numbers in the file, or its run. */
static inline void fetch_pieces(const struct fetch *f, const struct shard_reader *r, uint32_t group, uint64_t inside,
				uint64_t *first, uint64_t *last)
{
	const struct reader_group *g = &r->group[group];
	uint64_t begin = reader_raw_begin(r, group) + inside * g->stride;

	if (fetch_has_regions(f, g)) {
		*first = begin / READER_REGION_BYTES;
		*last = (begin + g->stride - 1) / READER_REGION_BYTES;
	} else {
		*first = *last = inside / f->run_records;
	}
}

/* The records that were fetched with one, as far as they are whole: from *first to before *end. */
static inline void fetch_neighbours(const struct fetch *f, const struct shard_reader *r, uint32_t group,
				    uint64_t inside, uint64_t *first, uint64_t *end)
{
	const struct reader_group *g = &r->group[group];
	uint64_t data = reader_raw_begin(r, group), from, to, records = r->pages->record_count;

	fetch_pieces(f, r, group, inside, &from, &to);
	if (!fetch_has_regions(f, g)) {
		*first = from * f->run_records;
		*end = min_u64(*first + f->run_records, records);
		return;
	}
	from *= READER_REGION_BYTES;
	to = (to + 1) * READER_REGION_BYTES;
	*first = from > data ? ceil_div(from - data, g->stride) : 0;
	*end = min_u64((to - data) / g->stride, records);
}

/* Was all of a record fetched, in the epoch of this mark? */
static inline bool fetch_is_there(const struct fetch *f, uint64_t shard, const struct shard_reader *r, uint32_t group,
				  uint64_t inside, uint8_t mark)
{
	const struct fetch_marks *marks = atomic_load_explicit(&f->marks[shard], memory_order_acquire);
	uint64_t first, last;

	if (!marks)
		return false;
	fetch_pieces(f, r, group, inside, &first, &last);
	for (; first <= last; first++)
		if (atomic_load_explicit(&marks[first * SHARD_GROUPS_MAX + group].there, memory_order_acquire) != mark)
			return false;
	return true;
}

/* Begin to fetch a record.  Returns whether fetch_await() shall be called before it is used. */
bool fetch_begin(struct fetch *f, uint64_t shard, struct shard_reader *r, uint32_t group, uint64_t inside,
		 uint64_t epoch);

/*
 * Wait until a record of a raw group is there.  The kernel counts such waiting as major faults;
 * this returns how many.
 */
uint64_t fetch_await(struct fetch *f, uint64_t shard, struct shard_reader *r, uint32_t group, uint64_t inside,
		     uint64_t epoch);

/* ---- selection.c: some records of a dataset ---- */

struct shard_selection {
	char dataset_id[65], digest[65];
	uint64_t of_count; /* records of the dataset */
	uint64_t count;	   /* of them that are selected: 1 or more */

	/* One of three. */
	uint32_t *list32; /* [count] */
	uint64_t *list64; /* [count], if of_count needs more than 32 bits */
	uint64_t *bits;	  /* a bit for each record of the dataset */

	/* With bits: how many are selected before each block, and the block of every SELECTION_HINT-th. */
	uint64_t *before; /* [blocks + 1] */
	uint64_t *hint;	  /* [count / SELECTION_HINT + 2] */
};

#define SELECTION_BLOCK_WORDS 8u    /* of 64 bits: a cache line */
#define SELECTION_HINT	      4096u /* selected records */

/* A bit for each record of the dataset, all 0.  Fails if there is no memory. */
int selection_open_bits(const struct shard_dataset *ds, uint64_t **bits, struct shard_error *err);
static inline void selection_set_bit(uint64_t *bits, uint64_t record)
{
	bits[record / 64] |= UINT64_C(1) << (record & 63);
}

/* Clear the bits of records that `of` does not select. */
void selection_keep(uint64_t *bits, const struct shard_selection *of);

/*
 * Make a selection of these bits of selection_open_bits(), which it takes over and may free.
 * ARGUMENT if none is set.  `what` describes the selection, for that message.
 */
int selection_make(struct shard_selection **out, const struct shard_dataset *ds, uint64_t *bits, const char *what,
		   struct shard_error *err);

uint64_t selection_at(const struct shard_selection *s, uint64_t i);
/* The same, if the record before it is `next` - 1: for a caller who asks for all of them, in order. */
uint64_t selection_following(const struct shard_selection *s, uint64_t i, uint64_t next);
/* idx[i] becomes selection_at(s, idx[i]). */
void selection_many(const struct shard_selection *s, uint64_t *idx, size_t count);
/* The first selected record from `record` on; behind the last one, the first of all. */
uint64_t selection_next(const struct shard_selection *s, uint64_t record);

/*
 * How many units of `unit_records` records hold selected ones?  It is an estimate, from a sample of
 * neighbours.  At least 1, and at most `count`.
 */
uint64_t selection_units(const struct shard_selection *s, uint64_t unit_records);

/*
 * Cut a selection to a dataset as it was before others were appended: `id` had the first `of_count`
 * records only.  Returns how many records of `s` are among these, and the digest of that selection.
 */
uint64_t selection_beginning(const struct shard_selection *s, const char id[65], uint64_t of_count, char digest[65]);

/* ---- episodes.c: which records lie together ---- */

struct shard_episodes {
	char dataset_id[65];
	uint64_t count;
	uint64_t *begin; /* [count + 1] the first record of each; the last one is the end of the dataset */
	/* The episode at the begin of each of `count` equal pieces of the dataset, and the last one. */
	uint64_t *near; /* [count + 1] */
	uint64_t piece_records;
};

/* Fill the pieces of episodes that have all else.  Returns whether there was memory for them. */
bool episodes_index(struct shard_episodes *e);

/* Returns the episode of a record.  The search has few steps unless episodes differ much in length. */
static inline uint64_t episodes_find(const struct shard_episodes *e, uint64_t record)
{
	const uint64_t *near = e->near + record / e->piece_records;

	return near[0] + run_holding(e->begin + near[0], near[1] - near[0] + 1, record);
}

/* ---- mixture.c: several datasets as one, one behind the other or in a proportion ---- */

struct component {
	const struct shard_dataset *ds;
	const struct shard_selection *selection; /* NULL: all records */
	uint64_t count;				 /* records of the component */
	uint64_t base;				 /* the number of its record 0 in the joined dataset */
};

struct shard_mix {		  /* const after open */
	struct shard_dataset *ds; /* all datasets joined, each once */
	struct component *component;
	uint32_t *weight; /* [component_count] */
	uint32_t component_count, weight_sum;
	uint64_t epoch_records;
	char digest[65];
};

/* MISMATCH unless all parts of a joined dataset agree on the fields that have a bit here. */
int joined_check_fields(const struct shard_dataset *ds, uint32_t fields, struct shard_error *err);

/*
 * ---- mix_order.c: the order of a mixture: its blocks, and the orders of the passes of its components ----
 *
 * Tables are made when they are first needed, and kept for the blocks and passes that are under
 * way: two of each lane, and two of each component.  Any thread may ask; they take turns.
 */

struct mix_order;

/*
 * The parameters are those of a loader's steps: record_count is ignored.  The mixture must outlive
 * the order.  ARGUMENT if there are too many lanes for its weights.
 */
int mix_order_open(struct mix_order **out, const struct shard_mix *m, const struct order_params *params,
		   struct shard_error *err);
void mix_order_close(struct mix_order *o, bool inherited); /* inherited: the caller is a forked child */

/* Use other parameters from now on.  After a failure nothing has changed. */
int mix_order_adopt(struct mix_order *o, const struct order_params *params, struct shard_error *err);

const struct shard_mix *mix_order_mixture(const struct mix_order *o);

/* The parameters of a component's order in its first pass.  Not while another thread adopts. */
struct order_params mix_order_params(const struct mix_order *o, uint32_t component);

/*
 * The components of the positions first + i * stride, and their records, as numbers in the joined
 * dataset.
 */
void mix_order_fill(struct mix_order *o, uint64_t first, uint64_t stride, uint16_t *component, uint64_t *record,
		    uint32_t count);

#endif
