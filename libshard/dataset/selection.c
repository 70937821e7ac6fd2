/* SPDX-License-Identifier: Apache-2.0 */
/*
 * selection.c - some records of a dataset, in ascending order: which one is the i-th?
 *
 * In memory it is a list of records, or a bit for each record of the dataset, whichever is smaller.
 * It is constant once it is made, so any thread may ask.
 */
#include "libshard/dataset/dataset.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "libshard/base/bytes.h"
#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/base/words.h"
#include "libshard/format/format.h"
#include "libshard/io/io.h"
#include "shard_pack.h"

#define SAMPLES	   65536u
#define HEAD_BYTES 256u /* at most, of the lines before the gaps */
#define TAIL_BYTES 72u	/* "sha256 ", 64 digits, a newline */
#define GAP_BYTES  10u	/* of a LEB128 number of 64 bits */
#define FILE_MAX   (UINT64_C(1) << 40)

static uint64_t block_count(uint64_t of_count)
{
	return ceil_div(of_count, 64 * SELECTION_BLOCK_WORDS);
}

/* Words of a bit for each record, the last block filled up. */
static uint64_t word_count(uint64_t of_count)
{
	return block_count(of_count) * SELECTION_BLOCK_WORDS;
}

static uint64_t count_bits(const uint64_t *bits, uint64_t words)
{
	uint64_t n = 0;

	for (uint64_t i = 0; i < words; i++)
		n += (uint64_t)__builtin_popcountll(bits[i]);
	return n;
}

/* ---- in memory ---- */

int selection_open_bits(const struct shard_dataset *ds, uint64_t **bits, struct shard_error *err)
{
	*bits = mem_array((size_t)word_count(ds->m.record_count), sizeof(**bits));
	if (*bits)
		return SHARD_OK;
	return error_set(err, SHARD_E_MEMORY, "no memory for a bit for each of %" PRIu64 " records",
			 ds->m.record_count);
}

static bool needs_wide(const struct shard_selection *s)
{
	return s->of_count - 1 > UINT32_MAX;
}

static uint64_t bytes_of_list(const struct shard_selection *s)
{
	return mul_capped(s->count, needs_wide(s) ? 8 : 4);
}

static uint64_t bytes_of_bits(const struct shard_selection *s)
{
	return 8 * (word_count(s->of_count) + block_count(s->of_count) + 1 + s->count / SELECTION_HINT + 2);
}

/* ---- asking ---- */

static uint64_t at_bits(const struct shard_selection *s, uint64_t i)
{
	uint64_t block = s->hint[i / SELECTION_HINT], end = s->hint[i / SELECTION_HINT + 1] + 1, word, n;

	while (end - block > 1) {
		uint64_t middle = block + (end - block) / 2;

		if (s->before[middle] <= i)
			block = middle;
		else
			end = middle;
	}
	i -= s->before[block];
	for (word = block * SELECTION_BLOCK_WORDS;; word++) {
		n = (uint64_t)__builtin_popcountll(s->bits[word]);
		if (i < n)
			break;
		i -= n;
	}
	for (n = s->bits[word]; i; i--)
		n &= n - 1; /* without its lowest bit */
	return word * 64 + (uint64_t)__builtin_ctzll(n);
}

uint64_t selection_at(const struct shard_selection *s, uint64_t i)
{
	if (s->list32)
		return s->list32[i];
	return s->list64 ? s->list64[i] : at_bits(s, i);
}

void selection_many(const struct shard_selection *s, uint64_t *idx, size_t count)
{
	for (size_t i = 0; s->list32 && i < count; i++)
		idx[i] = s->list32[idx[i]];
	for (size_t i = 0; s->list64 && i < count; i++)
		idx[i] = s->list64[idx[i]];
	for (size_t i = 0; s->bits && i < count; i++)
		idx[i] = at_bits(s, idx[i]);
}

static uint64_t next_bit(const struct shard_selection *s, uint64_t record)
{
	uint64_t words = word_count(s->of_count), word = record / 64, rest;

	if (record >= s->of_count)
		return UINT64_MAX;
	for (rest = s->bits[word] >> (record & 63) << (record & 63); !rest; rest = s->bits[word])
		if (++word == words)
			return UINT64_MAX;
	return word * 64 + (uint64_t)__builtin_ctzll(rest);
}

uint64_t selection_following(const struct shard_selection *s, uint64_t i, uint64_t next)
{
	return s->bits ? next_bit(s, next) : selection_at(s, i);
}

/* How many selected records are below this one? */
static uint64_t below(const struct shard_selection *s, uint64_t record)
{
	uint64_t first = 0, end = s->count;

	while (first < end) {
		uint64_t middle = first + (end - first) / 2;

		if (selection_at(s, middle) < record)
			first = middle + 1;
		else
			end = middle;
	}
	return first;
}

uint64_t selection_next(const struct shard_selection *s, uint64_t record)
{
	uint64_t at;

	if (s->bits) {
		at = next_bit(s, record);
		return at == UINT64_MAX ? next_bit(s, 0) : at;
	}
	at = below(s, record);
	return selection_at(s, at < s->count ? at : 0);
}

uint64_t selection_units(const struct shard_selection *s, uint64_t unit_records)
{
	uint64_t pairs = s->count - 1, samples = min_u64(pairs, SAMPLES), begins = 0;

	for (uint64_t k = 0; k < samples; k++) {
		uint64_t i = samples == pairs ? k : (uint64_t)((unsigned __int128)k * pairs / samples);

		begins += selection_at(s, i) / unit_records != selection_at(s, i + 1) / unit_records;
	}
	return 1 + (samples ? (uint64_t)((unsigned __int128)begins * pairs / samples) : 0);
}

void shard_selection_info(const struct shard_selection *s, struct shard_selection_info *out)
{
	*out = (struct shard_selection_info){
		.record_count = s->count,
		.of_count = s->of_count,
		.memory_bytes = sizeof(*s) + (s->bits ? bytes_of_bits(s) : bytes_of_list(s)),
	};
	memcpy(out->digest, s->digest, sizeof(out->digest));
	memcpy(out->dataset_id, s->dataset_id, sizeof(out->dataset_id));
}

int shard_selection_records(const struct shard_selection *s, uint64_t first, uint64_t count, uint64_t *idx,
			    struct shard_error *err)
{
	if (first > s->count || count > s->count - first)
		return error_set(err, SHARD_E_ARGUMENT,
				 "places %" PRIu64 " to %" PRIu64 " were asked for; the selection has %" PRIu64, first,
				 first + count - 1, s->count);
	for (uint64_t i = 0; i < count; i++)
		idx[i] = first + i;
	selection_many(s, idx, (size_t)count);
	return SHARD_OK;
}

/*
 * ---- as bytes: what is hashed, and what a file holds ----
 *
 *   libshard selection 1
 *   dataset 66e2...
 *   records 1281167
 *   selected 128117
 *   gaps 131072
 *   (as many bytes)
 *   sha256 8d1f...
 *
 * A gap is the number of records that are left out before a selected one, as a LEB128 number: seven
 * bits in a byte, the low ones first, and bit 7 set in each byte but the last.  The last line is
 * the SHA-256 of all bytes before it, and is the selection's digest.
 */

/* Encode the gaps from the i-th selected record on, as many as fit.  Returns how many bytes. */
static size_t put_gaps(const struct shard_selection *s, uint64_t *i, uint64_t *next, uint8_t *to, size_t room)
{
	size_t used = 0;

	for (; *i < s->count && room - used >= GAP_BYTES; (*i)++) {
		uint64_t record = selection_following(s, *i, *next), gap = record - *next;

		for (; gap >= 128; gap >>= 7)
			to[used++] = (uint8_t)(gap | 128);
		to[used++] = (uint8_t)gap;
		*next = record + 1;
	}
	return used;
}

static uint64_t gap_bytes(const struct shard_selection *s)
{
	uint8_t buffer[4096];
	uint64_t i = 0, next = 0, bytes = 0;

	while (i < s->count)
		bytes += put_gaps(s, &i, &next, buffer, sizeof(buffer));
	return bytes;
}

/* The lines before the gaps, which have that many bytes.  Returns how many bytes the lines have. */
static int put_head(const struct shard_selection *s, uint64_t gaps, char head[HEAD_BYTES])
{
	return snprintf(head, HEAD_BYTES,
			"libshard selection 1\ndataset %s\nrecords %" PRIu64 "\nselected %" PRIu64 "\ngaps %" PRIu64
			"\n",
			s->dataset_id, s->of_count, s->count, gaps);
}

/* Compute the digest. */
static void sign(struct shard_selection *s)
{
	uint8_t buffer[4096], digest[SHA256_BYTES];
	uint64_t i = 0, next = 0;
	struct sha256 sha;

	sha256_init(&sha);
	sha256_update(&sha, buffer, (size_t)put_head(s, gap_bytes(s), (char *)buffer));
	while (i < s->count)
		sha256_update(&sha, buffer, put_gaps(s, &i, &next, buffer, sizeof(buffer)));
	sha256_update(&sha, "\n", 1);
	sha256_final(&sha, digest);
	hex_from_bytes(s->digest, digest, sizeof(digest));
}

uint64_t selection_beginning(const struct shard_selection *s, const char id[65], uint64_t of_count, char digest[65])
{
	struct shard_selection part = *s; /* signing asks for its first records only */

	part.of_count = of_count;
	part.count = below(s, of_count);
	memcpy(part.dataset_id, id, sizeof(part.dataset_id));
	sign(&part);
	memcpy(digest, part.digest, sizeof(part.digest));
	return part.count;
}

int shard_selection_write(const struct shard_selection *s, const char *path, struct shard_error *err)
{
	uint64_t gaps = gap_bytes(s), i = 0, next = 0;
	size_t room = HEAD_BYTES + (size_t)gaps + 1 + TAIL_BYTES + 1, used;
	char *text = mem_alloc(room);
	int rc;

	if (!text)
		return error_set(err, SHARD_E_MEMORY, "no memory for a file of %zu bytes", room);
	used = (size_t)put_head(s, gaps, text);
	used += put_gaps(s, &i, &next, (uint8_t *)text + used, room - used); /* all: the tail is longer than a gap */
	used += (size_t)snprintf(text + used, room - used, "\nsha256 %s\n", s->digest);
	rc = shard_publish(path, text, used, 0, err);
	mem_free(text);
	return rc;
}

/* ---- making one ---- */

/* A list of the bits that are set.  Returns false if there is no memory. */
static bool list_bits(struct shard_selection *s, const uint64_t *bits)
{
	uint64_t words = word_count(s->of_count), n = 0;

	if (needs_wide(s))
		s->list64 = mem_array((size_t)s->count, sizeof(*s->list64));
	else
		s->list32 = mem_array((size_t)s->count, sizeof(*s->list32));
	if (!s->list32 && !s->list64)
		return false;
	for (uint64_t i = 0; i < words; i++)
		for (uint64_t word = bits[i]; word; word &= word - 1, n++) {
			uint64_t record = i * 64 + (uint64_t)__builtin_ctzll(word);

			if (s->list32)
				s->list32[n] = (uint32_t)record;
			else
				s->list64[n] = record;
		}
	return true;
}

/* Count the bits before each block.  Returns false if there is no memory. */
static bool index_bits(struct shard_selection *s)
{
	uint64_t blocks = block_count(s->of_count), n = 0, hints = 0;

	s->before = mem_array((size_t)blocks + 1, sizeof(*s->before));
	s->hint = mem_array((size_t)(s->count / SELECTION_HINT) + 2, sizeof(*s->hint));
	if (!s->before || !s->hint)
		return false;
	for (uint64_t b = 0; b < blocks; b++) {
		s->before[b] = n;
		n += count_bits(s->bits + b * SELECTION_BLOCK_WORDS, SELECTION_BLOCK_WORDS);
		for (; hints * SELECTION_HINT < n; hints++)
			s->hint[hints] = b;
	}
	s->before[blocks] = n;
	s->hint[hints] = blocks - 1; /* the end of the last search */
	return true;
}

int selection_make(struct shard_selection **out, const struct shard_dataset *ds, uint64_t *bits, const char *what,
		   struct shard_error *err)
{
	struct shard_selection *s = mem_zalloc(sizeof(*s));
	bool fits;
	int rc;

	if (!s) {
		mem_free(bits);
		return error_set(err, SHARD_E_MEMORY, "no memory for a selection");
	}
	s->of_count = ds->m.record_count;
	s->count = count_bits(bits, word_count(s->of_count));
	dataset_id(ds, s->dataset_id);
	if (!s->count) {
		mem_free(bits);
		mem_free(s);
		return error_set(err, SHARD_E_ARGUMENT, "%s: selects none of the %" PRIu64 " records", what,
				 ds->m.record_count);
	}
	if (bytes_of_bits(s) <= bytes_of_list(s)) {
		s->bits = bits;
		fits = index_bits(s);
	} else {
		fits = list_bits(s, bits);
		mem_free(bits);
	}
	if (!fits) {
		rc = error_set(err, SHARD_E_MEMORY, "no memory for a selection of %" PRIu64 " records", s->count);
		shard_selection_close(s);
		return rc;
	}
	sign(s);
	*out = s;
	return SHARD_OK;
}

void shard_selection_close(struct shard_selection *s)
{
	if (!s)
		return;
	mem_free(s->list32);
	mem_free(s->list64);
	mem_free(s->bits);
	mem_free(s->before);
	mem_free(s->hint);
	mem_free(s);
}

/* ---- reading a file, which anybody may have damaged ---- */

struct parsed {
	char dataset_id[65];
	uint64_t records, selected, gaps;
	int head_bytes;
};

/* Returns false if the file does not begin as a selection does. */
static bool read_head(const char *text, struct parsed *p)
{
	char again[HEAD_BYTES];
	struct shard_selection s = {.count = 0};

	memset(p, 0, sizeof(*p));
	if (sscanf(text,
		   "libshard selection 1\ndataset %64[0-9a-f]\nrecords %" SCNu64 "\nselected %" SCNu64 "\ngaps %" SCNu64
		   "\n",
		   p->dataset_id, &p->records, &p->selected, &p->gaps) != 4)
		return false;
	memcpy(s.dataset_id, p->dataset_id, sizeof(s.dataset_id));
	s.of_count = p->records;
	s.count = p->selected;
	p->head_bytes = put_head(&s, p->gaps, again); /* there is one way to write it */
	return strlen(p->dataset_id) == 64 && !strncmp(text, again, (size_t)p->head_bytes);
}

/* Set the bits that the gaps name.  Returns false if they are not what the head says. */
static bool set_bits(const struct parsed *p, const uint8_t *at, uint64_t *bits)
{
	const uint8_t *end = at + p->gaps;
	uint64_t next = 0, count = 0;

	while (at < end) {
		uint64_t gap = 0;
		unsigned shift = 0;
		uint8_t b;

		do {
			if (at == end || shift > 56)
				return false;
			b = *at++;
			gap |= (uint64_t)(b & 127) << shift;
			shift += 7;
		} while (b & 128);
		if (next >= p->records || gap >= p->records - next)
			return false;
		next += gap;
		selection_set_bit(bits, next);
		next++;
		count++;
	}
	return count == p->selected;
}

/* Is the last line the SHA-256 of what stands before it? */
static bool is_intact(const uint8_t *text, uint64_t bytes, const struct parsed *p)
{
	uint64_t signed_bytes = (uint64_t)p->head_bytes + p->gaps + 1;
	uint8_t digest[SHA256_BYTES];
	char hex[65], tail[TAIL_BYTES + 1];
	struct sha256 sha;

	if (p->gaps > bytes || signed_bytes + TAIL_BYTES != bytes)
		return false;
	sha256_init(&sha);
	sha256_update(&sha, text, (size_t)signed_bytes);
	sha256_final(&sha, digest);
	hex_from_bytes(hex, digest, sizeof(digest));
	snprintf(tail, sizeof(tail), "sha256 %s\n", hex);
	return !memcmp(text + signed_bytes, tail, TAIL_BYTES);
}

static int refuse(const char *path, const char *why, struct shard_error *err)
{
	struct shown s;

	return error_set(err, SHARD_E_CORRUPT, "%s: %s", show(&s, path), why);
}

static int parse(struct shard_selection **out, const struct shard_dataset *ds, const char *path, const uint8_t *text,
		 uint64_t bytes, struct shard_error *err)
{
	struct parsed p;
	char id[65];
	uint64_t *bits;
	struct shown s;
	int rc;

	if (!read_head((const char *)text, &p))
		return refuse(path, "is not a selection; make one with shardcat select", err);
	if (!is_intact(text, bytes, &p))
		return refuse(path, "is damaged: its last line is not the SHA-256 of what stands before it", err);
	dataset_id(ds, id);
	if (strcmp(id, p.dataset_id) || p.records != ds->m.record_count)
		return error_set(err, SHARD_E_MISMATCH,
				 "%s: selects records of dataset %.16s..., and this is dataset %.16s...",
				 show(&s, path), p.dataset_id, id);
	rc = selection_open_bits(ds, &bits, err);
	if (rc)
		return rc;
	if (!set_bits(&p, text + p.head_bytes, bits)) {
		mem_free(bits);
		return refuse(path, "is damaged: its gaps do not lead to as many records as it states", err);
	}
	rc = selection_make(out, ds, bits, path, err);
	if (rc || !memcmp((*out)->digest, text + bytes - 65, 64))
		return rc;
	shard_selection_close(*out); /* a selection has one digest, so it has one text */
	return refuse(path, "is a selection, but not written as libshard writes it", err);
}

int shard_selection_read(struct shard_selection **out, struct shard_dataset *ds, const char *path,
			 struct shard_error *err)
{
	uint8_t *text = NULL;
	uint64_t bytes;
	struct shown s;
	int fd, rc = file_open(path, &fd, &bytes, NULL, err);

	if (rc)
		return rc;
	text = bytes > FILE_MAX ? NULL : mem_alloc((size_t)bytes + 1);
	if (!text)
		rc = error_set(err, SHARD_E_MEMORY, "%s: no memory for its %" PRIu64 " bytes", show(&s, path), bytes);
	if (!rc)
		rc = file_read_at(fd, text, (size_t)bytes, 0, path, err);
	file_close(fd);
	if (!rc) {
		text[bytes] = '\0';
		rc = parse(out, ds, path, text, bytes, err);
	}
	mem_free(text);
	return rc;
}
