/* SPDX-License-Identifier: Apache-2.0 */
/*
 * documents.h - the documents of a stream of tokens, one after the other
 */
#ifndef SHARD_INPUT_DOCUMENTS_H
#define SHARD_INPUT_DOCUMENTS_H

#include <stdint.h>

struct megatron_index;
struct progress;
struct stored;
struct token_stream;

/* A document of `count` tokens, from token `begin` of the stream on.  Returns the exit code. */
typedef int documents_take(void *context, uint64_t begin, uint64_t count);

/*
 * Give each document of the stream to `take`, in order.  They are those of its index, of which
 * every number is checked: together they are all of the stream.  Without an index a document ends
 * behind each token `end_of_text`, which belongs to it, and at the end of the stream.  `progress`
 * counts tokens; NULL is none.  Says why it fails and returns the exit code.
 */
int documents_each(const struct stored *s, const struct token_stream *t, uint64_t end_of_text, documents_take *take,
		   void *context, struct progress *progress);

/* The head of an index, checked. */
int documents_index(const struct stored *s, uint32_t index_file, struct megatron_index *out);

/*
 * EXIT_DONE if every token of the stream is 0 to `most`; else one line that names the first that is
 * not, and its place.
 */
int documents_check_values(const struct stored *s, const struct token_stream *t, uint64_t most,
			   struct progress *progress);

#endif
