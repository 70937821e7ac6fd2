/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader.h - a loader's parts: what is asked for, the ring it is delivered in, the crew that fills it
 *
 * The consumer is the thread that calls next.  What it alone touches needs no lock; what the crew shares with it is
 * marked.  A slot's contents belong to whoever has it: to nobody while free, to a thread while it fills it, to the
 * consumer and its caller from the moment that it is taken.
 */
#ifndef LIBSHARD_LOAD_LOADER_H
#define LIBSHARD_LOAD_LOADER_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

#include "libshard/order/order.h"
#include "libshard/store/read/dataset.h"
#include "shard.h"

#define LOADER_SLOTS_MAX   1024u
#define LOADER_THREADS_MAX 256u
#define LOADER_ARRAY_ALIGN 4096u
#define LOADER_STRIPES	   256u
#define LOADER_RUN_BYTES   (UINT64_C(256) << 10) /* neighbours that are worth one request to the disk */

/* A place in the endless row of steps: epoch, where the epoch was entered, and steps since. */
struct place {
	uint64_t epoch, first_position, step;
};

enum slot_state { SLOT_FREE, SLOT_FILLING, SLOT_READY, SLOT_LENT };

struct slot {
	uint8_t *memory; /* in the ring */
	uint64_t *record;
	uint8_t *row_flags;
	enum slot_state state; /* lock */
	bool stale;	       /* lock: being filled for a place that seek has left */
	bool lent;	       /* of the consumer: SLOT_LENT, and told to the caller */
	struct place place;
	uint32_t rows;
	int rc; /* how filling went */
	struct shard_error why;
};

/* Where arrays start in a slot. */
struct layout {
	uint64_t group_at[SHARD_GROUPS_MAX], field_at[SHARD_FIELDS_MAX];
	uint64_t slot_bytes;
	uint64_t record_bytes; /* of a row in all arrays */
	uint32_t field_count[SHARD_GROUPS_MAX];
	struct spread_field {
		uint64_t at; /* of its array in the slot */
		uint32_t bytes, offset; /* of one record, in the record */
	} field[SHARD_GROUPS_MAX][SHARD_FIELDS_MAX]; /* of each group, in their order */
	uint32_t unit_shift[SHARD_GROUPS_MAX];	     /* log2 of unit_records, or UNIT_ODD */
};
#define UNIT_ODD UINT32_MAX

/* The order of one epoch, shared by all that fill its steps. */
struct epoch_order {
	enum { ORDER_NONE, ORDER_MAKING, ORDER_MADE } state; /* lock */
	uint64_t epoch;					     /* lock */
	uint32_t users;					     /* lock */
	struct order order;
	uint16_t *table;
};

/* What one thread needs besides. */
struct member {
	struct shard_loader *loader;
	pthread_t thread;
	uint8_t *chunk;	    /* room for a decoded chunk of the longest kind */
	struct cold *cold; /* reads past the map; NULL: there were none yet */
};

struct shard_loader {
	struct shard_dataset *ds;
	struct shard_loader_options asked, o; /* const after open: as given, and with defaults filled in */
	struct order_params params;	      /* of epoch 0; a token may bring others */
	struct order_rank rank;		      /* const; first_position is 0 */
	const struct order_share *share;      /* const; of a pool's feed: rows come in its order.  Else NULL */
	bool is_held;			      /* const; likewise: all epochs have the order of this one: */
	uint64_t held_epoch;		      /* changes only while nobody fills */
	struct layout layout;
	uint64_t guess_records; /* in a shard, if all are as the first */

	/* of the consumer */
	struct place at; /* what next delivers */
	uint32_t lent_count;
	pid_t owner; /* 0: nothing was started */
	int failed;  /* status that next repeats until seek */
	struct shard_error why;
	void *lent_ring; /* the caller's memory, or NULL */
	struct device_side *device; /* device.h; NULL: no GPU was asked for */
	struct pool *pool; /* pool.h; const after open; NULL: no pool was asked for.  With one there is neither ring nor crew */

	uint8_t *ring;
	struct slot *slot;
	uint32_t *queue, *free; /* [slot_count] lock: slots in the order of delivery; slots to be had */
	uint32_t queue_head, queue_count, free_count; /* lock */

	pthread_mutex_t lock;
	pthread_cond_t work;  /* with lock: there may be something to claim, or an order was made, or stop */
	pthread_cond_t ready; /* with lock: the slot at the head of the queue is ready, or nobody fills any more */
	struct place claim;   /* lock: the next to be filled */
	struct epoch_order *epoch_order; /* changes only while everybody rests */
	uint32_t busy;	    /* lock: threads that fill a slot or make an order */
	bool stop, resting; /* lock: nobody claims */
	bool awaits_slot;   /* lock: the consumer waits, and not for a thread: every slot is with the GPU's driver, or lent */
	struct member *member;		     /* [o.thread_count]; of which started: */
	uint32_t member_count;
	atomic_bool stripe[LOADER_STRIPES];  /* a unit of it is being hashed; not the dataset's: a forked child has that, too */
	_Atomic uint32_t *path;		     /* [shard_count] path.c */
	_Atomic(_Atomic uint8_t *) *fetched;   /* [shard_count] likewise */
	_Atomic uint32_t path_turn;
	bool is_remote, fits, wants_direct, has_direct_group; /* const once started */
	uint64_t fetch_records;				      /* likewise: of a run that path.c asks for */
	struct stage *stage[SHARD_GROUPS_MAX]; /* stage.c; NULL: the group needs none */
	void *stage_memory;
	uint64_t stage_bytes;
	uint64_t start_ns;
	struct shard_error damage;	 /* lock: the last; status 0: none */
	bool waited;			 /* lock: the consumer did, for the batch that comes next */
	struct shard_loader_stats stats; /* lock, but for what the consumer counts */
};

/* ---- loader.c: what host and device side have in common ---- */

bool loader_is_inherited(const struct shard_loader *l); /* is this another process than that of the first next? */
int loader_check_owner(const struct shard_loader *l, struct shard_error *err); /* ARGUMENT if so */
int loader_begin(struct shard_loader *l, struct shard_error *err); /* what each next begins with: start, or why not to go on */
/* From now on `why` is what next says, until seek. */
int loader_fail(struct shard_loader *l, int rc, const struct shard_error *why, struct shard_error *err);
bool loader_ends_epoch(struct shard_loader *l); /* then the next call begins the next one */
int loader_take(struct shard_loader *l, uint32_t *slot, struct shard_error *err); /* the host slot that is next, once it is filled */
void loader_count(struct shard_loader *l, const struct shard_batch *batch); /* it is the caller's; the next one is behind it */
/* Does the slot, of host or device, hold this batch now? */
bool loader_is_of(const struct shard_loader *l, const struct slot *s, const struct shard_batch *batch);
int loader_check_lent(const struct shard_loader *l, const struct shard_batch *batch, struct shard_error *err); /* of the host's slots */

/* ---- settle.c: options to an order and a share of it ---- */

/* Fill in defaults, and o->shuffle, from the dataset's schema; ARGUMENT for what does not fit together. */
int settle_options(struct shard_loader *l, struct shard_error *err);

/* Parameters of the order of an epoch. */
struct order_params settle_params(const struct shard_loader *l, uint64_t epoch);

/* ---- token.c ---- */

struct token {
	struct order_params params; /* of the token's epoch */
	uint64_t position;
	char dataset_id[65];
};
void token_write(const struct token *t, char text[SHARD_TOKEN_BYTES]);
bool token_read(const char *text, struct token *t); /* false: it is not what token_write() writes */

/* ---- ring.c ---- */

bool group_is_large(const struct shard_group *g); /* delivered as it lies; others field by field */

/* Places of the arrays in a slot; `in_place`: there are none for large groups.  False if a slot would not fit memory. */
bool ring_plan(const struct shard_schema *s, uint32_t batch_records, bool in_place, struct layout *out);
uint64_t ring_bytes(const struct shard_loader *l);
int ring_open(struct shard_loader *l, struct shard_error *err); /* all slots free */
void ring_close(struct shard_loader *l, bool inherited);	 /* inherited: by a child, whose ring does not exist */
/* A batch that lies in memory like the ring's, and is called `number`. */
void ring_describe(const struct shard_loader *l, const struct slot *s, uint32_t number, struct shard_batch *out);
uint64_t ring_group(const struct shard_loader *l, uint32_t group, uint32_t rows, uint64_t *at); /* its bytes, and place in a slot */

/* ---- rows.c ---- */

/* What filling a slot was. */
struct fill_counts {
	uint64_t checked_units, decoded_chunks, direct_bytes, pread_bytes, substituted, masked;
	bool uring; /* the last two by io_uring */
};

/* Bytes of the longest decoded chunk; 0: no group is compressed. */
uint64_t rows_chunk_bytes(const struct shard_loader *l);

/* Which records a step has, into the slot; then their bytes.  Adds to *counts. */
void rows_order(const struct shard_loader *l, const struct order *order, struct slot *s);
int rows_fill(struct shard_loader *l, struct member *m, struct slot *s, struct fill_counts *counts, struct shard_error *err);

/* One row, with the record that s->record says; what is damaged is an error. */
int rows_fill_one(struct shard_loader *l, struct member *m, struct slot *s, uint32_t row, struct fill_counts *counts,
		  struct shard_error *err);

/* ---- repair.c ---- */

#define ROW_DAMAGED 128u /* a flag that no caller sees: the row is to be repaired */

/* Remember what was wrong. */
void repair_note(struct shard_loader *l, const struct shard_error *problem);
/* Substitute or mask the rows that are flagged. */
int repair_rows(struct shard_loader *l, struct member *m, struct slot *s, struct fill_counts *counts, struct shard_error *err);

/* ---- crew.c ---- */

int crew_open(struct shard_loader *l, struct shard_error *err);	 /* threads start; without any the consumer does it all */
void crew_close(struct shard_loader *l, bool inherited);
uint32_t crew_take(struct shard_loader *l);	       /* waits for the next slot in order; it is lent then */
bool crew_has_sound(struct shard_loader *l, uint32_t *slot); /* that one is ready, and no error */
bool crew_await(struct shard_loader *l, uint64_t most_ns); /* false: it was not ready within that time */
void crew_give(struct shard_loader *l, uint32_t slot); /* and free again; any thread may do that */
void crew_move(struct shard_loader *l, struct place to); /* forget what was prepared, go on there; waits for nothing */
void crew_rest(struct shard_loader *l);		       /* forget it, and wait until nobody is busy; move ends the rest */
/* Memory for another order; NULL with err.  Then, while everybody rests, in place of what was used. */
struct epoch_order *crew_make_orders(const struct shard_loader *l, const struct order_params *params, struct shard_error *err);
void crew_use_orders(struct shard_loader *l, struct epoch_order *orders, const struct order_params *params);

bool place_ended(const struct shard_loader *l, const struct place *p); /* its epoch has no further step */

#endif
