/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packed_tokens.c - `shardpack tokens --pack`: files of documents, which become windows
 */
#include "tools/shardpack/sources/sources.h"

#include <inttypes.h>
#include <stdlib.h>

#include "tools/common/exit_code.h"
#include "tools/common/human.h"
#include "tools/common/message.h"
#include "tools/common/progress.h"
#include "tools/shardpack/input/place.h"
#include "tools/shardpack/input/token_windows.h"
#include "tools/shardpack/plan/plan.h"
#include "tools/shardpack/scan/pack_options.h"
#include "tools/shardpack/scan/request.h"
#include "tools/shardpack/scan/scan.h"

int packed_tokens_add(struct packed_tokens *t, const struct request *r, const struct token_stream *stream,
		      uint32_t dtype, const char *where, const struct headless_tokens *headless)
{
	struct plan *plan = r->plan;

	if (!cli_given(r->args, "documents") && stream->index_file == PLAN_NO_FILE)
		return fail(EXIT_BAD,
			    "%s: --pack must know where documents end: type --documents ID, with the token that ends "
			    "each, or give the .bin of Megatron-LM with its .idx beside it",
			    where);
	if (!stream->count)
		scan_barren(r->scan, where);
	t->dtype = dtype > t->dtype ? dtype : t->dtype;
	t->indexed_count += headless->has_index;
	t->index_documents += headless->document_count;
	t->file_count++;
	if (!plan->pack)
		plan->pack = calloc(1, sizeof(*plan->pack));
	if (!plan->pack || (stream->count && !token_pack_add(plan->pack, stream)))
		return fail(EXIT_IO, "out of memory");
	return EXIT_DONE;
}

/* What became of every token. */
static void tell(const struct request *r, uint32_t room)
{
	const struct token_pack *p = r->plan->pack;
	const struct token_padding padding = token_pack_padding(p, room);
	char documents[HUMAN_CHARS], cut[HUMAN_CHARS], tokens[HUMAN_CHARS], windows[HUMAN_CHARS], lone[HUMAN_CHARS];

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
}

int packed_tokens_end(struct packed_tokens *t, const struct request *r, uint32_t room, struct progress *progress)
{
	struct token_pack *p = r->plan->pack;
	int code;

	p->by_token = cli_given(r->args, "documents");
	p->end_of_text = p->by_token ? r->o->end_of_text : 0;
	p->width = (uint32_t)r->o->max_documents;
	code = p->stream_count ? token_windows_make(r->stored, r->plan, room, progress) : EXIT_DONE;
	progress_abandon(progress);
	if (code != EXIT_DONE)
		return code;
	if (p->by_token && t->indexed_count == t->file_count && t->index_documents != p->document_count)
		return fail(EXIT_BAD,
			    "--documents %" PRIu64 " cuts the files into %" PRIu64
			    ", but Megatron-LM's indices beside them have %" PRIu64
			    " documents; leave --documents out, or rename the indices to go by the token",
			    p->end_of_text, p->document_count, t->index_documents);
	if (!p->window_count)
		return fail(EXIT_BAD, "%s: no document of two tokens or more in %" PRIu64 " file%s", r->place->root,
			    r->place->item_count, r->place->item_count == 1 ? "" : "s");
	token_pack_fields(p, r->recipe, t->dtype, room, r->o->position_ids);
	tell(r, room);
	return EXIT_DONE;
}
