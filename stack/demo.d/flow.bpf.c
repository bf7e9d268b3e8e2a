// SPDX-License-Identifier: GPL-2.0
/*
 * The demo's workload: a small flow meter, made to be profiled.
 *
 * XDP on the loopback device parses each UDP packet, hashes its payload, looks
 * its flow up, and classifies it with a token bucket.  tc counts the words of
 * the payload, which is what bpf_loop() and a callback look like in a profile.
 * fentry and fexit on udp_sendmsg() measure how long sending takes, so that
 * BPF trampolines run too.
 *
 * Each step is a function of its own (a BPF subprogram with its own symbol and
 * its own text), and is kept from being inlined: that is what the annotated
 * source is to show.  Nothing is dropped: the verdict only counts.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/pkt_cls.h>
#include <linux/udp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include "flow.h"

#define NSEC_PER_MSEC	1000000ULL
#define BUCKET_TOKENS	(64 * 1024)
#define TOKENS_PER_MSEC	512
#define SMALL_PACKET	128

/* A parsed packet: its flow, and the payload's place in it. */
struct packet {
	__u32 saddr;
	__u32 daddr;
	__u16 sport;
	__u16 dport;
	__u16 offset;
	__u16 length;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, FLOW_MAX);
	__type(key, __u32);
	__type(value, struct flow);
} flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, LATENCY_SLOTS);
	__type(key, __u32);
	__type(value, __u64);
} latency SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, FLOW_MAX);
	__type(key, __u64);
	__type(value, __u64);
} sending SEC(".maps");

/* The copy of a payload that is walked: packet data itself would need a check
 * against its end for each byte.
 */
struct scratch {
	__u8 bytes[HASHED_BYTES];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, struct scratch);
} scratch SEC(".maps");

/* parse_packet: true when the packet is UDP over IPv4 for the demo's port. */
static __noinline int parse_packet(void *data, void *end, struct packet *pkt)
{
	struct ethhdr *eth = data;
	struct iphdr *ip = (void *)(eth + 1);
	struct udphdr *udp = (void *)(ip + 1);

	if ((void *)(udp + 1) > end)
		return 0;
	if (eth->h_proto != bpf_htons(ETH_P_IP) || ip->protocol != IPPROTO_UDP ||
	    ip->ihl != 5 || udp->dest != bpf_htons(FLOW_PORT))
		return 0;

	pkt->saddr = ip->saddr;
	pkt->daddr = ip->daddr;
	pkt->sport = bpf_ntohs(udp->source);
	pkt->dport = bpf_ntohs(udp->dest);
	pkt->offset = sizeof(*eth) + sizeof(*ip) + sizeof(*udp);
	pkt->length = bpf_ntohs(udp->len) - sizeof(*udp);
	return 1;
}

static __always_inline __u32 rotate(__u32 word, int bits)
{
	return word << bits | word >> (32 - bits);
}

/* mix_byte: one step of the hash. */
static __always_inline __u32 mix_byte(__u32 hash, __u8 byte)
{
	hash ^= byte;
	hash *= 0x01000193;
	hash = rotate(hash, 13);
	return hash + (hash << 3);
}

/* flow_hash: hash of the addresses, the ports and the payload's words. */
static __noinline __u32 flow_hash(struct packet *pkt, struct scratch *payload)
{
	__u32 hash = pkt->saddr ^ rotate(pkt->daddr, 7);
	__u8 byte;
	__u32 i;

	hash ^= pkt->sport << 16 | pkt->dport;
	for (i = 0; i < HASHED_BYTES; i++) {
		if (i >= pkt->length)
			break;
		byte = payload->bytes[i];
		if (byte == ' ')
			hash = rotate(hash, 5);
		else
			hash = mix_byte(hash, byte);
	}
	return hash;
}

/* take_tokens: true when the flow may have `count` more bytes now. */
static __noinline int take_tokens(struct flow *flow, __u64 count)
{
	__u64 now = bpf_ktime_get_ns();
	__u64 passed = (now - flow->refilled_ns) / NSEC_PER_MSEC;

	if (passed) {
		flow->tokens += passed * TOKENS_PER_MSEC;
		if (flow->tokens > BUCKET_TOKENS)
			flow->tokens = BUCKET_TOKENS;
		flow->refilled_ns = now;
	}
	if (flow->tokens < count)
		return 0;
	flow->tokens -= count;
	return 1;
}

/* classify: what kind of flow is it, by this packet and the bucket? */
static __noinline int classify(struct flow *flow, struct packet *pkt)
{
	if (!take_tokens(flow, pkt->length))
		return FLOW_LIMITED;
	return pkt->length < SMALL_PACKET ? FLOW_CHATTY : FLOW_BULK;
}

/* find_flow: the flow of this port, made when it is new. */
static __noinline struct flow *find_flow(__u32 port)
{
	struct flow *flow = bpf_map_lookup_elem(&flows, &port);
	struct flow fresh = { .tokens = BUCKET_TOKENS };

	if (flow)
		return flow;
	fresh.refilled_ns = bpf_ktime_get_ns();
	bpf_map_update_elem(&flows, &port, &fresh, BPF_NOEXIST);
	return bpf_map_lookup_elem(&flows, &port);
}

SEC("xdp")
int flow_meter(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data;
	void *end = (void *)(long)ctx->data_end;
	struct scratch *payload;
	struct packet pkt = {};
	__u32 zero = 0, size;
	struct flow *flow;
	int class;

	if (!parse_packet(data, end, &pkt))
		return XDP_PASS;
	payload = bpf_map_lookup_elem(&scratch, &zero);
	flow = find_flow(pkt.sport);
	if (!payload || !flow)
		return XDP_PASS;
	size = pkt.length < HASHED_BYTES ? pkt.length : HASHED_BYTES;
	if (!size || bpf_xdp_load_bytes(ctx, pkt.offset, payload->bytes, size))
		return XDP_PASS;

	class = classify(flow, &pkt);
	if (class >= 0 && class < FLOW_CLASSES)
		flow->classes[class]++;
	flow->packets++;
	flow->bytes += pkt.length;
	flow->digest ^= flow_hash(&pkt, payload);
	return XDP_PASS;
}

struct word_scan {
	struct scratch *payload;
	__u64 words;
	int inside;
};

/* count_word: one byte of the payload; called by bpf_loop(). */
static int count_word(__u64 index, struct word_scan *scan)
{
	__u8 byte;

	if (index >= SCANNED_BYTES)
		return 1;
	byte = scan->payload->bytes[index];
	if (byte == ' ') {
		scan->inside = 0;
	} else if (!scan->inside) {
		scan->inside = 1;
		scan->words++;
	}
	return 0;
}

SEC("tcx/ingress")
int word_meter(struct __sk_buff *skb)
{
	__u32 offset = sizeof(struct ethhdr) + sizeof(struct iphdr) +
		       sizeof(struct udphdr);
	struct word_scan scan = {};
	__u32 one = 1;

	if (skb->len < offset + SCANNED_BYTES)
		return TCX_NEXT;
	scan.payload = bpf_map_lookup_elem(&scratch, &one);
	if (!scan.payload)
		return TCX_NEXT;
	if (bpf_skb_load_bytes(skb, offset, scan.payload->bytes,
			       SCANNED_BYTES))
		return TCX_NEXT;
	bpf_loop(SCANNED_BYTES, count_word, &scan, 0);
	skb->mark = scan.words;
	return TCX_NEXT;
}

/* slot_of: the power of two a duration falls under. */
static __noinline __u32 slot_of(__u64 usec)
{
	__u32 slot = 0;

	while (usec > 1 && slot < LATENCY_SLOTS - 1) {
		usec >>= 1;
		slot++;
	}
	return slot;
}

SEC("fentry/udp_sendmsg")
int send_begin(void *ctx)
{
	__u64 thread = bpf_get_current_pid_tgid();
	__u64 now = bpf_ktime_get_ns();

	bpf_map_update_elem(&sending, &thread, &now, BPF_ANY);
	return 0;
}

SEC("fexit/udp_sendmsg")
int send_end(void *ctx)
{
	__u64 thread = bpf_get_current_pid_tgid();
	__u64 *begin = bpf_map_lookup_elem(&sending, &thread);
	__u64 *count;
	__u32 slot;

	if (!begin)
		return 0;
	slot = slot_of((bpf_ktime_get_ns() - *begin) / 1000);
	count = bpf_map_lookup_elem(&latency, &slot);
	if (count)
		(*count)++;
	return 0;
}

char _license[] SEC("license") = "GPL";
