/* SPDX-License-Identifier: Apache-2.0 */
/*
 * url.h - is a path the address of something elsewhere?  The tools link this file, too.
 */
#ifndef SHARD_BASE_URL_H
#define SHARD_BASE_URL_H

#include <stdbool.h>

/*
 * Does it begin as "s3://" does: a letter, more of letters, digits, + . -, then "://"?  A folder that
 * is really called "s3:" is "./s3:".
 */
bool text_is_url(const char *text);

#define URL_REMEDY "is a URL; only files and folders of this machine are read and written"

#endif
