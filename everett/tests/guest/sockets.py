# Opens sockets and files of many kinds, and leaves them as they are.

import ctypes, os, select, socket, struct, sys, time

keep = []

def listener(port, address='127.0.0.1', family=socket.AF_INET, options=()):
    server = socket.socket(family, socket.SOCK_STREAM)
    for level, option, value in options:
        server.setsockopt(level, option, value)
    server.bind((address, port))
    server.listen(5)
    keep.append(server)
    return server

def connect(port, address='127.0.0.1', family=socket.AF_INET):
    client = socket.socket(family, socket.SOCK_STREAM)
    client.connect((address, port))
    return client

# A process in a network namespace of its own.
child = os.fork()
if child == 0:
    ctypes.CDLL(None).unshare(0x40000000)
    listener(7200, '0.0.0.0')
    other = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    other.bind('\0other')
    datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    datagrams.bind(('0.0.0.0', 7201))
    open('/tmp/child', 'w').close()
    time.sleep(1000)

# Accepted and not accepted, with data that the program has not read.
server = listener(7001)
accepted = connect(7001)
peer, _ = server.accept()
waiting = connect(7001)
waiting.send(b'hello')
before = time.monotonic()
peer.send(b'x' * 100)
after = time.monotonic()
print('sent', peer.getpeername()[1], before, after)
keep += [accepted, peer, waiting]

# TIME-WAIT.
server = listener(7002)
client = connect(7002)
peer, _ = server.accept()
print('closed', client.getsockname()[1], time.monotonic())
client.close()
peer.recv(1)
peer.close()

# FIN-WAIT-2 and CLOSE-WAIT.
server = listener(7003)
client = connect(7003)
keep.append(server.accept()[0])
client.close()

# FIN-WAIT-1 of a closed socket, whose peer has no room for its data.
server = listener(7004)
client = connect(7004)
keep.append(server.accept()[0])
client.setblocking(False)
try:
    while True:
        client.send(b'y' * 65536)
except BlockingIOError:
    pass
client.close()

# SYN-RECV: the server waits for the first data before it counts the connection.
listener(7005, options=[(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, 100)])
keep.append(connect(7005))

# IP version 6, and version 4 on a socket of version 6.
server = listener(7006, '::1', socket.AF_INET6)
keep.append(connect(7006, '::1', socket.AF_INET6))
keep.append(server.accept()[0])
server = listener(7007, '::', socket.AF_INET6)
client = connect(7007)
peer, _ = server.accept()
peer.close()
client.recv(1)
client.close()
keep.append(connect(7007))

for family, address in (socket.AF_INET, '127.0.0.1'), (socket.AF_INET6, '::1'):
    receiver = socket.socket(family, socket.SOCK_DGRAM)
    receiver.bind((address, 7101))
    sender = socket.socket(family, socket.SOCK_DGRAM)
    sender.connect((address, 7101))
    sender.send(b'datagram')
    raw = socket.socket(family, socket.SOCK_RAW, 200)
    keep += [receiver, sender, raw]

packet = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x88b5))
packet.bind(('lo', 0x88b5))
keep += [packet, socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)]

server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
server.bind('/tmp/server.sock')
server.listen(3)
for n in range(2):
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    client.connect('/tmp/server.sock')
    client.send(b'z' * 7)
    keep.append(client)
peer, _ = server.accept()
peer.recv(3)
datagrams = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
datagrams.bind('\0ever\0ett')
sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
sender.sendto(b'1234', '\0ever\0ett')
keep += [server, peer, datagrams, sender, *socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)]

# Files.
deleted = open('/tmp/deleted', 'wb', 0)
deleted.write(b'12345')
os.remove('/tmp/deleted')
appended = open('/tmp/appended', 'ab', 0)
appended.write(b'123')
os.lseek(os.open('/etc/passwd', os.O_RDONLY), 17, os.SEEK_SET)
os.open('/tmp', os.O_RDONLY | os.O_DIRECTORY)
os.open('/dev/null', os.O_RDWR)
os.open('/proc/self/ns/net', os.O_RDONLY)
os.open('/proc/self/status', os.O_RDONLY)
os.mkfifo('/tmp/fifo')
os.open('/tmp/fifo', os.O_RDWR)
os.memfd_create('memory')
os.pidfd_open(os.getpid())
reader, writer = os.pipe()
os.write(writer, b'twelve bytes')
event = os.eventfd(21)
epoll = select.epoll()
for descriptor in event, reader, server.fileno():
    epoll.register(descriptor, select.EPOLLIN)

info = accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
words = struct.unpack_from('24I', info, 8)
acked, received, segments_out, segments_in = struct.unpack_from('QQII', info, 120)
print('info', accepted.getsockname()[1],
      f'snd_wscale:{info[6] & 15} rcv_wscale:{info[6] >> 4} rto_ms:{words[0] // 1000} ato_ms:{words[1] // 1000} mss:{words[2]} rcvmss:{words[3]}'
      f' rtt_us:{words[15]} rttvar_us:{words[16]} cwnd:{words[18]} advmss:{words[19]} retrans_total:{words[23]}'
      f' bytes_acked:{acked} bytes_received:{received} segs_out:{segments_out} segs_in:{segments_in}')
while not os.path.exists('/tmp/child'):
    time.sleep(0.01)
print('opened', os.getpid(), child, flush=True)
time.sleep(1000)
