/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_tokens.c - `shardpack tokens`: streams of tokens, cut into sequences
 *
 * A record has sequence + 1 tokens: the first `sequence` are what a model sees, the last `sequence`
 * what it is to predict.  So neighbours share one token, and every token but a file's first is
 * predicted once; --overlap makes them share more.  No sequence spans two files, or with
 * --documents two documents.  With --pack a record holds many documents, each whole if it can be;
 * see plan/token_pack.c.
 */
#include "tools/shardpack/sources/sources.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shard_pack.h"
#include "tools/common/human.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/progress.h"
#include "tools/shardpack/images/images.h"
#include "tools/shardpack/input/input.h"
#include "tools/shardpack/parse/parse.h"
#include "tools/shardpack/plan/plan.h"
#include "tools/shardpack/scan/scan.h"

/* Of a file that does not say the type of its tokens itself. */
struct headless_tokens {
	uint32_t dtype;
	uint32_t index_file; /* of which the documents are to be taken; PLAN_NO_FILE: none */
	bool has_index;
	uint64_t document_count; /* by the index */
};

struct stream {
	const struct request *r;
	uint64_t window, step; /* tokens */
	uint64_t left_out;     /* tokens that no sequence has */
	uint64_t split_files;  /* files that --documents cuts into documents */
	uint64_t document_count;
	uint64_t record_count;
	uint32_t field;
	bool has_field;
	struct progress progress;
	/* with --pack */
	uint32_t packed_dtype; /* of the field: the widest that a file needs */
	uint64_t file_count;
	uint64_t indexed_count;	  /* files that have an index */
	uint64_t index_documents; /* by these */
};

/* Tokens of one file. */
struct token_input {
	uint32_t file, dtype, index_file;
	uint32_t stored; /* dtype of the field */
	bool swap;
	uint64_t offset, count;
	const char *where, *path;
	bool has_head;
	struct headless_tokens headless; /* without one */
};

static int settle(const struct request *r)
{
	if (r->o->pack && cli_given(r->args, "overlap"))
		return cli_misuse(r->args, "--overlap and --pack exclude each other: packed sequences share no tokens");
	if (r->o->position_ids && !r->o->pack)
		return cli_misuse(r->args, "--position-ids needs --pack");
	if (r->o->max_documents && !r->o->pack)
		return cli_misuse(r->args, "--max-documents needs --pack");
	if (r->o->pack && r->o->sequence >= TOKEN_PACK_ROOM_MAX)
		return cli_misuse(r->args, "--seq-len %" PRIu64 ": the limit with --pack is %u", r->o->sequence,
				  TOKEN_PACK_ROOM_MAX - 1);
	if (r->o->overlap >= r->o->sequence)
		return cli_misuse(r->args, "--overlap %" PRIu64 " must be less than --seq-len %" PRIu64, r->o->overlap,
				  r->o->sequence);
	return EXIT_DONE;
}

/*
 * ---- the type of tokens in a file that does not say it itself ----
 *
 * It is that of --dtype, or that of an index of Megatron-LM beside the file, or u16.  Numbers that
 * look otherwise than the default are refused.  If the user gave --dtype, numbers that look
 * otherwise are only a warning; an index of another width is refused.  Without --dtype, or with
 * --pack, an index also says where documents begin, unless --documents does.
 */

#define PIECE_BYTES 65536 /* a multiple of 8 */
#define PIECES_MAX  64	  /* spread over the file: 4 MiB of a large one, all of a small one */

/* The enum shard_dtype that --dtype says. */
static uint32_t asked_dtype(const struct request *r)
{
	static const uint32_t dtypes[] = {SHARD_U8, SHARD_U16, SHARD_U32};

	return dtypes[r->o->token_dtype];
}

/* ---- an index beside the file ---- */

/*
 * The index of "a/x.bin" and "a/x.bin.gz" is "a/x.idx".  Its name into `name` if there is one, else
 * "".  Anything else that has that ending is not one, unless it begins as an index does.
 */
static int find_index(const struct request *r, const char *path, char name[PLAN_PATH_BYTES_MAX],
		      struct megatron_index *out)
{
	uint8_t head[MEGATRON_INDEX_HEAD_BYTES];
	char why[256];
	struct stat st = {0};
	size_t stem = strlen(path);
	ssize_t have;
	int fd, error;

	name[0] = '\0';
	stem -= file_name_has_extension(path, ".gz") ? 3 : file_name_has_extension(path, ".zst") ? 4 : 0;
	if (stem < 4 || memcmp(path + stem - 4, ".bin", 4) || stem >= PLAN_PATH_BYTES_MAX)
		return EXIT_DONE;
	snprintf(name, PLAN_PATH_BYTES_MAX, "%.*s.idx", (int)(stem - 4), path);
	fd = openat(r->root->fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	have = fd < 0 || fstat(fd, &st) != 0 ? -1 : pread(fd, head, sizeof(head), 0);
	error = errno;
	if (fd >= 0)
		close(fd);
	if (have < 0 && error != ENOENT && error != EISDIR)
		return fail(EXIT_IO, "%s/%s: is it an index of Megatron-LM? %s", r->root->name, name, strerror(error));
	if (have >= 0 && !megatron_index_is(head, (size_t)have) && !cli_given(r->args, "dtype")) {
		if (have >= 6 && !memcmp(head, "TNTIDX", 6))
			return fail(EXIT_UNSUPPORTED,
				    "%s/%s: an index of the Megatron-LM of before 2020, which is not read; make the "
				    "dataset again with preprocess_data.py, or type --dtype for one stream of tokens",
				    r->root->name, name);
		scan_warn(r->scan, "%s/%s: is not an index of Megatron-LM, so nothing of it is read", r->root->name,
			  name);
	}
	if (have < 0 || !megatron_index_is(head, (size_t)have))
		name[0] = '\0';
	else if (!megatron_index_parse(head, (size_t)have, (uint64_t)st.st_size, out, why, sizeof(why)))
		return fail(EXIT_BAD, "%s/%s: %s", r->root->name, name, why);
	return EXIT_DONE;
}

/* --dtype must agree.  With it the tokens are one stream, unless something asks for documents. */
static int judge_index(const struct request *r, const char *where, const char *name, const struct megatron_index *index)
{
	uint32_t asked = asked_dtype(r);
	char count[HUMAN_CHARS];

	if (!cli_given(r->args, "dtype"))
		return EXIT_DONE;
	if (shard_dtype_bytes(asked) != shard_dtype_bytes(index->dtype))
		return fail(EXIT_BAD,
			    "%s: its tokens are %s, as %s/%s says, Megatron-LM's index, but --dtype says %s; leave "
			    "--dtype out",
			    where, shard_name(SHARD_NAME_DTYPE, index->dtype), r->root->name, name,
			    shard_name(SHARD_NAME_DTYPE, asked));
	if (!cli_given(r->args, "documents") && !r->o->pack)
		scan_warn(r->scan,
			  "%s: packed as one stream: the %s document%s in %s/%s, Megatron-LM's index, are not kept "
			  "apart; leave --dtype out to keep them apart",
			  where, human_count(count, index->document_count), index->document_count == 1 ? "" : "s",
			  r->root->name, name);
	return EXIT_DONE;
}

/* ---- what the numbers look like ---- */

/* What was not said, and looks wrong. */
static int refuse_width(const char *where, const struct token_look *k)
{
#define ELSE_16 ", or --dtype u16 if they have 16"
#define SWAP(type)                                                                          \
	"save them with numpy.save(\"tokens.npy\", numpy.fromfile(\"tokens.bin\", \">" type \
	"\")), or type --dtype u16 if they "                                                \
	"are as they should be"
	switch (k->width) {
	case TOKEN_WIDTH_TEXT:
		return fail(EXIT_BAD,
			    "%s: its bytes are text, so its tokens seem to have 8 bits; type --dtype u8 for a token of "
			    "each byte" ELSE_16,
			    where);
	case TOKEN_WIDTH_8:
		return fail(EXIT_BAD,
			    "%s: bytes in even and odd places are alike, so its tokens seem to have 8 bits; type "
			    "--dtype u8" ELSE_16,
			    where);
	case TOKEN_WIDTH_16_BE:
		return fail(
			EXIT_BAD,
			"%s: nearly all tokens are at most %u if their bytes are swapped, and %u if not, so they seem "
			"to be big-endian; " SWAP("u2"),
			where, k->most_swapped, k->most);
	case TOKEN_WIDTH_32_BE:
		return fail(
			EXIT_BAD,
			"%s: every second 16-bit number is below 16 if its bytes are swapped, so its tokens seem to "
			"be big-endian, of 32 bits; " SWAP("u4"),
			where);
	case TOKEN_WIDTH_64_BE:
		return fail(
			EXIT_BAD,
			"%s: three of four 16-bit numbers hardly change, so its tokens seem to be big-endian, of 64 "
			"bits; " SWAP("i8"),
			where);
	case TOKEN_WIDTH_FLOATS:
		return fail(
			EXIT_BAD,
			"%s: its numbers seem to be floats of %u bits, which are not tokens; pack them with `shardpack "
			"raw` or `shardpack array`, or type --dtype u16 if they are tokens",
			where, k->bits);
	case TOKEN_WIDTH_NOISE:
		return fail(
			EXIT_BAD,
			"%s: all 16-bit numbers are as frequent, as in a file that is compressed, so they do not seem "
			"to be tokens; unpack it, type --dtype u8 if they have 8 bits" ELSE_16,
			where);
	case TOKEN_WIDTH_NEGATIVE:
		return fail(
			EXIT_BAD,
			"%s: %u%% of its numbers are %u, which is %d if they are signed; tokens are not negative, so "
			"leave these out, or type --dtype u16 if they are tokens",
			where, k->percent, k->number, (int)k->number - 65536);
	case TOKEN_WIDTH_64:
		return fail(EXIT_BAD,
			    "%s: three of four 16-bit numbers hardly change, so its tokens seem to have 64 bits; save "
			    "them as .npy, or type --dtype u16 if they have 16",
			    where);
	case TOKEN_WIDTH_REPEAT:
		return fail(EXIT_BAD,
			    "%s: %u%% of every second 16-bit number are %u, so its tokens seem to have 32 bits; type "
			    "--dtype u32" ELSE_16,
			    where, k->percent, k->number);
	default:
		return fail(
			EXIT_BAD,
			"%s: every second 16-bit number is below 16 or is 65535, so its tokens seem to have 32 bits; "
			"type --dtype u32" ELSE_16,
			where);
	}
}

/* What was said, but looks wrong. */
static void warn_of_width(const struct request *r, const char *where, const struct token_look *k)
{
	static const unsigned bits_of[] = {
		[TOKEN_WIDTH_16] = 16,	    [TOKEN_WIDTH_32] = 32,    [TOKEN_WIDTH_REPEAT] = 32,
		[TOKEN_WIDTH_64] = 64,	    [TOKEN_WIDTH_TEXT] = 8,   [TOKEN_WIDTH_8] = 8,
		[TOKEN_WIDTH_16_BE] = 16,   [TOKEN_WIDTH_32_BE] = 32, [TOKEN_WIDTH_64_BE] = 64,
		[TOKEN_WIDTH_NEGATIVE] = 16};
	uint32_t dtype = asked_dtype(r);
	const char *name = shard_name(SHARD_NAME_DTYPE, dtype);
	unsigned asked = 8 * (unsigned)shard_dtype_bytes(dtype), bits = bits_of[k->width];

	if (k->width == TOKEN_WIDTH_FLOATS)
		scan_warn(r->scan, "%s: --dtype %s, but its numbers seem to be floats of %u bits; look at a record",
			  where, name, k->bits);
	else if (k->width == TOKEN_WIDTH_NOISE)
		bits = 0;
	else if (k->width == TOKEN_WIDTH_16_BE || k->width == TOKEN_WIDTH_32_BE || k->width == TOKEN_WIDTH_64_BE)
		scan_warn(r->scan, "%s: --dtype %s, but its tokens seem to be big-endian, of %u bits; look at a record",
			  where, name, bits);
	else if (bits && bits != asked && !(asked == 8 && bits != 64 && k->alike))
		scan_warn(r->scan, "%s: --dtype %s, but its tokens seem to have %u bits; look at a record", where, name,
			  bits);
	else if (k->width == TOKEN_WIDTH_NEGATIVE)
		scan_warn(
			r->scan,
			"%s: --dtype %s: %u%% of its numbers are %u, which is %d if they are signed; look at a record",
			where, name, k->percent, k->number, (int)k->number - 65536);
	if (asked == 32 && k->negative32 && bits != 16)
		scan_warn(r->scan,
			  "%s: --dtype %s, but some of its numbers are above 2^32 - 65536, so negative if they are "
			  "signed; look at a record",
			  where, name);
}

static int judge_width(const struct request *r, uint32_t file, const char *where)
{
	struct token_census *c = xcalloc(1, sizeof(*c));
	struct token_look look = {0};
	uint64_t bytes = source_file_bytes(r->source_files, file), pieces = (bytes + PIECE_BYTES - 1) / PIECE_BYTES;
	uint64_t looked = pieces < PIECES_MAX ? pieces : PIECES_MAX;
	uint8_t *piece = xmalloc(PIECE_BYTES, 1);
	int rc = EXIT_DONE;

	for (uint64_t i = 0; rc == EXIT_DONE && i < looked; i++) {
		uint64_t at = (looked > 1 ? i * (pieces - 1) / (looked - 1) : 0) * PIECE_BYTES;
		size_t have = bytes - at < PIECE_BYTES ? (size_t)(bytes - at) : PIECE_BYTES;

		rc = source_file_get(r->source_files, file, at, piece, have);
		if (rc == EXIT_DONE)
			token_census_add(c, piece, have);
	}
	free(piece);
	if (rc == EXIT_DONE)
		rc = token_census_judge(c, &look) ? EXIT_DONE : fail(EXIT_IO, "out of memory");
	free(c);
	if (rc != EXIT_DONE || look.width == TOKEN_WIDTH_ANY)
		return rc;
	if (cli_given(r->args, "dtype"))
		warn_of_width(r, where, &look);
	else if (look.width != TOKEN_WIDTH_16)
		return refuse_width(where, &look);
	return EXIT_DONE;
}

/* Files of another kind that have lost their ending.  With --dtype their bytes are tokens. */
static int judge_begin(const struct request *r, const char *where, const uint8_t *head, size_t have)
{
	const struct token_file_other *other = token_file_other(head, have);

	if (!other)
		return EXIT_DONE;
	if (!cli_given(r->args, "dtype"))
		return fail(EXIT_BAD, "%s: begins as %s does; %s, or type --dtype u16 if its bytes are tokens", where,
			    other->what, other->remedy);
	scan_warn(r->scan, "%s: --dtype %s, but it begins as %s does; look at a record", where,
		  shard_name(SHARD_NAME_DTYPE, asked_dtype(r)), other->what);
	return EXIT_DONE;
}

/*
 * The file at `path` below the root, which is `file` of the plan and `where` in messages, and which
 * begins with `head`.  Returns the exit code.
 */
static int look_at_headless(const struct request *r, const char *path, uint32_t file, const char *where,
			    const uint8_t *head, size_t have, struct headless_tokens *out)
{
	struct megatron_index index = {0};
	char name[PLAN_PATH_BYTES_MAX];
	bool asked = cli_given(r->args, "dtype");
	int rc = find_index(r, path, name, &index);

	*out = (struct headless_tokens){.dtype = asked_dtype(r), .index_file = PLAN_NO_FILE};
	if (rc == EXIT_DONE && !name[0])
		rc = judge_begin(r, where, head, have);
	if (rc != EXIT_DONE || !name[0])
		return rc == EXIT_DONE ? judge_width(r, file, where) : rc;
	out->has_index = true;
	out->document_count = index.document_count;
	out->dtype = index.dtype;
	rc = judge_index(r, where, name, &index);
	if (rc != EXIT_DONE || (asked && !r->o->pack))
		return rc == EXIT_DONE ? judge_width(r, file, where) : rc;
	return cli_given(r->args, "documents") ? EXIT_DONE
					       : source_files_add(r->source_files, r->plan, name, &out->index_file);
}

/* ---- what a file is ---- */

static int open_npy(const struct request *r, const uint8_t *head, size_t have, struct token_input *p)
{
	struct npy a;
	char why[256];

	if (!npy_parse(head, have, &a, why, sizeof(why)))
		return fail(EXIT_BAD, "%s: %s", p->where, why);
	if (a.ndim != 1)
		return fail(EXIT_BAD, "%s: %" PRIu32 " axes; tokens must be an array of 1 axis", p->where, a.ndim);
	if (a.dtype < SHARD_U8 || a.dtype > SHARD_I64)
		return fail(EXIT_BAD, "%s: tokens of type %s; must be integers", p->where,
			    shard_name(SHARD_NAME_DTYPE, a.dtype));
	if (a.data_offset + a.data_bytes != source_file_bytes(r->source_files, p->file))
		return fail(EXIT_BAD,
			    "%s: has %" PRIu64 " bytes, but must have a head of %" PRIu64 " and data of "
			    "%" PRIu64,
			    p->where, source_file_bytes(r->source_files, p->file), a.data_offset, a.data_bytes);
	p->dtype = a.dtype;
	p->swap = a.swap;
	p->has_head = true;
	p->offset = a.data_offset;
	p->count = a.shape[0];
	return EXIT_DONE;
}

/* Any bytes can be tokens, so a file that is something else is told by its name alone. */
static const char *other_kind(const char *name)
{
	static const char *const ends[][2] = {{".npz", "an archive"}, {".zip", "an archive"}, {".tar", "an archive"},
					      {".tgz", "an archive"}, {".txt", "text"},	      {".json", "text"},
					      {".jsonl", "text"},     {".csv", "text"},	      {".parquet", "a table"},
					      {".arrow", "a table"},  {".pt", "pickled"},     {".pkl", "pickled"},
					      {".jpg", "an image"},   {".png", "an image"}};
	static const char *const packed[] = {".gz", ".zst", ".bz2", ".xz"};
	size_t bytes = strlen(name);

	for (size_t i = 0; i < sizeof(packed) / sizeof(packed[0]); i++)
		if (bytes > strlen(packed[i]) && !strcasecmp(name + bytes - strlen(packed[i]), packed[i])) {
			bytes -= strlen(packed[i]);
			break;
		}
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		size_t n = strlen(ends[i][0]);

		if (bytes > n && !strncasecmp(name + bytes - n, ends[i][0], n))
			return ends[i][1];
	}
	return NULL;
}

/* A file with a head of llm.c, or with none. */
static int open_bin(const struct request *r, const uint8_t *head, size_t have, struct token_input *p)
{
	const char *kind = other_kind(p->where);
	struct token_file t;
	char why[256];
	uint64_t bytes = source_file_bytes(r->source_files, p->file), item;
	int rc;

	if (kind)
		return fail(EXIT_BAD,
			    "%s: is %s by its name; must be a .bin or .npy file of token numbers; if it is "
			    "one, rename it",
			    p->where, kind);
	if (!token_file_parse(head, have < TOKEN_FILE_HEAD_BYTES ? have : TOKEN_FILE_HEAD_BYTES, &t, why, sizeof(why)))
		return fail(EXIT_BAD, "%s: %s", p->where, why);
	if (megatron_index_is(head, have))
		return fail(EXIT_BAD, "%s: is an index of Megatron-LM; name the .bin with the tokens instead",
			    p->where);
	p->has_head = t.dtype;
	rc = p->has_head ? EXIT_DONE : look_at_headless(r, p->path, p->file, p->where, head, have, &p->headless);
	if (rc != EXIT_DONE)
		return rc;
	p->dtype = p->has_head ? t.dtype : p->headless.dtype;
	p->index_file = p->has_head ? PLAN_NO_FILE : p->headless.index_file;
	p->offset = t.data_offset;
	item = shard_dtype_bytes(p->dtype);
	p->count = (bytes - t.data_offset) / item;
	if (t.dtype && bytes != t.data_offset + t.token_count * item)
		return fail(EXIT_BAD,
			    "%s: has %" PRIu64 " bytes, but must have a head of %d bytes and %" PRIu64 " tokens of "
			    "%" PRIu64 " bytes each; it is %s",
			    p->where, bytes, TOKEN_FILE_HEAD_BYTES, t.token_count, item,
			    bytes < t.data_offset + t.token_count * item ? "cut short" : "longer than it should be");
	if (bytes % item)
		return fail(EXIT_BAD, "%s: %" PRIu64 " bytes are not a whole number of %s; check --dtype", p->where,
			    bytes, shard_name(SHARD_NAME_DTYPE, p->dtype));
	return EXIT_DONE;
}

static struct token_stream stream_of(const struct token_input *p)
{
	return (struct token_stream){.offset = p->offset,
				     .count = p->count,
				     .file = p->file,
				     .index_file = p->index_file,
				     .dtype = (uint8_t)p->dtype,
				     .swap = p->swap && shard_dtype_bytes(p->dtype) > 1};
}

/*
 * The type of the field, and whether each token fits it: no path leaves a negative one.  The tokens
 * of an .npy and of llm.c keep their type, as do those of --dtype.  Those of Megatron-LM, which has
 * them in any integers, become u16, or u32 if they are wider than that; so do all that are packed.
 */
static int settle_stored(struct stream *s, struct token_input *p)
{
	uint64_t item = shard_dtype_bytes(p->dtype), most;
	struct token_stream t = stream_of(p);
	bool keeps = !s->r->o->pack && (p->has_head || !p->headless.has_index);
	bool fits = p->dtype == SHARD_U8 || p->dtype == SHARD_U16 || p->dtype == SHARD_U32;

	p->stored = p->dtype;
	if (keeps) {
		most = UINT64_MAX >> (65 - 8 * item); /* of u64 as well: trainers have signed numbers */
		return fits ? EXIT_DONE : documents_check_values(s->r->source_files, &t, most, &s->progress);
	}
	p->stored = item <= 2 ? SHARD_U16 : SHARD_U32;
	most = item <= 2 ? UINT16_MAX : UINT32_MAX;
	if (item == 1 && cli_given(s->r->args, "dtype")) { /* it says u8, or check_asked() would have refused it */
		p->stored = SHARD_U8;
		most = UINT8_MAX;
	}
	/* None is negative, so the bits are those of an unsigned type. */
	p->dtype = item == 1 ? SHARD_U8 : item == 2 ? SHARD_U16 : item == 4 ? SHARD_U32 : SHARD_U64;
	return fits ? EXIT_DONE : documents_check_values(s->r->source_files, &t, most, &s->progress);
}

/* Do --dtype and --documents fit the type of the tokens? */
static int check_asked(const struct request *r, const struct token_input *p)
{
	uint32_t asked = asked_dtype(r);
	bool is_signed = integer_is_signed(p->dtype) || p->dtype == SHARD_U64;
	uint64_t most = UINT64_MAX >> (64 + is_signed - 8 * shard_dtype_bytes(p->dtype));
	const char *name = shard_name(SHARD_NAME_DTYPE, p->dtype);

	/* --dtype is for files without a head: it converts nothing */
	if (p->has_head && cli_given(r->args, "dtype") && p->dtype != asked)
		return fail(EXIT_BAD, "%s: its tokens are %s, as its head says, but --dtype says %s; leave --dtype out",
			    p->where, name, shard_name(SHARD_NAME_DTYPE, asked));
	/* a token that no document can end with is a mistake */
	if (cli_given(r->args, "documents") && r->o->end_of_text > most)
		return fail(EXIT_USAGE, "%s: --documents %" PRIu64 " does not fit %s, so no document would end",
			    p->where, r->o->end_of_text, name);
	return EXIT_DONE;
}

/* ---- sequences ---- */

static int add_windows(struct stream *s, const struct token_input *p, uint64_t first, uint64_t tokens, bool keep_short)
{
	const struct request *r = s->r;
	uint64_t item = shard_dtype_bytes(p->dtype),
		 whole = tokens >= s->window ? (tokens - s->window) / s->step + 1 : 0;
	uint64_t used = whole ? (whole - 1) * s->step + s->window : 0, end = used;
	struct plan_slice slice = {.field = (uint16_t)s->field,
				   .first = s->record_count,
				   .count = whole,
				   .file = p->file,
				   .offset = p->offset + first * item,
				   .stride = s->step * item,
				   .dtype = (uint8_t)p->dtype,
				   .swap = p->swap && item > 1};

	/* What is left of a document is one more sequence, if it has something to predict. */
	if (keep_short && tokens > used && tokens - whole * s->step >= 2) {
		slice.count++;
		end = tokens;
	}
	s->left_out += tokens - end;
	if (!slice.count)
		return EXIT_DONE;
	slice.bytes = end * item;
	s->record_count += slice.count;
	return plan_add_slice(r->plan, &slice);
}

struct document_cut {
	struct stream *s;
	const struct token_input *p;
	uint64_t documents;
};

static int take_document(void *context, uint64_t begin, uint64_t count)
{
	struct document_cut *c = context;

	c->documents++;
	return add_windows(c->s, c->p, begin, count, true);
}

static int add_documents(struct stream *s, const struct token_input *p)
{
	struct document_cut c = {.s = s, .p = p};
	struct token_stream t = stream_of(p);
	int rc = documents_each(s->r->source_files, &t, s->r->o->end_of_text, take_document, &c, &s->progress);

	s->split_files += c.documents > 0;
	s->document_count += c.documents;
	if (rc == EXIT_DONE && p->headless.has_index && c.documents != p->headless.document_count)
		rc = fail(EXIT_BAD,
			  "%s: --documents %" PRIu64 " cuts it into %" PRIu64
			  ", but Megatron-LM's index beside it has %" PRIu64
			  " documents; leave --documents out, or rename the index to go by the token",
			  p->where, s->r->o->end_of_text, c.documents, p->headless.document_count);
	return rc;
}

/* Are its documents kept apart? */
static bool has_documents(const struct stream *s, const struct token_input *p)
{
	return cli_given(s->r->args, "documents") || p->index_file != PLAN_NO_FILE;
}

/* The field is that of the first file; others must have the same type. */
static int settle_field(struct stream *s, const struct token_input *p)
{
	struct recipe *recipe = s->r->recipe;
	bool ragged = has_documents(s, p);
	int rc = fixed_fields_enter(recipe, p->where, "tokens", p->stored, &s->window, 1, &s->field);

	if (rc == EXIT_DONE && s->has_field && ragged != (recipe->field[s->field].kind == SHARD_RAGGED))
		rc = fail(EXIT_BAD,
			  "%s: has %s Megatron-LM index beside it, but the files before have %s; pack them apart",
			  p->where, ragged ? "a" : "no", ragged ? "none" : "one");
	if (rc != EXIT_DONE || s->has_field)
		return rc;
	s->has_field = true;
	recipe->field[s->field].semantic = SHARD_TOKENS;
	recipe->field[s->field].layout = SHARD_LAYOUT_TOKENS;
	if (!ragged)
		return EXIT_DONE;
	recipe->field[s->field].kind = SHARD_RAGGED;
	recipe->field[s->field].ragged_axes = 1;
	recipe->field[s->field].length_field = s->field + 1;
	recipe->field[recipe->field_count++] = (struct shard_field){
		.name = "length", .dtype = SHARD_U32, .semantic = SHARD_LENGTH, .ndim = 1, .shape = {1}};
	return EXIT_DONE;
}

static int add_sequences(struct stream *s, const struct token_input *p)
{
	uint64_t before = s->record_count;
	int rc = settle_field(s, p);

	if (rc == EXIT_DONE)
		rc = has_documents(s, p) ? add_documents(s, p) : add_windows(s, p, 0, p->count, false);
	if (rc == EXIT_DONE && s->record_count == before)
		scan_barren(s->r->scan, p->where);
	return rc;
}

/* ---- --pack: documents become windows ---- */

static int add_packed(struct stream *s, const struct token_input *p)
{
	struct plan *plan = s->r->plan;
	struct token_stream t = stream_of(p);

	if (!has_documents(s, p))
		return fail(EXIT_BAD,
			    "%s: --pack must know where documents end: type --documents ID, with the token that ends "
			    "each, or give the .bin of Megatron-LM with its .idx beside it",
			    p->where);
	if (!t.count)
		scan_barren(s->r->scan, p->where);
	s->packed_dtype = p->stored > s->packed_dtype ? p->stored : s->packed_dtype;
	s->indexed_count += p->headless.has_index;
	s->index_documents += p->headless.document_count;
	s->file_count++;
	if (!plan->pack)
		plan->pack = xcalloc(1, sizeof(*plan->pack));
	if (t.count)
		token_pack_add(plan->pack, &t);
	return EXIT_DONE;
}

/* All files are there: pack their documents, and say what became of them. */
static int end_packed(struct stream *s)
{
	const struct request *r = s->r;
	struct token_pack *p = r->plan->pack;
	uint32_t room = (uint32_t)s->window;
	struct token_padding padding;
	char documents[HUMAN_CHARS], cut[HUMAN_CHARS], tokens[HUMAN_CHARS], windows[HUMAN_CHARS], lone[HUMAN_CHARS];
	int rc;

	p->by_token = cli_given(r->args, "documents");
	p->end_of_text = p->by_token ? r->o->end_of_text : 0;
	p->width = (uint32_t)r->o->max_documents;
	rc = p->stream_count ? token_windows_make(r->source_files, r->plan, room, &s->progress) : EXIT_DONE;
	progress_abandon(&s->progress);
	if (rc != EXIT_DONE)
		return rc;
	if (p->by_token && s->indexed_count == s->file_count && s->index_documents != p->document_count)
		return fail(EXIT_BAD,
			    "--documents %" PRIu64 " cuts the files into %" PRIu64
			    ", but Megatron-LM's indices beside them have %" PRIu64
			    " documents; leave --documents out, or rename the indices to go by the token",
			    p->end_of_text, p->document_count, s->index_documents);
	if (!p->window_count)
		return fail(EXIT_BAD, "%s: no document of two tokens or more in %" PRIu64 " file%s", r->root->name,
			    r->root->item_count, r->root->item_count == 1 ? "" : "s");
	token_pack_fields(p, r->recipe, s->packed_dtype, room, r->o->position_ids);
	padding = token_pack_padding(p, room);
	note("packed %s document%s (%s cut) of %s tokens into %s record%s of %" PRIu32 ", at most %" PRIu32
	     " in one; %.3f %% of them is padding (%" PRIu64 " tokens)",
	     human_count(documents, p->document_count), p->document_count == 1 ? "" : "s",
	     human_count(cut, p->cut_count), human_count(tokens, p->token_count), human_count(windows, p->window_count),
	     p->window_count == 1 ? "" : "s", room, p->piece_max, padding.percent, padding.padding);
	if (p->lone_count)
		scan_warn(r->scan, "%s document%s of one token %s in no record: there is nothing to predict",
			  human_count(lone, p->lone_count), p->lone_count == 1 ? "" : "s",
			  p->lone_count == 1 ? "is" : "are");
	if (p->empty_count)
		scan_warn(r->scan, "%s document%s no tokens", human_count(lone, p->empty_count),
			  p->empty_count == 1 ? " has" : "s have");
	return EXIT_DONE;
}

/* ---- all files ---- */

static int add_file(const struct request *r, void *context, const char *path)
{
	struct stream *s = context;
	uint8_t *head = xmalloc(NPY_HEAD_BYTES_MAX, 1);
	struct token_input p = {.path = path, .index_file = PLAN_NO_FILE};
	uint64_t have;
	char *where = NULL;
	int rc = input_file_open(r, path, &p.file);

	if (rc == EXIT_DONE)
		where = source_file_name(r->source_files, p.file);
	p.where = where;
	have = rc == EXIT_DONE ? source_file_bytes(r->source_files, p.file) : 0;
	have = have < NPY_HEAD_BYTES_MAX ? have : NPY_HEAD_BYTES_MAX;
	if (rc == EXIT_DONE)
		rc = source_file_get(r->source_files, p.file, 0, head, (size_t)have);
	if (rc == EXIT_DONE && have >= NPY_MAGIC_BYTES && !memcmp(head, NPY_MAGIC, NPY_MAGIC_BYTES))
		rc = open_npy(r, head, (size_t)have, &p);
	else if (rc == EXIT_DONE)
		rc = open_bin(r, head, (size_t)have, &p);
	if (rc == EXIT_DONE)
		rc = check_asked(r, &p);
	if (rc == EXIT_DONE)
		rc = settle_stored(s, &p);
	if (rc == EXIT_DONE)
		rc = r->o->pack ? add_packed(s, &p) : add_sequences(s, &p);
	free(head);
	free(where);
	return rc;
}

/* A token that is not that of the tokenizer would let all documents run into each other. */
static void warn_of_one_document(const struct request *r, uint64_t documents, uint64_t files)
{
	if (documents && documents == files)
		scan_warn(r->scan,
			  "--documents %" PRIu64 ": this token ends no document within a file, so each file is one; if "
			  "that is wrong, give the tokenizer's own token",
			  r->o->end_of_text);
}

/* What is in no sequence. */
static int end(const struct request *r, void *context, struct classes *out)
{
	struct stream *s = context;
	char what[64], count[HUMAN_CHARS];

	(void)out;
	if (r->o->pack) {
		int rc = end_packed(s);

		if (rc == EXIT_DONE && cli_given(r->args, "documents"))
			warn_of_one_document(r, r->plan->pack->document_count, s->file_count);
		return rc;
	}
	progress_abandon(&s->progress);
	if (!s->record_count) {
		snprintf(what, sizeof(what), "sequence of %" PRIu64 " tokens", s->window);
		return scan_refuse_barren(r->scan, r->root->name, what, "; give a smaller --seq-len");
	}
	if (cli_given(r->args, "documents"))
		warn_of_one_document(r, s->document_count, s->split_files);
	if (s->left_out)
		scan_warn(r->scan, "%s token%s in no record: a sequence is not filled%s",
			  human_count(count, s->left_out), s->left_out == 1 ? " is" : "s are",
			  r->recipe->field[s->field].kind == SHARD_RAGGED ? ", or a document has one token"
									  : " at the end of their file");
	return EXIT_DONE;
}

static int scan(const struct request *r)
{
	static const struct fixed_source steps = {.add_file = add_file, .end = end};
	struct stream s = {.r = r, .window = r->o->sequence + 1, .step = r->o->sequence - r->o->overlap};
	int rc;

	progress_start(&s.progress, "looking for documents", "tokens", 0);
	rc = fixed_source_scan(r, &steps, &s);
	progress_abandon(&s.progress);
	return rc;
}

#define AT(member) .offset = offsetof(struct pack_options, member)

/* clang-format off */
static const struct cli_option positionals[] = {
	{.name = "FILE", .kind = CLI_FILE, .required = true, .many = true, AT(sources),
	 .help = "files of tokens: .bin of nanoGPT, llm.c or Megatron-LM; .npy; or '-' for a list of files on stdin"},
	{0}};

static const struct cli_option options[] = {
	{.name = "seq-len", .kind = CLI_U64, .required = true, AT(sequence), .arg_name = "N", .min = 1,
	 .max = UINT64_C(1) << 30, .topic = "tokens", .often = true,
	 .help = "number of tokens that a model sees; a record has one more"},
	{.name = "overlap", .kind = CLI_U64, AT(overlap), .arg_name = "N", .default_value = "0",
	 .topic = "tokens", .often = true, .help = "number of tokens, beyond one, that neighbouring records share"},
	{.name = "documents", .kind = CLI_U64, AT(end_of_text), .arg_name = "ID", .max = UINT64_C(1) << 62,
	 .topic = "tokens", .often = true, .help = "keep documents apart; token ID ends a document"},
	{.name = "pack", .kind = CLI_FLAG, AT(pack), .topic = "tokens", .often = true,
	 .help = "put several documents into a record, whole ones if they fit"},
	{.name = "position-ids", .kind = CLI_FLAG, AT(position_ids), .topic = "tokens",
	 .help = "with --pack: add a field position_ids"},
	{.name = "max-documents", .kind = CLI_U64, AT(max_documents), .arg_name = "N", .min = 1,
	 .max = TOKEN_PACK_ROOM_MAX, .default_note = "as many as the fullest record has",
	 .topic = "tokens", .help = "with --pack: number of documents that a record has room for"},
	{.name = "dtype", .kind = CLI_CHOICE, AT(token_dtype), .choices = "u8|u16|u32", .default_value = "u16",
	 .topic = "tokens", .often = true, .help = "type of the tokens in a .bin file without a header"},
	{0}};
/* clang-format on */

const struct source source_tokens = {
	SOURCE_NAMED("tokens"), .positionals = positionals, .options = options, .settle = settle, .scan = scan,
};
