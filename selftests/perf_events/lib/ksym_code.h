/* SPDX-License-Identifier: GPL-2.0 */
/* The code of dynamic kernel text: what TEXT_POKE records have, and what is there. */
#ifndef SELFTESTS_PERF_EVENTS_KSYM_CODE_H
#define SELFTESTS_PERF_EVENTS_KSYM_CODE_H

#include "ksym_set.h"

/*
 * Open the rings for all text and its code.
 * Return: 0 or -errno; -EINVAL where the kernel lacks attr.ksymbol_code.
 */
int ksym_rings__open_code(struct ksym_rings *rings, int pages);

/*
 * Apply the TEXT_POKE records of @t in their order, from its last REGISTER on.
 * @code has t->len bytes.
 * Return: how many of them have been written.
 */
size_t ksym_code__replay(const struct ksym_rings *rings, const struct ksym_text *t,
			 unsigned char *code);

/* Return: how many TEXT_POKE records have new code within @t. */
int ksym_code__records(const struct ksym_rings *rings, const struct ksym_text *t);

/* Read @len bytes of the kernel at @addr from /proc/kcore. Return: 0 or -errno. */
int ksym_code__read(__u64 addr, unsigned char *code, size_t len);

/*
 * Read the rings until the code of @t by its records is the one in /proc/kcore, for
 * up to @timeout_ms, as some code is patched later.
 * Return: true if it is; otherwise @why, of KSYM_SAY_LEN bytes, has the difference.
 */
bool ksym_code__is_right(struct ksym_rings *rings, const struct ksym_text *t,
			 int timeout_ms, char *why);

#endif
