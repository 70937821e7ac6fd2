/* SPDX-License-Identifier: Apache-2.0 */
/*
 * versions.c - versions of this library, and of the two that its results depend on
 */
#include <lz4.h>
#include <xxhash.h>

#include "shard.h"

#define TEXT(x)	  #x
#define NUMBER(x) TEXT(x)

const char *shard_version(void)
{
	return NUMBER(SHARD_VERSION_MAJOR) "." NUMBER(SHARD_VERSION_MINOR) "." NUMBER(SHARD_VERSION_PATCH);
}

const char *shard_version_details(void)
{
	return "format 1, lz4 " LZ4_VERSION_STRING
	       ", xxhash " NUMBER(XXH_VERSION_MAJOR) "." NUMBER(XXH_VERSION_MINOR) "." NUMBER(XXH_VERSION_RELEASE);
}
