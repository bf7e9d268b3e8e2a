// SPDX-License-Identifier: GPL-2.0
/*
 * Instances that put objects of a type of their own into maps: a kptr, a list, a tree. The
 * kernel must have no structures of these names.
 */
#include <vmlinux.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include "bpf_experimental.h"

struct own_item {
	int value;
};

struct own_list_item {
	struct bpf_list_node node;
	int value;
};

struct own_tree_item {
	struct bpf_rb_node node;
	int value;
};

struct slot {
	struct own_item __kptr *item;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, int);
	__type(value, struct slot);
} slots SEC(".maps");

/* each lock is in the map of what it protects */
struct bpf_list_head list SEC(".bss.list") __hidden __contains(own_list_item, node);
struct bpf_spin_lock list_lock SEC(".bss.list") __hidden;
struct bpf_rb_root tree SEC(".bss.tree") __hidden __contains(own_tree_item, node);
struct bpf_spin_lock tree_lock SEC(".bss.tree") __hidden;

SEC("tc")
int own_kptr(struct __sk_buff *ctx)
{
	struct own_item *item;
	struct slot *slot;
	int key = 0;

	slot = bpf_map_lookup_elem(&slots, &key);
	if (!slot)
		return 3;
	item = bpf_obj_new(typeof(*item));
	if (!item)
		return 1;
	item->value = 7;
	item = bpf_kptr_xchg(&slot->item, item);
	if (item)
		bpf_obj_drop(item);
	item = bpf_kptr_xchg(&slot->item, NULL);
	if (!item)
		return 2;
	key = item->value;
	bpf_obj_drop(item);
	return key;
}

SEC("tc")
int own_list(struct __sk_buff *ctx)
{
	struct own_list_item *item = bpf_obj_new(typeof(*item));
	struct bpf_list_node *node;
	int value;

	if (!item)
		return 1;
	item->value = 7;
	bpf_spin_lock(&list_lock);
	bpf_list_push_front(&list, &item->node);
	node = bpf_list_pop_back(&list);
	bpf_spin_unlock(&list_lock);
	if (!node)
		return 2;
	item = container_of(node, struct own_list_item, node);
	value = item->value;
	bpf_obj_drop(item);
	return value;
}

static bool less(struct bpf_rb_node *a, const struct bpf_rb_node *b)
{
	return container_of(a, struct own_tree_item, node)->value <
	       container_of(b, struct own_tree_item, node)->value;
}

SEC("tc")
int own_tree(struct __sk_buff *ctx)
{
	struct own_tree_item *item = bpf_obj_new(typeof(*item));
	struct bpf_rb_node *node;
	int value;

	if (!item)
		return 1;
	item->value = 7;
	bpf_spin_lock(&tree_lock);
	bpf_rbtree_add(&tree, &item->node, less);
	node = bpf_rbtree_first(&tree);
	if (!node) {
		bpf_spin_unlock(&tree_lock);
		return 2;
	}
	node = bpf_rbtree_remove(&tree, node);
	bpf_spin_unlock(&tree_lock);
	if (!node)
		return 3;
	item = container_of(node, struct own_tree_item, node);
	value = item->value;
	bpf_obj_drop(item);
	return value;
}

char _license[] SEC("license") = "GPL";
