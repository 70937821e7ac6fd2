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
	bool takes_direct; /* a read past the page cache worked */
	/* the kernel told the alignments; else offset_align is 512, or 4096 if 512 did not work */
	bool is_told;
	uint32_t offset_align, memory_align;
	bool is_unknown; /* the folder has no file to try, and none can be made in it */
	int os_code;	 /* errno of the call that was refused, or 0 */
};

/*
 * Examine the disk of a file, or of a folder.  In a folder it reads a shard, or else a file without
 * a name that it makes for this.  Fails with IO if there is no such path.
 */
int machine_disk(const char *path, struct machine_disk *out, struct shard_error *err);

#endif
