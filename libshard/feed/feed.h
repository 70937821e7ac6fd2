/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feed.h - steps, and the threads that fill batches in host memory with the records of these
 */
#ifndef SHARD_FEED_FEED_H
#define SHARD_FEED_FEED_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#include "libshard/dataset/dataset.h"
#include "libshard/format/format.h"
#include "libshard/io/io.h"
#include "libshard/order/order.h"
#include "libshard/transform/transform.h"
#include "shard.h"
#include "shard_inspect.h"

/* ---- steps.c: the endless series of steps ---- */

/*
 * A place in the endless series of steps: the epoch, the position where the epoch was entered, and
 * the steps since then.
 */
struct step_place {
	uint64_t epoch, first_position, step;
};

/* The rows of a step: arrays of batch_records. */
struct step_rows {
	uint64_t *record;
	uint8_t *row_flags;
	uint16_t *component; /* only of mixtures */
};

/* Epochs that have the first records only: the records that a dataset had before others were appended. */
struct steps_early {
	uint64_t last_epoch;	/* of these epochs, which begin with epoch 0 */
	uint64_t order_records; /* their records in the order; 0: there are no such epochs */
	uint64_t records;	/* of the dataset: as many, or more with a selection */
};

struct steps {			    /* changes only while no thread fills a slot */
	struct order_params params; /* of epoch 0 */
	struct order_rank rank;	    /* of a whole epoch, so first_position is 0 */
	/* The rows come in the order of this share.  NULL: in the order of positions. */
	const struct order_share *share;
	/* The numbers of the order are places in this selection.  NULL: they are records. */
	const struct shard_selection *selection;
	/* Each record of the order stands for these rows.  episodes NULL: for one.  Not of mixtures and shares. */
	struct shard_loader_window window;
	/* The steps are those of a mixture; record_count is the length of an epoch.  Or NULL. */
	struct mix_order *mix;
	struct steps_early early; /* not of mixtures and pools */
	bool is_held;		  /* every epoch has the order of held_epoch */
	uint64_t held_epoch;
};

static inline bool steps_is_early(const struct steps *s, uint64_t epoch)
{
	return s->early.order_records && epoch <= s->early.last_epoch;
}

/* Records of an epoch, of all ranks together. */
static inline uint64_t steps_epoch_records(const struct steps *s, uint64_t epoch)
{
	return steps_is_early(s, epoch) ? s->early.order_records : s->rank.record_count;
}

/* Returns the parameters of the order in an epoch.  A mixture has orders of its own. */
struct order_params steps_params(const struct steps *s, uint64_t epoch);
/* Is the epoch over at `p`? */
bool steps_ended(const struct steps *s, const struct step_place *p);
/* Returns the start of the epoch that follows, when the epoch of `p` is over there. */
struct step_place steps_epoch_after(const struct steps *s, const struct step_place *p);
/* Returns `p`, or the start of the next epoch if the epoch is over there. */
struct step_place steps_next(const struct steps *s, struct step_place p);
/* Returns the rank, for order_rank_*(), in the part of an epoch that was entered at `p`. */
struct order_rank steps_rank(const struct steps *s, const struct step_place *p);
/* Records of a run, which the order uses together; 0 if it has no runs. */
static inline uint64_t steps_run_records(const struct steps *s)
{
	return s->params.kind == ORDER_TWO_LEVELS ? s->params.run_records : 0;
}

/* Positions that a step takes, of all ranks together. */
uint64_t steps_records(const struct steps *s);
/* The rows of a batch, if it is full: as many for each of its records as a window has. */
static inline uint32_t steps_rows(const struct steps *s)
{
	return s->rank.batch_records * (s->window.episodes ? s->window.offset_count : 1);
}

/* The position in the epoch where the step at `p` begins. */
uint64_t steps_position(const struct steps *s, const struct step_place *p);

/* Turn numbers of the order into records of the dataset, in place. */
void steps_select(const struct steps *s, uint64_t *record, size_t count);

/*
 * Write the rows of a step.  Returns how many there are.  Of a mixture, records are numbers of the
 * joined dataset.
 */
uint32_t steps_fill(const struct steps *s, const struct order *order, const struct step_place *p,
		    struct step_rows rows);

/* Of a mixture: turn numbers of the joined dataset into those of each row's own dataset. */
void steps_name(const struct steps *s, struct step_rows rows, uint32_t count);

/* What the record of a row was chosen from. */
struct steps_source {
	const struct shard_selection *selection; /* NULL: all records */
	const struct shard_dataset *ds;		 /* NULL: the dataset of the feed */
	uint64_t base;				 /* its record 0 is number `base` of the dataset of the feed */
};
struct steps_source steps_source(const struct steps *s, struct step_rows rows, uint32_t row);

/* Of a mixture: as the steps of one component.  Returns false behind the last one. */
bool steps_of_component(const struct steps *s, uint32_t component, struct steps *out);

/* ---- what a disk shall begin to read while a step is filled ---- */

/*
 * A disk that is asked only when a step needs its records rests while they are hashed and copied.
 * So each step also names records of a later one.  This decides about speed only: a step that
 * nobody has named is read when it is filled.
 */
#define STEPS_AHEAD_ROWS 4u /* that there is room for in steps_ahead(), besides those of a batch */

/*
 * Returns how many records there are, all of the epoch of `p`.  In an order in windows they are of
 * runs of the next window: each step of a window names its part of them, and of each run one record
 * in `run_records` and the last one.  In other orders they are those of the step that is `distance`
 * steps behind `p`.
 */
uint32_t steps_ahead(const struct steps *s, const struct order *o, const struct step_place *p, uint64_t distance,
		     uint64_t run_records, struct step_rows rows);

/* ---- layout.c: where the arrays of a batch lie in its memory ---- */

#define LAYOUT_ALIGN	 4096u
#define LAYOUT_LARGE	 4096u			/* a group is large if its records have as many bytes */
#define LAYOUT_SLOTS_MAX 1024u			/* the size of this many batches fits a size_t */
#define LAYOUT_WHOLE_MAX (SHARD_FIELDS_MAX / 2) /* each has a field with its sizes */
#define UNIT_ODD	 UINT32_MAX

struct layout {					       /* const once it is planned */
	const struct shard_schema *schema;	       /* of the records */
	const struct shard_schema *batch;	       /* of the batch; not `schema` if this is of a part */
	uint32_t fields;			       /* a bit for each field that is wanted */
	uint32_t group_count, group[SHARD_GROUPS_MAX]; /* the groups that have a wanted field, ascending */
	uint32_t groups, blocks;		       /* a bit for each of them, and for each that is one block */
	uint64_t group_at[SHARD_GROUPS_MAX], field_at[SHARD_FIELDS_MAX];
	uint64_t slot_bytes;
	uint64_t record_bytes; /* of one row in all arrays */
	uint32_t field_count[SHARD_GROUPS_MAX];
	struct spread_field {
		uint64_t at;			     /* where the array of the field begins */
		uint64_t bytes;			     /* of the field in one row */
		uint32_t offset;		     /* of the field in the record */
		uint32_t narrow;		     /* 1 + number of a field that has less room in the record; or 0 */
	} field[SHARD_GROUPS_MAX][SHARD_FIELDS_MAX]; /* the fields of each group */
	uint32_t unit_shift[SHARD_GROUPS_MAX];	     /* log2 of unit_records, or UNIT_ODD */
	uint32_t whole_count;
	struct whole_field { /* numbers of fields: images that differ in size, and what says how large they are */
		uint32_t image, size, length;
	} whole[LAYOUT_WHOLE_MAX]; /* the wanted ones */
};

/* A large group is delivered as it lies in the shard, a small one field by field. */
static inline bool layout_is_large(const struct shard_group *g)
{
	return g->stride >= LAYOUT_LARGE;
}

/*
 * `fields` has a bit for each field that is wanted, `uneven` one for each group that is not a block,
 * however large, and `even` one for each group that is a block, however small.  `remade` is NULL, or
 * says for each field how many bytes a row of it has in a batch; 0: those of the record.  Returns false
 * if a batch would not fit memory.
 */
bool layout_plan(struct layout *out, const struct shard_schema *schema, uint32_t fields, uint32_t uneven, uint32_t even,
		 uint32_t batch_records, const uint64_t *remade);

/*
 * How the records of one dataset of a mixture come to the same batch.  It stores some fields in
 * other places, or with less room for values that vary in length.
 */
void layout_plan_part(struct layout *out, const struct layout *batch, const struct shard_schema *schema);

/* The layout of a batch, and of each part of a mixture if the parts store fields differently. */
struct layouts {
	const struct layout *batch;
	struct layout *part;	    /* [part_count]; NULL: the records of all shards are as `batch` says */
	const uint64_t *part_shard; /* as in struct shard_dataset */
	uint32_t part_count;	    /* 0 without `part` */
};

/* The layout by which the records of a shard come to the batch. */
static inline const struct layout *layouts_of(const struct layouts *l, uint64_t shard)
{
	uint32_t p = 0;

	while (p < l->part_count && shard >= l->part_shard[p + 1])
		p++;
	return l->part_count ? &l->part[p] : l->batch;
}

/* All of them in turn: NULL behind the last one. */
static inline const struct layout *layouts_at(const struct layouts *l, uint32_t i)
{
	return l->part_count ? (i < l->part_count ? &l->part[i] : NULL) : i ? NULL : l->batch;
}

static inline bool layout_has_field(const struct layout *l, uint32_t field)
{
	return l->fields >> field & 1;
}

static inline bool layout_is_block(const struct layout *l, uint32_t group)
{
	return l->blocks >> group & 1;
}

/* Does a batch hold anything of the group? */
static inline bool layout_has_group(const struct layout *l, uint32_t group)
{
	return l->field_count[group];
}

/* A bit for each wanted group of raw records that nobody looks into on their way to a batch. */
uint32_t layout_unread_groups(const struct layout *l);

/* Returns where row 0 of a wanted field is in a batch; rows are *stride apart. */
uint64_t layout_rows(const struct layout *l, uint32_t field, uint64_t *stride);

/* Returns the bytes of `rows` rows of a group in a batch; *at becomes where they begin. */
uint64_t layout_group(const struct layout *l, uint32_t group, uint32_t rows, uint64_t *at);

/* Returns the unit of a record, which is number in_shard of its shard. */
static inline uint64_t layout_unit_of(const struct layout *l, uint32_t group, uint64_t in_shard)
{
	uint32_t shift = l->unit_shift[group];

	return shift == UNIT_ODD ? in_shard / l->schema->group[group].unit_records : in_shard >> shift;
}

/* Copy a record of a group that is not a block to its row in each field's array. */
static inline void layout_spread(const struct layout *l, uint32_t group, const uint8_t *record, uint64_t row,
				 uint8_t *slot)
{
	for (uint32_t i = 0; i < l->field_count[group]; i++) {
		const struct spread_field *f = &l->field[group][i];

		if (f->narrow)
			record_widen_field(slot + f->at + row * f->bytes, &l->batch->field[f->narrow - 1],
					   record + f->offset, &l->schema->field[f->narrow - 1]);
		else
			record_copy_field(slot + f->at + row * f->bytes, record + f->offset, (uint32_t)f->bytes);
	}
}

/* ---- slot.c: the memory that batches are delivered in ---- */

/*
 * A record that its slot does not have: it stays where it is mapped, in memory that the owner of
 * the feed keeps, and is taken from there.
 */
struct resident {
	const uint8_t *at;  /* NULL: the record is in the slot */
	atomic_uint *users; /* of the memory that it lies in; one less when the slot is given back */
	bool unchecked;	    /* anyone who takes it from there has to hash its unit, which lies in the slot */
	/*
	 * Whether or not the record is resident.  If it is the first one of a unit all of which lies in the
	 * slot, row by row: the records of that.  Of the unit's other records: UNIT_GOES_ON.  Else 0.
	 */
	uint32_t unit;
	uint64_t want; /* of the first record of a unit: the leaf hash, if one of its records is unchecked */
};

#define UNIT_GOES_ON UINT32_MAX

struct slot {
	uint8_t *memory; /* const: a part of a ring, or an address of a GPU's memory */
	uint64_t *record;
	uint8_t *row_flags;
	uint16_t *component; /* used by mixtures only */
	/* [whole_count of the layout][size_rows]; NULL: no images differ in size */
	struct shard_size *size;
	uint32_t size_rows;
	uint32_t resident_groups;  /* a bit for each group whose records may be resident */
	uint32_t unchecked_groups; /* and for each of them whose units may be left unchecked */
	struct resident *resident; /* [groups of these bits][size_rows]; NULL: all records are in the slot */
	struct step_place place;
	uint32_t rows;
	uint32_t first; /* 0; or of a copy, which stands for the rows from here on */
	bool lent;	/* the caller has the batch */
	bool doubted;	/* of a copy: raw records are hashed, whether or not they were found sound before */
};

/*
 * Allocate what describes the rows.  Returns false if there is no memory.  Call slot_close() in
 * either case.
 */
bool slot_open(struct slot *s, uint8_t *memory, uint32_t batch_records, uint32_t whole_count, uint32_t resident_groups);
void slot_close(struct slot *s);

/* Which records of a group are resident, [size_rows]; NULL: all of them are in the slot. */
static inline struct resident *slot_residents(const struct slot *s, uint32_t group)
{
	uint32_t bit = UINT32_C(1) << group;

	if (!(s->resident_groups & bit))
		return NULL;
	return s->resident + (size_t)__builtin_popcount(s->resident_groups & (bit - 1)) * s->size_rows;
}

/* Let go of what is resident: of one row, or of all rows. */
void slot_let_go_row(struct slot *s, uint32_t row);
void slot_let_go(struct slot *s);

/* The sizes of images number `k` of the layout, [rows]. */
static inline struct shard_size *slot_sizes(const struct slot *s, uint32_t k)
{
	return s->size + (size_t)k * s->size_rows;
}

static inline struct step_rows slot_rows(const struct slot *s)
{
	return (struct step_rows){s->record, s->row_flags, s->component};
}

/* Describe the batch in the slot.  The caller gives it back as slot `number`. */
void slot_describe(const struct slot *s, const struct layout *layout, const struct steps *steps, uint32_t number,
		   struct shard_batch *out);
/* Is the slot lent as this batch? */
bool slot_is_lent_as(const struct slot *s, const struct steps *steps, const struct shard_batch *batch);

struct ring { /* const after ring_open(), except for slots, of which a swap replaces the memory */
	uint8_t *memory;
	void **lent; /* [slot_count] memory of the caller for each slot, instead of our own; or NULL */
	uint64_t slot_bytes;
	uint32_t slot_count;
	struct slot *slot; /* [slot_count]; NULL: the ring is not open */
};

uint64_t ring_bytes(const struct ring *r);
/*
 * Fill in slot_bytes, slot_count and lent before.  `whole_count` is that of the layout, and
 * `resident_groups` are those of the slots.
 */
int ring_open(struct ring *r, uint32_t batch_records, uint32_t whole_count, uint32_t resident_groups,
	      struct shard_error *err);
/* `inherited`: the caller is a forked child, which does not have the memory of the ring. */
void ring_close(struct ring *r, bool inherited);

/* ---- path.c: how the records of a shard are read ---- */

enum path_kind { PATH_MAP = 0, PATH_DIRECT = 1, PATH_PREAD = 2 };

struct path_choice {
	enum path_kind kind;
	bool hot; /* PATH_MAP: the shard lies in memory */
};

struct paths {
	const struct layouts *layouts; /* const after open, as: */
	uint64_t shard_count;
	uint32_t asked; /* enum shard_path */
	bool is_remote, fits, wants_direct, has_direct_group;

	struct fetch *fetch;
	_Atomic uint32_t turn;	 /* goes up by 2 when hot shards are doubted */
	_Atomic uint32_t *entry; /* [shard_count] a decision and its time; 0: there was none yet */
};

/* Returns false if there is no memory.  Call paths_close() in either case. */
bool paths_open(struct paths *p, struct shard_dataset *ds, const struct layouts *layouts, uint32_t asked);
void paths_close(struct paths *p, bool inherited); /* inherited: the caller is a forked child */

/* A dataset of at most this many bytes is read through the page cache, and stays there. */
uint64_t path_fits_bytes(void);

/*
 * The times of decisions that hold in an epoch.  A decision for the next epoch holds as well, as
 * another thread may be there already.
 */
struct path_times {
	uint32_t lasting, now, next; /* lasting: of short shards that are hot */
};
struct path_times paths_times(const struct paths *p, uint64_t epoch);

/* Look up the decision for a shard.  Returns false if there is none that holds. */
static inline bool paths_find(const struct paths *p, const struct path_times *times, uint64_t shard,
			      struct path_choice *out)
{
	uint32_t entry = atomic_load_explicit(&p->entry[shard], memory_order_acquire), time = entry >> 3;

	out->kind = (enum path_kind)(entry & 3);
	out->hot = entry & 4;
	return time == times->now || time == times->next || time == times->lasting;
}

/* Decide, for this epoch. */
struct path_choice paths_decide(struct paths *p, uint64_t shard, struct shard_reader *r, uint64_t epoch);

/*
 * A step with hot_rows rows of hot shards had `faults` page faults.  If these are too many, doubt
 * hot shards.
 */
void paths_doubt(struct paths *p, uint64_t faults, uint32_t hot_rows);

/* The file system turned out to take no direct reads of this shard. */
void paths_refuse_direct(struct paths *p, uint64_t shard, uint64_t epoch);

/*
 * For a mapped shard that is not hot: fetch_begin(), which fetch_await() follows.  Small groups beside large
 * ones are fetched as a whole when the path is decided.
 */
bool paths_fetch(struct paths *p, uint64_t shard, struct shard_reader *r, uint32_t group, uint64_t in_shard,
		 uint64_t epoch);

/* ---- stage.c: decoded chunks ---- */

enum stage_answer {
	STAGE_READY, /* the chunk is there, and the caller holds it */
	STAGE_FILL,  /* the chunk is not there, and the caller has to fill this block */
	STAGE_BUSY,  /* another thread is filling it */
	STAGE_FULL,  /* no block is free at the moment */
};

struct stage;

/*
 * The key of a chunk is the dataset index of its first record.  A stage that is NULL is always
 * full.
 */
enum stage_answer stage_get(struct stage *s, uint64_t key, uint32_t *block);
uint8_t *stage_at(const struct stage *s, uint32_t block);

/*
 * After STAGE_FILL: the block has `records` records, and the caller holds it.  0: filling has failed.
 */
void stage_filled(struct stage *s, uint32_t block, uint32_t records);

/* The caller lets go of the block.  It has taken `records` records from it. */
void stage_leave(struct stage *s, uint32_t block, uint32_t records);

/* Wait until no thread is filling the chunk. */
void stage_wait(struct stage *s, uint64_t key);

struct stages {
	struct stage *of[SHARD_GROUPS_MAX]; /* NULL: the group needs none */
	void *memory;
	uint64_t bytes; /* of all blocks */
};

/*
 * While one thread is still at the end of a window, the others may be `rows_ahead` rows ahead.  All
 * blocks have at most `most_bytes`; 0 stands for a part of the available memory.
 */
int stages_open(struct stages *s, const struct shard_dataset *ds, const struct layouts *layouts,
		const struct steps *steps, uint64_t rows_ahead, uint64_t most_bytes, struct shard_error *err);
void stages_close(struct stages *s, bool inherited); /* inherited: the caller is a forked child */
uint64_t stages_unfinished(struct stages *s);	     /* unfinished_chunk_count of the statistics */

/* ---- feed.c: where rows come from ---- */

#define SOURCE_STRIPES 256u
#define ROW_DAMAGED    128u /* a flag of rows that are yet to be repaired; no caller sees it */

/*
 * Who keeps records in memory, so that they need not be copied to slots.  Any thread calls these.
 */
struct residents {
	/*
	 * Returns where a record of a raw group lies; or NULL: it is not kept.  The caller needs *count
	 * records from there on, and *count becomes how many of them lie there, side by side.  The memory
	 * stays until *users is less by as many.  The reader may be closed meanwhile.  To keep more takes
	 * a millisecond.  This happens only while *effort is not 0, which becomes one less.
	 */
	const uint8_t *(*take)(void *context, uint64_t shard, struct shard_reader *r, uint32_t group, uint64_t in_shard,
			       uint32_t *count, uint32_t *effort, atomic_uint **users);
	void *context;
	uint32_t groups; /* a bit for each group of which records are kept */
	/* Likewise: the owner checks each unit of these that lies in a slot as a whole. */
	uint32_t check_groups;
};

struct row_source {
	struct shard_dataset *ds; /* const after open, as: */
	struct layouts layouts;	  /* of the rows */
	const struct steps *steps;
	uint32_t on_corrupt;	/* enum shard_on_corrupt */
	uint64_t guess_records; /* in a shard, if all shards are as long as the first */
	struct paths paths;
	struct stages stages;
	_Atomic(const struct residents *) residents; /* NULL: all records are copied to slots */

	pthread_mutex_t lock;
	struct shard_error damage; /* lock: the last damage; status 0: there was none */
	/*
	 * Is a thread hashing a unit of this stripe?  A forked child shares the dataset, so the
	 * stripes cannot be part of that.
	 */
	atomic_bool stripe[SOURCE_STRIPES];
};

/* What is counted while slots are filled. */
struct fill_counts {
	uint64_t checked_units, decoded_chunks, direct_bytes, pread_bytes, substituted, masked;
	bool uring; /* direct_bytes and pread_bytes came by io_uring */
};

/* What each thread has for itself. */
struct scratch {
	uint8_t *chunk;	   /* room for the longest decoded chunk */
	uint8_t *records;  /* on their way to a batch whose images are transformed; or NULL */
	void *transform;   /* the memory that transform_cpu() works in; or NULL */
	struct cold *cold; /* reads past the map; NULL: there were none yet */
	uint64_t faults;   /* scratch_faults() when it last decoded a chunk */
	uint64_t awaited;  /* major faults of the thread in paths_await() */
	bool has_cold;	   /* it has met rows of shards that are not hot */
};

/* How often this thread has waited for pages that were thought to be there. */
static inline uint64_t scratch_faults(const struct scratch *s)
{
	return file_major_faults() - s->awaited;
}

/* ---- slot_fill.c: the rows of a step ---- */

/* Some rows of a step that one thread fills together. */

#define BLOCK_ROWS 64u

/* Where the record of a row is. */
struct located {
	struct shard_reader *r;
	uint64_t shard, in_shard;
	struct path_choice path; /* that was decided for the shard */
};

struct block {
	struct row_source *source;
	const struct layout *layout;
	struct scratch *scratch;
	struct slot *slot;
	struct fill_counts *counts;
	struct shard_error *err;
	uint32_t first, count;		 /* rows of the slot */
	uint32_t hot_rows;		 /* rows of hot shards, in this and earlier blocks of the slot */
	bool strict;			 /* damage is an error */
	const struct resident *resident; /* of the group that is being filled: slot_residents(), or NULL */
	struct path_times times;
	struct located at[BLOCK_ROWS];
	uint8_t behind[BLOCK_ROWS]; /* how many of the next rows have the records behind this one, in its shard */
};

#define BLOCK_FETCH_BYTES 256u /* the processor itself prefetches the rest of a record */

/* Prefetch a record.  This must be inlined: gcc drops calls of a function that only prefetches. */
__attribute__((always_inline)) static inline void block_fetch_ahead(const uint8_t *src, uint64_t bytes)
{
	for (uint64_t i = 0; i < (bytes < BLOCK_FETCH_BYTES ? bytes : BLOCK_FETCH_BYTES); i += 64)
		__builtin_prefetch(src + i);
}

/*
 * Find the units that will lie in the slot as a whole.  The owner of what is kept checks those.  The
 * slot names its records, and is not filled yet: substitutes change the records that it names.
 */
void slot_find_units(struct row_source *source, struct slot *s);

/*
 * Begin to fetch the records that a slot names, from shards that are mapped and not hot.  The slot
 * needs no memory.  Errors are left to the thread that fills a slot with these records.
 */
void slot_fetch(struct row_source *source, struct scratch *scratch, struct slot *s);

/*
 * Bring the records that the slot names, and add to *counts.  A damaged record is an error, or, if
 * the options say so, its row is only flagged as ROW_DAMAGED.
 */
int slot_fill(struct row_source *source, struct scratch *scratch, struct slot *s, struct fill_counts *counts,
	      struct shard_error *err);

/* Bring another record to one row.  A damaged record is an error. */
int slot_fill_one(struct row_source *source, struct scratch *scratch, struct slot *s, uint32_t row,
		  struct fill_counts *counts, struct shard_error *err);

/* ---- slot_fill.c, for the next two: one record, and whether its unit has to be hashed ---- */

/*
 * Whether a unit has to be hashed before a record of it is delivered
 *
 * With SHARD_CHECK_DEVICE and SHARD_CHECK_FIRST a unit is hashed when the dataset first delivers
 * a record of it.  With SHARD_CHECK_DEVICE that is forgotten when the unit may have come from a
 * device again.  Bytes that have just come from one are always hashed.
 *
 * Several threads may need the same unit at once: its records stand in neighbouring steps, or at
 * the end of one epoch and the start of the next.  Then one thread hashes it, which takes some
 * microseconds, and the others wait.
 */

struct unit_check {
	bool hash; /* the caller has to hash the unit */
	struct reader_group *g;
	_Atomic uint64_t *seen; /* the word with the bit of the unit; NULL: the unit is hashed, whatever was before */
	uint64_t bit;
	atomic_bool *stripe; /* held by this thread, or NULL */
};

/* fresh: the bytes have just come from a device. */
static inline struct unit_check unit_check_begin(struct row_source *s, struct shard_reader *r, uint32_t group,
						 uint64_t unit, bool fresh)
{
	struct unit_check c = {.hash = r->check == SHARD_CHECK_ALWAYS || (fresh && r->check == SHARD_CHECK_DEVICE),
			       .g = &r->group[group],
			       .bit = UINT64_C(1) << (unit & 63)};

	if (!c.hash && reader_remembers(r)) {
		/* The table exists since the first record of the shard was located. */
		c.seen = atomic_load_explicit(&r->group[group].seen, memory_order_acquire) + unit / 64;
		c.hash = !(atomic_load_explicit(c.seen, memory_order_acquire) & c.bit);
	}
	if (c.hash && c.seen) {
		/* Wait while another thread hashes a unit of the same stripe. */
		c.stripe = &s->stripe[(((uintptr_t)r >> 6) + unit) % SOURCE_STRIPES];
		while (atomic_exchange_explicit(c.stripe, true, memory_order_acquire))
			sched_yield();
		c.hash = !(atomic_load_explicit(c.seen, memory_order_acquire) & c.bit);
	}
	return c;
}

/*
 * Tell whether the unit is sound.  If it was hashed, *checked counts it.  Another loader of the
 * same dataset may have hashed it at the same moment; then only one of them counts it.
 */
static inline void unit_check_end(const struct unit_check *c, bool sound, uint64_t *checked)
{
	if (sound && c->hash)
		*checked += !c->seen || reader_set_seen(c->g, c->seen, c->bit);
	if (c->stripe)
		atomic_store_explicit(c->stripe, false, memory_order_release);
}

struct slot_row {
	struct row_source *source;
	const struct layout *layout; /* by which the record comes to the slot */
	struct shard_reader *r;
	uint64_t shard, in_shard, row;
	uint32_t group;
	uint8_t *flags; /* of the row; NULL: damage is an error */
	uint8_t *slot;
	bool fresh;   /* the bytes have just come from a device */
	bool hot;     /* all of the shard lies in memory; else what fetch.h has fetched with the record */
	uint8_t *dst; /* where the record belongs; NULL: its fields belong to arrays of the slot */
};

/*
 * Copy the record from src to its place, and hash its unit if that is due.  src may be dst: then
 * the record is there already.
 */
int slot_row_land(const struct slot_row *row, const uint8_t *src, uint64_t *checked, struct shard_error *err);

/* ---- slot_cold.c: reads past the map ---- */

/*
 * Start to read a row.  If too many reads are under way, wait for one of them first.  The error may
 * be that of an earlier read.
 */
int slot_cold_put(struct scratch *scratch, const struct slot_row *row, bool direct, uint64_t epoch, uint64_t *checked,
		  struct shard_error *err);

/*
 * Wait for all reads, and count them.  Call this after a failure too, before the slot gets another
 * owner.
 */
int slot_cold_finish(struct scratch *scratch, uint64_t epoch, struct fill_counts *counts, struct shard_error *err);

void slot_cold_close(struct scratch *scratch, bool inherited); /* the caller is a forked child */

/* ---- slot_packed.c: compressed groups ---- */

/* Bytes of the longest decoded chunk; 0 if no group is compressed. */
uint64_t slot_packed_chunk_bytes(const struct layouts *layouts);

/* Begin to fetch the chunks of rows of shards that are not hot. */
void slot_packed_fetch(struct block *b, uint32_t group);

/* Fill the rows of a block, all of which are located. */
int slot_packed_fill(struct block *b, uint32_t group);

/* ---- repair.c: damaged rows ---- */

/*
 * Flag a damaged row.  It is repaired when the other rows are there.  `problem` may be NULL, if
 * another error has been reported before.
 */
void row_set_aside(struct row_source *s, uint8_t *row_flags, const struct shard_error *problem);

/*
 * Check the sizes of rows that are filled, and note them in the slot.  Later code makes addresses
 * of them without a check.  A size that is not that of its pixels is damage.  With `strict` it is
 * an error, else its row is flagged as ROW_DAMAGED.
 */
int slot_sizes_take(struct row_source *source, struct slot *s, bool strict, struct shard_error *err);

/* Substitute or mask the rows that are flagged as ROW_DAMAGED, as the options say. */
int repair_rows(struct row_source *source, struct scratch *scratch, struct slot *s, struct fill_counts *counts,
		struct shard_error *err);

/* ---- transformed.c: images that threads transform ---- */

struct transformed { /* const once it is open */
	struct transform_plan plan;
	uint32_t field, views; /* of each image, one behind the other in a row */
	uint64_t row_bytes;    /* of the results in a row */
	bool has_kernel;       /* it transforms the images, and a feed does the rest */
	/* Bytes of a row of what a feed transforms: images, masks and boxes; 0: other fields. */
	uint64_t remade[SHARD_FIELDS_MAX];
	struct layout records; /* of `rows` records on their way */
	uint32_t rows;
};

/*
 * Find what a feed has to transform: the images, unless there is a kernel, and wanted fields with
 * masks or boxes.  plan, field, views and has_kernel are set.  Fails with ARGUMENT if a field
 * cannot follow, or if it might belong to the pixels and the options do not say that it stays as it
 * is stored.
 */
int transformed_find_fields(struct transformed *t, const struct shard_schema *schema, uint32_t fields,
			    const struct shard_loader_transform *o, struct shard_error *err);
/* Is there anything for a feed to transform? */
bool transformed_has_work(const struct transformed *t);
/* Lay out the memory of records on their way.  The rest is set.  false: it is too large. */
bool transformed_lay_out(struct transformed *t, const struct shard_schema *schema, uint32_t fields, uint32_t uneven);

/* Open the memory that a thread brings records to.  Returns false if there is none. */
bool transformed_open_scratch(const struct transformed *t, struct scratch *scratch);
void transformed_close_scratch(const struct transformed *t, struct scratch *scratch, bool inherited);

/*
 * Fill a slot, whose layout is `to`, and repair its rows.  Its images are transformed, unless `t`
 * is NULL.
 */
int transformed_fill(const struct transformed *t, struct row_source *source, struct scratch *scratch, struct slot *s,
		     const struct layout *to, struct fill_counts *counts, struct shard_error *err);

/* What chance says of each view of each row of a batch: [record_count x views]. */
void transformed_draw_batch(const struct transformed *t, const struct shard_batch *batch,
			    struct shard_transform_row *row);

/* ---- crew.c: the threads ---- */

struct epoch_order {
	enum { ORDER_NONE, ORDER_MAKING, ORDER_MADE } state;
	uint64_t epoch;
	uint32_t users; /* threads that fill a slot with it */
	struct order order;
	uint16_t *table;
};

struct epoch_orders {
	struct epoch_order *order; /* [count] */
	uint32_t count;
};

/* Allocate orders of any epoch of these steps, for thread_count threads. */
int epoch_orders_open(struct epoch_orders *o, uint32_t thread_count, const struct steps *steps,
		      struct shard_error *err);

#define NO_SLOT UINT32_MAX

enum claim_state { CLAIM_FREE, CLAIM_FILLING, CLAIM_READY, CLAIM_TAKEN };

/* What the crew knows of a slot. */
struct claim {
	enum claim_state state; /* lock */
	bool stale;		/* lock: it is being filled for a place that a move has left */
	uint32_t next_row;	/* lock: the first one that no thread has taken */
	uint32_t part_rows;	/* lock: a thread takes this many; 0: it is not known yet which records they have */
	uint32_t fillers;	/* lock: threads that are at it */
	uint32_t failed_row;	/* lock: rc is of the part that begins there */
	uint64_t fill_ns;	/* lock: of all parts, as: */
	struct fill_counts counts;
	int rc; /* how filling went: lock; then the slot's owner uses this and what follows */
	struct shard_error why;
};

struct member {
	struct crew *crew;
	pthread_t thread;
	struct scratch scratch;
	struct slot ahead; /* records of a later step, and no memory */
};

struct crew {
	struct row_source *source; /* const after open, as: */
	struct ring *ring;
	const struct transformed *transformed; /* NULL: rows are records as they are */
	const struct layout *layout;	       /* of slots */
	const struct steps *steps;	       /* what it points to changes only while the crew rests */
	uint32_t thread_count;
	struct member *member; /* [thread_count] */
	uint32_t member_count; /* threads that were started; 0: the consumer does all the work */
	struct claim *claim;   /* [slot_count] */

	pthread_mutex_t lock;
	pthread_cond_t work;  /* with lock: a slot or an order may be there, or `stop` is set */
	pthread_cond_t ready; /* with lock: the first slot of the queue is ready, or `busy` is 0 */
	uint32_t *queue;      /* [slot_count] lock: slots that are claimed, in the order of steps */
	uint32_t *free;	      /* [slot_count] lock: slots that can be claimed */
	uint32_t queue_head, queue_count, free_count; /* lock */
	struct step_place next;			      /* lock: the next place to be claimed */
	struct epoch_orders orders;		      /* lock; replaced only while the crew rests */
	uint32_t busy;				      /* lock: threads that fill a slot or make an order */
	bool stop, resting;			      /* lock: threads claim nothing */
	bool is_awaited;			      /* lock: somebody waits for the slot that is claimed next */
	uint32_t shared;			      /* lock: threads take parts of this slot; or NO_SLOT */
	uint32_t first;	  /* lock: the slot that was shared last, until the consumer has seen it; or NO_SLOT */
	bool is_asleep;	  /* lock: the consumer waits; if there is such a slot, threads claim no other one */
	bool awaits_slot; /* lock: the consumer waits, as the GPU or the caller has all slots */
	bool waited;	  /* lock: the consumer has waited for the slot that it takes next */
	struct shard_loader_stats stats; /* lock: what the crew counts */
};

/*
 * Start the threads, which fill slots from `from` on.  What is named here is set: the source, the
 * ring, which is open, the steps, thread_count, and what there is to transform.
 */
int crew_open(struct crew *c, struct step_place from, struct shard_error *err);
void crew_close(struct crew *c, bool inherited); /* inherited: the caller is a forked child */

/* ---- the consumer's side ---- */

/* Wait for the next slot in order.  It belongs to the consumer then, until crew_give(). */
uint32_t crew_take(struct crew *c);
/* Is that slot ready, and filled without an error? */
bool crew_has_sound(struct crew *c, uint32_t *slot);
/* Wait until that slot is ready, but not longer.  Returns false if it is not. */
bool crew_await(struct crew *c, uint64_t most_ns);
/* Free a slot.  Any thread may do this. */
void crew_give(struct crew *c, uint32_t slot);

/* Forget the slots that were prepared, and go on at `to`.  Does not wait. */
void crew_move(struct crew *c, struct step_place to);

/*
 * Forget the slots that were prepared, and wait until no thread is busy.  Then the steps and the
 * orders can be changed.  crew_move() ends the rest.
 */
void crew_rest(struct crew *c);
void crew_use_orders(struct crew *c, struct epoch_orders *orders);

/* Count rows that the consumer has filled. */
void crew_count(struct crew *c, const struct fill_counts *counts);
/* Set all of *out.  What the crew does not count is 0. */
void crew_stats(struct crew *c, struct shard_loader_stats *out);

/* ---- feed.c: slots in the order of steps ---- */

struct cursor {
	struct step_place at; /* the next step */
	pid_t owner;	      /* the process that started the threads; 0: no process has yet */
	int failed;	      /* a status that repeats until the cursor moves; or SHARD_OK */
	struct shard_error why;
};

/*
 * Is this process a forked child of the owner?  A child has no threads, and lacks some of the
 * memory.  It may only close what it has inherited.
 */
bool cursor_is_inherited(const struct cursor *c);
/* Fails with ARGUMENT if so. */
int cursor_check_owner(const struct cursor *c, struct shard_error *err);

/* Stop with this error.  Returns its status and copies it to `err`. */
int cursor_fail(struct cursor *c, int rc, const struct shard_error *why, struct shard_error *err);
/* Returns the error that the cursor stopped with, or SHARD_OK. */
int cursor_error(const struct cursor *c, struct shard_error *err);
/* Go on elsewhere and forget the error. */
void cursor_move(struct cursor *c, struct step_place to);

struct feed {
	struct shard_dataset *ds;	       /* const after open, as: */
	struct shard_loader_options o;	       /* settled; a feed uses those of slots, threads and paths */
	const struct transformed *transformed; /* NULL: slots have records as they are */
	struct layout layout;		       /* of slots */
	struct steps steps;		       /* changes only while the crew rests */
	struct cursor cursor;		       /* of the consumer */
	uint32_t lent_count;		       /* of the consumer: slots that its caller has */
	/* of the consumer: substituted and masked rows of slots that it has taken, in one epoch */
	uint64_t repaired, repaired_epoch;

	struct ring ring; /* filled in; these three are open once cursor.owner is set */
	struct row_source source;
	struct crew crew;
	/* of the consumer, for feed_bring_again(): memory for a batch; NULL: none was needed yet */
	struct slot again;
	struct scratch again_scratch;
};

/*
 * The dataset and `transformed`, which may be NULL, must outlive the feed.  The other arguments are
 * copied.
 */
int feed_open(struct feed **out, struct shard_dataset *ds, const struct shard_loader_options *o,
	      const struct layout *layout, const struct transformed *transformed, const struct steps *steps,
	      struct shard_error *err);
/* A forked child may call this too: then it only frees memory. */
void feed_close(struct feed *f);

/*
 * Put the ring, or each slot of it, into memory of the caller.  ARGUMENT if it does not fit, or the
 * feed has started.
 */
int feed_use_memory(struct feed *f, void *memory, uint64_t bytes, struct shard_error *err);
int feed_use_slots(struct feed *f, void *const *memory, uint32_t count, struct shard_error *err);
/* Fails with ARGUMENT unless this memory can take the place of a slot's. */
int feed_check_swap(const struct feed *f, const void *memory, struct shard_error *err);

/* Start to fill slots, from cursor.at on.  After a failure this can be tried again. */
int feed_start(struct feed *f, struct shard_error *err);

/*
 * Let this thread bring rows [first, end) of a slot once more, to memory of the feed.  They are
 * checked, and replaced if the options say so, as the crew does.  `like` says which rows, as the
 * batch does.  *out has these rows, until the next call.  *repaired becomes the rows that were
 * replaced.  The feed has started.
 */
int feed_bring_again(struct feed *f, const struct slot *like, uint32_t first, uint32_t end, const struct slot **out,
		     uint64_t *repaired, struct shard_error *err);

/* A bit for each group of which a slot can do without records: raw ones that are delivered as they lie in the shard. */
uint32_t feed_resident_groups(const struct feed *f);
/*
 * From now on take records of these, which must outlive their use.  With NULL copy all records, and
 * wait until no thread uses what was kept.  Then nothing is filled until feed_move().  The feed has
 * started.  A consumer who does this looks at slot_residents() of each slot.
 */
void feed_use_residents(struct feed *f, const struct residents *r);

/* ---- slots; the feed has started ---- */

/*
 * Wait for the next slot.  It belongs to the caller until feed_give().  An error repeats until
 * feed_move().
 *
 * Rows that were substituted or masked are counted with feed_count_repaired().  `repaired` is NULL, or
 * more rows may turn out to be damaged.  Then *repaired becomes the rows so far, and the caller counts
 * all of the batch before it is lent.
 */
int feed_next(struct feed *f, uint32_t *slot, uint64_t *repaired, struct shard_error *err);
/* Too many such rows in an epoch are CORRUPT. */
int feed_count_repaired(struct feed *f, uint64_t epoch, uint64_t rows, struct shard_error *err);
/* Would feed_next() return a slot at once?  If so, which one? */
bool feed_has_sound(struct feed *f, uint32_t *slot);
/* Wait until feed_next() need not wait, but not longer.  Returns false if it would. */
bool feed_await(struct feed *f, uint64_t most_ns);
/* Free a slot.  Any thread may do this. */
void feed_give(struct feed *f, uint32_t slot);

/* ---- places ---- */

/* Go on at `to`.  Does not wait.  Slots that were taken stay valid. */
void feed_move(struct feed *f, struct step_place to);
/* Use another order, with these early epochs.  Waits for the threads.  Call feed_move() next. */
int feed_adopt(struct feed *f, const struct order_params *params, const struct steps_early *early,
	       struct shard_error *err);

/* ---- batches in host memory ---- */

/* Lend a slot to the caller, as a batch.  feed_next() has returned it. */
void feed_lend(struct feed *f, uint32_t slot, struct shard_batch *batch);
/* Fails with ARGUMENT unless this batch is lent. */
int feed_check_lent(const struct feed *f, const struct shard_batch *batch, struct shard_error *err);
/* End the loan.  Call feed_give() when the slot may be filled again, never before. */
void feed_end_loan(struct feed *f, uint32_t slot);
/* Lend a slot again whose loan has ended and which was not given back, because that failed. */
void feed_lend_again(struct feed *f, uint32_t slot);

/* ---- what it did ---- */

/* Set all of *out.  What the feed does not count is 0. */
void feed_stats(struct feed *f, struct shard_loader_stats *out);
bool feed_last_damage(struct feed *f, struct shard_error *out); /* false: there was no damage */

#endif
