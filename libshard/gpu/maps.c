/* SPDX-License-Identifier: Apache-2.0 */
/*
 * maps.c - pieces of shards that are page-locked where they lie in the page cache
 *
 * A GPU reads such records by itself, so that no thread copies them to the ring.  A thread that
 * needs a record of a piece maps the piece once more and page-locks that map.  It does so for one
 * piece in a block of rows, and other records are copied to the ring meanwhile.  A map of our own
 * has the same pages as the reader's, and lives as long as it is needed here.  No record crosses the
 * end of a piece, because no copy may.
 *
 * Page-locked pages cannot leave memory, so there is a limit.  When it is reached, an order that
 * goes through the dataset in sequence gives back what it needs last: the piece that it has just
 * left.  In a shuffled order all pieces are needed equally soon.  There the pieces stay which came
 * first, and records of others are copied to the ring.
 */
#include "libshard/gpu/gpu.h"

#include <inttypes.h>

#include "libshard/base/bytes.h"
#include "libshard/base/clock.h"
#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/io/io.h"

#define PAGE_BYTES  UINT64_C(4096)
#define RETRY_NS    UINT64_C(1000000000) /* between looks at the memory that is left */
#define GPUS_MOST   8u			 /* of a host that does not say how many it has */
#define MIB(bytes_) ((double)(bytes_) / (1 << 20))

enum map_state {
	MAP_NONE,
	MAP_BUSY,    /* a thread locks or unlocks it */
	MAP_LOCKED,  /* the GPU can read it */
	MAP_LEAVING, /* likewise, but it gets no more users */
	MAP_NEVER,
};

static inline bool is_locked(uint32_t state)
{
	return state == MAP_LOCKED || state == MAP_LEAVING;
}

/* Records of one group of a shard. */
struct map_piece {
	_Atomic uint32_t state; /* enum map_state */
	atomic_uint users;	/* rows of slots */
	const uint8_t *at;	/* its first record, while it is locked, as: */
	const void *map;
	uint64_t bytes; /* of the map */
	uint64_t inode; /* of its file: a reader that is opened later may have another one */
};

struct maps {
	struct residents residents;
	struct feed *feed;
	const struct cuda_device *cuda;
	uint64_t asked;				  /* gpu.pin_most; 0: a share of the memory */
	uint32_t ranks;				  /* that may share this host */
	uint64_t piece_records[SHARD_GROUPS_MAX]; /* all but the last piece of a group have as many */
	_Atomic(struct map_piece *) *pieces;	  /* [shard_count x groups of the schema]; NULL: no record was needed */
	atomic_bool stopped;			  /* the driver has refused a piece */
	_Atomic uint64_t retry_ns;		  /* there is no room before this time */
	uint64_t relieve_ns;			  /* of the consumer: when it looks at the memory again; as: */
	bool has_leaving;			  /* some pieces are MAP_LEAVING */
	_Atomic uint64_t bytes;			  /* that are page-locked */

	pthread_mutex_t lock;
	struct shard_error why; /* lock: why the first piece was refused; status 0: none was */
	bool has_refusal;	/* lock: `why` is a refusal, and not a limit */
};

/* Of all loaders of this process. */
static _Atomic uint64_t locked_bytes;

/* ---- how much may be page-locked ---- */

/* How many processes of this job may run on this host: one for each GPU. */
static uint32_t ranks_here(uint32_t world)
{
	uint32_t gpus = gpu_count_of_host();

	gpus = gpus ? gpus : GPUS_MOST;
	return world < gpus ? world : gpus;
}

/* Add bytes, unless that would be more than `most`. */
static bool add_below(_Atomic uint64_t *sum, uint64_t bytes, uint64_t most)
{
	uint64_t now = atomic_load(sum);

	do {
		if (now + bytes > most)
			return false;
	} while (!atomic_compare_exchange_weak(sum, &now, now + bytes));
	return true;
}

/*
 * Count bytes that shall be page-locked, if they may be.  The page cache counts as available,
 * page-locked or not.  What the user has asked for may take three quarters of the memory, to leave
 * some to the trainer.
 */
static bool reserve(struct maps *m, uint64_t bytes)
{
	uint64_t available = available_memory_bytes();

	if (!add_below(&m->bytes, bytes, m->asked ? m->asked : UINT64_MAX))
		return false;
	if (add_below(&locked_bytes, bytes, m->asked ? available / 4 * 3 : available / 2 / m->ranks))
		return true;
	atomic_fetch_sub(&m->bytes, bytes);
	return false;
}

static void unreserve(struct maps *m, uint64_t bytes)
{
	atomic_fetch_sub(&m->bytes, bytes);
	atomic_fetch_sub(&locked_bytes, bytes);
}

/* ---- what is refused ---- */

/* Tells why some records are copied to the ring.  The first refusal is told, or else the limit. */
static void explain(struct maps *m, const struct shard_error *refusal)
{
	pthread_mutex_lock(&m->lock);
	if (refusal && !m->has_refusal) {
		m->has_refusal = true;
		error_set(&m->why, refusal->status,
			  "a part of the page cache cannot be page-locked (%s).  So a thread copies each record that "
			  "is not page-locked to the ring, from where the GPU reads it",
			  refusal->message);
		m->why.os_code = refusal->os_code;
	} else if (!refusal && !m->why.status) {
		error_set(&m->why, SHARD_E_MEMORY,
			  "%.0f MiB of the page cache are page-locked, and there is no room for more: %s.  So a thread "
			  "copies each other record to the ring, from where the GPU reads it",
			  MIB(atomic_load(&m->bytes)),
			  m->asked ? "gpu.pin_most is reached, or three quarters of the available memory"
				   : "half of the memory that is available to this rank is reached (gpu.pin_most "
				     "sets another limit)");
	}
	pthread_mutex_unlock(&m->lock);
}

bool maps_problem(struct maps *m, struct shard_error *out)
{
	bool has;

	pthread_mutex_lock(&m->lock);
	has = m->why.status != SHARD_OK;
	if (has)
		*out = m->why;
	pthread_mutex_unlock(&m->lock);
	return has;
}

/* ---- pieces ---- */

static uint64_t piece_count(const struct maps *m, uint64_t records, uint32_t group)
{
	return ceil_div(records, m->piece_records[group]);
}

static uint64_t shard_records(const struct maps *m, uint64_t shard)
{
	return m->feed->ds->first_record[shard + 1] - m->feed->ds->first_record[shard];
}

/* Returns NULL if there is no memory for the pieces of the shard. */
static struct map_piece *find_piece(struct maps *m, uint64_t shard, uint32_t group, uint64_t number)
{
	_Atomic(struct map_piece *) *pieces = &m->pieces[shard * m->feed->layout.schema->group_count + group];
	struct map_piece *all = atomic_load_explicit(pieces, memory_order_acquire), *mine;

	if (all)
		return &all[number];
	mine = mem_array((size_t)piece_count(m, shard_records(m, shard), group), sizeof(*mine));
	if (mine && atomic_compare_exchange_strong(pieces, &all, mine))
		return &mine[number];
	mem_free(mine); /* another thread was faster */
	return all ? &all[number] : NULL;
}

/* A piece that was page-locked and has no users is busy: give its memory back.  The context is entered. */
static void release_piece(struct maps *m, struct map_piece *p)
{
	cuda_unpin(m->cuda, p->map);
	file_unmap(p->map, p->bytes);
	unreserve(m, p->bytes);
}

/* Take a piece back, unless it has users.  Returns whether it was.  The context is entered. */
static bool take_back(struct maps *m, struct map_piece *p)
{
	uint32_t state = atomic_load(&p->state);

	if (!is_locked(state) || !atomic_compare_exchange_strong(&p->state, &state, MAP_BUSY))
		return false;
	/* A thread adds itself to the users before it looks at the state, so one of the two sees the other. */
	if (atomic_load(&p->users)) {
		atomic_store(&p->state, state);
		return false;
	}
	release_piece(m, p);
	atomic_store(&p->state, MAP_NONE);
	return true;
}

/*
 * Returns the piece without users that is needed last by an order in sequence that is at the record
 * `from`, or NULL.
 */
static struct map_piece *needed_last(const struct maps *m, uint64_t from)
{
	const struct shard_dataset *ds = m->feed->ds;
	uint32_t group_count = m->feed->layout.schema->group_count;
	uint64_t records = ds->m.record_count, most = 0;
	struct map_piece *found = NULL;

	for (uint64_t i = 0; i < ds->m.shard_count * group_count; i++) {
		struct map_piece *all = atomic_load_explicit(&m->pieces[i], memory_order_acquire);
		uint64_t shard = i / group_count, here = all ? shard_records(m, shard) : 0, end = 0;

		for (struct map_piece *p = all; end < here; p++) {
			uint64_t away;

			end = min_u64(end + m->piece_records[i % group_count], here);
			/* How far its last record is ahead; what is just behind us is almost an epoch ahead. */
			away = (ds->first_record[shard] + end - 1 + records - from) % records;
			if (!is_locked(atomic_load(&p->state)) || atomic_load(&p->users) || (found && away < most))
				continue;
			found = p;
			most = away;
		}
	}
	return found;
}

/*
 * Reserve bytes, and take pieces back until there is room for them.  An order in sequence is at the
 * record `from`.  Returns false if that is not enough.  The context is entered.
 */
static bool make_room(struct maps *m, uint64_t bytes, uint64_t from)
{
	struct map_piece *p;

	while (!reserve(m, bytes)) {
		p = needed_last(m, from);
		if (!p)
			return false;
		take_back(m, p); /* or somebody uses it now, and the next one is taken */
	}
	return true;
}

/* ---- page-locking ---- */

/* Map records [first, end) of a group.  The file must be the one that the reader has. */
static int map_piece(struct map_piece *p, const struct shard_reader *r, uint32_t group, uint64_t first, uint64_t end,
		     struct shard_error *err)
{
	uint64_t begin = reader_raw_begin(r, group) + first * r->group[group].stride;
	uint64_t last = begin + (end - first) * r->group[group].stride, page = begin / PAGE_BYTES * PAGE_BYTES;
	const char *change;
	uint64_t bytes;
	struct shown s;
	int fd, rc = file_open(r->path, &fd, &bytes, &p->inode, err);

	if (rc)
		return rc;
	change = file_change(r->inode, r->file_bytes, p->inode, bytes);
	if (change)
		rc = error_set(err, SHARD_E_IO, "%s: was %s while in use", show(&s, r->path), change);
	p->bytes = align_up(last, PAGE_BYTES) - page;
	if (!rc)
		rc = file_map_part(fd, page, p->bytes, r->path, &p->map, err);
	if (!rc)
		buffer_keep((void *)(uintptr_t)p->map, p->bytes); /* a forked child has no use for it */
	file_close(fd);
	p->at = (const uint8_t *)p->map + (begin - page);
	return rc;
}

/* The piece is busy.  Returns its next state. */
static enum map_state lock_piece(struct maps *m, struct map_piece *p, uint64_t shard, struct shard_reader *r,
				 uint32_t group, uint64_t first)
{
	uint64_t end = min_u64(first + m->piece_records[group], r->pages->record_count);
	uint64_t base = m->feed->ds->first_record[shard];
	bool in_sequence = m->feed->steps.params.kind == ORDER_SEQUENTIAL && !m->feed->steps.mix;
	struct shard_error why;
	int rc = map_piece(p, r, group, first, end, &why);
	bool room;

	if (rc) { /* a removed or replaced file: the reader still has the old one */
		explain(m, &why);
		return MAP_NEVER;
	}
	rc = cuda_enter(m->cuda, &why);
	if (rc) {
		file_unmap(p->map, p->bytes);
		return MAP_NONE;
	}
	room = in_sequence ? make_room(m, p->bytes, base + first) : reserve(m, p->bytes);
	if (room) {
		/* Else the driver brings one page after the other into the map, while it holds locks of its own. */
		file_will_need(p->map, p->bytes);
		file_await(p->map, p->bytes);
		rc = cuda_pin_map(m->cuda, p->map, p->bytes, &why);
	}
	cuda_leave(m->cuda, rc, NULL);
	if (room && !rc) {
		/* A page may have been read again since it was hashed; from now on it stays. */
		reader_forget(r, group, first, end - first);
		return MAP_LOCKED;
	}
	file_unmap(p->map, p->bytes);
	if (!room) {
		/* In sequence the batches that are under way hold all of it, but not for long. */
		if (!in_sequence)
			atomic_store(&m->retry_ns, clock_now_ns() + RETRY_NS);
		explain(m, NULL);
		return MAP_NONE;
	}
	unreserve(m, p->bytes);
	if (!cuda_is_capture(&why)) { /* a capture ends soon */
		atomic_store(&m->stopped, true);
		explain(m, &why);
	}
	return MAP_NONE;
}

/* See struct residents. */
static const uint8_t *take(void *context, uint64_t shard, struct shard_reader *r, uint32_t group, uint64_t in_shard,
			   uint32_t *count, uint32_t *effort, atomic_uint **users)
{
	struct maps *m = context;
	uint64_t number = in_shard / m->piece_records[group], first = number * m->piece_records[group];
	struct map_piece *p = find_piece(m, shard, group, number);
	uint32_t state = MAP_NONE;

	*count = (uint32_t)min_u64(*count, first + m->piece_records[group] - in_shard);
	if (!p)
		return NULL;
	atomic_fetch_add(&p->users, *count);
	if (*effort && atomic_load(&p->state) == MAP_NONE && !atomic_load(&m->stopped) &&
	    clock_now_ns() >= atomic_load(&m->retry_ns) &&
	    atomic_compare_exchange_strong(&p->state, &state, MAP_BUSY)) {
		--*effort;
		atomic_store(&p->state, lock_piece(m, p, shard, r, group, first));
	}
	/* What is hashed is what the reader has, so it must be the same file. */
	if (atomic_load(&p->state) == MAP_LOCKED && p->inode == r->inode) {
		*users = &p->users;
		return p->at + (in_shard - first) * r->group[group].stride;
	}
	atomic_fetch_sub(&p->users, *count);
	return NULL;
}

/* ---- life ---- */

/* Those with long records, or of which a run is copied at once: see run_groups() of slabs.c. */
uint32_t maps_groups(const struct feed *f)
{
	uint32_t groups = feed_resident_groups(f), worthy = 0;
	uint64_t run = f->steps.share ? steps_run_records(&f->steps) : 1;

	/* A pool that holds everything reads each record once, which is not worth a page-lock. */
	if (f->o.gpu.pin_most == SHARD_PIN_NOTHING || f->steps.is_held)
		return 0;
	for (uint32_t g = 0; g < f->layout.schema->group_count; g++)
		if (groups >> g & 1 && f->layout.schema->group[g].stride * max_u64(run, 1) >= cuda_map_least_bytes())
			worthy |= UINT32_C(1) << g;
	return worthy;
}

int maps_open(struct maps **out, struct feed *feed, uint32_t groups, uint32_t check_groups,
	      const struct cuda_device *cuda, struct shard_error *err)
{
	const struct shard_schema *schema = feed->layout.schema;
	struct maps *m = mem_zalloc(sizeof(*m));

	if (m)
		m->pieces = mem_array((size_t)(feed->ds->m.shard_count * schema->group_count), sizeof(*m->pieces));
	if (!m || !m->pieces) {
		mem_free(m);
		return error_set(err, SHARD_E_MEMORY, "no memory for the maps of %" PRIu64 " shards",
				 feed->ds->m.shard_count);
	}
	m->residents = (struct residents){.take = take, .context = m, .groups = groups, .check_groups = check_groups};
	m->feed = feed;
	m->cuda = cuda;
	m->asked = feed->o.gpu.pin_most;
	m->ranks = ranks_here(feed->o.world);
	for (uint32_t g = 0; g < schema->group_count; g++)
		m->piece_records[g] = max_u64(cuda_map_piece_bytes() / schema->group[g].stride, 1);
	pthread_mutex_init(&m->lock, NULL);
	feed_use_residents(feed, &m->residents);
	*out = m;
	return SHARD_OK;
}

void maps_close(struct maps *m, bool inherited)
{
	uint64_t tables;

	if (!m)
		return;
	if (!inherited)
		feed_use_residents(m->feed, NULL);
	tables = m->feed->ds->m.shard_count * m->feed->layout.schema->group_count;
	for (uint64_t i = 0; i < tables; i++) {
		struct map_piece *all = atomic_load(&m->pieces[i]);
		uint64_t shard = i / m->feed->layout.schema->group_count;
		uint32_t group = (uint32_t)(i % m->feed->layout.schema->group_count);
		uint64_t count = all && !inherited ? piece_count(m, shard_records(m, shard), group) : 0;

		for (uint64_t k = 0; k < count; k++)
			if (is_locked(atomic_load(&all[k].state)))
				release_piece(m, &all[k]);
		mem_free(all);
	}
	if (!inherited)
		pthread_mutex_destroy(&m->lock);
	mem_free((void *)m->pieces);
	mem_free(m);
}

/* All pieces in one state get another one. */
static void change_all(struct maps *m, uint32_t from, uint32_t to)
{
	uint32_t group_count = m->feed->layout.schema->group_count;

	for (uint64_t i = 0; i < m->feed->ds->m.shard_count * group_count; i++) {
		struct map_piece *all = atomic_load(&m->pieces[i]);
		uint64_t count = all ? piece_count(m, shard_records(m, i / group_count), i % group_count) : 0;

		for (uint64_t k = 0; k < count; k++) {
			uint32_t state = from;

			atomic_compare_exchange_strong(&all[k].state, &state, to);
		}
	}
}

void maps_relieve(struct maps *m)
{
	uint64_t now = clock_now_ns();

	if (now < m->relieve_ns)
		return;
	m->relieve_ns = now + RETRY_NS;
	if (!atomic_load(&m->bytes))
		return;
	if (make_room(m, 0, 0)) {
		if (m->has_leaving) /* those that were in use until there was room again */
			change_all(m, MAP_LEAVING, MAP_LOCKED);
		m->has_leaving = false;
		return;
	}
	/* All that is left is in use, and is given back when it no longer is. */
	atomic_store(&m->retry_ns, now + RETRY_NS);
	change_all(m, MAP_LOCKED, MAP_LEAVING);
	m->has_leaving = true;
}

uint64_t maps_bytes(const struct maps *m)
{
	return m ? atomic_load(&m->bytes) : 0;
}
