/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack_archive.c - bzip2 and xz, by libarchive
 *
 * Only its filters are used: the tar inside is read by tar.c, as every other one.  It passes over
 * what lies behind the end of the compressed data, so that is looked at here.  It gives an xz all
 * the memory that this asks for, so that is looked at, too.
 */
#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "tools/common/human.h"
#include "tools/common/message.h"
#include "tools/shardpack/input/input.h"
#include "tools/shardpack/parse/parse.h"

#define XZ_DICTIONARY_MAX (UINT64_C(256) << 20) /* xz -9 has 64 MiB */

struct feeding {
	struct unpack_work *w;
	int rc; /* why there was no more */
	bool xz;
	struct xz_walk walk;
};

/* The next piece of an xz, before libarchive sees it. */
static int check_xz(struct feeding *f, size_t n)
{
	char need[HUMAN_CHARS];

	if (!xz_walk(&f->walk, f->w->in, n)) {
		f->xz = f->walk.began; /* else libarchive does not take it for one either */
		return f->xz ? unpack_damaged(f->w, "Corrupted input data") : EXIT_DONE;
	}
	if (f->walk.dictionary_bytes <= XZ_DICTIONARY_MAX)
		return EXIT_DONE;
	return fail(EXIT_BAD,
		    "%s: to unpack it takes a dictionary of %s (%" PRIu64 " bytes); the limit is %" PRIu64
		    "; pack it with xz -9 or less, or unpack it with xz -d",
		    f->w->name, human_bytes(need, f->walk.dictionary_bytes), f->walk.dictionary_bytes,
		    XZ_DICTIONARY_MAX);
}

static la_ssize_t next_piece(struct archive *a, void *context, const void **data)
{
	struct feeding *f = context;
	struct unpack_work *w = f->w;
	size_t n;

	(void)a;
	f->rc = unpack_next(w, w->in_bytes, &n);
	if (f->rc == EXIT_DONE && f->xz)
		f->rc = check_xz(f, n);
	if (f->rc != EXIT_DONE)
		return -1;
	*data = w->in;
	return (la_ssize_t)n;
}

/* What libarchive complains of, or what it could not be given. */
static int complain(const struct feeding *f, struct archive *a)
{
	static const char *const early[] = {"truncated", "No progress"};
	const char *why = archive_error_string(a), *colon;

	if (f->rc != EXIT_DONE)
		return f->rc;
	if (!why || archive_errno(a) == ENOMEM)
		return fail(EXIT_IO, "%s: cannot be unpacked: %s", f->w->name, why ? why : "out of memory");
	for (size_t i = 0; i < sizeof(early) / sizeof(early[0]); i++)
		if (strstr(why, early[i]))
			return unpack_damaged(f->w, "the compressed data end early,");
	colon = strstr(why, ": "); /* "Lzma library error: Corrupted input data" */
	return unpack_damaged(f->w, colon ? colon + 2 : why);
}

/* Zeros may follow: padding. */
static int check_rest(struct unpack_work *w, uint64_t at)
{
	int rc = EXIT_DONE;
	size_t n;

	for (; rc == EXIT_DONE && at < w->in_bytes; at += n) {
		n = w->in_bytes - at < UNPACK_PIECE_BYTES ? (size_t)(w->in_bytes - at) : UNPACK_PIECE_BYTES;
		rc = unpack_read(w, w->in, n, at);
		w->in_at = at;
		for (size_t i = 0; rc == EXIT_DONE && i < n; i++, w->in_at++)
			if (w->in[i])
				rc = unpack_damaged(w, "there are bytes behind the end of the compressed data,");
	}
	return rc;
}

static int run(struct feeding *f, struct archive *a, int filter)
{
	struct archive_entry *entry;
	int rc = EXIT_DONE, status = archive_read_open(a, f, NULL, next_piece, NULL);
	la_ssize_t n = 1;

	if (status == ARCHIVE_OK)
		status = archive_read_next_header(a, &entry);
	/* It looks at the first bytes to see what they are, and does not say why there are none. */
	if (status != ARCHIVE_OK && f->rc == EXIT_DONE && archive_error_string(a) &&
	    strstr(archive_error_string(a), "Unrecognized archive format"))
		return unpack_damaged(f->w, "it unpacks to nothing, or is damaged at its beginning,");
	if (status != ARCHIVE_OK)
		return complain(f, a);
	if (archive_filter_code(a, 0) != filter) /* it would be given on as it is */
		return unpack_damaged(f->w, "it does not begin as its name says,");
	while (rc == EXIT_DONE && n) {
		n = archive_read_data(a, f->w->out, UNPACK_PIECE_BYTES);
		rc = n < 0 ? complain(f, a) : unpack_write(f->w, f->w->out, (size_t)n);
	}
	return rc == EXIT_DONE ? check_rest(f->w, (uint64_t)archive_filter_bytes(a, -1)) : rc;
}

int unpack_archive(struct unpack_work *w, const char *how)
{
	struct feeding f = {.w = w, .xz = !strcmp(how, "xz")};
	struct archive *a = archive_read_new();
	int rc;

	xz_walk_start(&f.walk);
	if (!a || archive_read_support_format_raw(a) != ARCHIVE_OK ||
	    (f.xz ? archive_read_support_filter_xz(a) : archive_read_support_filter_bzip2(a)) != ARCHIVE_OK)
		rc = fail(EXIT_UNSUPPORTED, "%s: libarchive here cannot unpack %s: %s", w->name, how,
			  a ? archive_error_string(a) : "out of memory");
	else
		rc = run(&f, a, f.xz ? ARCHIVE_FILTER_XZ : ARCHIVE_FILTER_BZIP2);
	archive_read_free(a);
	return rc;
}
