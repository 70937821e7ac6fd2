/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine_disk.h - facts about the disk behind a path, from the kernel
 */
#ifndef SHARD_IO_MACHINE_DISK_H
#define SHARD_IO_MACHINE_DISK_H

#include "libshard/io/machine.h"

struct machine_disk {
	char type[MACHINE_TEXT_BYTES]; /* "ext4" */
	bool is_remote;
	bool takes_direct;     /* a read past the page cache worked, */
	bool is_told;	       /* and the kernel said what it must be aligned to; else offset_align is the least of 512 and 4096 that worked */
	uint32_t offset_align, memory_align;
	bool is_unknown; /* a folder without a file, where none can be made either */
	int os_code;	 /* of what was refused, as 0 or errno */
};

/*
 * The disk behind a file, or behind a folder: asked through a shard in it, else through a file
 * without a name that is made for the purpose.  IO if there is no such path.
 */
int machine_disk(const char *path, struct machine_disk *out, struct shard_error *err);

#endif
