/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format.h - bytes of files to structs and back, checked by the rules of format/SHARD.md; hashes and LZ4
 */
#ifndef SHARD_FORMAT_FORMAT_H
#define SHARD_FORMAT_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "format/shard_format.h"
#include "libshard/base/words.h"
#include "libshard/format/pages.h"
#include "shard.h"
#include "shard_pack.h"

/* ---- byte_sums.c ---- */

/* The twin of shard_sum_bytes() that any machine can run: the same sums. */
void byte_sums_portable(const void *data, uint64_t bytes, uint32_t channels, struct shard_moments *sums);

/* Add the second to the first. */
static inline void byte_sums_merge(struct shard_moments *to, const struct shard_moments *add)
{
	to->count += add->count;
	to->sum += add->sum;
	to->sum_squares_high +=
		add->sum_squares_high + (to->sum_squares_low + add->sum_squares_low < add->sum_squares_low);
	to->sum_squares_low += add->sum_squares_low;
}

/* ---- copy.c ---- */

/*
 * Copy `bytes` from src to dst, which do not overlap, line after line from the front to the back.
 * Another thread sees the whole copy only after this thread has called copy_fence() and then told
 * it, for example through a lock.
 */
void copy_stream(void *dst, const void *src, size_t bytes);

/* The same, and the XXH3-64 of the bytes, which are read from memory once. */
uint64_t copy_stream_hashed(void *dst, const void *src, size_t bytes);

/* Once, before another thread is told of this thread's copies. */
void copy_fence(void);

/* The twin that any machine can run, for tests: the same bytes at the same places. */
void copy_portable(void *dst, const void *src, size_t bytes);

/*
 * The contents of a dataset.manifest (format/SHARD.md part 3), as host structs
 */

struct manifest_end {
	size_t end_at;	/* of the word "end": the SHA-256 covers the text before it */
	size_t hash_at; /* of the XXH3's first digit: the XXH3 covers the text before it */
	uint8_t sha256[32];
	uint8_t hash[16]; /* as H128 is stored, low half first */
};

struct manifest {
	uint64_t record_count, shard_count, class_count;
	bool has_plan_digest;
	uint8_t plan_digest[32];
	uint32_t order; /* enum shard_pack_order */
	uint64_t seed;
	struct shard_schema schema;
};

struct manifest_shard {
	const char *file; /* not NUL-terminated */
	size_t file_name_bytes;
	uint64_t file_bytes, record_count;
	uint8_t root[16], sha256[32];
};

/*
 * Any function may be NULL.  Called in the order of the lines; names are percent-encoded as they
 * stand.
 */
struct manifest_sink {
	void *context;
	void (*on_class)(void *context, uint64_t idx, const char *name, size_t bytes);
	void (*on_moments)(void *context, uint32_t field, uint32_t channel, const struct shard_moments *m);
	void (*on_class_records)(void *context, uint32_t field, uint64_t class_idx, uint64_t records);
	void (*on_shard)(void *context, uint64_t idx, const struct manifest_shard *s);
};

/* ---- tokens.c ---- */

enum token_fault { TOKEN_OK, TOKEN_FORM /* M6 */, TOKEN_NUMBER /* M7 */ };

struct tokens {
	const char *at, *end; /* the rest of the line, without its LF */
	enum token_fault fault;
	const char *wanted; /* for the message: the word or number that was not there */
};

/* M5 but for the length: bytes 0x20 to 0x7e, single spaces, none first or last, and not empty. */
bool tokens_line_good(const char *line, size_t bytes);

struct word tokens_take(struct tokens *t, const char *wanted); /* any word */
bool tokens_peek(const struct tokens *t, const char *literal); /* is the next word this one? */
uint64_t tokens_number(struct tokens *t, const char *wanted, uint64_t limit);
void tokens_number128(struct tokens *t, const char *wanted, uint64_t *low, uint64_t *high);
void tokens_hex(struct tokens *t, const char *wanted, uint8_t *out, size_t bytes);
void tokens_hash(struct tokens *t, const char *wanted, uint8_t hash[16]); /* 32 digits, to H128 as it is stored */
void tokens_done(struct tokens *t);					  /* nothing may be left */

/*
 * H128 from the order in which its digits are written, high half first, to the order in which it is
 * stored; or back.
 */
void hash_turn(uint8_t out[16], const uint8_t in[16]);

/*
 * Is `c` inside a word?  That is true of 0x21 to 0x7f.  M5 has checked that only a space or the
 * line's end comes between words, so this does not check it again.
 */
static inline bool tokens_in_word(char c)
{
	return (int8_t)c > ' ';
}

/*
 * Exactly this word.  Here, so that the compiler knows its length; all but the usual case is left
 * to the other function.
 */
void tokens_literal_other(struct tokens *t, const char *literal);
static inline void tokens_literal(struct tokens *t, const char *literal)
{
	size_t bytes = strlen(literal);

	if ((size_t)(t->end - t->at) > bytes + 1 && !memcmp(t->at, literal, bytes) && t->at[bytes] == ' ' &&
	    tokens_in_word(t->at[bytes + 1]))
		t->at += bytes + 1;
	else
		tokens_literal_other(t, literal);
}

/* Canonical decimal: no sign, no leading zero, at most `limit`. */
bool word_number(struct word w, uint64_t limit, uint64_t *out);

/*
 * manifest_lines.c - the lines of a manifest behind its head, one function for each kind
 *
 * For manifest_parse.c, which knows the order of the lines.
 */

/* The kinds of lines behind the head, in the order that they come in. */
enum line_kind { LINE_GROUP, LINE_FIELD, LINE_CLASS, LINE_STAT, LINE_SHARD, LINE_KINDS };

/* A manifest that is being read. */
struct parse {
	struct manifest *m;
	const struct manifest_sink *sink; /* may be NULL */
	struct shard_error *err;
	uint64_t line; /* number of the current one, from 1 */
	enum line_kind kind;
	uint64_t classes, shards, records; /* so far */
	/* statistics: the block being read */
	uint32_t stat_kind, stat_field;
	uint64_t stat_next, stat_sum;
};

/*
 * Take one line apart, and store its contents in p->m or hand them to the sink.  `t` has the whole
 * line, which keeps M5.
 */
int line_group(struct parse *p, struct tokens *t);
int line_field(struct parse *p, struct tokens *t);
int line_class(struct parse *p, struct tokens *t);
int line_stat(struct parse *p, struct tokens *t);
int line_shard(struct parse *p, struct tokens *t);

/* M6, M7: did all words of the line have their form? */
int line_done(struct parse *p, struct tokens *t);
/* M11: is the block of statistics that was being read complete? */
int line_stats_done(struct parse *p);

/*
 * manifest_parse.c - from the text of a manifest to its contents
 *
 * Pure: nothing is allocated here.  The contents of the lines go to a sink as they are read, in
 * order.
 */

/* M1, M2. */
int manifest_find_end(const char *text, size_t bytes, struct manifest_end *out, struct shard_error *err);
/* M3: `hash` is H128 of the text up to hash_at. */
int manifest_check_hash(const struct manifest_end *end, const uint8_t hash[16], struct shard_error *err);
/* M4 to M14, on the text up to end_at. */
int manifest_parse(const char *text, size_t end_at, struct manifest *out, const struct manifest_sink *sink,
		   struct shard_error *err);

/*
 * manifest_text.c - from the contents of a manifest to its lines, and the names in it
 */

/* M12: one or two components that cannot leave the folder. */
bool manifest_name_good(const char *name, size_t bytes);

/*
 * Lines, each with its LF and a NUL, into `out` of SHARD_MANIFEST_LINE_BYTES_MAX + 1; the length is
 * returned.
 */
size_t manifest_write_group(char *out, const struct shard_schema *s, uint32_t group);
size_t manifest_write_field(char *out, const struct shard_schema *s, uint32_t field);
size_t manifest_write_moments(char *out, uint32_t field, uint32_t channel, const struct shard_moments *m);
size_t manifest_write_shard(char *out, uint64_t idx, const struct manifest_shard *s);
/* `text` for H128: high half first. */
void manifest_hash_text(char out[33], const uint8_t hash[16]);

/*
 * pages_encode.c - from struct pages to the header and the footer page of a file
 */

/*
 * The hash fields are left zero: the caller computes them, and puts the header's into the struct
 * before the footer.
 */
void pages_encode_header(struct disk_header *out, const struct pages *p);
void pages_encode_footer(struct disk_footer *out, const struct pages *p);

/*
 * sections.c - which sections a shard must have, and where they lie
 */

/* I34 to I42. */
int sections_check(const struct pages *p, struct shard_error *err);

/*
 * sha256_blocks.c - the compression function of SHA-256 in portable C, and its constants
 */

#define SHA256_BLOCK_BYTES 64

/* Folds whole blocks into the eight words of the state. */
typedef void sha256_blocks_fn(uint32_t h[8], const uint8_t *data, size_t block_count);

/* The constants of the rounds. */
extern const _Alignas(64) uint32_t sha256_k[64];

/* For every machine, and the slow twin of sha256_ni.c. */
sha256_blocks_fn sha256_blocks_portable;

/*
 * sha256.c - SHA-256 (FIPS 180-4), which gives files and datasets their identity
 *
 * Streaming, without allocation.  The SHA instructions of x86 are used where the processor has
 * them; both ways give the same bytes.  Up to 2^61 - 1 bytes may be hashed, which is the limit of
 * the standard.
 */

#define SHA256_BYTES 32

struct sha256 {
	uint32_t h[8];
	sha256_blocks_fn *blocks;
	uint64_t data_bytes; /* hashed so far; its low 6 bits say how full `block` is */
	uint8_t block[SHA256_BLOCK_BYTES];
};

void sha256_init(struct sha256 *s);
void sha256_update(struct sha256 *s, const void *data, size_t data_bytes);
/* Ends the stream: init comes before the next update. */
void sha256_final(struct sha256 *s, uint8_t digest[SHA256_BYTES]);

/*
 * sha256_ni.c - the compression function of SHA-256 with the SHA instructions of x86
 */

/* NULL where the processor lacks the instructions. */
sha256_blocks_fn *sha256_blocks_ni(void);

#endif
