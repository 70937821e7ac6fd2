/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack.c - a file that cannot be read by offset to one that can
 *
 * Strict: a checksum that is wrong, an end that comes early and bytes behind the end are damage,
 * since what came before may then be anything.
 */
#include "tools/shardpack/input/unpack.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zlib.h>
#include <zstd.h>

#include "tools/common/exit_code.h"
#include "tools/common/load.h"
#include "tools/common/message.h"
#include "tools/common/progress.h"
#include "tools/common/signals.h"
#include "tools/common/text.h"
#include "tools/shardpack/format/zip.h"

#define PIECE_BYTES (1u << 20)
#define DIMS_MAX    8

struct work {
	const char *name;
	int in_fd, out_fd;
	uint64_t in_bytes, in_at, out_bytes;
	/* as the archive says: a few bytes can unpack to a full disk */
	uint64_t member_at, member_bytes, member_left;
	uint8_t *in, *out; /* PIECE_BYTES each */
	struct progress progress;
};

static int damaged(const struct work *w, const char *what)
{
	return fail(EXIT_BAD, "%s: %s near offset %" PRIu64 " of %" PRIu64 "; the file is damaged, fetch it again",
		    w->name, what, w->in_at, w->in_bytes);
}

static int read_at(const struct work *w, void *out, size_t bytes, uint64_t offset)
{
	uint8_t *at = out;
	ssize_t n;

	while (bytes) {
		n = pread(w->in_fd, at, bytes, (off_t)offset);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return fail(EXIT_IO, "%s: offset %" PRIu64 ": %s", w->name, offset,
				    n < 0 ? strerror(errno) : "the file became shorter");
		at += n;
		bytes -= (size_t)n;
		offset += (uint64_t)n;
	}
	return interrupted() ? EXIT_INTERRUPTED : EXIT_DONE;
}

static int write_out(struct work *w, const uint8_t *data, size_t bytes)
{
	ssize_t n;

	if (bytes > w->member_left)
		return fail(EXIT_BAD,
			    "%s: the member at offset %" PRIu64 " unpacks to more than the %" PRIu64
			    " bytes that the directory says; the file is damaged, fetch it again",
			    w->name, w->member_at, w->member_bytes);
	w->member_left -= bytes;
	w->out_bytes += bytes;
	while (bytes) {
		n = write(w->out_fd, data, bytes);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return fail(EXIT_IO,
				    "%s: cannot unpack more than %" PRIu64 " bytes: %s; choose another "
				    "folder with --spool DIR",
				    w->name, w->out_bytes - bytes, strerror(errno));
		data += n;
		bytes -= (size_t)n;
	}
	return EXIT_DONE;
}

/* ---- deflate, with or without the frame of gzip ---- */

/* The next piece of the input, up to `end`. */
static int feed(struct work *w, z_stream *z, uint64_t end)
{
	size_t n = end - w->in_at < PIECE_BYTES ? (size_t)(end - w->in_at) : PIECE_BYTES;
	int code = read_at(w, w->in, n, w->in_at);

	z->next_in = w->in;
	z->avail_in = (uInt)n;
	w->in_at += n;
	progress_add(&w->progress, n, n, 0);
	progress_tick(&w->progress);
	return code;
}

static int inflate_run(struct work *w, z_stream *z, uint64_t end, bool members, uint32_t *crc)
{
	int code = EXIT_DONE, rc = Z_OK;

	while (code == EXIT_DONE) {
		if (!z->avail_in && w->in_at < end) {
			code = feed(w, z, end);
			continue;
		}
		if (rc == Z_STREAM_END) {
			if (!z->avail_in)
				return EXIT_DONE;
			if (!members)
				return damaged(w, "there are bytes behind the end of the compressed data,");
			rc = inflateReset(z);
		}
		z->next_out = w->out;
		z->avail_out = PIECE_BYTES;
		rc = inflate(z, Z_NO_FLUSH);
		if (rc == Z_MEM_ERROR)
			return fail(EXIT_IO, "%s: out of memory while unpacking", w->name);
		if (rc == Z_BUF_ERROR && !z->avail_in)
			return damaged(w, "the compressed data end early,");
		if (rc != Z_OK && rc != Z_STREAM_END)
			return damaged(w, z->msg ? z->msg : "the compressed data cannot be read");
		*crc = (uint32_t)crc32(*crc, w->out, PIECE_BYTES - z->avail_out);
		code = write_out(w, w->out, PIECE_BYTES - z->avail_out);
	}
	return code;
}

/* `window` as of inflateInit2(): 31 for gzip, -15 for bare deflate. */
static int unpack_deflate(struct work *w, int window, uint64_t offset, uint64_t bytes, uint32_t *crc)
{
	z_stream z = {0};
	int code;

	if (inflateInit2(&z, window) != Z_OK)
		return fail(EXIT_IO, "%s: out of memory while unpacking", w->name);
	w->in_at = offset;
	code = inflate_run(w, &z, offset + bytes, window > 0, crc);
	inflateEnd(&z);
	return code;
}

static int unpack_member(struct work *w, const uint64_t *arg)
{
	uint32_t crc = 0;
	int code;

	w->member_at = arg[0];
	w->member_bytes = w->member_left = arg[3];
	if (arg[0] > w->in_bytes || arg[1] > w->in_bytes - arg[0])
		return damaged(w, "a member lies outside of the file,");
	code = unpack_deflate(w, -15, arg[0], arg[1], &crc);
	if (code == EXIT_DONE && crc != arg[2])
		code = damaged(w, "the checksum of a member is wrong");
	return code;
}

/* ---- all of a ZIP ---- */

static bool read_zip(void *context, uint64_t offset, void *out, size_t bytes)
{
	return read_at(context, out, bytes, offset) == EXIT_DONE;
}

static int copy_member(struct work *w, const struct zip_member *m, uint32_t *crc)
{
	uint64_t n;
	int code = EXIT_DONE;

	for (uint64_t at = 0; code == EXIT_DONE && at < m->bytes; at += n) {
		n = m->bytes - at < PIECE_BYTES ? m->bytes - at : PIECE_BYTES;
		code = read_at(w, w->in, (size_t)n, m->offset + at);
		if (code != EXIT_DONE)
			break;
		*crc = (uint32_t)crc32(*crc, w->in, (uInt)n);
		progress_add(&w->progress, n, n, 0);
		progress_tick(&w->progress);
		code = write_out(w, w->in, (size_t)n);
	}
	return code;
}

/* Every member, one behind the other in the order of the directory. */
static int unpack_zip(struct work *w)
{
	char why[ZIP_WHY_BYTES] = "";
	struct zip z = {.bytes = w->in_bytes, .read = read_zip, .context = w, .why = why};
	struct zip_member *m = malloc(sizeof(*m));
	enum zip_status status = ZIP_END;
	int code = m ? EXIT_DONE : fail(EXIT_IO, "%s: out of memory while unpacking", w->name);

	while (code == EXIT_DONE && (status = zip_next(&z, m)) == ZIP_MEMBER) {
		uint64_t before = w->out_bytes;
		uint32_t crc = 0;

		w->member_at = m->offset;
		w->member_bytes = w->member_left = m->bytes;
		code = m->method == ZIP_STORED ? copy_member(w, m, &crc)
					       : unpack_deflate(w, -15, m->offset, m->packed_bytes, &crc);
		w->in_at = m->offset;
		if (code == EXIT_DONE && (crc != m->crc || w->out_bytes - before != m->bytes))
			code = fail(EXIT_BAD,
				    "%s: '%s' at offset %" PRIu64 " is damaged: it has %" PRIu64 " bytes "
				    "with CRC-32 %08" PRIx32 "; the directory says %" PRIu64 " bytes with "
				    "CRC-32 %08" PRIx32,
				    w->name, m->name, m->offset, w->out_bytes - before, crc, m->bytes, m->crc);
	}
	free(m);
	if (code == EXIT_DONE && status == ZIP_BAD)
		code = why[0] ? fail(EXIT_BAD, "%s: %s", w->name, why) : EXIT_IO;
	return code;
}

/* ---- Zstandard ---- */

static int zstd_run(struct work *w, ZSTD_DCtx *context)
{
	ZSTD_inBuffer in = {w->in, 0, 0};
	size_t left = 1; /* 0: a frame is complete */
	int code = EXIT_DONE;

	while (code == EXIT_DONE) {
		ZSTD_outBuffer out = {w->out, PIECE_BYTES, 0};

		if (in.pos == in.size && w->in_at < w->in_bytes) {
			in.size = w->in_bytes - w->in_at < PIECE_BYTES ? (size_t)(w->in_bytes - w->in_at) : PIECE_BYTES;
			in.pos = 0;
			code = read_at(w, w->in, in.size, w->in_at);
			w->in_at += in.size;
			progress_add(&w->progress, in.size, in.size, 0);
			progress_tick(&w->progress);
			if (code != EXIT_DONE)
				break;
		} else if (in.pos == in.size && !left) {
			break;
		}
		left = ZSTD_decompressStream(context, &out, &in);
		if (ZSTD_isError(left))
			return damaged(w, ZSTD_getErrorName(left));
		if (left && !out.pos && in.pos == in.size && w->in_at == w->in_bytes)
			return damaged(w, "the compressed data end early,");
		code = write_out(w, w->out, out.pos);
	}
	return code;
}

static int unpack_zstd(struct work *w)
{
	ZSTD_DCtx *context = ZSTD_createDCtx();
	int code;

	if (!context)
		return fail(EXIT_IO, "%s: out of memory while unpacking", w->name);
	code = zstd_run(w, context);
	ZSTD_freeDCtx(context);
	return code;
}

/* ---- arrays in Fortran's order ---- */

struct fortran {
	uint64_t offset, item_bytes, count, inner; /* inner: items of one record */
	uint64_t dim[DIMS_MAX];			   /* of a record */
	unsigned dim_count;
	uint8_t *column, *block;
	uint64_t block_records;
};

/* Item k of a record in C's order stands where in Fortran's? */
static uint64_t place_of(const struct fortran *f, uint64_t k)
{
	uint64_t place = 0, weight = f->inner;
	unsigned d = f->dim_count;

	while (d--) {
		weight /= f->dim[d];
		place += k % f->dim[d] * weight;
		k /= f->dim[d];
	}
	return place;
}

/* Records [first, first + n): each of their items lies beside the same one of the next record. */
static int transpose_block(struct work *w, const struct fortran *f, uint64_t first, uint64_t n)
{
	int code = EXIT_DONE;

	for (uint64_t k = 0; code == EXIT_DONE && k < f->inner; k++) {
		uint64_t at = f->offset + (place_of(f, k) * f->count + first) * f->item_bytes;

		code = read_at(w, f->column, (size_t)(n * f->item_bytes), at);
		for (uint64_t i = 0; i < n; i++)
			memcpy(f->block + (i * f->inner + k) * f->item_bytes, f->column + i * f->item_bytes,
			       f->item_bytes);
	}
	progress_add(&w->progress, n * f->inner * f->item_bytes, n * f->inner * f->item_bytes, 0);
	progress_tick(&w->progress);
	return code == EXIT_DONE ? write_out(w, f->block, (size_t)(n * f->inner * f->item_bytes)) : code;
}

static int unpack_fortran(struct work *w, const uint64_t *arg, unsigned arg_count)
{
	struct fortran f = {.offset = arg[0], .item_bytes = arg[1], .count = arg[2], .inner = 1};
	uint64_t left;
	int code = EXIT_DONE;

	for (; f.dim_count + 3 < arg_count; f.dim_count++) {
		f.dim[f.dim_count] = arg[f.dim_count + 3];
		if (!f.dim[f.dim_count] || f.inner > w->in_bytes / f.dim[f.dim_count])
			return damaged(w, "the array is larger than the file");
		f.inner *= f.dim[f.dim_count];
	}
	left = f.offset <= w->in_bytes ? w->in_bytes - f.offset : 0;
	if (!f.count || !f.item_bytes || f.item_bytes > 16 || f.inner > left / f.item_bytes ||
	    f.count > left / (f.item_bytes * f.inner))
		return damaged(w, "the array is larger than the file");
	f.block_records = (16 * (uint64_t)PIECE_BYTES) / (f.inner * f.item_bytes);
	if (!f.block_records)
		f.block_records = 1;
	if (f.block_records > f.count)
		f.block_records = f.count;
	f.column = malloc((size_t)(f.block_records * f.item_bytes));
	f.block = malloc((size_t)(f.block_records * f.inner * f.item_bytes));
	if (!f.column || !f.block)
		code = fail(EXIT_IO, "%s: out of memory for %" PRIu64 " bytes of an array in Fortran order", w->name,
			    f.block_records * f.inner * f.item_bytes);
	for (uint64_t first = 0; code == EXIT_DONE && first < f.count; first += f.block_records)
		code = transpose_block(w, &f, first,
				       f.count - first < f.block_records ? f.count - first : f.block_records);
	free(f.column);
	free(f.block);
	return code;
}

/* ---- how much ---- */

/* A gzip ends with the size of its last member, below 4 GiB. */
static uint64_t gzip_says(int fd, uint64_t in_bytes)
{
	uint8_t size[4];

	return in_bytes > sizeof(size) &&
			       pread(fd, size, sizeof(size), (off_t)(in_bytes - sizeof(size))) == sizeof(size)
		       ? load32(size)
		       : 0;
}

/* The first frame of Zstandard may say its size. */
static uint64_t zstd_says(int fd)
{
	uint8_t head[18]; /* the longest there is */
	ssize_t n = pread(fd, head, sizeof(head), 0);
	unsigned long long bytes = n > 0 ? ZSTD_getFrameContentSize(head, (size_t)n) : 0;

	return bytes == ZSTD_CONTENTSIZE_UNKNOWN || bytes == ZSTD_CONTENTSIZE_ERROR ? 0 : bytes;
}

uint64_t unpack_least_bytes(const char *how, int in_fd, uint64_t in_bytes)
{
	uint64_t says = 0, packed = in_bytes - in_bytes / 64; /* what cannot be packed grows by less */

	if (!strcmp(how, "gzip"))
		says = gzip_says(in_fd, in_bytes);
	else if (!strcmp(how, "zstd"))
		says = zstd_says(in_fd);
	else
		return 0;
	packed = packed > PIECE_BYTES ? packed - PIECE_BYTES : 0;
	return says > packed ? says : packed;
}

/* ---- which ---- */

/* The numbers behind the first word; false if they are none. */
static bool read_arguments(const char *how, uint64_t *arg, unsigned *count, unsigned max)
{
	const char *at = strchr(how, ',');

	for (*count = 0; at; (*count)++) {
		size_t bytes = strcspn(at + 1, ",");

		if (*count == max || !text_u64(at + 1, bytes, &arg[*count]))
			return false;
		at = at[1 + bytes] ? at + 1 + bytes : NULL;
	}
	return true;
}

int unpack_run(const char *how, int in_fd, uint64_t in_bytes, int out_fd, const char *name)
{
	struct work w = {
		.name = name, .in_fd = in_fd, .out_fd = out_fd, .in_bytes = in_bytes, .member_left = UINT64_MAX};
	uint64_t arg[3 + DIMS_MAX];
	size_t word = strcspn(how, ",");
	bool is_member;
	unsigned count;
	uint32_t crc = 0;
	int code;

	if (!read_arguments(how, arg, &count, 3 + DIMS_MAX))
		return fail(EXIT_BAD, "%s: the plan unpacks it with '%s', which is not a method", name, how);
	w.in = malloc(PIECE_BYTES);
	w.out = malloc(PIECE_BYTES);
	is_member = word == 7 && !memcmp(how, "deflate", 7) && count == 4;
	progress_start(&w.progress, "unpacking", NULL, is_member ? arg[1] : in_bytes);
	if (!w.in || !w.out)
		code = fail(EXIT_IO, "%s: out of memory while unpacking", name);
	else if (!strcmp(how, "gzip"))
		code = unpack_deflate(&w, 31, 0, in_bytes, &crc);
	else if (!strcmp(how, "zip"))
		code = unpack_zip(&w);
	else if (!strcmp(how, "zstd"))
		code = unpack_zstd(&w);
	else if (is_member)
		code = unpack_member(&w, arg);
	else if (word == 7 && !memcmp(how, "fortran", 7) && count >= 3)
		code = unpack_fortran(&w, arg, count);
	else
		code = fail(EXIT_UNSUPPORTED, "%s: the plan unpacks it with '%s', which this shardpack does not know",
			    name, how);
	progress_abandon(&w.progress);
	free(w.in);
	free(w.out);
	return code;
}
