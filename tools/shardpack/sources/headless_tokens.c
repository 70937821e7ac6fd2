/* SPDX-License-Identifier: Apache-2.0 */
/*
 * headless_tokens.c - the type of tokens in a file that does not say it itself
 */
#include "tools/shardpack/sources/sources.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shard_inspect.h"
#include "tools/common/exit_code.h"
#include "tools/common/human.h"
#include "tools/common/message.h"
#include "tools/shardpack/images/file_name.h"
#include "tools/shardpack/input/place.h"
#include "tools/shardpack/input/stored.h"
#include "tools/shardpack/parse/megatron_index.h"
#include "tools/shardpack/parse/parse.h"
#include "tools/shardpack/plan/plan.h"
#include "tools/shardpack/scan/pack_options.h"
#include "tools/shardpack/scan/request.h"
#include "tools/shardpack/scan/scan.h"

#define PIECE_BYTES 65536 /* a multiple of 8 */
#define PIECES_MAX  64	  /* spread over the file: 4 MiB of a large one, all of a small one */

uint32_t headless_tokens_asked(const struct request *r)
{
	static const uint32_t dtypes[] = {SHARD_U8, SHARD_U16, SHARD_U32};

	return dtypes[r->o->token_dtype];
}

/* ---- an index beside the file ---- */

/* "a/x.bin" and "a/x.bin.gz" to "a/x.idx".  False if the name ends otherwise. */
static bool index_path(const char *path, char *out, size_t bytes)
{
	size_t n = strlen(path);

	if (file_name_has_extension(path, ".gz"))
		n -= 3;
	else if (file_name_has_extension(path, ".zst"))
		n -= 4;
	if (n < 4 || memcmp(path + n - 4, ".bin", 4))
		return false;
	return snprintf(out, bytes, "%.*s.idx", (int)(n - 4), path) < (int)bytes;
}

/*
 * Its name into `name` if there is one, else "".  Anything else that has that ending is not one,
 * unless it begins as an index does.
 */
static int find_index(const struct request *r, const char *path, char name[PLAN_PATH_BYTES_MAX],
		      struct megatron_index *out)
{
	uint8_t head[MEGATRON_INDEX_HEAD_BYTES];
	char why[256];
	struct stat st = {0};
	ssize_t have;
	int fd, error;

	if (!index_path(path, name, PLAN_PATH_BYTES_MAX)) {
		name[0] = '\0';
		return EXIT_DONE;
	}
	fd = openat(r->place->root_fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	have = fd < 0 || fstat(fd, &st) != 0 ? -1 : pread(fd, head, sizeof(head), 0);
	error = errno;
	if (fd >= 0)
		close(fd);
	if (have < 0 && error != ENOENT && error != EISDIR)
		return fail(EXIT_IO, "%s/%s: is it an index of Megatron-LM? %s", r->place->root, name, strerror(error));
	if (have >= 0 && !megatron_index_is(head, (size_t)have) && !cli_given(r->args, "dtype")) {
		if (have >= 6 && !memcmp(head, "TNTIDX", 6))
			return fail(EXIT_UNSUPPORTED,
				    "%s/%s: an index of the Megatron-LM of before 2020, which is not read; make the "
				    "dataset again with preprocess_data.py, or type --dtype for one stream of tokens",
				    r->place->root, name);
		scan_warn(r->scan, "%s/%s: is not an index of Megatron-LM, so nothing of it is read", r->place->root,
			  name);
	}
	if (have < 0 || !megatron_index_is(head, (size_t)have))
		name[0] = '\0';
	else if (!megatron_index_parse(head, (size_t)have, (uint64_t)st.st_size, out, why, sizeof(why)))
		return fail(EXIT_BAD, "%s/%s: %s", r->place->root, name, why);
	return EXIT_DONE;
}

/* --dtype must agree.  With it the tokens are one stream, unless something asks for documents. */
static int judge_index(const struct request *r, const char *where, const char *name, const struct megatron_index *index)
{
	uint32_t asked = headless_tokens_asked(r);
	char count[HUMAN_CHARS];

	if (!cli_given(r->args, "dtype"))
		return EXIT_DONE;
	if (shard_dtype_bytes(asked) != shard_dtype_bytes(index->dtype))
		return fail(EXIT_BAD,
			    "%s: its tokens are %s, as %s/%s says, Megatron-LM's index, but --dtype says %s; leave "
			    "--dtype out",
			    where, shard_dtype_name(index->dtype), r->place->root, name, shard_dtype_name(asked));
	if (!cli_given(r->args, "documents") && !r->o->pack)
		scan_warn(r->scan,
			  "%s: packed as one stream: the %s document%s in %s/%s, Megatron-LM's index, are not kept "
			  "apart; leave --dtype out to keep them apart",
			  where, human_count(count, index->document_count), index->document_count == 1 ? "" : "s",
			  r->place->root, name);
	return EXIT_DONE;
}

/* ---- what the numbers look like ---- */

static int take_census(const struct request *r, uint32_t file, struct token_census *c)
{
	uint64_t bytes = stored_bytes(r->stored, file), pieces = (bytes + PIECE_BYTES - 1) / PIECE_BYTES;
	uint64_t looked = pieces < PIECES_MAX ? pieces : PIECES_MAX;
	uint8_t *piece = malloc(PIECE_BYTES);
	int code = piece ? EXIT_DONE : fail(EXIT_IO, "out of memory");

	for (uint64_t i = 0; code == EXIT_DONE && i < looked; i++) {
		uint64_t at = (looked > 1 ? i * (pieces - 1) / (looked - 1) : 0) * PIECE_BYTES;
		size_t have = bytes - at < PIECE_BYTES ? (size_t)(bytes - at) : PIECE_BYTES;

		code = stored_get(r->stored, file, at, piece, have);
		if (code == EXIT_DONE)
			token_census_add(c, piece, have);
	}
	free(piece);
	return code;
}

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
	uint32_t dtype = headless_tokens_asked(r);
	const char *name = shard_dtype_name(dtype);
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
	struct token_census *c = calloc(1, sizeof(*c));
	struct token_look look = {0};
	int code = c ? take_census(r, file, c) : fail(EXIT_IO, "out of memory");

	if (code == EXIT_DONE)
		code = token_census_judge(c, &look) ? EXIT_DONE : fail(EXIT_IO, "out of memory");
	free(c);
	if (code != EXIT_DONE || look.width == TOKEN_WIDTH_ANY)
		return code;
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
		  shard_dtype_name(headless_tokens_asked(r)), other->what);
	return EXIT_DONE;
}

int headless_tokens_look(const struct request *r, const char *path, uint32_t file, const char *where,
			 const uint8_t *head, size_t have, struct headless_tokens *out)
{
	struct megatron_index index = {0};
	char name[PLAN_PATH_BYTES_MAX];
	bool asked = cli_given(r->args, "dtype");
	int code = find_index(r, path, name, &index);

	*out = (struct headless_tokens){.dtype = headless_tokens_asked(r), .index_file = PLAN_NO_FILE};
	if (code == EXIT_DONE && !name[0])
		code = judge_begin(r, where, head, have);
	if (code != EXIT_DONE || !name[0])
		return code == EXIT_DONE ? judge_width(r, file, where) : code;
	out->has_index = true;
	out->document_count = index.document_count;
	out->dtype = index.dtype;
	code = judge_index(r, where, name, &index);
	if (code != EXIT_DONE || (asked && !r->o->pack))
		return code == EXIT_DONE ? judge_width(r, file, where) : code;
	return cli_given(r->args, "documents") ? EXIT_DONE : stored_add(r->stored, r->plan, name, &out->index_file);
}
