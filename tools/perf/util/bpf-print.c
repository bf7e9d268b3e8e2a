// SPDX-License-Identifier: GPL-2.0
/*
 * What perf tells its user about BPF programs: which ones a recording has, and why it has
 * no info about one.
 */
#include <inttypes.h>
#include <stdio.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <linux/kernel.h>
#include <linux/rbtree.h>
#include <linux/string.h>
#include <linux/time64.h>
#include "bpf-event.h"
#include "bpf-print.h"
#include "bpf-sideband.h"
#include "bpf-utils.h"
#include "env.h"
#include "symbol.h"

static bool bpil__hides_func(const struct perf_bpil *info_linear, const char *func_name)
{
	if (!bpil__addrs_hidden(info_linear))
		return false;
	for (u32 i = 0; i < info_linear->info.nr_prog_tags; i++) {
		if (bpil__is_func_name(info_linear, i, func_name))
			return true;
	}
	return false;
}

/* The KSYMBOL of a function without address cannot be linked to its info. */
static bool perf_env__hides_bpf_func(struct perf_env *env, const char *func_name)
{
	bool hides = false;
	struct rb_node *n;

	mutex_lock(&env->bpf_progs.lock);
	for (n = rb_first(&env->bpf_progs.infos); n && !hides; n = rb_next(n)) {
		struct bpf_prog_info_node *node = rb_entry(n, struct bpf_prog_info_node, rb_node);

		hides = bpil__hides_func(node->info_linear, func_name);
	}
	mutex_unlock(&env->bpf_progs.lock);
	return hides;
}

/**
 * perf_env__scnprintf_bpf_counts - tell how many programs have no info, and why
 * @env: of the recording
 * @prefix: of each line
 * @buf: gets the lines
 * @size: size of @buf
 *
 * Return: the length of the text, 0 if all have it, or the recording does not tell.
 */
int perf_env__scnprintf_bpf_counts(const struct perf_env *env, const char *prefix, char *buf,
				   size_t size)
{
	const struct bpf_counts *counts = env->bpf_progs.counts;
	u64 loaded, described;
	char indent[16];
	int len;

	if (!counts)
		return 0;
	loaded = counts->nr[BPF_LOADED];
	described = counts->nr[BPF_DESCRIBED];
	if (loaded <= described && !counts->nr[BPF_UNFOLLOWED])
		return 0;

	len = loaded <= described ? 0 :
	      scnprintf(buf, size, "%sOf %" PRIu64 " BPF programs, %" PRIu64 " have no info:\n",
			prefix, loaded, loaded - described);
	scnprintf(indent, sizeof(indent), "%s  ", prefix);
	return len + bpf_counts__scnprintf(counts, indent, buf + len, size - len);
}

/**
 * scnprintf_no_bpf_info - explain why a BPF function is not linked to its program
 * @env: of the recording, or NULL
 * @func_name: "bpf_prog_<tag>_<name>"
 * @buf: gets the text
 * @size: size of @buf
 *
 * Return: the length of the text.
 */
int scnprintf_no_bpf_info(struct perf_env *env, const char *func_name, char *buf, size_t size)
{
	int len, counted;

	if (env && perf_env__hides_bpf_func(env, func_name))
		return scnprintf(buf, size,
			"The recording has no machine code for %s: the kernel hid it\n"
			"from perf record.\n\n"
			"Record with CAP_SYSLOG, and with kernel.kptr_restrict below 2.",
			func_name);

	len = scnprintf(buf, size, "The recording has no program info for %s.\n", func_name);
	counted = env ? perf_env__scnprintf_bpf_counts(env, "", buf + len, size - len) : 0;
	if (counted)
		return len + counted;

	if (!env || !env->bpf_progs.infos_cnt)
		return scnprintf(buf, size,
			"The recording has no program info for %s, nor for any other\n"
			"BPF program: perf record was not allowed to read it, or was told not to.\n\n"
			"Record as root, or with CAP_SYS_ADMIN, and without --no-bpf-event.",
			func_name);

	return scnprintf(buf, size,
		"The recording has no program info for %s, but for other programs:\n"
		"it was unloaded before perf record could read it, or reading it failed.\n\n"
		"At its end, perf record prints how many programs it could not read, and why.",
		func_name);
}

static void bpf_func__fprintf_addr(const struct bpf_prog_info *info, u32 sub_id, FILE *fp)
{
	const __u32 *lens = (const __u32 *)(uintptr_t)info->jited_func_lens;
	const __u64 *addrs = (const __u64 *)(uintptr_t)info->jited_ksyms;

	if (addrs && lens)
		fprintf(fp, " addr 0x%llx size %u", addrs[sub_id], lens[sub_id]);
	else
		fprintf(fp, " addr hidden by the kernel");
}

/* Of a program, not of one of its functions. It has a run count with kernel.bpf_stats_enabled. */
static void bpf_prog_info__fprintf(const struct bpf_prog_info *info, FILE *fp)
{
	const char *type = libbpf_bpf_prog_type_str(info->type);
	u64 load_time_us = info->load_time / NSEC_PER_USEC;

	fprintf(fp, " type %s", type ?: "unknown");
	if (load_time_us)
		fprintf(fp, " loaded %" PRIu64 ".%06" PRIu64 " s after boot",
			load_time_us / USEC_PER_SEC, load_time_us % USEC_PER_SEC);
	if (info->run_cnt)
		fprintf(fp, " ran %llu times for %llu ns", info->run_cnt, info->run_time_ns);
}

void __bpf_event__print_bpf_prog_info(struct perf_bpil *info_linear,
				      struct perf_env *env,
				      FILE *fp)
{
	struct bpf_prog_info *info = &info_linear->info;
	bool addrs_hidden = bpil__addrs_hidden(info_linear);
	__u64 required_arrays = 1UL << PERF_BPIL_PROG_TAGS;
	char name[KSYM_NAME_LEN];
	struct btf *btf = NULL;
	u32 sub_prog_cnt, i;

	sub_prog_cnt = info->nr_prog_tags;
	if (!addrs_hidden) {
		required_arrays |= (1UL << PERF_BPIL_JITED_KSYMS) |
				   (1UL << PERF_BPIL_JITED_FUNC_LENS);
		if (sub_prog_cnt != info->nr_jited_ksyms ||
		    sub_prog_cnt != info->nr_jited_func_lens)
			return;
	}

	/* Ensure the arrays were present and converted by bpil_offs_to_addr() */
	if ((info_linear->arrays & required_arrays) != required_arrays || !sub_prog_cnt)
		return;

	if (info->btf_id) {
		struct btf_node *node;

		node = __perf_env__find_btf(env, info->btf_id);
		if (node)
			btf = btf__new((__u8 *)(node->data),
				       node->data_size);
	}

	fprintf(fp, "# bpf_prog_info %u:", info->id);
	if (sub_prog_cnt > 1) {
		bpf_prog_info__fprintf(info, fp);
		fputc('\n', fp);
	}
	for (i = 0; i < sub_prog_cnt; i++) {
		synthesize_bpf_prog_name(name, KSYM_NAME_LEN, info, btf, i);
		if (sub_prog_cnt > 1)
			fprintf(fp, "# \tsub_prog %u:", i);
		fprintf(fp, " %s", name);
		bpf_func__fprintf_addr(info, i, fp);
		if (sub_prog_cnt <= 1)
			bpf_prog_info__fprintf(info, fp);
		fputc('\n', fp);
	}
	btf__free(btf);
}
