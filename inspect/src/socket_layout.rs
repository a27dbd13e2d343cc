//! Places of the kernel's fields that describe sockets.

use everett_symbols::kernel::btf::{Btf, Field};

use crate::Error;
use crate::layout::places;

places! {
    /// Places of fields in the structures of sockets.
    SocketPlaces {
        net_list = "net.list";
        net_number = "net.ns.inum";
        hash_buckets = "inet_hashinfo.ehash";
        hash_mask = "inet_hashinfo.ehash_mask";
        listen_buckets = "inet_hashinfo.lhash2";
        listen_mask = "inet_hashinfo.lhash2_mask";
        listen_head = "inet_listen_hashbucket.nulls_head";
        udp_buckets = "udp_table.hash";
        udp_mask = "udp_table.mask";
        udp_head = "udp_hslot.head";
        family = "sock_common.skc_family";
        state = "sock_common.skc_state";
        remote_4 = "sock_common.skc_daddr";
        local_4 = "sock_common.skc_rcv_saddr";
        remote_port = "sock_common.skc_dport";
        number = "sock_common.skc_num";
        remote_6 = "sock_common.skc_v6_daddr";
        local_6 = "sock_common.skc_v6_rcv_saddr";
        interface = "sock_common.skc_bound_dev_if";
        net = "sock_common.skc_net.net";
        node = "sock_common.skc_node";
        nulls_node = "sock_common.skc_nulls_node";
        listener = "sock_common.skc_listener";
        kind = "sock.sk_type";
        protocol = "sock.sk_protocol";
        socket = "sock.sk_socket";
        accept_queue_length = "sock.sk_ack_backlog";
        accept_queue_max = "sock.sk_max_ack_backlog";
        receive_memory = "sock.sk_backlog.rmem_alloc";
        send_memory = "sock.sk_wmem_alloc";
        receive_queue = "sock.sk_receive_queue";
        receive_queue_length = "sock.sk_receive_queue.qlen";
        timer_expires = "sock.sk_timer.expires";
        timer_pending = "sock.sk_timer.entry.pprev";
        packet_bytes = "sk_buff.len";
        packet_control = "sk_buff.cb";
        socket_inode = "socket_alloc.vfs_inode";
        socket_within = "socket_alloc.socket";
        inode_user = "inode.i_uid.val";
        local_port = "inet_sock.inet_sport";
        accept_first = "inet_connection_sock.icsk_accept_queue.rskq_accept_head";
        retransmits = "inet_connection_sock.icsk_retransmits";
        pending = "inet_connection_sock.icsk_pending";
        request_next = "request_sock.dl_next";
        request_sock = "request_sock.sk";
        request_expires = "request_sock.rsk_timer.expires";
        request_timeouts = "request_sock.num_timeout";
        time_wait_state = "inet_timewait_sock.tw_substate";
        time_wait_expires = "inet_timewait_sock.tw_timer.expires";
        write_sequence = "tcp_sock.write_seq";
        unacknowledged = "tcp_sock.snd_una";
        receive_next = "tcp_sock.rcv_nxt";
        read_sequence = "tcp_sock.copied_seq";
        unix_address = "unix_sock.addr";
        unix_peer = "unix_sock.peer";
        unix_name_bytes = "unix_address.len";
        unix_name = "unix_address.name";
        unix_path = "sockaddr_un.sun_path";
        unix_consumed = "unix_skb_parms.consumed";
        @some_kernels
        // Since Linux 6.1, a network namespace can have TCP tables of its own. The kernel's own is `tcp_hashinfo`.
        net_tcp = "net.ipv4.tcp_death_row.hashinfo";
        // Since Linux 6.2, the same holds for UDP.
        net_udp = "net.ipv4.udp_table";
        net_unix = "net.unx.table.buckets";
        net_packet = "net.packet.sklist";
        packet_protocol = "packet_sock.num";
        packet_interface = "packet_sock.ifindex";
        raw_heads = "raw_hashinfo.ht";
        // Before Linux 5.19, listening sockets were in two tables.
        listen_node = "inet_connection_sock.icsk_listen_portaddr_node";
        expires = "inet_connection_sock.icsk_timeout";
        // Instead of it, in kernels after 6.18.
        retransmit_expires = "inet_connection_sock.icsk_retransmit_timer.expires";
        new_retransmit_expires = "sock.tcp_retransmit_timer.expires";
        udp_deficit = "udp_sock.forward_deficit";
        congestion = "inet_connection_sock.icsk_ca_ops";
        congestion_name = "tcp_congestion_ops.name";
        clock_factor = "clocksource.mult";
        clock_shift = "clocksource.shift";
        @lengths
        listen_bucket_bytes = "inet_listen_hashbucket";
        udp_bucket_bytes = "udp_hslot";
    }
}

/// Unit in which the kernel keeps a detail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// The number itself.
    Plain,
    /// The number itself, unless it is the kernel's sign for *no limit*.
    Limit,
    /// Ticks. Shown in milliseconds.
    Ticks,
    /// Tick at which something happened. Shown as a time of the monotonic clock, in milliseconds.
    TickTime,
    /// The number divided by a power of two.
    Shifted(u32),
}

/// Details of a TCP connection: name, place, unit. The names are those of `ss -i` if it has one, and end with the unit.
const DETAILS: &[(&str, &str, Unit)] = &[
    ("snd_wscale", "tcp_sock.rx_opt.snd_wscale", Unit::Plain),
    ("rcv_wscale", "tcp_sock.rx_opt.rcv_wscale", Unit::Plain),
    ("rto_ms", "inet_connection_sock.icsk_rto", Unit::Ticks),
    ("backoff", "inet_connection_sock.icsk_backoff", Unit::Plain),
    ("rtt_us", "tcp_sock.srtt_us", Unit::Shifted(3)),
    ("rttvar_us", "tcp_sock.mdev_us", Unit::Shifted(2)),
    ("ato_ms", "inet_connection_sock.icsk_ack.ato", Unit::Ticks),
    ("mss", "tcp_sock.mss_cache", Unit::Plain),
    ("rcvmss", "inet_connection_sock.icsk_ack.rcv_mss", Unit::Plain),
    ("advmss", "tcp_sock.advmss", Unit::Plain),
    ("cwnd", "tcp_sock.snd_cwnd", Unit::Plain),
    ("ssthresh", "tcp_sock.snd_ssthresh", Unit::Limit),
    ("bytes_sent", "tcp_sock.bytes_sent", Unit::Plain),
    ("bytes_retrans", "tcp_sock.bytes_retrans", Unit::Plain),
    ("bytes_acked", "tcp_sock.bytes_acked", Unit::Plain),
    ("bytes_received", "tcp_sock.bytes_received", Unit::Plain),
    ("segs_out", "tcp_sock.segs_out", Unit::Plain),
    ("segs_in", "tcp_sock.segs_in", Unit::Plain),
    ("data_segs_out", "tcp_sock.data_segs_out", Unit::Plain),
    ("data_segs_in", "tcp_sock.data_segs_in", Unit::Plain),
    ("snd_una", "tcp_sock.snd_una", Unit::Plain),
    ("snd_nxt", "tcp_sock.snd_nxt", Unit::Plain),
    ("write_seq", "tcp_sock.write_seq", Unit::Plain),
    ("rcv_nxt", "tcp_sock.rcv_nxt", Unit::Plain),
    ("copied_seq", "tcp_sock.copied_seq", Unit::Plain),
    ("snd_wnd", "tcp_sock.snd_wnd", Unit::Plain),
    ("rcv_wnd", "tcp_sock.rcv_wnd", Unit::Plain),
    ("unacked", "tcp_sock.packets_out", Unit::Plain),
    ("retrans", "tcp_sock.retrans_out", Unit::Plain),
    ("retrans_total", "tcp_sock.total_retrans", Unit::Plain),
    ("lost", "tcp_sock.lost_out", Unit::Plain),
    ("sacked", "tcp_sock.sacked_out", Unit::Plain),
    ("probes", "inet_connection_sock.icsk_probes_out", Unit::Plain),
    ("rcv_ooopack", "tcp_sock.rcv_ooopack", Unit::Plain),
    ("lastsnd_ms", "tcp_sock.lsndtime", Unit::TickTime),
    ("lastrcv_ms", "inet_connection_sock.icsk_ack.lrcvtime", Unit::TickTime),
    ("lastack_ms", "tcp_sock.rcv_tstamp", Unit::TickTime),
];

/// Place of a detail: its name, its field, and its unit.
pub(crate) type Detail = (&'static str, Field, Unit);

/// Places for sockets.
#[derive(Debug, Clone)]
pub(crate) struct SocketLayout {
    pub(crate) places: SocketPlaces,
    /// Details of a TCP connection that this kernel keeps.
    pub(crate) tcp_details: Vec<Detail>,
}

impl SocketLayout {
    /// Finds all fields.
    pub(crate) fn new(types: &Btf) -> Result<SocketLayout, Error> {
        let detail =
            |(name, path, unit): &(&'static str, &str, Unit)| Some((*name, types.field(path)?, *unit));
        Ok(SocketLayout {
            places: SocketPlaces::new(types)?,
            tcp_details: DETAILS.iter().filter_map(detail).collect(),
        })
    }
}
