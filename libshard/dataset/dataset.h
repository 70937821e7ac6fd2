/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dataset.h - what can be loaded: shards, datasets, selections and mixtures
 */
#ifndef SHARD_DATASET_DATASET_H
#define SHARD_DATASET_DATASET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "libshard/dataset/reader.h"
#include "libshard/dataset/selection.h"
#include "libshard/format/format.h"
#include "shard.h"
#include "shard_pack.h"

/* ---- dataset_readers.c ---- */

struct shard_reader;

#define READERS_KEPT  1u /* in a word: it stays open */
#define READERS_USED  2u /* in a word: it was used since readers_make_room() has passed */
#define READERS_FLAGS ((uintptr_t)3)

struct readers {
	_Atomic uintptr_t *word; /* [count]: a reader, with flags; 0 if the shard is not open */
	uint64_t count, most;	 /* const after open; more than `most` readers of a process are too many */
	/*
	 * A reader that is taken out of the table waits in the list of its era.  The next era
	 * begins once nobody is inside of the one before.  Then nobody can have what waited there.
	 */
	atomic_uint era, inside[2];
	atomic_flag busy; /* a thread makes room, and owns: */
	struct shard_reader *retired[2];
	uint64_t hand; /* the next word to look at */
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

/* The same, which is in use now. */
struct shard_reader *readers_use(struct readers *t, uint64_t idx);

/* Only one that is kept: nobody need be inside. */
struct shard_reader *readers_kept(const struct readers *t, uint64_t idx);

/*
 * Enter a reader that was just opened, or close it if another thread was first.  Returns which it
 * is.  Inside.
 */
struct shard_reader *readers_add(struct readers *t, uint64_t idx, struct shard_reader *r);

/* Keep it open as long as the dataset.  Returns false if it is not there any more. */
bool readers_keep(struct readers *t, uint64_t idx, const struct shard_reader *r);

/*
 * If too many are open, close some.  With `all`, close all that are not kept, however many are
 * open.  Returns whether one was taken out of the table or closed.
 */
bool readers_make_room(struct readers *t, bool all);

/* ---- manifest_file.c ---- */

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

/*
 * dataset.c - a dataset as feed/ and the verifier see it
 */

#define DATASET_MANIFEST "dataset.manifest"

struct shard_dataset { /* const after open, but for the readers, which come and go */
	char *dir;
	char *manifest_path;
	struct manifest_file text;
	struct manifest m;
	struct shard_dataset_options o;
	uint64_t *first_record;				 /* [shard_count + 1]: shard s holds [first[s], first[s + 1]) */
	const char **line;				 /* [shard_count]: where in the text its file name starts */
	char *class_names;				 /* NUL-terminated, one behind the other */
	uint64_t *class_at;				 /* [class_count]: where in class_names */
	struct shard_moments *moments[SHARD_FIELDS_MAX]; /* one per channel, or NULL */
	uint64_t *class_records[SHARD_FIELDS_MAX];
	uint64_t stat_count[2][SHARD_FIELDS_MAX]; /* [kind - 1] */
	struct readers readers;			  /* of the shards that are open */

	/* Of a joined dataset (dataset_join.c), which has readers of its own. */
	struct shard_dataset **part; /* [part_count] */
	uint64_t *part_shard;	     /* [part_count + 1]: part p has the shards [part_shard[p], part_shard[p + 1]) */
	uint32_t part_count;	     /* 0: it is an ordinary dataset */
	bool parts_differ;	     /* not all have their records stored as the schema says */
	uint32_t uneven_groups;	     /* a bit for each group that is not stored alike in all parts */
};

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

/*
 * Which dataset it is: the manifest's SHA-256, in hex, as shard_dataset_info() says it besides what
 * needs all its lines.
 */
void dataset_id(const struct shard_dataset *ds, char id[65]);

/* Units and bytes in all shards, by arithmetic; the number of shards is returned. */
uint64_t dataset_totals(const struct shard_dataset *ds, uint64_t *units, uint64_t *bytes);

/* ---- dataset_join.c ---- */

/*
 * Join `count` parts, 1 or more, which must outlive it.  shard_dataset_close() closes it, and no
 * part.  ARGUMENT if they were not opened with the same checks.
 */
int dataset_join(struct shard_dataset **out, struct shard_dataset *const *part, uint32_t count,
		 struct shard_error *err);

/* The number of record 0 of a part in the whole. */
uint64_t dataset_part_base(const struct shard_dataset *ds, uint32_t part);

/*
 * MISMATCH unless the datasets have the same fields, of those that `fields` has a bit for, and the
 * same classes.  Where values vary in length, the largest shapes may differ.  The message says what
 * differs, and what to do.
 */
int dataset_agree(const struct shard_dataset *a, const struct shard_dataset *b, uint32_t fields,
		  struct shard_error *err);

/* Returns whether it, or a part of it, lies on a network file system. */
bool dataset_is_remote(const struct shard_dataset *ds);

/* ---- outline.c ---- */

/* Larger statistics, of thousands of classes, are read when needed: many outlines are kept. */
#define OUTLINE_STAT_BYTES 16384

struct shard_outline { /* const after open, but for statistics that are read later */
	char *path;
	uint64_t file_bytes;
	const struct section *stat; /* NULL: it has no statistics */
	uint8_t *stat_bytes;	    /* checked; NULL until outline_need_stat() if they are large */
	struct pages pages;
};

/* I1 to I42 of an open file of so many bytes. */
int outline_read_pages(struct pages *pages, int fd, uint64_t file_bytes, const char *path, struct shard_error *err);

/* `schema` is that of the pages, wherever it is kept. */
void outline_info(const struct pages *p, const struct shard_schema *schema, struct shard_info *out);

/* I43 of a section whose bytes hash to that. */
int outline_check_hash(const struct section *s, const uint8_t hash[16], struct shard_error *err);

/* Read and check statistics that were not yet (I43, I53, I54). */
int outline_need_stat(struct shard_outline *o, struct shard_error *err);

/* The statistics of a field, `kind` of enum shard_stat: its items, and how many; NULL if none. */
const uint8_t *outline_stat(const struct shard_outline *o, uint32_t kind, uint32_t field, uint64_t *items);

/* ---- reader_chunks.c ---- */

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

/* ---- selection_text.c ---- */

#define SELECTION_HEAD_BYTES 256u
#define SELECTION_TAIL_BYTES 72u /* "sha256 ", 64 digits, a newline */

/*
 * Make a selection of these bits of selection_open_bits(), which it takes over and may free.
 * ARGUMENT if none is set.  `what` describes the selection, for that message.
 */
int selection_make(struct shard_selection **out, const struct shard_dataset *ds, uint64_t *bits, const char *what,
		   struct shard_error *err);

/*
 * Cut a selection to a dataset as it was before others were appended: `id` had the first `of_count`
 * records only.  Returns how many records of `s` are among these, and the digest of that selection.
 */
uint64_t selection_beginning(const struct shard_selection *s, const char id[65], uint64_t of_count, char digest[65]);

/* The lines before the gaps, which have so many bytes.  Returns how many bytes the lines have. */
int selection_put_head(const struct shard_selection *s, uint64_t gaps, char head[SELECTION_HEAD_BYTES]);

#endif
