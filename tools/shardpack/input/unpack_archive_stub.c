/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack_archive_stub.c - a build without libarchive: bzip2 and xz are called by their names
 */
#include "tools/common/exit_code.h"
#include "tools/common/message.h"
#include "tools/shardpack/input/input.h"

int unpack_archive(struct unpack_work *w, const char *how)
{
	return fail(EXIT_UNSUPPORTED,
		    "%s: is compressed with %s, and this shardpack was built without libarchive; install that and "
		    "build anew, or unpack the file with %s -d",
		    w->name, how, how);
}
