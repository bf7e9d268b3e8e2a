// SPDX-License-Identifier: GPL-2.0
/*
 * Reads BPF programs and their BTF from the kernel into a perf_env: those that are loaded,
 * or one that the side-band thread has heard of.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <api/fs/fs.h>
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <linux/err.h>
#include <linux/perf_event.h>
#include <linux/zalloc.h>
#include "bpf-event.h"
#include "bpf-fetch.h"
#include "bpf-metadata.h"
#include "bpf-sideband.h"
#include "bpf-utils.h"
#include "debug.h"
#include "env.h"

static void perf_env__fetch_btf(struct perf_env *env, u32 btf_id, struct btf *btf)
{
	struct btf_node *node;
	u32 data_size;
	const void *data;

	data = btf__raw_data(btf, &data_size);

	node = zalloc(data_size + sizeof(struct btf_node));
	if (!node)
		return;

	node->id = btf_id;
	node->data_size = data_size;
	memcpy(node->data, data, data_size);

	/* Insertion failed because of a duplicate. */
	if (!perf_env__insert_btf(env, node))
		free(node);
}

/* A program that the kernel interprets has an address, but no code. */
static enum bpf_count bpil__count(const struct perf_bpil *info_linear)
{
	if (bpil__addrs_hidden(info_linear))
		return BPF_HIDDEN;
	return info_linear->info.jited_prog_len ? BPF_DESCRIBED : BPF_FAILED;
}

/**
 * perf_env__add_bpf_info - add the bpf_prog_info and BTF of a program
 * @env: where to add them; a program with the same id is not replaced
 * @fd: file descriptor of the program or of its retained information
 * @counts: the program is added to described, hidden or failed, unless it was in @env
 *
 * Return: 0, or -errno. It is no error if the BTF cannot be read.
 */
int perf_env__add_bpf_info(struct perf_env *env, int fd, struct bpf_counts *counts)
{
	struct bpf_prog_info_node *info_node;
	struct perf_bpil *info_linear;
	struct btf *btf = NULL;
	u64 arrays;
	u32 btf_id;
	int err = 0;

	arrays = 1UL << PERF_BPIL_JITED_KSYMS;
	arrays |= 1UL << PERF_BPIL_JITED_FUNC_LENS;
	arrays |= 1UL << PERF_BPIL_FUNC_INFO;
	arrays |= 1UL << PERF_BPIL_PROG_TAGS;
	arrays |= 1UL << PERF_BPIL_JITED_INSNS;
	arrays |= 1UL << PERF_BPIL_LINE_INFO;
	arrays |= 1UL << PERF_BPIL_JITED_LINE_INFO;
	arrays |= 1UL << PERF_BPIL_MAP_IDS;
	if (env->bpf_progs.xlated)
		arrays |= 1UL << PERF_BPIL_XLATED_INSNS;

	info_linear = get_bpf_prog_info_linear(fd, arrays);
	if (IS_ERR_OR_NULL(info_linear)) {
		pr_debug("%s: failed to get BPF program info. aborting\n", __func__);
		err = info_linear ? PTR_ERR(info_linear) : -EINVAL;
		goto out;
	}

	btf_id = info_linear->info.btf_id;

	info_node = zalloc(sizeof(struct bpf_prog_info_node));
	if (info_node) {
		info_node->info_linear = info_linear;
		info_node->metadata = bpf_metadata_create(&info_linear->info);
		if (!perf_env__insert_bpf_prog_info(env, info_node)) {
			pr_debug("%s: duplicate add bpf info request for id %u\n",
				 __func__, btf_id);
			bpf_metadata_free(info_node->metadata);
			free(info_linear);
			free(info_node);
			goto out;
		}
		counts->nr[bpil__count(info_linear)]++;
	} else {
		free(info_linear);
		err = -ENOMEM;
		goto out;
	}

	/* programs of one object file share their BTF */
	if (btf_id == 0 || perf_env__find_btf(env, btf_id))
		goto out;

	btf = btf__load_from_kernel_by_id(btf_id);
	if (!btf) {
		pr_debug("%s: failed to get BTF of id %u %d\n", __func__, btf_id, -errno);
	} else {
		perf_env__fetch_btf(env, btf_id, btf);
	}

out:
	btf__free(btf);
	if (err)
		counts->nr[BPF_FAILED]++;
	return err;
}

/* Return: the info, which @env has now, or an ERR_PTR(), and it is counted. */
static struct bpf_prog_info_node *perf_env__fetch_bpf_prog(struct perf_env *env, u32 id,
							   struct bpf_counts *counts)
{
	struct bpf_prog_info_node *node = perf_env__find_bpf_prog_info(env, id);
	int fd, err;

	/* ids are not reused before 2^31 programs have been loaded */
	if (node)
		return node;

	fd = bpf_prog_get_fd_by_id(id);
	if (fd < 0) {
		err = -errno;
		pr_debug("Cannot open BPF program %u: %s\n", id, strerror(-err));
		/* else it was unloaded just now, before the recording */
		if (err != -ENOENT)
			counts->nr[BPF_FAILED]++;
		return ERR_PTR(err);
	}
	err = perf_env__add_bpf_info(env, fd, counts);
	close(fd);

	node = perf_env__find_bpf_prog_info(env, id);
	if (!err && bpil__count(node->info_linear) == BPF_FAILED)
		err = -ENODATA;
	if (err) {
		pr_debug("Cannot read BPF program %u: %s\n", id, strerror(-err));
		return ERR_PTR(err);
	}
	return node;
}

static void bpf_prog_info_node__has_run(struct bpf_prog_info_node *node, void *data)
{
	*(bool *)data |= node->info_linear->info.run_cnt;
}

/* The sysctl does not tell of those who count with BPF_ENABLE_STATS. */
static bool perf_env__has_bpf_runs(struct perf_env *env)
{
	bool has_run = false;
	int enabled;

	if (!sysctl__read_int("kernel/bpf_stats_enabled", &enabled) && enabled)
		return true;
	perf_env__iterate_bpf_prog_info(env, bpf_prog_info_node__has_run, &has_run);
	return has_run;
}

static int open_bpf_prog(u32 id, int event)
{
	int fd = bpf_prog_get_fd_by_id(id);

	if (fd < 0 && errno == ENOENT && event >= 0)
		fd = ioctl(event, PERF_EVENT_IOC_BPF_PROG_FD, id);
	return fd;
}

/* 0 for a program that has ended: what was read at its beginning would pass for the number. */
static void bpf_prog_info_node__read_runs(struct bpf_prog_info_node *node, void *data)
{
	struct bpf_prog_info *known = &node->info_linear->info, info = {};
	int fd = open_bpf_prog(known->id, *(int *)data);
	__u32 len = sizeof(info);

	if (fd >= 0) {
		bpf_prog_get_info_by_fd(fd, &info, &len);
		close(fd);
	}
	known->run_cnt = info.run_cnt;
	known->run_time_ns = info.run_time_ns;
	known->recursion_misses = info.recursion_misses;
}

/**
 * perf_env__read_bpf_runs - read again how often the programs ran
 * @env: has the programs; no other thread adds any
 * @event: of the kernel that retains the programs, or -1
 *
 * perf reads most programs when they are loaded, and they run later. Does nothing unless
 * the kernel counts runs.
 */
void perf_env__read_bpf_runs(struct perf_env *env, int event)
{
	if (perf_env__has_bpf_runs(env))
		perf_env__iterate_bpf_prog_info(env, bpf_prog_info_node__read_runs, &event);
}

/**
 * bpf_progs__can_read - may perf read the programs of the kernel?
 *
 * Capabilities don't tell: those of a user namespace are not enough.
 */
bool bpf_progs__can_read(void)
{
	u32 id;

	return !bpf_prog_get_next_id(0, &id) || errno == ENOENT;
}

/**
 * perf_env__fetch_bpf_progs - read the info of all programs that are loaded
 * @env: gets the info of those that it does not have
 * @cb: called for each of them, returns 0 or -errno
 * @data: passed to @cb
 * @counts: as in perf_env__add_bpf_info(); or NULL
 *
 * A program that cannot be read does not affect the others.
 *
 * Return: 0, also if the kernel is too old or perf lacks the privilege; else -errno.
 */
int perf_env__fetch_bpf_progs(struct perf_env *env,
			      int (*cb)(struct bpf_prog_info_node *node, void *data),
			      void *data, struct bpf_counts *counts)
{
	struct bpf_counts unused = {};
	struct bpf_prog_info_node *node;
	u32 id = 0;
	int err;

	while (!bpf_prog_get_next_id(id, &id)) {
		node = perf_env__fetch_bpf_prog(env, id, counts ?: &unused);
		if (!IS_ERR(node) && cb(node, data))
			pr_debug("Cannot write records of BPF program %u\n", id);
	}
	err = errno;
	if (err == ENOENT)
		return 0;
	pr_debug("%s: can't get next program: %s%s\n", __func__, strerror(err),
		 err == EINVAL ? " -- kernel too old?" : "");
	/* don't report error on old kernel, EPERM or no bpf() system call */
	return err == EINVAL || err == EPERM || err == ENOSYS ? 0 : -err;
}
