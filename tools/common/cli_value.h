/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli_value.h - one value of the command line: text to number, size, choice
 */
#ifndef SHARD_CLI_CLI_VALUE_H
#define SHARD_CLI_CLI_VALUE_H

#include "tools/common/cli_table.h"

/*
 * Parse `text` into the member of `options`.  On failure false, and `why` says which form it must
 * have.
 */
bool cli_value_set(const struct cli_option *option, const char *text, void *options, char *why, size_t why_bytes);

/* "1 to 65500", "1 or more"; empty if the kind has no range or any value will do. */
void cli_range_text(const struct cli_option *option, char *out, size_t out_bytes);

/*
 * A size as CLI_SIZE has it, `min` to `max`, for options that hold several.  False if the text is
 * none.
 */
bool cli_size(const char *text, uint64_t min, uint64_t max, uint64_t *out);

/*
 * Is a file or folder one of this machine, and not a URL?  False with the reason; true for other
 * kinds.
 */
bool cli_value_is_here(const struct cli_option *option, const char *text, char *why, size_t why_bytes);

#endif
