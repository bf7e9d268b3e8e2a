/* SPDX-License-Identifier: GPL-2.0 */
/* The data behind bpf_prog_info, for live and for retained programs. */
#ifndef _KERNEL_BPF_PROG_INFO_H
#define _KERNEL_BPF_PROG_INFO_H

#include <linux/bpf.h>
#include <linux/fs.h>
#include <linux/list.h>
#include <linux/perf_event.h>
#include <linux/refcount.h>

/* The JITed code of one function of a program */
struct bpf_prog_text {
	unsigned long	addr;
	u32		len;
	const void	*image;		/* len bytes */
	u8		tag[BPF_TAG_SIZE];
};

struct bpf_prog_kstats {
	u64 nsecs;
	u64 cnt;
	u64 misses;
};

/* An open event with attr.bpf_retain */
struct bpf_prog_retain_user {
	struct list_head	node;
	struct mem_cgroup	*memcg;		/* of the task that opened it */
};

/* What is retained of the programs of one user */
struct bpf_prog_retain_share {
	struct list_head	node;		/* in the list of shares */
	struct list_head	order;		/* the programs, oldest first */
	struct user_struct	*user;
	size_t			bytes;		/* with BTFs that no one else brought */
};

/*
 * Retained information of an unloaded program, see prog_retain.c. The fields from
 * ->prog on are complete and constant once ->pending is false.
 */
struct bpf_prog_retained {
	struct hlist_node	hash;		/* by ->id */
	struct list_head	order;		/* oldest first */
	refcount_t		ref;
	u32			id;
	bool			pending;	/* until bpf_prog_retain_fill() is done */
	bool			opened;		/* bpf_prog_retained_fd() returned a file */
	size_t			size;		/* bytes, without the BTF */
	struct bpf_prog_retain_share *share;	/* of the user who loaded it */

	struct bpf_prog		*prog;		/* only for bpf_prog_info, never runs */
	struct bpf_prog_text	*texts;		/* including hidden functions */
	void			*images;	/* code that ->texts point to */
	u32			*map_ids;
	u32			nr_texts;
	u32			nr_map_ids;
	u32			attach_btf_obj_id;
	struct bpf_prog_kstats	stats;
};

void bpf_prog_get_stats(const struct bpf_prog *prog, struct bpf_prog_kstats *stats);
bool bpf_prog_id_is_ending(u32 id);
u32 bpf_prog_attach_btf_obj_id(const struct bpf_prog *prog);
u32 bpf_prog_nr_texts(const struct bpf_prog *prog, bool hidden);
struct bpf_prog_text bpf_prog_text_at(const struct bpf_prog *prog, u32 i);

#ifdef CONFIG_PERF_EVENTS
void bpf_prog_retain_begin(struct bpf_prog *prog);
bool bpf_prog_retain_fill(struct bpf_prog *prog);

/* Has @prog an entry? bpf_prog_retain_fill() must fill it before @prog is freed. */
static inline bool bpf_prog_has_entry(const struct bpf_prog *prog)
{
	return prog->aux->retaining;
}
#else
static inline void bpf_prog_retain_begin(struct bpf_prog *prog)		{ }
static inline bool bpf_prog_retain_fill(struct bpf_prog *prog)		{ return false; }
static inline bool bpf_prog_has_entry(const struct bpf_prog *prog)	{ return false; }
#endif

/* Return: the flags of the BPF_EVENT record of its unload. */
static inline u16 bpf_prog_unload_flags(const struct bpf_prog *prog)
{
	return bpf_prog_has_entry(prog) ? PERF_BPF_EVENT_F_RETAINED : 0;
}

#endif /* _KERNEL_BPF_PROG_INFO_H */
