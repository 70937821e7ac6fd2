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
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tools/common/exit_code.h"
#include "tools/common/human.h"
#include "tools/common/message.h"
#include "tools/common/progress.h"
#include "tools/shardpack/input/input.h"
#include "tools/shardpack/input/place.h"
#include "tools/shardpack/input/stored.h"
#include "tools/shardpack/parse/integer.h"
#include "tools/shardpack/parse/megatron_index.h"
#include "tools/shardpack/parse/npy.h"
#include "tools/shardpack/parse/parse.h"
#include "tools/shardpack/plan/plan.h"
#include "tools/shardpack/scan/pack_options.h"
#include "tools/shardpack/scan/request.h"
#include "tools/shardpack/scan/scan.h"
#include "tools/shardpack/sources/sources.h"

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
	struct packed_tokens packed; /* with --pack */
};

/* Tokens of one file. */
struct part {
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
		return cli_misuse(r->args, "--overlap cannot be had with --pack: its sequences share no tokens");
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

/* ---- what a file is ---- */

static int open_npy(const struct request *r, const uint8_t *head, size_t have, struct part *p)
{
	struct npy a;
	char why[256];

	if (!npy_parse(head, have, &a, why, sizeof(why)))
		return fail(EXIT_BAD, "%s: %s", p->where, why);
	if (a.ndim != 1)
		return fail(EXIT_BAD, "%s: %" PRIu32 " axes; tokens must be an array of 1 axis", p->where, a.ndim);
	if (a.dtype < SHARD_U8 || a.dtype > SHARD_I64)
		return fail(EXIT_BAD, "%s: tokens of type %s; must be integers", p->where, shard_dtype_name(a.dtype));
	if (a.data_offset + a.data_bytes != stored_bytes(r->stored, p->file))
		return fail(EXIT_BAD,
			    "%s: has %" PRIu64 " bytes, but must have a head of %" PRIu64 " and data of "
			    "%" PRIu64,
			    p->where, stored_bytes(r->stored, p->file), a.data_offset, a.data_bytes);
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
static int open_bin(const struct request *r, const uint8_t *head, size_t have, struct part *p)
{
	const char *kind = other_kind(p->where);
	struct token_file t;
	char why[256];
	uint64_t bytes = stored_bytes(r->stored, p->file), item;
	int code;

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
	code = p->has_head ? EXIT_DONE : headless_tokens_look(r, p->path, p->file, p->where, head, have, &p->headless);
	if (code != EXIT_DONE)
		return code;
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
			    bytes, shard_dtype_name(p->dtype));
	return EXIT_DONE;
}

static struct token_stream stream_of(const struct part *p)
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
static int settle_stored(struct stream *s, struct part *p)
{
	uint64_t item = shard_dtype_bytes(p->dtype), most;
	struct token_stream t = stream_of(p);
	bool keeps = !s->r->o->pack && (p->has_head || !p->headless.has_index);
	bool fits = p->dtype == SHARD_U8 || p->dtype == SHARD_U16 || p->dtype == SHARD_U32;

	p->stored = p->dtype;
	if (keeps) {
		most = UINT64_MAX >> (65 - 8 * item); /* of u64 as well: trainers have signed numbers */
		return fits ? EXIT_DONE : documents_check_values(s->r->stored, &t, most, &s->progress);
	}
	p->stored = item <= 2 ? SHARD_U16 : SHARD_U32;
	most = item <= 2 ? UINT16_MAX : UINT32_MAX;
	if (item == 1 && cli_given(s->r->args, "dtype")) { /* it says u8, or check_asked() would have refused it */
		p->stored = SHARD_U8;
		most = UINT8_MAX;
	}
	/* None is negative, so the bits are those of an unsigned type. */
	p->dtype = item == 1 ? SHARD_U8 : item == 2 ? SHARD_U16 : item == 4 ? SHARD_U32 : SHARD_U64;
	return fits ? EXIT_DONE : documents_check_values(s->r->stored, &t, most, &s->progress);
}

/* --dtype is for files without a head: it converts nothing. */
static int check_asked(const struct request *r, const struct part *p)
{
	uint32_t asked = headless_tokens_asked(r);

	if (!p->has_head || !cli_given(r->args, "dtype") || p->dtype == asked)
		return EXIT_DONE;
	return fail(EXIT_BAD, "%s: its tokens are %s, as its head says, but --dtype says %s; leave --dtype out",
		    p->where, shard_dtype_name(p->dtype), shard_dtype_name(asked));
}

/* A token that no document can end with is a mistake. */
static int check_end(const struct stream *s, const struct part *p)
{
	bool is_signed = integer_is_signed(p->dtype) || p->dtype == SHARD_U64;
	uint64_t most = UINT64_MAX >> (64 + is_signed - 8 * shard_dtype_bytes(p->dtype));

	if (!cli_given(s->r->args, "documents") || s->r->o->end_of_text <= most)
		return EXIT_DONE;
	return fail(EXIT_USAGE, "%s: --documents %" PRIu64 " does not fit %s, so no document would end", p->where,
		    s->r->o->end_of_text, shard_dtype_name(p->dtype));
}

/* ---- sequences ---- */

static int add_windows(struct stream *s, const struct part *p, uint64_t first, uint64_t tokens, bool keep_short)
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

struct cut {
	struct stream *s;
	const struct part *p;
	uint64_t documents;
};

static int take_document(void *context, uint64_t begin, uint64_t count)
{
	struct cut *c = context;

	c->documents++;
	return add_windows(c->s, c->p, begin, count, true);
}

static int add_documents(struct stream *s, const struct part *p)
{
	struct cut c = {.s = s, .p = p};
	struct token_stream t = stream_of(p);
	int code = documents_each(s->r->stored, &t, s->r->o->end_of_text, take_document, &c, &s->progress);

	s->split_files += c.documents > 0;
	s->document_count += c.documents;
	if (code == EXIT_DONE && p->headless.has_index && c.documents != p->headless.document_count)
		code = fail(EXIT_BAD,
			    "%s: --documents %" PRIu64 " cuts it into %" PRIu64
			    ", but Megatron-LM's index beside it has %" PRIu64
			    " documents; leave --documents out, or rename the index to go by the token",
			    p->where, s->r->o->end_of_text, c.documents, p->headless.document_count);
	return code;
}

/* Are its documents kept apart? */
static bool has_documents(const struct stream *s, const struct part *p)
{
	return cli_given(s->r->args, "documents") || p->index_file != PLAN_NO_FILE;
}

/* The field is that of the first file; others must have the same type. */
static int settle_field(struct stream *s, const struct part *p)
{
	struct recipe *recipe = s->r->recipe;
	bool ragged = has_documents(s, p);
	int code = fixed_fields_enter(recipe, p->where, "tokens", p->stored, &s->window, 1, &s->field);

	if (code == EXIT_DONE && s->has_field && ragged != (recipe->field[s->field].kind == SHARD_RAGGED))
		code = fail(EXIT_BAD,
			    "%s: has %s Megatron-LM index beside it, but the files before have %s; pack them apart",
			    p->where, ragged ? "a" : "no", ragged ? "none" : "one");
	if (code != EXIT_DONE || s->has_field)
		return code;
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

static int add_sequences(struct stream *s, const struct part *p)
{
	uint64_t before = s->record_count;
	int code = settle_field(s, p);

	if (code == EXIT_DONE)
		code = has_documents(s, p) ? add_documents(s, p) : add_windows(s, p, 0, p->count, false);
	if (code == EXIT_DONE && s->record_count == before)
		scan_barren(s->r->scan, p->where);
	return code;
}

static int add_packed(struct stream *s, const struct part *p)
{
	struct token_stream t = stream_of(p);

	return packed_tokens_add(&s->packed, s->r, &t, p->stored, p->where, &p->headless);
}

static int add_file(const struct request *r, void *context, const char *path)
{
	struct stream *s = context;
	uint8_t *head = malloc(NPY_HEAD_BYTES_MAX);
	struct part p = {.path = path, .index_file = PLAN_NO_FILE};
	uint64_t have;
	char *where = NULL;
	int code = input_file_open(r, path, &p.file);

	if (code == EXIT_DONE && (!head || !(where = stored_name(r->stored, p.file))))
		code = fail(EXIT_IO, "out of memory");
	p.where = where;
	have = code == EXIT_DONE ? stored_bytes(r->stored, p.file) : 0;
	have = have < NPY_HEAD_BYTES_MAX ? have : NPY_HEAD_BYTES_MAX;
	if (code == EXIT_DONE)
		code = stored_get(r->stored, p.file, 0, head, (size_t)have);
	if (code == EXIT_DONE && have >= NPY_MAGIC_BYTES && !memcmp(head, NPY_MAGIC, NPY_MAGIC_BYTES))
		code = open_npy(r, head, (size_t)have, &p);
	else if (code == EXIT_DONE)
		code = open_bin(r, head, (size_t)have, &p);
	if (code == EXIT_DONE)
		code = check_asked(r, &p);
	if (code == EXIT_DONE)
		code = check_end(s, &p);
	if (code == EXIT_DONE)
		code = settle_stored(s, &p);
	if (code == EXIT_DONE)
		code = r->o->pack ? add_packed(s, &p) : add_sequences(s, &p);
	free(head);
	free(where);
	return code;
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
		int code = packed_tokens_end(&s->packed, r, (uint32_t)s->window, &s->progress);

		if (code == EXIT_DONE && cli_given(r->args, "documents"))
			warn_of_one_document(r, r->plan->pack->document_count, s->packed.file_count);
		return code;
	}
	progress_abandon(&s->progress);
	if (!s->record_count) {
		snprintf(what, sizeof(what), "sequence of %" PRIu64 " tokens", s->window);
		return scan_refuse_barren(r->scan, r->place->root, what, "; give a smaller --seq-len");
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
	int code;

	progress_start(&s.progress, "looking for documents", "tokens", 0);
	code = fixed_source_scan(r, &steps, &s);
	progress_abandon(&s.progress);
	return code;
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
