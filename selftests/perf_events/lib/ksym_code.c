// SPDX-License-Identifier: GPL-2.0
/* Puts the code of kernel text together from records, and compares it with kcore. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ksym_code.h"
#include "test_env.h"

int ksym_rings__open_code(struct ksym_rings *rings, int pages)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.ksymbol_all = 1,
		.ksymbol_code = 1,
	};

	return ksym_rings__open_size(rings, &attr, pages);
}

static bool is_poke_of(const struct ksym_rec *rec, const struct ksym_text *t)
{
	return rec->type == PERF_RECORD_TEXT_POKE && rec->k.len &&
	       rec->k.addr >= t->addr && rec->k.addr + rec->k.len <= t->addr + t->len;
}

int ksym_code__records(const struct ksym_rings *rings, const struct ksym_text *t)
{
	int nr = 0;
	size_t i;

	for (i = 0; i < rings->nr_recs; i++)
		nr += is_poke_of(&rings->recs[i], t);
	return nr;
}

size_t ksym_code__replay(const struct ksym_rings *rings, const struct ksym_text *t,
			 unsigned char *code)
{
	unsigned char *known = calloc(1, t->len);
	size_t i, nr = 0;

	for (i = 0; known && i < rings->nr_recs; i++) {
		const struct ksym_rec *rec = &rings->recs[i];

		if (ksym_rec__is(rec, false) && ksym_text__is(t, rec))
			memset(known, 0, t->len);
		if (!is_poke_of(rec, t))
			continue;
		memcpy(code + (rec->k.addr - t->addr), rec->code, rec->k.len);
		memset(known + (rec->k.addr - t->addr), 1, rec->k.len);
	}
	for (i = 0; known && i < t->len; i++)
		nr += known[i];
	free(known);
	return nr;
}

/* Return: the offset of @addr in the core file @fd, or -errno. */
static off_t kcore_offset(int fd, __u64 addr)
{
	Elf64_Phdr phdr;
	Elf64_Ehdr ehdr;
	int i;

	if (pread(fd, &ehdr, sizeof(ehdr), 0) != sizeof(ehdr) ||
	    memcmp(ehdr.e_ident, ELFMAG, SELFMAG) ||
	    ehdr.e_ident[EI_CLASS] != ELFCLASS64)
		return -ENOEXEC;
	for (i = 0; i < ehdr.e_phnum; i++) {
		if (pread(fd, &phdr, sizeof(phdr), ehdr.e_phoff + i * sizeof(phdr)) !=
		    sizeof(phdr))
			return -EIO;
		if (phdr.p_type == PT_LOAD && addr >= phdr.p_vaddr &&
		    addr - phdr.p_vaddr < phdr.p_memsz)
			return phdr.p_offset + (addr - phdr.p_vaddr);
	}
	return -ENOENT;
}

int ksym_code__read(__u64 addr, unsigned char *code, size_t len)
{
	int fd = open("/proc/kcore", O_RDONLY | O_CLOEXEC), err = 0;
	off_t off;

	if (fd < 0)
		return -errno;
	off = kcore_offset(fd, addr);
	if (off < 0)
		err = off;
	else if (pread(fd, code, len, off) != (ssize_t)len)
		err = -EIO;
	close(fd);
	return err;
}

static bool is_right_now(const struct ksym_rings *rings, const struct ksym_text *t,
			 unsigned char *code, unsigned char *real, char *why)
{
	size_t known = ksym_code__replay(rings, t, code), i;
	int err = ksym_code__read(t->addr, real, t->len);

	for (i = 0; i < t->len && !err && known == t->len; i++)
		if (code[i] != real[i])
			break;
	if (err)
		snprintf(why, KSYM_SAY_LEN, "/proc/kcore: %s", strerror(-err));
	else if (known < t->len)
		snprintf(why, KSYM_SAY_LEN, "%s: %zu of %u bytes known", t->name, known,
			 t->len);
	else if (i < t->len)
		snprintf(why, KSYM_SAY_LEN, "%s+0x%zx: 0x%02x recorded, 0x%02x in kcore",
			 t->name, i, code[i], real[i]);
	return !err && i == t->len;
}

bool ksym_code__is_right(struct ksym_rings *rings, const struct ksym_text *t,
			 int timeout_ms, char *why)
{
	unsigned char *code = calloc(1, t->len), *real = calloc(1, t->len);
	__u64 end = now_ms() + timeout_ms;
	bool right = false;

	snprintf(why, KSYM_SAY_LEN, "the rings cannot be read");
	while (code && real && !right && !ksym_rings__drain(rings)) {
		right = is_right_now(rings, t, code, real, why);
		if (now_ms() >= end)
			break;
		if (!right)
			poll(rings->fds, rings->nr, 10);
	}
	free(code);
	free(real);
	return right;
}
