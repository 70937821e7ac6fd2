/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack.c - a file that cannot be read by offset to one that can
 *
 * Strict: a checksum that is wrong, an end that comes early and bytes behind the end are damage,
 * since what came before may then be anything.  Zeros behind a gzip, a bzip2 or an xz are padding.
 */
#ifndef WITHOUT_ARCHIVE
#include <archive.h>
#endif
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "libshard/base/bytes.h"
#include "libshard/base/words.h"
#include "tools/common/files.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/progress.h"
#include "tools/common/signals.h"
#include "tools/shardpack/input/input.h"
#include "tools/shardpack/parse/parse.h"

/* ---- input and output ---- */

int unpack_damaged(const struct unpack_work *w, const char *what)
{
	return fail(EXIT_BAD, "%s: %s near offset %" PRIu64 " of %" PRIu64 "; the file is damaged, fetch it again",
		    w->name, what, w->in_at, w->in_bytes);
}

int unpack_read(const struct unpack_work *w, void *out, size_t bytes, uint64_t offset)
{
	uint64_t have = files_read_at(w->in_fd, out, bytes, offset);

	if (have < bytes)
		return fail(EXIT_IO, "%s: offset %" PRIu64 ": %s", w->name, offset + have,
			    errno ? strerror(errno) : "the file became shorter");
	return interrupted() ? EXIT_INTERRUPTED : EXIT_DONE;
}

int unpack_next(struct unpack_work *w, uint64_t end, size_t *bytes)
{
	size_t n = end - w->in_at < UNPACK_PIECE_BYTES ? (size_t)(end - w->in_at) : UNPACK_PIECE_BYTES;
	int rc = unpack_read(w, w->in, n, w->in_at);

	w->in_at += n;
	*bytes = n;
	progress_add(&w->progress, n, n, 0);
	progress_tick(&w->progress);
	return rc;
}

int unpack_write(struct unpack_work *w, const uint8_t *data, size_t bytes)
{
	ssize_t n;

	if (bytes > w->member_left)
		return fail(EXIT_BAD,
			    "%s: the member at offset %" PRIu64 " unpacks to more than the %" PRIu64
			    " bytes that the directory says; the file is damaged, fetch it again",
			    w->name, w->member_at, w->member_bytes);
	if (bytes > w->most->bytes - w->written_bytes)
		return fail(w->most->rc, "%s: has %" PRIu64 " bytes and unpacks to more than %" PRIu64 "; %s", w->name,
			    w->in_bytes, w->most->bytes, w->most->remedy);
	w->member_left -= bytes;
	w->written_bytes += bytes;
	w->out_bytes += bytes;
	while (bytes && w->out_fd >= 0) {
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

/* ---- what a compressed file says that it unpacks to ---- */

#define SLACK_BYTES (UINT64_C(1) << 20) /* by which a file may be larger than what is packed in it */

#define DEFLATE_MOST 1032 /* a byte of deflate cannot hold more of them */

/*
 * A gzip ends with the size of its last member, below 4 GiB.  One that is cut ends with any number,
 * which is mostly more than its bytes can hold: that says nothing.
 */
static uint64_t gzip_says(int fd, uint64_t in_bytes)
{
	uint8_t size[4];

	if (in_bytes <= sizeof(size) ||
	    pread(fd, size, sizeof(size), (off_t)(in_bytes - sizeof(size))) != sizeof(size) ||
	    load32(size) / DEFLATE_MOST > in_bytes)
		return 0;
	return load32(size);
}

/* The first frame of Zstandard may say its size. */
static uint64_t zstd_says(int fd)
{
	uint8_t head[18]; /* the longest there is */
	ssize_t n = pread(fd, head, sizeof(head), 0);
	unsigned long long bytes = n > 0 ? ZSTD_getFrameContentSize(head, (size_t)n) : 0;

	return bytes == ZSTD_CONTENTSIZE_UNKNOWN || bytes == ZSTD_CONTENTSIZE_ERROR ? 0 : bytes;
}

/* What the records of an index say, which begins with their count; 0 if it is none. */
static uint64_t index_says(const uint8_t *at, const uint8_t *end)
{
	uint64_t count, packed, bytes, sum = 0;

	if (at == end || *at++ || !xz_number(&at, end, &count))
		return 0;
	for (; count; count--) {
		if (!xz_number(&at, end, &packed) || !xz_number(&at, end, &bytes) || bytes > UINT64_MAX / 2 - sum)
			return 0;
		sum += bytes;
	}
	return sum;
}

#define XZ_FOOTER_BYTES 12
#define XZ_INDEX_MOST	(UINT32_C(1) << 24)

/* The last stream of an xz ends with an index of its blocks. */
static uint64_t xz_says(int fd, uint64_t in_bytes)
{
	uint8_t footer[XZ_FOOTER_BYTES], *index = NULL;
	uint64_t index_bytes, says = 0;

	if (in_bytes < sizeof(footer) ||
	    pread(fd, footer, sizeof(footer), (off_t)(in_bytes - sizeof(footer))) != sizeof(footer) ||
	    memcmp(footer + 10, "YZ", 2) != 0)
		return 0;
	index_bytes = (load32(footer + 4) + UINT64_C(1)) * 4;
	if (index_bytes <= XZ_INDEX_MOST && index_bytes <= in_bytes - sizeof(footer))
		index = malloc((size_t)index_bytes);
	if (index && pread(fd, index, (size_t)index_bytes, (off_t)(in_bytes - sizeof(footer) - index_bytes)) ==
			     (ssize_t)index_bytes)
		says = index_says(index, index + index_bytes);
	free(index);
	return says;
}

static bool pread_all(void *context, uint64_t offset, void *out, size_t bytes)
{
	return pread(*(const int *)context, out, bytes, (off_t)offset) == (ssize_t)bytes;
}

/* By its directory; 0 if that cannot be read, which is found when it is unpacked. */
static uint64_t zip_says(int fd, uint64_t in_bytes)
{
	char why[ZIP_WHY_BYTES];
	struct zip z = {.bytes = in_bytes, .read = pread_all, .context = &fd, .why = why};
	struct zip_member m;
	enum zip_status status;
	uint64_t sum = 0;

	while ((status = zip_next(&z, &m)) == ZIP_MEMBER)
		sum += m.bytes > UNPACK_MEMBER_BYTES_MAX ? 0 : m.bytes;
	return status == ZIP_END ? sum : 0;
}

uint64_t unpack_least_bytes(const char *how, int in_fd, uint64_t in_bytes)
{
	uint64_t says = 0, packed = in_bytes - in_bytes / 64; /* what cannot be packed grows by less */

	if (!strcmp(how, "gzip"))
		says = gzip_says(in_fd, in_bytes);
	else if (!strcmp(how, "zstd"))
		says = zstd_says(in_fd);
	else if (!strcmp(how, "xz"))
		says = xz_says(in_fd, in_bytes);
	else
		return !strcmp(how, "zip") ? zip_says(in_fd, in_bytes) : 0;
	packed = packed > SLACK_BYTES ? packed - SLACK_BYTES : 0;
	return says > packed ? says : packed;
}

/* ---- an array in Fortran's order to one in C's ---- */

struct fortran {
	uint64_t offset, item_bytes, count, inner; /* inner: items of one record */
	uint64_t dim[UNPACK_DIMS_MAX];		   /* of a record */
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
static int transpose_block(struct unpack_work *w, const struct fortran *f, uint64_t first, uint64_t n)
{
	int rc = EXIT_DONE;

	for (uint64_t k = 0; rc == EXIT_DONE && k < f->inner; k++) {
		uint64_t at = f->offset + (place_of(f, k) * f->count + first) * f->item_bytes;

		rc = unpack_read(w, f->column, (size_t)(n * f->item_bytes), at);
		for (uint64_t i = 0; i < n; i++)
			memcpy(f->block + (i * f->inner + k) * f->item_bytes, f->column + i * f->item_bytes,
			       f->item_bytes);
	}
	progress_add(&w->progress, n * f->inner * f->item_bytes, n * f->inner * f->item_bytes, 0);
	progress_tick(&w->progress);
	return rc == EXIT_DONE ? unpack_write(w, f->block, (size_t)(n * f->inner * f->item_bytes)) : rc;
}

/* "fortran,128,4,1000,3,32,32": the numbers that input.h names. */
static int unpack_fortran(struct unpack_work *w, const uint64_t *arg, unsigned arg_count)
{
	struct fortran f = {.offset = arg[0], .item_bytes = arg[1], .count = arg[2], .inner = 1};
	uint64_t left;
	int rc = EXIT_DONE;

	for (; f.dim_count + 3 < arg_count; f.dim_count++) {
		f.dim[f.dim_count] = arg[f.dim_count + 3];
		if (!f.dim[f.dim_count] || f.inner > w->in_bytes / f.dim[f.dim_count])
			return unpack_damaged(w, "the array is larger than the file");
		f.inner *= f.dim[f.dim_count];
	}
	left = f.offset <= w->in_bytes ? w->in_bytes - f.offset : 0;
	if (!f.count || !f.item_bytes || f.item_bytes > 16 || f.inner > left / f.item_bytes ||
	    f.count > left / (f.item_bytes * f.inner))
		return unpack_damaged(w, "the array is larger than the file");
	f.block_records = (16 * (uint64_t)UNPACK_PIECE_BYTES) / (f.inner * f.item_bytes);
	if (!f.block_records)
		f.block_records = 1;
	if (f.block_records > f.count)
		f.block_records = f.count;
	f.column = malloc((size_t)(f.block_records * f.item_bytes));
	f.block = malloc((size_t)(f.block_records * f.inner * f.item_bytes));
	if (!f.column || !f.block)
		rc = fail(EXIT_IO, "%s: out of memory for %" PRIu64 " bytes of an array in Fortran order", w->name,
			  f.block_records * f.inner * f.item_bytes);
	for (uint64_t first = 0; rc == EXIT_DONE && first < f.count; first += f.block_records)
		rc = transpose_block(w, &f, first,
				     f.count - first < f.block_records ? f.count - first : f.block_records);
	free(f.column);
	free(f.block);
	return rc;
}

/* ---- the ways ---- */

/* ---- deflate, with or without the frame of gzip ---- */

static int inflate_run(struct unpack_work *w, z_stream *z, uint64_t end, bool members, uint32_t *crc)
{
	int rc = EXIT_DONE, status = Z_OK;
	size_t n;

	while (rc == EXIT_DONE) {
		if (!z->avail_in && w->in_at < end) {
			rc = unpack_next(w, end, &n);
			z->next_in = w->in;
			z->avail_in = (uInt)n;
			continue;
		}
		if (status == Z_STREAM_END) {
			if (!z->avail_in)
				return EXIT_DONE;
			if (!members)
				return unpack_damaged(w, "there are bytes behind the end of the compressed data,");
			/* Tapes and object stores fill the end of a file, or of each member, with zeros. */
			for (; z->avail_in && !*z->next_in; z->avail_in--)
				z->next_in++;
			if (!z->avail_in)
				continue;
			status = inflateReset(z);
		}
		z->next_out = w->out;
		z->avail_out = UNPACK_PIECE_BYTES;
		status = inflate(z, Z_NO_FLUSH);
		if (status == Z_MEM_ERROR)
			return fail(EXIT_IO, "%s: out of memory while unpacking", w->name);
		if (status == Z_BUF_ERROR && !z->avail_in)
			return unpack_damaged(w, "the compressed data end early,");
		if (status != Z_OK && status != Z_STREAM_END)
			return unpack_damaged(w, z->msg ? z->msg : "the compressed data cannot be read");
		*crc = (uint32_t)crc32(*crc, w->out, UNPACK_PIECE_BYTES - z->avail_out);
		rc = unpack_write(w, w->out, UNPACK_PIECE_BYTES - z->avail_out);
	}
	return rc;
}

/* `window` as of inflateInit2(): 31 for gzip, -15 for bare deflate. */
static int unpack_deflate(struct unpack_work *w, int window, uint64_t offset, uint64_t bytes, uint32_t *crc)
{
	z_stream z = {0};
	int rc;

	if (inflateInit2(&z, window) != Z_OK)
		return fail(EXIT_IO, "%s: out of memory while unpacking", w->name);
	w->in_at = offset;
	rc = inflate_run(w, &z, offset + bytes, window > 0, crc);
	inflateEnd(&z);
	return rc;
}

static int unpack_member(struct unpack_work *w, const uint64_t *arg)
{
	uint32_t crc = 0;
	int rc;

	w->member_at = arg[0];
	w->member_bytes = w->member_left = arg[3];
	if (arg[0] > w->in_bytes || arg[1] > w->in_bytes - arg[0])
		return unpack_damaged(w, "a member lies outside of the file,");
	rc = unpack_deflate(w, -15, arg[0], arg[1], &crc);
	if (rc == EXIT_DONE && crc != arg[2])
		rc = unpack_damaged(w, "the checksum of a member is wrong");
	return rc;
}

/* ---- all of a ZIP ---- */

static bool read_zip(void *context, uint64_t offset, void *out, size_t bytes)
{
	return unpack_read(context, out, bytes, offset) == EXIT_DONE;
}

static int copy_member(struct unpack_work *w, const struct zip_member *m, uint32_t *crc)
{
	uint64_t end = m->offset + m->bytes;
	int rc = EXIT_DONE;
	size_t n;

	w->in_at = m->offset;
	while (rc == EXIT_DONE && w->in_at < end) {
		rc = unpack_next(w, end, &n);
		if (rc != EXIT_DONE)
			break;
		*crc = (uint32_t)crc32(*crc, w->in, (uInt)n);
		rc = unpack_write(w, w->in, n);
	}
	return rc;
}

/* Places stay as the plan has them, and the disk is not filled. */
static int leave_hole(struct unpack_work *w, const struct zip_member *m)
{
	note("%s: '%s' says that it has %" PRIu64 " bytes, and the limit of an input is %" PRIu64 "; not unpacked",
	     w->name, m->name, m->bytes, UNPACK_MEMBER_BYTES_MAX);
	w->out_bytes += m->bytes;
	if (lseek(w->out_fd, (off_t)w->out_bytes, SEEK_SET) < 0 || ftruncate(w->out_fd, (off_t)w->out_bytes) != 0)
		return fail(EXIT_IO,
			    "%s: cannot leave a hole of %" PRIu64 " bytes: %s; choose another folder with "
			    "--spool DIR",
			    w->name, m->bytes, strerror(errno));
	return EXIT_DONE;
}

/* Every member, one behind the other in the order of the directory. */
static int unpack_zip(struct unpack_work *w)
{
	char why[ZIP_WHY_BYTES] = "";
	struct zip z = {.bytes = w->in_bytes, .read = read_zip, .context = w, .why = why};
	struct zip_member m;
	enum zip_status status = ZIP_END;
	int rc = EXIT_DONE;

	while (rc == EXIT_DONE && (status = zip_next(&z, &m)) == ZIP_MEMBER) {
		uint64_t before = w->out_bytes;
		uint32_t crc = 0;

		if (m.bytes > UNPACK_MEMBER_BYTES_MAX) {
			rc = leave_hole(w, &m);
			continue;
		}
		w->member_at = m.offset;
		w->member_bytes = w->member_left = m.bytes;
		rc = m.method == ZIP_STORED ? copy_member(w, &m, &crc)
					    : unpack_deflate(w, -15, m.offset, m.packed_bytes, &crc);
		w->in_at = m.offset;
		if (rc == EXIT_DONE && (crc != m.crc || w->out_bytes - before != m.bytes))
			rc = fail(EXIT_BAD,
				  "%s: '%s' at offset %" PRIu64 " is damaged: it has %" PRIu64 " bytes "
				  "with CRC-32 %08" PRIx32 "; the directory says %" PRIu64 " bytes with "
				  "CRC-32 %08" PRIx32,
				  w->name, m.name, m.offset, w->out_bytes - before, crc, m.bytes, m.crc);
	}
	if (rc == EXIT_DONE && status == ZIP_BAD)
		rc = why[0] ? fail(EXIT_BAD, "%s: %s", w->name, why) : EXIT_IO;
	return rc;
}

/* ---- Zstandard ---- */

static int zstd_run(struct unpack_work *w, ZSTD_DCtx *context)
{
	ZSTD_inBuffer in = {w->in, 0, 0};
	size_t left = 1; /* 0: a frame is complete */
	int rc = EXIT_DONE;

	while (rc == EXIT_DONE) {
		ZSTD_outBuffer out = {w->out, UNPACK_PIECE_BYTES, 0};

		if (in.pos == in.size && w->in_at < w->in_bytes) {
			in.pos = 0;
			rc = unpack_next(w, w->in_bytes, &in.size);
			if (rc != EXIT_DONE)
				break;
		} else if (in.pos == in.size && !left) {
			break;
		}
		left = ZSTD_decompressStream(context, &out, &in);
		if (ZSTD_getErrorCode(left) == ZSTD_error_frameParameter_windowTooLarge)
			return fail(EXIT_BAD,
				    "%s: to unpack it takes a window above 128 MiB, the limit; pack it with zstd "
				    "--long=27 or less, or unpack it with zstd -d --long=31",
				    w->name);
		if (ZSTD_isError(left))
			return unpack_damaged(w, ZSTD_getErrorName(left));
		if (left && !out.pos && in.pos == in.size && w->in_at == w->in_bytes)
			return unpack_damaged(w, "the compressed data end early,");
		rc = unpack_write(w, w->out, out.pos);
	}
	return rc;
}

static int unpack_zstd(struct unpack_work *w)
{
	ZSTD_DCtx *context = ZSTD_createDCtx();
	int rc;

	if (!context)
		return fail(EXIT_IO, "%s: out of memory while unpacking", w->name);
	rc = zstd_run(w, context);
	ZSTD_freeDCtx(context);
	return rc;
}

/* ---- which ---- */

#ifdef WITHOUT_ARCHIVE
static int by_libarchive(struct unpack_work *w, const char *how)
{
	return fail(EXIT_UNSUPPORTED,
		    "%s: is compressed with %s, and this shardpack was built without libarchive; install that and "
		    "build again, use the shardpack of libshard's wheel, or unpack the file with %s -d",
		    w->name, how, how);
}

const char *unpack_archive_version(void)
{
	return NULL;
}
#else
#define by_libarchive unpack_archive

const char *unpack_archive_version(void)
{
	return archive_version_details();
}
#endif

/* A tar that is not compressed and is called .tgz: `tar -cf x.tgz` makes one. */
static int check_beginning(const struct unpack_work *w)
{
	uint8_t block[TAR_BLOCK_BYTES] = {0};
	int rc = w->in_bytes < sizeof(block) ? EXIT_DONE : unpack_read(w, block, sizeof(block), 0);

	if (rc != EXIT_DONE || !tar_is_header(block))
		return rc;
	return fail(EXIT_BAD,
		    "%s: is a tar that is not compressed, although its name says so; rename it so that it ends in .tar",
		    w->name);
}

int unpack_run(const char *how, int in_fd, uint64_t in_bytes, int out_fd, const char *name,
	       const struct unpack_most *most, uint64_t *written)
{
	struct unpack_work w = {.name = name,
				.in_fd = in_fd,
				.out_fd = out_fd,
				.in_bytes = in_bytes,
				.member_left = UINT64_MAX,
				.most = most};
	struct words words = words_of(how, strlen(how));
	uint64_t arg[3 + UNPACK_DIMS_MAX];
	unsigned count = 0;
	struct word method;
	uint32_t crc = 0;
	bool is_member;
	int rc;

	words_take(&words, ',', &method);
	for (; !words_done(&words); count++)
		if (count == 3 + UNPACK_DIMS_MAX || !words_u64(&words, ',', UINT64_MAX, &arg[count]))
			return fail(EXIT_BAD, "%s: the plan unpacks it with '%s', which is not a method", name, how);
	w.in = xmalloc(UNPACK_PIECE_BYTES, 1);
	w.out = xmalloc(UNPACK_PIECE_BYTES, 1);
	is_member = word_is(method, "deflate") && count == 4;
	progress_start(&w.progress, "unpacking", NULL, is_member ? arg[1] : in_bytes);
	if (!strchr(how, ',') && (rc = check_beginning(&w)) != EXIT_DONE)
		; /* it has said why */
	else if (!strcmp(how, "gzip"))
		rc = unpack_deflate(&w, 31, 0, in_bytes, &crc);
	else if (!strcmp(how, "zip"))
		rc = unpack_zip(&w);
	else if (!strcmp(how, "zstd"))
		rc = unpack_zstd(&w);
	else if (!strcmp(how, "bzip2") || !strcmp(how, "xz"))
		rc = by_libarchive(&w, how);
	else if (is_member)
		rc = unpack_member(&w, arg);
	else if (word_is(method, "fortran") && count >= 3)
		rc = unpack_fortran(&w, arg, count);
	else
		rc = fail(EXIT_UNSUPPORTED, "%s: the plan unpacks it with '%s', which this shardpack does not know",
			  name, how);
	progress_abandon(&w.progress);
	free(w.in);
	free(w.out);
	*written = w.written_bytes;
	return rc;
}
