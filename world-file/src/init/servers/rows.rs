//! The table of well-known servers.

use super::{IMAGE_MEMORY, Probe, Server, Start};

/// A server without state whose program needs no special settings. Most rows start from it.
const PLAIN: Server = Server {
    packages: &[],
    images: &[],
    programs: &[],
    port: 0,
    probe: Probe::Talk { send: "", expect: "" },
    image_env: &[],
    image_command: &[],
    image_memory: IMAGE_MEMORY,
    memory: "160M",
    start: Start::None,
    user: None,
    env: &[],
    state: None,
    load: &[],
};

/// Probe that accepts any HTTP/1 answer, whatever its status.
const HTTP_ANSWER: Probe = Probe::Talk { send: "GET / HTTP/1.0\r\n\r\n", expect: "HTTP/1." };

/// All well-known servers.
pub(in crate::init) static SERVERS: &[Server] = &[
    Server {
        packages: &["redis-server"],
        images: &["redis", "valkey"],
        programs: &["redis-server", "valkey-server"],
        port: 6379,
        probe: Probe::Talk { send: "PING\r\n", expect: "+PONG" },
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
        state: Some("64M"),
        load: &["redis-cli", "-r", "100", "-i", "0.01", "INCR", "everett"],
        ..PLAIN
    },
    Server {
        packages: &["memcached"],
        images: &["memcached"],
        programs: &["memcached"],
        port: 11211,
        probe: Probe::Talk { send: "version\r\n", expect: "VERSION" },
        start: Start::Argv(&["memcached", "-l", "0.0.0.0", "-m", "64"]),
        user: Some("memcache"),
        ..PLAIN
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
        state: Some("256M"),
        ..PLAIN
    },
    Server {
        packages: &["etcd-server"],
        images: &["etcd"],
        programs: &["etcd"],
        port: 2379,
        probe: Probe::Talk { send: "GET /health HTTP/1.0\r\n\r\n", expect: "\"health\":\"true\"" },
        memory: "256M",
        start: Start::Script(
            r#"
self=$(hostname)
peers=
for name in @NODES@; do
    peers="$peers${peers:+,}$name=http://$name:2380"
done
exec etcd --name "$self" --data-dir /data/etcd --logger=zap --log-level warn \
    --listen-client-urls http://0.0.0.0:2379 --advertise-client-urls "http://$self:2379" \
    --listen-peer-urls http://0.0.0.0:2380 --initial-advertise-peer-urls "http://$self:2380" \
    --initial-cluster "$peers" --initial-cluster-state new
"#,
        ),
        env: &[("GOMAXPROCS", "1")],
        state: Some("256M"),
        ..PLAIN
    },
    Server {
        packages: &["nginx"],
        images: &["nginx"],
        programs: &["nginx", "nginx-debug"],
        port: 80,
        probe: HTTP_ANSWER,
        start: Start::Argv(&["nginx", "-g", "daemon off;"]),
        ..PLAIN
    },
    Server {
        packages: &["haproxy"],
        programs: &["haproxy"],
        port: 80,
        probe: HTTP_ANSWER,
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
        ..PLAIN
    },
    Server {
        packages: &["mariadb-server", "default-mysql-server"],
        images: &["mariadb", "mysql", "percona", "percona-server"],
        programs: &["mariadbd", "mysqld"],
        port: 3306,
        // The server's first packet contains the name of its authentication plugin: mysql_native_password or
        // caching_sha2_password.
        probe: Probe::Talk { send: "", expect: "_password" },
        image_env: &[("MYSQL_ROOT_PASSWORD", "everett")],
        image_memory: "1G",
        memory: "320M",
        start: Start::Script(
            r#"
set -e
# A database without the mark was interrupted by a loss of power while it was made.
if [ ! -e /data/made ]; then
    rm -rf /data/db
    mariadb-install-db --no-defaults --datadir=/data/db --auth-root-authentication-method=normal --skip-test-db \
        > /tmp/made.log || { cat /tmp/made.log >&2; exit 1; }
    sync
    touch /data/made
    sync
fi
cat > /tmp/users.sql << END
CREATE DATABASE IF NOT EXISTS everett;
CREATE USER IF NOT EXISTS everett@'%';
GRANT ALL ON *.* TO everett@'%';
END
exec mariadbd --no-defaults --datadir=/data/db --bind-address=0.0.0.0 --socket=/tmp/mariadb.sock \
    --pid-file=/tmp/mariadb.pid --skip-name-resolve --init-file=/tmp/users.sql --innodb-buffer-pool-size=16M
"#,
        ),
        user: Some("mysql"),
        state: Some("512M"),
        ..PLAIN
    },
    Server {
        packages: &["zookeeper", "zookeeperd"],
        images: &["zookeeper"],
        programs: &["zkServer.sh"],
        port: 2181,
        // `srvr` is the only four-letter command that is allowed by default. A member without a quorum gives another
        // answer.
        probe: Probe::Talk { send: "srvr", expect: "Zookeeper version" },
        image_env: &[("JVMFLAGS", "-Xmx128m -XX:+UseSerialGC")],
        image_memory: "1G",
        memory: "512M",
        start: Start::Script(
            r#"
set -e
mkdir -p /data/zookeeper
number=0
{
    printf 'tickTime=2000\ninitLimit=10\nsyncLimit=5\ndataDir=/data/zookeeper\nclientPort=2181\nadmin.enableServer=false\n'
    for name in @NODES@; do
        number=$((number + 1))
        [ "$name" != "$(hostname)" ] || echo $number > /data/zookeeper/myid
        echo "server.$number=$name:2888:3888"
    done
} > /tmp/zoo.cfg
exec /usr/share/zookeeper/bin/zkServer.sh start-foreground /tmp/zoo.cfg
"#,
        ),
        user: Some("zookeeper"),
        env: &[("JVMFLAGS", "-Xmx128m -XX:+UseSerialGC -XX:TieredStopAtLevel=1"), ("ZOO_LOG_DIR", "/tmp")],
        state: Some("128M"),
        ..PLAIN
    },
    Server {
        packages: &["rabbitmq-server"],
        images: &["rabbitmq"],
        programs: &["rabbitmq-server"],
        port: 5672,
        // The protocol header of AMQP 0-9-1. The server answers with its properties.
        probe: Probe::Talk { send: "AMQP\0\0\t\u{1}", expect: "RabbitMQ" },
        image_memory: "768M",
        memory: "512M",
        start: Start::Script(
            r#"
set -e
number=0
{
    echo 'loopback_users = none'
    echo 'cluster_formation.peer_discovery_backend = classic_config'
    for name in @NODES@; do
        number=$((number + 1))
        echo "cluster_formation.classic_config.nodes.$number = rabbit@$name"
    done
} > /tmp/rabbitmq.conf
# Debian's wrapper of the same name sends the output to files.
exec /usr/lib/rabbitmq/bin/rabbitmq-server
"#,
        ),
        user: Some("rabbitmq"),
        env: &[
            ("HOME", "/data"),
            ("RABBITMQ_CONFIG_FILE", "/tmp/rabbitmq"),
            ("RABBITMQ_LOGS", "-"),
            ("RABBITMQ_MNESIA_BASE", "/data/mnesia"),
            ("RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS", "-setcookie everett"),
            // With this variable, the script `rabbitmq-server` replaces itself with the server (exec). The agent
            // (Everett's program in the guest) therefore sees the server's exit status.
            ("RUNNING_UNDER_SYSTEMD", "yes"),
        ],
        state: Some("256M"),
        ..PLAIN
    },
    Server {
        packages: &["mosquitto"],
        images: &["eclipse-mosquitto", "mosquitto"],
        programs: &["mosquitto"],
        port: 1883,
        // An MQTT 3.1.1 CONNECT packet with an empty client identifier. The server accepts it with CONNACK.
        probe: Probe::Talk { send: "\u{10}\u{c}\0\u{4}MQTT\u{4}\u{2}\0<\0\0", expect: " \u{2}\0\0" },
        // With the image's own configuration, no other machine can reach the server.
        image_command: &["mosquitto", "-c", "/mosquitto-no-auth.conf"],
        start: Start::Script(
            r#"
printf 'listener 1883 0.0.0.0\nallow_anonymous true\npersistence true\npersistence_location /data/\nautosave_interval 1\n' \
    > /tmp/mosquitto.conf
exec mosquitto -c /tmp/mosquitto.conf
"#,
        ),
        user: Some("mosquitto"),
        state: Some("64M"),
        ..PLAIN
    },
    Server {
        packages: &["nats-server"],
        images: &["nats"],
        programs: &["nats-server"],
        port: 4222,
        // The server speaks first.
        probe: Probe::Talk { send: "", expect: "INFO {" },
        memory: "192M",
        start: Start::Script(
            r#"
self=$(hostname)
set -- --name "$self" --addr 0.0.0.0 --jetstream --store_dir /data
count=0
routes=
for name in @NODES@; do
    count=$((count + 1))
    routes="$routes${routes:+,}nats://$name:6222"
done
if [ $count -gt 1 ]; then
    set -- "$@" --cluster_name everett --cluster nats://0.0.0.0:6222 --routes "$routes"
fi
exec nats-server "$@"
"#,
        ),
        user: Some("nats"),
        env: &[("GOMAXPROCS", "1")],
        state: Some("128M"),
        ..PLAIN
    },
    Server {
        images: &["kafka", "cp-kafka", "kafka-native", "redpanda"],
        programs: &["redpanda"],
        port: 9092,
        // A request ApiVersions, version 0, with the correlation ID 1, from the client "everett". The answer repeats
        // the correlation ID and reports no error.
        probe: Probe::Talk {
            send: "\0\0\0\u{11}\0\u{12}\0\0\0\0\0\u{1}\0\u{7}everett",
            expect: "\0\0\0\u{1}\0\0",
        },
        image_memory: "1536M",
        memory: "1536M",
        ..PLAIN
    },
];
