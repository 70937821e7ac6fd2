/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format.h - bytes of files to structs and back, by the rules of format/SHARD.md; hashes and codecs
 *
 * Pure: no function here allocates, locks or looks at a file.
 */
#ifndef SHARD_FORMAT_FORMAT_H
#define SHARD_FORMAT_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "format/shard_format.h"
#include "libshard/base/words.h"
#include "shard.h"
#include "shard_inspect.h"

/* ---- checksum.c: XXH3-64 and XXH3-128, seed 0, default secret ---- */

/*
 * They find accidents.  They do not resist an attacker: the SHA-256 in the manifest does.  Nothing
 * here fails.  Pointers may be NULL if the count of bytes is 0, and have any alignment.
 */

/* As the format stores it: the low half, little-endian, then the high half. */
struct hash128 {
	uint8_t b[16];
};

uint64_t checksum64(const void *data, size_t data_bytes);
struct hash128 checksum128(const void *data, size_t data_bytes);

/*
 * Hashes of bytes that come in pieces.  The state belongs to XXH3, which needs 576 bytes of it in
 * 0.8.
 */
struct checksum_stream {
	_Alignas(64) uint8_t state[1024];
};

void checksum64_init(struct checksum_stream *s);
void checksum64_update(struct checksum_stream *s, const void *data, size_t data_bytes);
uint64_t checksum64_final(const struct checksum_stream *s);

void checksum128_init(struct checksum_stream *s);
void checksum128_update(struct checksum_stream *s, const void *data, size_t data_bytes);
/* The hash of all bytes so far; more may follow. */
struct hash128 checksum128_final(const struct checksum_stream *s);

/* ---- xxh3_*.c: XXH3 compiled for each kind of processor ---- */

#define XXH3_STATE_BYTES 1024 /* more than the state of any version so far */
#define XXH3_STATE_ALIGN 64

struct xxh3 {
	const char *name;
	uint64_t (*hash64)(const void *data, size_t data_bytes);
	void (*hash128)(const void *data, size_t data_bytes, uint64_t half[2]); /* the low one first */

	/* Streams; a state of one kind is good for every other.  There is data to update with. */
	void (*reset64)(void *state);
	void (*update64)(void *state, const void *data, size_t data_bytes);
	uint64_t (*digest64)(const void *state);
	void (*reset128)(void *state);
	void (*update128)(void *state, const void *data, size_t data_bytes);
	void (*digest128)(const void *state, uint64_t half[2]);
};

/*
 * The slow twin, which every processor runs; the others are NULL where the processor is of another
 * family.
 */
extern const struct xxh3 xxh3_plain;
extern const struct xxh3 *const xxh3_avx2, *const xxh3_avx512;

/* ---- sha256.c: SHA-256 (FIPS 180-4), the identity of files and datasets ---- */

#define SHA256_BLOCK_BYTES 64

/* Folds whole blocks into the eight words of the state. */
typedef void sha256_blocks_fn(uint32_t h[8], const uint8_t *data, size_t block_count);

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

/* For every machine, and the slow twin of the next. */
sha256_blocks_fn sha256_blocks_portable;
/* With the SHA instructions of x86; NULL where the processor lacks the instructions. */
sha256_blocks_fn *sha256_blocks_ni(void);

/* ---- lz4.c: a chunk of records to fewer bytes, and back ---- */

#define LZ4_STORE_RAW 1 /* lz4_encode() returns it: the result is not smaller, so store the source */

/* Bytes that lz4_encode() wants in dst, for a source of at most SHARD_CHUNK_BYTES_MAX; 0 for a larger one. */
size_t lz4_bound(size_t src_bytes);

/* Bytes of scratch that it wants, aligned to 16. */
size_t lz4_scratch_bytes(void);

/*
 * Returns SHARD_OK and *dst_bytes < src_bytes, or LZ4_STORE_RAW and leaves dst undefined.  Returns
 * SHARD_E_ARGUMENT if src_bytes is 0 or above the limit, or dst_capacity is below lz4_bound().  A
 * smaller dst is refused even when the result would fit, because LZ4's answer would then depend on
 * it.  The same source gives the same bytes, whatever the thread or the buffers.
 */
int lz4_encode(const void *src, size_t src_bytes, void *dst, size_t dst_capacity, size_t *dst_bytes, void *scratch);

/*
 * SHARD_OK when src decodes to exactly dst_bytes, else SHARD_E_CORRUPT, and dst holds anything.  The
 * source is not trusted: nothing outside src[0, src_bytes) is read and nothing outside
 * dst[0, dst_bytes) is written.  SHARD_E_ARGUMENT if dst_bytes is 0 or above the limit.
 */
int lz4_decode(const void *src, size_t src_bytes, void *dst, size_t dst_bytes);

/* ---- names.c: names of numbers, which are public, and back ---- */

/* For messages: "?" if it has no name. */
const char *section_name(uint32_t type);

/* 1 and the number whose name is exactly `text`, or 0. */
int name_find(enum shard_name_of what, const char *text, size_t bytes, uint32_t *out);

/* ---- invariant.c: how a broken rule of format/SHARD.md is reported ---- */

/* Write "I13: ..." and return `status`. */
int invariant_broken(struct shard_error *err, int status, const char *number, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

#define MUST_OR(status, number, cond, ...)                                                    \
	do {                                                                                  \
		if (!(cond)) {                                                                \
			int broken_ = invariant_broken(err, (status), (number), __VA_ARGS__); \
			if (broken_)                                                          \
				return broken_;                                               \
		}                                                                             \
	} while (0)

#define MUST(number, cond, ...) MUST_OR(SHARD_E_CORRUPT, number, cond, __VA_ARGS__)

/* ---- schema.c: the layout of a record ---- */

/* I18 to I33 of format/SHARD.md.  Counts are within limits and names NUL-padded already. */
int schema_check(const struct shard_schema *s, struct shard_error *err);

/* Do records of both look the same, byte for byte? */
bool schema_equal(const struct shard_schema *a, const struct shard_schema *b);

/* Bytes of a record in all groups, padding between records included. */
uint64_t schema_strides(const struct shard_schema *s);

/* Channels of a u8 tensor for statistics (format/SHARD.md 2.6), and its elements. */
uint64_t schema_channels(const struct shard_field *f);
uint64_t schema_elements(const struct shard_field *f);
bool schema_is_integer_scalar(const struct shard_field *f);

/* Can a field have statistics of a kind of enum shard_stat_kind?  Can these be of a channel of it? */
bool schema_has_stat(const struct shard_field *f, uint32_t kind);
bool schema_moments_possible(const struct shard_field *f, uint64_t records, const struct shard_moments *m);

/* ---- record.c: the bytes of a record ---- */

/* The bytes of a stride that no field covers, which must be zero, ascending. */
struct record_holes {
	uint32_t count;
	struct {
		uint32_t offset, bytes;
	} hole[SHARD_FIELDS_MAX + 1];
};
void record_holes(const struct shard_schema *s, uint32_t group, struct record_holes *out);

/* I49, I57, I58 for `count` decoded records of a group at `data`.  `first` is for the message. */
int record_check_holes(const struct record_holes *holes, const void *data, uint64_t stride, uint64_t first,
		       uint64_t count, struct shard_error *err);

/* One record: `field_data` of a ragged field and `lengths`, the bytes of its length field. */
int record_check_ragged(const struct shard_field *f, const uint8_t *field_data, const uint8_t *lengths, uint64_t record,
			struct shard_error *err);

/*
 * I59 of one record.  `f` is an image that has a size of its own: shard_image_size_field().  `size`
 * are the 8 bytes of its size, `length` the 4 bytes of its length field.  If this is OK, height x
 * width pixels lie at the start of the field, as long as I57 holds too.
 */
int record_check_size(const struct shard_field *f, const uint8_t *size, const uint8_t *length, uint64_t record,
		      struct shard_error *err);

/* The compiler turns lengths that it knows into moves, and the others into calls. */
__attribute__((always_inline)) static inline void record_copy_field(uint8_t *dst, const uint8_t *src, uint32_t bytes)
{
	switch (bytes) {
	case 1:
		*dst = *src;
		break;
	case 2:
		memcpy(dst, src, 2);
		break;
	case 4:
		memcpy(dst, src, 4);
		break;
	case 8:
		memcpy(dst, src, 8);
		break;
	case 16:
		memcpy(dst, src, 16);
		break;
	case 32:
		memcpy(dst, src, 32);
		break;
	case 64:
		memcpy(dst, src, 64);
		break;
	default:
		memcpy(dst, src, bytes);
	}
}

/*
 * Copy a value of a field to one of the same type that has no shorter axis.  What is behind the value
 * there becomes zeros.
 */
void record_widen_field(uint8_t *dst, const struct shard_field *to, const uint8_t *src, const struct shard_field *from);

/* ---- pages.c: a shard's header and footer page ---- */

struct section {
	uint32_t type, flags, group;
	uint64_t offset, bytes, items;
	uint8_t hash[16];
};

struct pages {
	uint16_t major, minor;
	uint64_t incompat, compat;
	uint64_t planned_records, plan_shard;
	uint64_t record_count, file_bytes;
	uint32_t section_align_log2, section_count;
	uint8_t plan_digest[32];
	uint8_t header_hash[16], root[16];
	struct section section[SHARD_SECTIONS_MAX];
	struct shard_schema schema; /* last: a dataset keeps one schema for all its shards, and cuts this off */
};

/* The section of that type and group, or NULL. */
const struct section *pages_find(const struct pages *p, uint32_t type, uint32_t group);

/* Where the next section starts behind one that ends at `end`. */
uint64_t pages_section_start(uint32_t section_align_log2, uint64_t end);

/* I1: may a shard have this size? */
int pages_check_size(uint64_t file_bytes, struct shard_error *err);

/*
 * I2 to I42 but for I11.  `header_hash` and `footer_hash` are H128 of all but the last 16 bytes of
 * each page, as the caller computed them: this layer knows no hash function.
 */
int pages_decode(struct pages *out, const struct disk_header *header, const uint8_t header_hash[16],
		 const struct disk_footer *footer, const uint8_t footer_hash[16], uint64_t file_bytes,
		 struct shard_error *err);

/* I11, for verify. */
int pages_check_compat(const struct pages *p, struct shard_error *err);

/*
 * The hash fields are left zero: the caller computes them, and puts the header's into the struct
 * before the footer.
 */
void pages_encode_header(struct disk_header *out, const struct pages *p);
void pages_encode_footer(struct disk_footer *out, const struct pages *p);

/* ---- tables.c: chunks, keys, statistics, inputs left out, provenance ---- */

/* A chunk, checked (I45, but for the hash): where it is and how it decodes. */
struct chunk {
	uint64_t offset, stored_hash;
	uint32_t stored_bytes, padded_bytes;
	uint32_t decoded_bytes;
	uint32_t is_lz4;
};
/*
 * Chunk `idx` of group `group`; `schema` is the shard's, which `p` need not hold.  `entry` is its
 * row of CIDX; `previous` the row before it, NULL for the first.  The last chunk must end where
 * DATA ends.
 */
int chunk_decode(const struct pages *p, const struct shard_schema *schema, uint32_t group, uint64_t idx,
		 const struct disk_chunk *entry, const struct disk_chunk *previous, struct chunk *out,
		 struct shard_error *err);

/*
 * I51 for the whole table: `koff` has record_count + 1 items, `kblb_bytes` is the length of KBLB.
 */
int keys_check_offsets(const uint8_t *koff, uint64_t record_count, uint64_t kblb_bytes, struct shard_error *err);
/*
 * One key, re-checked because nothing may be read out of bounds even if the table was never verified.
 */
int key_find(const uint8_t *koff, uint64_t idx, uint64_t kblb_bytes, uint64_t *offset, uint32_t *bytes,
	     struct shard_error *err);
/* I52. */
int keys_check_text(const uint8_t *koff, const uint8_t *kblb, uint64_t kblb_bytes, uint64_t record_count,
		    struct shard_error *err);

/* I53, I54. */
int stat_check(const struct shard_schema *s, const uint8_t *stat, uint64_t bytes, uint64_t blocks, uint64_t records,
	       struct shard_error *err);
/* The items of a block in a checked STAT, or NULL; `items` says how many. */
const uint8_t *stat_find(const uint8_t *stat, uint64_t bytes, uint32_t kind, uint32_t field, uint64_t *items);

/* I55, I56. */
int miss_check(const uint8_t *miss, uint64_t items, uint64_t record_count, uint64_t planned_records,
	       struct shard_error *err);
int provenance_check(const uint8_t *text, uint64_t bytes, struct shard_error *err);

/* ---- tokens.c: a line of a manifest, word by word ---- */

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

/* ---- manifest.c: the contents of a dataset.manifest: format/SHARD.md, part 3 ---- */

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

/* M1, M2. */
int manifest_find_end(const char *text, size_t bytes, struct manifest_end *out, struct shard_error *err);
/* M3: `hash` is H128 of the text up to hash_at. */
int manifest_check_hash(const struct manifest_end *end, const uint8_t hash[16], struct shard_error *err);
/* M4 to M14, on the text up to end_at. */
int manifest_parse(const char *text, size_t end_at, struct manifest *out, const struct manifest_sink *sink,
		   struct shard_error *err);

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

/* ---- copy.c: copies of records to where a GPU will fetch them ---- */

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

#endif
