/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack.c - a file that cannot be read by offset to one that can
 *
 * Strict: a checksum that is wrong, an end that comes early and bytes behind the end are damage,
 * since what came before may then be anything.  Zeros behind a gzip, a bzip2 or an xz are padding.
 */
#include "tools/shardpack/input/input.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "libshard/base/words.h"
#include "tools/common/exit_code.h"
#include "tools/common/message.h"
#include "tools/common/progress.h"
#include "tools/shardpack/parse/tar.h"
#include "tools/shardpack/parse/zip.h"

/* ---- deflate, with or without the frame of gzip ---- */

/* The next piece of the input, up to `end`. */
static int feed(struct unpack_work *w, z_stream *z, uint64_t end)
{
	size_t n = end - w->in_at < UNPACK_PIECE_BYTES ? (size_t)(end - w->in_at) : UNPACK_PIECE_BYTES;
	int code = unpack_read(w, w->in, n, w->in_at);

	z->next_in = w->in;
	z->avail_in = (uInt)n;
	w->in_at += n;
	progress_add(&w->progress, n, n, 0);
	progress_tick(&w->progress);
	return code;
}

/* Tapes and object stores fill the end of a file, or of each of its members, with zeros. */
static void pass_zeros(z_stream *z)
{
	for (; z->avail_in && !*z->next_in; z->avail_in--)
		z->next_in++;
}

static int inflate_run(struct unpack_work *w, z_stream *z, uint64_t end, bool members, uint32_t *crc)
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
				return unpack_damaged(w, "there are bytes behind the end of the compressed data,");
			pass_zeros(z);
			if (!z->avail_in)
				continue;
			rc = inflateReset(z);
		}
		z->next_out = w->out;
		z->avail_out = UNPACK_PIECE_BYTES;
		rc = inflate(z, Z_NO_FLUSH);
		if (rc == Z_MEM_ERROR)
			return fail(EXIT_IO, "%s: out of memory while unpacking", w->name);
		if (rc == Z_BUF_ERROR && !z->avail_in)
			return unpack_damaged(w, "the compressed data end early,");
		if (rc != Z_OK && rc != Z_STREAM_END)
			return unpack_damaged(w, z->msg ? z->msg : "the compressed data cannot be read");
		*crc = (uint32_t)crc32(*crc, w->out, UNPACK_PIECE_BYTES - z->avail_out);
		code = unpack_write(w, w->out, UNPACK_PIECE_BYTES - z->avail_out);
	}
	return code;
}

/* `window` as of inflateInit2(): 31 for gzip, -15 for bare deflate. */
static int unpack_deflate(struct unpack_work *w, int window, uint64_t offset, uint64_t bytes, uint32_t *crc)
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

static int unpack_member(struct unpack_work *w, const uint64_t *arg)
{
	uint32_t crc = 0;
	int code;

	w->member_at = arg[0];
	w->member_bytes = w->member_left = arg[3];
	if (arg[0] > w->in_bytes || arg[1] > w->in_bytes - arg[0])
		return unpack_damaged(w, "a member lies outside of the file,");
	code = unpack_deflate(w, -15, arg[0], arg[1], &crc);
	if (code == EXIT_DONE && crc != arg[2])
		code = unpack_damaged(w, "the checksum of a member is wrong");
	return code;
}

/* ---- all of a ZIP ---- */

static bool read_zip(void *context, uint64_t offset, void *out, size_t bytes)
{
	return unpack_read(context, out, bytes, offset) == EXIT_DONE;
}

static int copy_member(struct unpack_work *w, const struct zip_member *m, uint32_t *crc)
{
	uint64_t n;
	int code = EXIT_DONE;

	for (uint64_t at = 0; code == EXIT_DONE && at < m->bytes; at += n) {
		n = m->bytes - at < UNPACK_PIECE_BYTES ? m->bytes - at : UNPACK_PIECE_BYTES;
		code = unpack_read(w, w->in, (size_t)n, m->offset + at);
		if (code != EXIT_DONE)
			break;
		*crc = (uint32_t)crc32(*crc, w->in, (uInt)n);
		progress_add(&w->progress, n, n, 0);
		progress_tick(&w->progress);
		code = unpack_write(w, w->in, (size_t)n);
	}
	return code;
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
	struct zip_member *m = malloc(sizeof(*m));
	enum zip_status status = ZIP_END;
	int code = m ? EXIT_DONE : fail(EXIT_IO, "%s: out of memory while unpacking", w->name);

	while (code == EXIT_DONE && (status = zip_next(&z, m)) == ZIP_MEMBER) {
		uint64_t before = w->out_bytes;
		uint32_t crc = 0;

		if (m->bytes > UNPACK_MEMBER_BYTES_MAX) {
			code = leave_hole(w, m);
			continue;
		}
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

static int zstd_run(struct unpack_work *w, ZSTD_DCtx *context)
{
	ZSTD_inBuffer in = {w->in, 0, 0};
	size_t left = 1; /* 0: a frame is complete */
	int code = EXIT_DONE;

	while (code == EXIT_DONE) {
		ZSTD_outBuffer out = {w->out, UNPACK_PIECE_BYTES, 0};

		if (in.pos == in.size && w->in_at < w->in_bytes) {
			in.size = w->in_bytes - w->in_at < UNPACK_PIECE_BYTES ? (size_t)(w->in_bytes - w->in_at)
									      : UNPACK_PIECE_BYTES;
			in.pos = 0;
			code = unpack_read(w, w->in, in.size, w->in_at);
			w->in_at += in.size;
			progress_add(&w->progress, in.size, in.size, 0);
			progress_tick(&w->progress);
			if (code != EXIT_DONE)
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
		code = unpack_write(w, w->out, out.pos);
	}
	return code;
}

static int unpack_zstd(struct unpack_work *w)
{
	ZSTD_DCtx *context = ZSTD_createDCtx();
	int code;

	if (!context)
		return fail(EXIT_IO, "%s: out of memory while unpacking", w->name);
	code = zstd_run(w, context);
	ZSTD_freeDCtx(context);
	return code;
}

/* ---- which ---- */

/* The numbers behind the first word; false if they are none. */
static bool read_arguments(const char *how, uint64_t *arg, unsigned *count, unsigned max)
{
	struct words words = words_of(how, strlen(how));
	struct word first;

	words_take(&words, ',', &first);
	for (*count = 0; !words_done(&words); (*count)++)
		if (*count == max || !words_u64(&words, ',', UINT64_MAX, &arg[*count]))
			return false;
	return true;
}

/* A tar that is not compressed and is called .tgz: `tar -cf x.tgz` makes one. */
static int check_beginning(const struct unpack_work *w)
{
	uint8_t block[TAR_BLOCK_BYTES] = {0};
	int code = w->in_bytes < sizeof(block) ? EXIT_DONE : unpack_read(w, block, sizeof(block), 0);

	if (code != EXIT_DONE || !tar_is_header(block))
		return code;
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
	uint64_t arg[3 + UNPACK_DIMS_MAX];
	size_t word = strcspn(how, ",");
	bool is_member;
	unsigned count;
	uint32_t crc = 0;
	int code;

	if (!read_arguments(how, arg, &count, 3 + UNPACK_DIMS_MAX))
		return fail(EXIT_BAD, "%s: the plan unpacks it with '%s', which is not a method", name, how);
	w.in = malloc(UNPACK_PIECE_BYTES);
	w.out = malloc(UNPACK_PIECE_BYTES);
	is_member = word == 7 && !memcmp(how, "deflate", 7) && count == 4;
	progress_start(&w.progress, "unpacking", NULL, is_member ? arg[1] : in_bytes);
	if (!w.in || !w.out)
		code = fail(EXIT_IO, "%s: out of memory while unpacking", name);
	else if (!strchr(how, ',') && (code = check_beginning(&w)) != EXIT_DONE)
		; /* it has said why */
	else if (!strcmp(how, "gzip"))
		code = unpack_deflate(&w, 31, 0, in_bytes, &crc);
	else if (!strcmp(how, "zip"))
		code = unpack_zip(&w);
	else if (!strcmp(how, "zstd"))
		code = unpack_zstd(&w);
	else if (!strcmp(how, "bzip2") || !strcmp(how, "xz"))
		code = unpack_archive(&w, how);
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
	*written = w.written_bytes;
	return code;
}
