//! Well-known servers.
//!
//! A row says how Debian's package is started so that machines reach the server, how a client sees that it serves, and
//! where its state is. Each service runs in the foreground, writes to standard output, and starts again on the disk that a
//! loss of power left behind.

/// A well-known server.
#[derive(Debug)]
pub(super) struct Server {
    /// Debian packages with the server.
    pub(super) packages: &'static [&'static str],
    /// Last parts of the names of container images with the server.
    pub(super) images: &'static [&'static str],
    /// Names of its program. A container whose command begins with another program runs something else.
    pub(super) programs: &'static [&'static str],
    /// TCP port.
    pub(super) port: u16,
    /// Whether it serves, in its own protocol.
    pub(super) probe: Probe,
    /// Environment without which its container images do not start.
    pub(super) image_env: &'static [(&'static str, &'static str)],
    /// Memory of a machine.
    pub(super) memory: &'static str,
    /// Service of the Debian package.
    pub(super) start: Start,
    /// User of Debian's package that runs it; root if `None`.
    pub(super) user: Option<&'static str>,
    /// Environment of the service.
    pub(super) env: &'static [(&'static str, &'static str)],
    /// Size of the disk at [`STATE`] with the server's state; `None` without state.
    pub(super) state: Option<&'static str>,
    /// Command that puts load on the server, and ends with status 0 when it has.
    pub(super) load: &'static [&'static str],
}

/// Folder of a server's state.
pub(super) const STATE: &str = "/data";
/// Text in a script that stands for `NAME=http://NAME:2380` of all machines.
pub(super) const CLUSTER: &str = "@CLUSTER@";

/// How a client sees that a server serves.
#[derive(Debug)]
pub(super) enum Probe {
    /// Bytes to send, and a part of the answer.
    Talk {
        /// Bytes to send.
        send: &'static str,
        /// Part of the answer.
        expect: &'static str,
    },
    /// A program of the package that ends with status 0.
    Command(&'static [&'static str]),
}

/// How a service is started.
#[derive(Debug)]
pub(super) enum Start {
    /// Argument vector.
    Argv(&'static [&'static str]),
    /// Script of sh.
    Script(&'static str),
}

/// Returns the server of a Debian package, which may have a version (`redis-server=5:7.0.15-1`).
pub(super) fn of_package(name: &str) -> Option<&'static Server> {
    let name = name.split('=').next().unwrap_or(name);
    SERVERS.iter().find(|server| server.packages.contains(&name))
}

/// Returns the server of a container image, by the last part of its name: `docker.io/library/redis:7` is `redis`.
pub(super) fn of_image(name: &str) -> Option<&'static Server> {
    let name = image_name(name);
    SERVERS.iter().find(|server| server.images.contains(&name))
}

/// Returns the last part of an image's name, without tag and digest.
pub(super) fn image_name(name: &str) -> &str {
    let name = name.split('@').next().unwrap_or(name);
    let last = name.rsplit('/').next().unwrap_or(name);
    last.split(':').next().unwrap_or(last)
}

/// The servers.
pub(super) static SERVERS: &[Server] = &[
    Server {
        packages: &["redis-server"],
        images: &["redis", "valkey"],
        programs: &["redis-server", "valkey-server"],
        port: 6379,
        probe: Probe::Talk { send: "PING\r\n", expect: "+PONG" },
        image_env: &[],
        memory: "160M",
        start: Start::Argv(&[
            "redis-server",
            "--dir",
            "/data",
            "--bind",
            "0.0.0.0",
            "--protected-mode",
            "no",
            "--appendonly",
            "yes",
        ]),
        user: Some("redis"),
        env: &[],
        state: Some("64M"),
        load: &["redis-cli", "-r", "100", "-i", "0.01", "INCR", "everett"],
    },
    Server {
        packages: &["memcached"],
        images: &["memcached"],
        programs: &["memcached"],
        port: 11211,
        probe: Probe::Talk { send: "version\r\n", expect: "VERSION" },
        image_env: &[],
        memory: "160M",
        start: Start::Argv(&["memcached", "-l", "0.0.0.0", "-m", "64"]),
        user: Some("memcache"),
        env: &[],
        state: None,
        load: &[],
    },
    Server {
        packages: &["postgresql", "postgresql-15"],
        images: &["postgres"],
        programs: &["postgres"],
        port: 5432,
        probe: Probe::Command(&["pg_isready", "-q", "-h", "127.0.0.1"]),
        image_env: &[("POSTGRES_PASSWORD", "everett")],
        memory: "256M",
        start: Start::Script(
            r#"
set -e
bin=$(ls -d /usr/lib/postgresql/*/bin | tail -n 1)
# A cluster without the mark was interrupted by a loss of power while it was made.
if [ ! -e /data/made ]; then
    rm -rf /data/cluster
    $bin/initdb -D /data/cluster --auth=trust --no-instructions > /dev/null
    echo "host all all 10.0.0.0/16 trust" >> /data/cluster/pg_hba.conf
    sync
    touch /data/made
    sync
fi
# After a loss of power, another process may have the number in this file.
rm -f /data/cluster/postmaster.pid
exec $bin/postgres -D /data/cluster -c listen_addresses='*' -c unix_socket_directories=/tmp -c shared_buffers=16MB
"#,
        ),
        user: Some("postgres"),
        env: &[],
        state: Some("256M"),
        load: &[],
    },
    Server {
        packages: &["etcd-server"],
        images: &["etcd"],
        programs: &["etcd"],
        port: 2379,
        probe: Probe::Talk { send: "GET /health HTTP/1.0\r\n\r\n", expect: "\"health\":\"true\"" },
        image_env: &[],
        memory: "256M",
        start: Start::Script(
            r#"
self=$(hostname)
exec etcd --name "$self" --data-dir /data/etcd --logger=zap --log-level warn \
    --listen-client-urls http://0.0.0.0:2379 --advertise-client-urls "http://$self:2379" \
    --listen-peer-urls http://0.0.0.0:2380 --initial-advertise-peer-urls "http://$self:2380" \
    --initial-cluster @CLUSTER@ --initial-cluster-state new
"#,
        ),
        user: None,
        env: &[("GOMAXPROCS", "1")],
        state: Some("256M"),
        load: &[],
    },
    Server {
        packages: &["nginx"],
        images: &["nginx"],
        programs: &["nginx", "nginx-debug"],
        port: 80,
        probe: Probe::Talk { send: "GET / HTTP/1.0\r\n\r\n", expect: "HTTP/1." },
        image_env: &[],
        memory: "160M",
        start: Start::Argv(&["nginx", "-g", "daemon off;"]),
        user: None,
        env: &[],
        state: None,
        load: &[],
    },
    Server {
        packages: &["haproxy"],
        images: &[],
        programs: &["haproxy"],
        port: 80,
        probe: Probe::Talk { send: "GET / HTTP/1.0\r\n\r\n", expect: "HTTP/1." },
        image_env: &[],
        memory: "160M",
        start: Start::Script(
            r#"
# The place for your own configuration; this one answers every request itself.
cat > /run/haproxy.cfg << END
defaults
    mode http
    timeout client 10s
    timeout server 10s
    timeout connect 5s
frontend web
    bind :80
    http-request return status 200
END
exec haproxy -db -f /run/haproxy.cfg
"#,
        ),
        user: None,
        env: &[],
        state: None,
        load: &[],
    },
];
