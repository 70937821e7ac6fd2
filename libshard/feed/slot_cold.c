/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slot_cold.c - reads past the map: each thread keeps many of them under way at once
 *
 * A direct read must begin and end at multiples of an alignment, which the file system tells.  An
 * aligned record is read straight to its place.  Another one is read into a buffer, together with
 * the bytes around it, and copied from there.
 *
 * Neighbours in the file that are neighbours in the slot become one read, as in the runs of a pool.
 * That takes a third of the CPU time of separate reads.
 */
#include "libshard/feed/feed.h"

#include <errno.h>
#include <inttypes.h>

#include "libshard/base/bytes.h"
#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/io/io.h"

#define DEPTH	       64u		   /* reads under way; more than 32 gain little on a disk */
#define BATCH	       8u		   /* reads that are started, or waited for, at once */
#define TOGETHER_BYTES ((uint64_t)4 << 20) /* of neighbours in one read; a slot has several */
#define BOUNCE_BYTES   ((uint64_t)16 << 20)
#define FILES	       (2 * DEPTH) /* that a thread keeps open; reads use at most half of them */
#define WAYS	       8u	   /* entries that are searched for a file */

struct cold_file {
	uint64_t shard; /* + 1; 0: the entry is empty */
	bool wanted_direct;
	uint32_t users;	 /* reads under way */
	uint64_t looked; /* the fill in which its time was looked at */
	struct direct_file file;
};

struct cold_read {
	struct engine_read io; /* the first member, because the engine returns its address */
	struct slot_row row;   /* the first row */
	uint32_t rows;
	uint8_t *bounce; /* the buffer that is read to; NULL: it is read straight to the slot */
	uint32_t skip;	 /* bytes in the buffer before the record */
	struct cold_file *from;
};

struct cold {
	struct engine *engine;
	struct cold_read read[DEPTH];
	uint32_t idle[DEPTH], idle_count, depth;
	uint64_t fill;		   /* which fill of a slot this is */
	struct cold_read *growing; /* waits for the next row, which may belong to it; or NULL */
	uint8_t *bounce;	   /* [depth] buffers of bounce_bytes; NULL: none was needed yet */
	uint64_t bounce_bytes;
	struct cold_file file[FILES];
};

static struct cold *cold_open(const struct layouts *layouts, struct shard_error *err)
{
	struct cold *c = mem_zalloc(sizeof(*c));
	const struct layout *layout;
	uint64_t longest = 0;

	if (!c)
		goto fail;
	for (uint32_t i = 0; (layout = layouts_at(layouts, i)) != NULL; i++)
		for (uint32_t g = 0; g < layout->schema->group_count; g++)
			longest = max_u64(longest, layout->schema->group[g].stride);
	c->bounce_bytes = align_up(longest, LAYOUT_ALIGN) + 2 * LAYOUT_ALIGN;
	c->depth = (uint32_t)min_u64(DEPTH, BOUNCE_BYTES / c->bounce_bytes);
	if (c->depth < 4)
		c->depth = 4;
	c->engine = engine_open(c->depth, BATCH);
	if (!c->engine)
		goto fail;
	for (uint32_t i = 0; i < FILES; i++)
		c->file[i].file.fd = -1;
	for (uint32_t i = 0; i < c->depth; i++)
		c->idle[c->idle_count++] = i;
	return c;
fail:
	mem_free(c);
	error_set(err, SHARD_E_MEMORY, "no memory for reads past the page cache");
	return NULL;
}

void slot_cold_close(struct scratch *scratch, bool inherited)
{
	struct cold *c = scratch->cold;

	if (!c)
		return;
	engine_close(c->engine);
	for (uint32_t i = 0; i < FILES; i++)
		direct_close(&c->file[i].file);
	if (!inherited)
		buffer_close(c->bounce, (size_t)(c->bounce_bytes * c->depth));
	mem_free(c);
	scratch->cold = NULL;
}

/* ---- files ---- */

/* Returns the entry where the file of a shard is open, or one that no read uses. */
static struct cold_file *find_file(struct cold *c, uint64_t shard, bool direct)
{
	struct cold_file *f, *unused = NULL;

	for (uint64_t i = 0; i < FILES; i++) {
		f = &c->file[(shard + i) % FILES];
		if (i < WAYS && f->shard == shard + 1 && f->wanted_direct == direct)
			return f;
		if (!unused && !f->users)
			unused = f;
		if (unused && i >= WAYS)
			break;
	}
	return unused;
}

/* Open the file of a row.  If too many files are open, close the ones that no read uses. */
static int open_again(struct cold *c, const struct slot_row *row, bool direct, struct direct_file *out,
		      struct shard_error *err)
{
	const struct shard_reader *r = row->r;
	int os_code = direct_open(r->path, r->inode, r->file_bytes, direct, out);
	struct shown s;

	if (os_code == EMFILE || os_code == ENFILE) {
		for (uint32_t i = 0; i < FILES; i++)
			if (!c->file[i].users) {
				direct_close(&c->file[i].file);
				c->file[i].shard = 0;
			}
		os_code = direct_open(r->path, r->inode, r->file_bytes, direct, out);
	}
	if (os_code == ESTALE)
		return error_set(err, SHARD_E_IO, "%s: was %s while in use; open the dataset again", show(&s, r->path),
				 out->change);
	return os_code ? error_os(err, os_code, "%s: cannot be opened again", show(&s, r->path)) : SHARD_OK;
}

/* Open the file for direct reads if these are wanted, and if the file system has them. */
static int get_file(struct cold *c, const struct slot_row *row, bool direct, struct cold_file **out,
		    struct shard_error *err)
{
	struct cold_file *f = find_file(c, row->shard, direct);
	int rc;

	*out = f;
	if (f->shard != row->shard + 1 || f->wanted_direct != direct) {
		direct_close(&f->file);
		f->shard = 0;
		rc = open_again(c, row, direct, &f->file, err);
		if (rc)
			return rc;
		f->shard = row->shard + 1;
		f->wanted_direct = direct;
		f->looked = c->fill - 1;
	}
	/* A write or a hole is in the page cache at once, and no read of it comes from a device. */
	if (!f->file.direct && f->looked != c->fill)
		reader_look_for_changes(row->r, f->file.fd);
	f->looked = c->fill;
	return SHARD_OK;
}

/* ---- what came back ---- */

/*
 * The file system has refused a direct read.  Read in the ordinary way, now and from now on in this
 * shard.
 */
static int read_again(struct cold *c, struct cold_read *r, uint64_t epoch, struct shard_error *err)
{
	struct direct_file file;
	int rc = open_again(c, &r->row, false, &file, err);

	paths_refuse_direct(&r->row.source->paths, r->row.shard, epoch);
	if (rc)
		return rc;
	rc = file_read_at(file.fd, r->io.dst, r->io.bytes, r->io.offset, r->row.r->path, err);
	direct_close(&file);
	return rc;
}

/* A read is done.  Bring its rows to their places. */
static int land(struct cold *c, struct cold_read *r, uint64_t epoch, uint64_t *checked, struct shard_error *err)
{
	struct slot_row row;
	struct shown s;
	int rc = SHARD_OK;

	c->idle[c->idle_count++] = (uint32_t)(r - c->read);
	r->from->users--;
	if (r->io.os_code == EINVAL && r->from->file.direct)
		rc = read_again(c, r, epoch, err);
	else if (r->io.os_code == ENODATA)
		rc = error_set(err, SHARD_E_IO, "%s: ends before byte %" PRIu64 " (was it cut while in use?)",
			       show(&s, r->row.r->path), r->io.offset + r->io.bytes);
	else if (r->io.os_code)
		rc = error_os(err, r->io.os_code, "%s: reading %zu bytes at %" PRIu64, show(&s, r->row.r->path),
			      r->io.bytes, r->io.offset);
	if (!r->from->file.direct && !r->io.cached) /* the kernel may have read ahead, too */
		reader_forget_all(r->row.r);
	r->row.fresh |= r->from->file.direct || !r->io.cached;
	row = r->row;
	for (uint32_t i = 0; !rc && i < r->rows; i++) {
		rc = slot_row_land(&row, r->bounce ? r->bounce + r->skip : row.dst, checked, err);
		row.in_shard++;
		row.row++;
		row.dst = row.dst ? row.dst + row.r->group[row.group].stride : NULL;
		row.flags = row.flags ? row.flags + 1 : NULL;
	}
	return rc;
}

/* Start the read that grows.  The engine has room, because this read counts among its `depth`. */
static void start(struct cold *c)
{
	if (c->growing)
		engine_put(c->engine, &c->growing->io);
	c->growing = NULL;
}

int slot_cold_finish(struct scratch *scratch, uint64_t epoch, struct fill_counts *counts, struct shard_error *err)
{
	struct cold *c = scratch->cold;
	struct engine_read *io;
	int rc = SHARD_OK;

	if (!c)
		return SHARD_OK;
	counts->uring = engine_is_uring(c->engine);
	c->fill++;
	start(c);
	while ((io = engine_get(c->engine)) != NULL) { /* all of them: they write to the slot */
		int got = land(c, (struct cold_read *)io, epoch, &counts->checked_units, rc ? NULL : err);

		rc = rc ? rc : got;
	}
	return rc;
}

/* ---- what is started ---- */

/*
 * Fill in the read of a record.  If it is not aligned, round it out, and read to a buffer.  Returns
 * false if there is no memory for buffers.
 */
static bool aim(struct cold *c, struct cold_read *r, const struct direct_file *file)
{
	const struct slot_row *row = &r->row;
	const struct reader_group *g = &row->r->group[row->group];
	uint64_t begin = (uint64_t)(g->data - row->r->map) + row->in_shard * g->stride, end = begin + g->stride;
	uint64_t from = begin / file->offset_align * file->offset_align;
	uint64_t to = min_u64(ceil_div(end, file->offset_align) * file->offset_align, row->r->file_bytes);

	r->rows = 1;
	r->bounce = NULL;
	r->skip = 0;
	r->io = (struct engine_read){.fd = file->fd,
				     .offset = begin,
				     .bytes = (size_t)g->stride,
				     .dst = row->dst,
				     .asks = row->r->check == SHARD_CHECK_DEVICE && !file->direct};
	if (row->dst && from == begin && to == end && !((uintptr_t)row->dst % file->memory_align))
		return true;
	if (!c->bounce) {
		size_t bytes = (size_t)(c->bounce_bytes * c->depth);

		c->bounce = buffer_open(bytes);
		if (c->bounce)
			buffer_keep(c->bounce, bytes);
	}
	if (!c->bounce || file->offset_align > LAYOUT_ALIGN)
		return false;
	r->bounce = c->bounce + c->bounce_bytes * (uint64_t)(r - c->read);
	r->skip = (uint32_t)(begin - from);
	r->io.offset = from;
	r->io.bytes = (size_t)(to - from);
	r->io.dst = r->bounce;
	return true;
}

/* If the row is the next one in the file and in the slot, add it to the read that grows. */
static bool grow(struct cold_read *r, const struct slot_row *row, bool direct)
{
	uint64_t stride = row->r->group[row->group].stride;

	if (!r || r->bounce || !row->dst || r->row.shard != row->shard || r->row.group != row->group ||
	    r->from->wanted_direct != direct || row->in_shard != r->row.in_shard + r->rows ||
	    row->dst != r->row.dst + r->rows * stride || r->io.bytes + stride > TOGETHER_BYTES ||
	    stride % r->from->file.offset_align)
		return false;
	r->rows++;
	r->io.bytes += (size_t)stride;
	return true;
}

int slot_cold_put(struct scratch *scratch, const struct slot_row *row, bool direct, uint64_t epoch, uint64_t *checked,
		  struct shard_error *err)
{
	struct cold *c = scratch->cold;
	struct cold_file *file;
	struct cold_read *r;
	int rc = SHARD_OK;

	if (!c)
		c = scratch->cold = cold_open(&row->source->layouts, err);
	if (!c)
		return SHARD_E_MEMORY;
	if (grow(c->growing, row, direct))
		return SHARD_OK;
	start(c);
	if (engine_is_full(c->engine))
		rc = land(c, (struct cold_read *)engine_get(c->engine), epoch, checked, err);
	if (!rc)
		rc = get_file(c, row, direct, &file, err);
	if (rc)
		return rc;
	r = &c->read[c->idle[--c->idle_count]];
	r->row = *row;
	r->from = file;
	if (!aim(c, r, &file->file)) {
		c->idle[c->idle_count++] = (uint32_t)(r - c->read);
		return error_set(err, SHARD_E_MEMORY, "no memory to read %" PRIu64 " bytes that are not aligned",
				 row->r->group[row->group].stride);
	}
	file->users++;
	c->growing = r;
	return SHARD_OK;
}
