/* SPDX-License-Identifier: GPL-2.0 */
/* What the demo's BPF programs and their loader agree on. */
#ifndef DEMO_FLOW_H
#define DEMO_FLOW_H

/* Traffic for other ports passes untouched. */
#define FLOW_PORT	47000
#define FLOW_MAX	256
#define HASHED_BYTES	1024
#define SCANNED_BYTES	128
#define LATENCY_SLOTS	16

enum flow_class {
	FLOW_BULK,
	FLOW_CHATTY,
	FLOW_LIMITED,
	FLOW_CLASSES,
};

/* One UDP flow, counted since its first packet. */
struct flow {
	__u64 packets;
	__u64 bytes;
	__u64 tokens;
	__u64 refilled_ns;
	__u64 digest;
	__u64 classes[FLOW_CLASSES];
};

#endif
