/* SPDX-License-Identifier: Apache-2.0 */
/*
 * receipt.c - what is known of a published shard, so that it need not be read again
 */
#include "tools/shardpack/make/make.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/shelf.h"
#include "tools/common/text.h"

#define FIRST_LINE "receipt 5"

void receipt_add(struct text *lines, const struct problem *p)
{
	if (p->how == PROBLEM_ACCEPTED || p->how == PROBLEM_FIRST)
		text_format(lines, "%s %" PRIu64 " %" PRIu32 " ", p->how == PROBLEM_FIRST ? "first" : "accepted",
			    p->ordinal, p->reason);
	else
		text_format(lines, "miss %" PRIu64 " %" PRIu32 " %" PRIu32 " ", p->ordinal, p->reason,
			    (uint32_t)p->how);
	text_encode(lines, p->message, strlen(p->message), true);
	text_add(lines, "\n", 1);
}

void receipt_write(const struct receipt *r, uint64_t shard_idx, struct text *out)
{
	const struct fit_count *fit = &r->fit;
	bool dropped = false;

	text_format(out,
		    FIRST_LINE "\nshard %" PRIu64 " bytes %" PRIu64 " time %" PRIu64 " records %" PRIu64
			       " misses %" PRIu64 " read-back %s root ",
		    shard_idx, r->file_bytes, r->mtime_ns, r->record_count, r->miss_count, r->read_back ? "yes" : "no");
	text_hex(out, r->root, sizeof(r->root));
	text_add(out, " sha256 ", 8);
	text_hex(out, r->sha256, sizeof(r->sha256));
	text_add(out, "\n", 1);
	if (fit->images && !fit->unknown)
		text_format(out, "fit %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
			    fit->images, fit->enlarged, fit->padded, fit->boxes, fit->empty_boxes, fit->narrow_boxes);
	for (uint32_t i = 0; i < DROPPED_COUNT; i++)
		dropped = dropped || fit->dropped[i];
	if (dropped) {
		text_format(out, "dropped");
		for (uint32_t i = 0; i < DROPPED_COUNT; i++)
			text_format(out, " %" PRIu64 " %" PRIu64, fit->dropped[i],
				    fit->dropped[i] ? fit->dropped_first[i] : 0);
		text_add(out, "\n", 1);
	}
	for (uint32_t i = 0; i < SHARD_FIELDS_MAX && !fit->unknown; i++) {
		const struct fit_field *f = &fit->field[i];

		if (f->records)
			text_format(out,
				    "field %" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu32 " %" PRIu32 "\n",
				    i, f->records, f->without, f->first, f->least, f->most);
	}
	if (!r->not_finite.unknown) {
		text_format(out, "not-finite");
		for (uint32_t f = 0; f < SHARD_FIELDS_MAX; f++)
			if (r->not_finite.nan[f] || r->not_finite.infinite[f])
				text_format(out, " %" PRIu32 ":%" PRIu64 ":%" PRIu64, f, r->not_finite.nan[f],
					    r->not_finite.infinite[f]);
		text_add(out, "\n", 1);
	}
	if (r->lines.bytes)
		text_add(out, r->lines.data, r->lines.bytes);
	text_add_end(out);
}

bool receipt_shard_time(const char *out_dir, uint64_t shard_idx, uint64_t *mtime_ns)
{
	char path[FILES_PATH_BYTES];
	struct stat st;

	if (files_numbered(path, out_dir, "", shard_idx, ".shard") != EXIT_DONE || stat(path, &st) != 0)
		return false;
	*mtime_ns = files_ns(&st.st_mtim);
	return true;
}

/* What is behind the word "fit", "dropped", "field" or "not-finite".  False if it is anything else. */
static bool read_fit(struct words *line, struct fit_count *f)
{
	return words_u64(line, ' ', UINT64_MAX, &f->images) && words_u64(line, ' ', UINT64_MAX, &f->enlarged) &&
	       words_u64(line, ' ', UINT64_MAX, &f->padded) && words_u64(line, ' ', UINT64_MAX, &f->boxes) &&
	       words_u64(line, ' ', UINT64_MAX, &f->empty_boxes) && words_u64(line, ' ', UINT64_MAX, &f->narrow_boxes);
}

static bool read_dropped(struct words *line, struct fit_count *f)
{
	bool ok = true;

	for (uint32_t i = 0; ok && i < DROPPED_COUNT; i++)
		ok = words_u64(line, ' ', UINT64_MAX, &f->dropped[i]) &&
		     words_u64(line, ' ', UINT64_MAX, &f->dropped_first[i]);
	return ok;
}

static bool read_field(struct words *line, struct fit_count *fit)
{
	struct fit_field f;
	uint64_t i, least, most;

	if (!words_u64(line, ' ', SHARD_FIELDS_MAX - 1, &i) || !words_u64(line, ' ', UINT64_MAX, &f.records) ||
	    !words_u64(line, ' ', f.records, &f.without) || !words_u64(line, ' ', UINT64_MAX, &f.first) ||
	    !words_u64(line, ' ', UINT32_MAX, &least) || !words_u64(line, ' ', UINT32_MAX, &most))
		return false;
	f.least = (uint32_t)least;
	f.most = (uint32_t)most;
	fit->field[i] = f;
	return true;
}

static bool read_not_finite(struct words *line, struct not_finite *n)
{
	struct word word;
	uint64_t f, nan, infinite;

	while (words_take(line, ' ', &word)) {
		struct words one = words_of(word.text, word.bytes);

		if (!words_u64(&one, ':', SHARD_FIELDS_MAX - 1, &f) || !words_u64(&one, ':', UINT64_MAX, &nan) ||
		    !words_u64(&one, ':', UINT64_MAX, &infinite) || !words_done(&one))
			return false;
		n->nan[f] = nan;
		n->infinite[f] = infinite;
	}
	return true;
}

/* If the digest is right, receipt_write() wrote these bytes, in this version or another one. */
bool receipt_parse(struct receipt *r, uint64_t shard_idx, struct text *text)
{
	bool knows_fit = false, knows_not_finite = false, ok = true;
	struct words all, line, left;
	uint64_t said_idx;

	if (!text_cut_end(text))
		return false;
	all = words_of(text->data, text->bytes);
	if (!words_is(&all, '\n', FIRST_LINE) || !words_line(&all, &line) || !words_is(&line, ' ', "shard") ||
	    !words_u64(&line, ' ', UINT64_MAX, &said_idx) || said_idx != shard_idx || !words_is(&line, ' ', "bytes") ||
	    !words_u64(&line, ' ', UINT64_MAX, &r->file_bytes) || !words_is(&line, ' ', "time") ||
	    !words_u64(&line, ' ', UINT64_MAX, &r->mtime_ns) || !words_is(&line, ' ', "records") ||
	    !words_u64(&line, ' ', UINT64_MAX, &r->record_count) || !words_is(&line, ' ', "misses") ||
	    !words_u64(&line, ' ', UINT64_MAX, &r->miss_count) || !words_is(&line, ' ', "read-back"))
		return false;
	r->read_back = words_is(&line, ' ', "yes");
	if ((!r->read_back && !words_is(&line, ' ', "no")) || !words_is(&line, ' ', "root") ||
	    !words_hex(&line, ' ', r->root, sizeof(r->root)) || !words_is(&line, ' ', "sha256") ||
	    !words_hex(&line, ' ', r->sha256, sizeof(r->sha256)) || !words_done(&line))
		return false;
	for (left = all; ok && words_line(&all, &line); left = all) {
		if (words_is(&line, ' ', "fit"))
			ok = knows_fit = read_fit(&line, &r->fit);
		else if (words_is(&line, ' ', "dropped"))
			ok = read_dropped(&line, &r->fit);
		else if (words_is(&line, ' ', "field"))
			ok = read_field(&line, &r->fit);
		else if (words_is(&line, ' ', "not-finite"))
			ok = knows_not_finite = read_not_finite(&line, &r->not_finite);
		else
			break;
		ok = ok && words_done(&line);
	}
	if (!knows_fit)
		r->fit = (struct fit_count){.unknown = r->record_count};
	if (!knows_not_finite)
		r->not_finite.unknown = r->record_count;
	text_add(&r->lines, left.at, (size_t)(left.end - left.at));
	return ok;
}

bool receipt_is_same(const struct receipt *a, const struct receipt *b)
{
	return a->file_bytes == b->file_bytes && a->record_count == b->record_count && a->miss_count == b->miss_count &&
	       !memcmp(a->root, b->root, sizeof(a->root));
}

bool receipt_is_equal(const struct receipt *a, const struct receipt *b)
{
	struct text x = {0}, y = {0};
	bool equal;

	receipt_write(a, 0, &x);
	receipt_write(b, 0, &y);
	equal = x.bytes == y.bytes && !memcmp(x.data, y.data, x.bytes);
	text_free(&x);
	text_free(&y);
	return equal;
}

int receipt_refuse(const char *out_dir, uint64_t shard_idx, const char *remedy)
{
	return fail(EXIT_MISMATCH,
		    "%s/%05" PRIu64 ".shard: has other bytes than when it was built before, so a source changed "
		    "meanwhile; remove this file and restore the source as it was then, or %s",
		    out_dir, shard_idx, remedy);
}

/* What one line of r->lines says; *message is encoded.  False if it is none of these lines. */
static bool read_line(struct words line, struct problem *out, struct word *message)
{
	bool accepted = words_is(&line, ' ', "accepted"), first = !accepted && words_is(&line, ' ', "first");
	uint64_t reason, how = accepted ? PROBLEM_ACCEPTED : PROBLEM_FIRST;

	*out = (struct problem){.reason = 0};
	if ((!accepted && !first && !words_is(&line, ' ', "miss")) ||
	    !words_u64(&line, ' ', UINT64_MAX, &out->ordinal) || !words_u64(&line, ' ', UINT32_MAX, &reason) ||
	    (!accepted && !first && !words_u64(&line, ' ', UINT32_MAX, &how)))
		return false;
	out->reason = (uint32_t)reason;
	out->how = (enum problem_how)how;
	*message = words_rest(&line);
	return true;
}

static struct words lines_in(const struct receipt *r)
{
	return words_of(r->lines.data, r->lines.bytes);
}

/* The lines of one kind, whose ordinals ascend. */
struct lines {
	struct words left;
	enum problem_how kind; /* PROBLEM_SKIPPED stands for all that are left out */
	bool more;
	struct problem line; /* if there is `more` */
};

static enum problem_how kind_of(const struct problem *p)
{
	return p->how == PROBLEM_ACCEPTED || p->how == PROBLEM_FIRST ? p->how : PROBLEM_SKIPPED;
}

static void next_line(struct lines *l)
{
	struct words line;
	struct word message;

	for (l->more = false; !l->more && words_line(&l->left, &line);)
		l->more = read_line(line, &l->line, &message) && kind_of(&l->line) == l->kind;
}

static struct lines lines_of(const struct receipt *r, enum problem_how kind)
{
	struct lines l = {.left = lines_in(r), .kind = kind};

	next_line(&l);
	return l;
}

/* Did this input vanish?  The ordinals that are asked for ascend. */
static bool has_vanished(struct lines *misses, uint64_t ordinal)
{
	while (misses->more && misses->line.ordinal < ordinal)
		next_line(misses);
	return misses->more && misses->line.ordinal == ordinal && misses->line.reason == SHARD_MISS_VANISHED;
}

bool receipt_vanished(const struct receipt *r, const struct receipt *other, uint64_t *ordinal)
{
	struct lines theirs = lines_of(other, PROBLEM_SKIPPED);

	for (struct lines l = lines_of(r, PROBLEM_SKIPPED); l.more; next_line(&l)) {
		*ordinal = l.line.ordinal;
		if (l.line.reason == SHARD_MISS_VANISHED && !has_vanished(&theirs, l.line.ordinal))
			return true;
	}
	return false;
}

static bool kind_agrees(const struct receipt *a, const struct receipt *b, enum problem_how kind)
{
	struct lines x = lines_of(a, kind), y = lines_of(b, kind);
	struct lines gone_a = lines_of(a, PROBLEM_SKIPPED), gone_b = lines_of(b, PROBLEM_SKIPPED);

	while (x.more || y.more) {
		bool of_x = x.more && (!y.more || x.line.ordinal <= y.line.ordinal);
		bool of_y = y.more && (!x.more || y.line.ordinal <= x.line.ordinal);
		uint64_t ordinal = of_x ? x.line.ordinal : y.line.ordinal;
		bool same = of_x && of_y && x.line.reason == y.line.reason && x.line.how == y.line.how;

		if (!same && !has_vanished(&gone_a, ordinal) && !has_vanished(&gone_b, ordinal))
			return false;
		if (of_x)
			next_line(&x);
		if (of_y)
			next_line(&y);
	}
	return true;
}

bool receipt_agrees(const struct receipt *a, const struct receipt *b)
{
	return kind_agrees(a, b, PROBLEM_SKIPPED) && kind_agrees(a, b, PROBLEM_ACCEPTED);
}

void receipt_count(const struct receipt *r, struct account *a)
{
	struct words all = lines_in(r), line;
	struct word message;
	struct problem p;

	a->written += r->record_count;
	while (words_line(&all, &line)) {
		if (!read_line(line, &p, &message))
			continue;
		a->skipped += p.how == PROBLEM_SKIPPED;
		a->quarantined += p.how == PROBLEM_QUARANTINED;
		a->accepted += p.how == PROBLEM_ACCEPTED;
	}
	fit_count_add(&a->fit, &r->fit);
	not_finite_add(&a->not_finite, &r->not_finite);
}

int receipt_account(const struct receipt *r, const struct plan *plan, struct account *a)
{
	struct words all = lines_in(r), line;
	struct word encoded;
	struct problem p;
	uint64_t misses = 0;
	bool sound = true;

	while (sound && words_line(&all, &line)) {
		char *message;

		sound = read_line(line, &p, &encoded) && problem_fits(&p, plan->input_count);
		if (!sound)
			break;
		message = xmalloc(encoded.bytes + 1, 1);
		if (text_decode(encoded.text, encoded.bytes, true, message) < 0)
			message[0] = '\0';
		p.message = message;
		account_add(a, &p);
		free(message);
		misses += kind_of(&p) == PROBLEM_SKIPPED;
	}
	if (!sound || misses != r->miss_count)
		return fail(EXIT_BAD,
			    "a receipt lists %" PRIu64 " inputs as left out, but counts %" PRIu64 "; remove "
			    "the receipts, and build makes them again from the shards",
			    misses, r->miss_count);
	receipt_count(r, a);
	return EXIT_DONE;
}

void receipt_free(struct receipt *r)
{
	text_free(&r->lines);
	memset(r, 0, sizeof(*r));
}

/* ---- the files of a dataset that have them ---- */

#define NAME	       "receipts-"
#define LINE	       "\nshard "
#define END	       "\nend "
#define END_LINE_BYTES (strlen(END) - 1 + 64 + 1)

/* ---- read ---- */

struct names {
	char **name;
	uint64_t count, room;
};

static void note_name(void *context, const char *name)
{
	struct names *n = context;

	if (strncmp(name, NAME, strlen(NAME)) != 0)
		return;
	grow(&n->name, &n->room, n->count + 1, sizeof(*n->name));
	n->name[n->count++] = xstrdup(name);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int by_shard(const void *a, const void *b)
{
	const struct receipt_place *x = a, *y = b;

	if (x->shard_idx != y->shard_idx)
		return x->shard_idx < y->shard_idx ? -1 : 1;
	return (x->at > y->at) - (x->at < y->at);
}

/* Anything that has that line may be a receipt; receipt_find() looks closer. */
static void find_places(struct receipt_texts *t)
{
	const char *at = t->all.data, *end = at + t->all.bytes;

	while (at && (at = memmem(at, (size_t)(end - at), LINE, strlen(LINE))) != NULL) {
		grow(&t->place, &t->room, t->count + 1, sizeof(*t->place));
		at += strlen(LINE);
		t->place[t->count++] = (struct receipt_place){strtoull(at, NULL, 10), (size_t)(at - t->all.data)};
	}
	if (t->count)
		qsort(t->place, t->count, sizeof(*t->place), by_shard);
}

int receipt_texts_read(struct receipt_texts *t, const char *state_dir)
{
	struct names n = {.count = 0};
	char path[FILES_PATH_BYTES];
	bool found;
	int rc = files_list(state_dir, note_name, &n, &found);

	if (n.count)
		qsort(n.name, n.count, sizeof(*n.name), by_name);
	for (uint64_t i = 0; !rc && i < n.count; i++) {
		rc = files_path(path, state_dir, n.name[i]);
		if (!rc)
			rc = files_read(path, &t->all, &found);
		text_add(&t->all, "\n", 1); /* the last line may be torn */
	}
	t->file_count = n.count;
	if (!rc)
		find_places(t);
	while (n.count)
		free(n.name[--n.count]);
	free(n.name);
	return rc;
}

void receipt_texts_free(struct receipt_texts *t)
{
	text_free(&t->all);
	free(t->place);
	*t = (struct receipt_texts){0};
}

/* What begins with that line, up to its digest.  False if that is not there, or not right. */
static bool parse_at(const char *first, const char *end, uint64_t shard_idx, struct receipt *r)
{
	const char *last = memmem(first, (size_t)(end - first), END, strlen(END));
	struct text text = {0};
	bool sound;

	if (!last || (size_t)(end - last) < 1 + END_LINE_BYTES)
		return false;
	text_add(&text, first, (size_t)(last - first) + 1 + END_LINE_BYTES);
	sound = receipt_parse(r, shard_idx, &text);
	text_free(&text);
	return sound;
}

/* One that spares reading the shard is best, and then one that knows all that was counted. */
static int worth(const struct receipt *r, const struct receipt *is)
{
	return 2 * (r->mtime_ns == is->mtime_ns) + (!r->fit.unknown && !r->not_finite.unknown);
}

bool receipt_find(const struct receipt_texts *t, uint64_t shard_idx, const struct receipt *is, struct receipt *r,
		  const char **spoilt)
{
	const char *all = t->all.data, *first;
	bool found = false, other = false;
	uint64_t low = 0, high = t->count;

	if (spoilt)
		*spoilt = NULL;
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (t->place[middle].shard_idx < shard_idx)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < t->count && t->place[low].shard_idx == shard_idx && !other; low++) {
		struct receipt one = {0};

		first = memrchr(all, '\n', t->place[low].at - strlen(LINE));
		first = first ? first + 1 : all;
		if (parse_at(first, all + t->all.bytes, shard_idx, &one)) {
			other = !receipt_is_same(&one, is);
			if (!found || other || worth(&one, is) >= worth(r, is)) {
				receipt_free(r);
				*r = one;
			} else {
				receipt_free(&one);
			}
			found = true;
		} else {
			receipt_free(&one);
			if (spoilt)
				*spoilt = !strncmp(first, "receipt ", 8) &&
							  strncmp(first, FIRST_LINE "\n", strlen(FIRST_LINE) + 1) != 0
						  ? "of another version"
						  : "damaged";
		}
	}
	return found;
}

/* ---- add ---- */

void receipt_files_open(struct receipt_files *f)
{
	*f = (struct receipt_files){.fd = -1};
	pthread_mutex_init(&f->lock, NULL);
}

static void forget(struct receipt_files *f)
{
	if (f->fd >= 0)
		close(f->fd);
	f->fd = -1;
}

void receipt_files_let_go(struct receipt_files *f)
{
	pthread_mutex_lock(&f->lock);
	forget(f);
	pthread_mutex_unlock(&f->lock);
}

void receipt_files_close(struct receipt_files *f)
{
	forget(f);
	receipt_texts_free(&f->before);
	pthread_mutex_destroy(&f->lock);
}

int receipt_files_read(struct receipt_files *f, const char *state_dir)
{
	if (strcmp(f->state_dir, state_dir) != 0)
		forget(f);
	snprintf(f->state_dir, sizeof(f->state_dir), "%s", state_dir);
	receipt_texts_free(&f->before);
	return receipt_texts_read(&f->before, state_dir);
}

/* Why this file cannot be used, by errno. */
static int refuse(const struct receipt_files *f, struct shard_error *err)
{
	*err = (struct shard_error){.status = SHARD_E_IO, .os_code = errno};
	snprintf(err->message, sizeof(err->message), "%.900s/" NAME "%05" PRIu64 ": cannot write a receipt: %s",
		 f->state_dir, f->number, strerror(err->os_code));
	return err->status;
}

/* Make a file of our own: the first that nobody has. */
static int make_file(struct receipt_files *f, struct shard_error *err)
{
	char path[FILES_PATH_BYTES];

	for (f->number = f->before.file_count;; f->number++) {
		if (files_numbered(path, f->state_dir, NAME, f->number, "") != EXIT_DONE) {
			errno = ENAMETOOLONG;
			return refuse(f, err);
		}
		f->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		if (f->fd >= 0)
			break;
		if (errno != EEXIST)
			return refuse(f, err);
	}
	return files_sync_names(f->state_dir) ? SHARD_OK : refuse(f, err);
}

/* With the lock. */
static int add(struct receipt_files *f, const struct text *text, struct shard_error *err)
{
	int rc = f->fd < 0 ? make_file(f, err) : SHARD_OK;
	ssize_t n;

	for (size_t done = 0; rc == SHARD_OK && done < text->bytes;) {
		n = write(f->fd, text->data + done, text->bytes - done);
		if (n >= 0)
			done += (size_t)n;
		else if (errno != EINTR)
			rc = refuse(f, err);
	}
	if (rc == SHARD_OK && fdatasync(f->fd) != 0)
		rc = refuse(f, err);
	if (rc != SHARD_OK)
		forget(f); /* what is torn ends its file */
	return rc;
}

int receipt_files_add(struct receipt_files *f, uint64_t shard_idx, const struct receipt *r, struct shard_error *err)
{
	struct text text = {0};
	int rc;

	receipt_write(r, shard_idx, &text);
	pthread_mutex_lock(&f->lock);
	rc = add(f, &text, err);
	if (rc != SHARD_OK && err->os_code == ESTALE) /* another machine has removed the file */
		rc = add(f, &text, err);
	pthread_mutex_unlock(&f->lock);
	text_free(&text);
	if (rc == SHARD_OK || err->os_code != ENOENT)
		return rc;
	detail("%s", err->message);
	return SHARD_OK;
}
