/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _LINUX_BTF_FUNC_INDEX_H
#define _LINUX_BTF_FUNC_INDEX_H

#include <linux/types.h>

/*
 * The section .BTF.func_index of vmlinux and of modules, which scripts/btf_func writes
 * and kernel/bpf/btf_func.c reads. It has the functions for which .BTF has no right
 * FUNC of their name, and the source files of all, in the byte order of the kernel:
 *
 *	+--------------------------------+
 *	| struct btf_func_index          |
 *	+--------------------------------+
 *	| struct btf_func_section  0     |---+
 *	| ...             nr_sections-1  |   | first, nr
 *	+--------------------------------+   |
 *	| struct btf_func_entry    0     |<--+
 *	| ...              nr_entries-1  |
 *	+--------------------------------+
 *	| names of sections, str_len     |
 *	+--------------------------------+
 *
 * Entries of a section are sorted by offset, and are next to each other. Two of one
 * offset are for two symbols of one address.
 */
#define BTF_FUNC_INDEX_MAGIC	0xeb9f
#define BTF_FUNC_INDEX_VERSION	1

/**
 * struct btf_func_index - begin of the section
 * @magic: BTF_FUNC_INDEX_MAGIC
 * @version: BTF_FUNC_INDEX_VERSION
 * @flags: 0
 * @nr_sections: number of struct btf_func_section that follow
 * @nr_entries: number of struct btf_func_entry that follow these
 * @str_len: bytes of the names that follow these, with the terminating NUL of each
 */
struct btf_func_index {
	__u16	magic;
	__u8	version;
	__u8	flags;
	__u32	nr_sections;
	__u32	nr_entries;
	__u32	str_len;
};

/**
 * struct btf_func_section - entries of one ELF section
 * @start: 0; in a module that is being loaded, the section's address
 * @name: offset of its name in the names
 * @size: of the section, in bytes
 * @first: number of its first entry
 * @nr: number of its entries
 */
struct btf_func_section {
	__u64	start;
	__u32	name;
	__u32	size;
	__u32	first;
	__u32	nr;
};

/**
 * struct btf_func_entry - one function, or the first one of a source file
 * @offset: of its symbol from the begin of its section, in bytes
 * @id: of its FUNC in .BTF.func or, for another name of a function that .BTF is right
 *	about, in .BTF; with BTF_FUNC_OPTIMIZED if the compiler changed the arguments, so
 *	that the FUNC has each in its register, and the return value is not known.
 *	0: nothing is known, though .BTF has a FUNC of the symbol's name.
 *	With BTF_FUNC_FILE: the functions from here on, to the next such entry, are from one
 *	source file. The rest is the offset of its path in the strings of .BTF.func; that of
 *	functions of which it is not known is empty
 */
#define BTF_FUNC_OPTIMIZED	0x80000000
#define BTF_FUNC_FILE		0x40000000

struct btf_func_entry {
	__u32	offset;
	__u32	id;
};

#endif /* _LINUX_BTF_FUNC_INDEX_H */
