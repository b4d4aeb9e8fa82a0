#!/usr/bin/env python3
"""Several hosts on one machine: network namespaces, with a link of a given rate and delay between them.

    hosts.py [--hosts N] [--network RATE,DELAY] [--build FOLDER] COMMAND...   run it on the first host
    hosts.py [...] --link                                         is the link what it says?
    hosts.py [...] --mpirun [--mpi openmpi|mpich] PROGRAM ...     a rank of it on every host

Hosts have the addresses 10.77.0.1 to N; "none" for a network is one as fast as this machine. COMMAND reaches the others by
"$WEFT_AGENT" ADDRESS COMMAND, and finds them in "$WEFT_HOSTS", a line each. A host is a process that does nothing, and its
namespaces end with it: nothing is left when this program ends, however it does.

Wants root, iproute2, util-linux, iptables with NFQUEUE, and FOLDER/tests/relay (ninja tests/relay). RATE as 10Gb or 100Mb, DELAY
in one direction as 50us or 1ms.
"""
import argparse
import os
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

DIES_WITH_US = ["setpriv", "--pdeathsig", "KILL"]
UNITS = {"Gb": 1e9, "Mb": 1e6, "kb": 1e3, "s": 1, "ms": 1e-3, "us": 1e-6}
# Reno slows down only if packets are lost, and the relay loses none.
TUNED = ["net.ipv4.tcp_congestion_control=reno", "net.ipv4.tcp_wmem=4096 131072 33554432"]


def quantity(text):
    number, unit = re.fullmatch(r"([0-9.]+)([a-zA-Z]+)", text).groups()
    return float(number) * UNITS[unit]


class Hosts:
    """A switch and hosts, while the `with` lasts."""

    def __init__(self, n, network, build, settings):
        self.n, self.network, self.build, self.settings, self.started = n, network, build, settings, []

    def start(self, command, **more):
        process = subprocess.Popen(DIES_WITH_US + command, **more)
        self.started.append(process)
        return process

    def namespace(self):
        """The process whose namespaces they are."""
        process = self.start(["unshare", "--net", "--uts", "--mount", "sh", "-c", "mount -t sysfs sysfs /sys && exec sleep infinity"])
        here = os.readlink("/proc/self/ns/net")
        for _ in range(1000):
            if os.readlink(f"/proc/{process.pid}/ns/net") != here and open(f"/proc/{process.pid}/comm").read() == "sleep\n":
                return process.pid
            time.sleep(0.005)
        sys.exit("hosts.py: no namespaces: is this root?")

    def enter(self, host):
        return ["nsenter", "-t", str(self.pids[host]), "-n", "-u", "-m", f"--wd={os.getcwd()}"]

    def on(self, host, text):
        subprocess.run(self.enter(host) + ["sh", "-ec", text], check=True)

    def receive_buffer(self):
        """What is on the way at a time, with room for the kernel's own. The relay has no end to its queue, which a host's own
        network card has: with more, one flow fills it and the others starve."""
        if not self.network:
            return 33554432
        rate, delay = self.network
        return int(400000 + 6 * delay * rate / 8)

    def make(self):
        settings = TUNED + [f"net.ipv4.tcp_rmem=4096 131072 {self.receive_buffer()}"] + self.settings
        self.pids = [self.namespace() for _ in range(self.n + 1)]
        self.on(0, "ip link set lo up; sysctl -qw net.ipv4.ip_forward=1")
        for i in range(1, self.n + 1):
            self.on(0, f"ip link add to{i} address 02:00:00:00:00:{i:02x} type veth "
                    f"peer name eth0 address 02:00:00:00:01:{i:02x} netns {self.pids[i]}; ip link set to{i} up; "
                    f"ip route add 10.77.0.{i} dev to{i}; ip neigh add 10.77.0.{i} lladdr 02:00:00:00:01:{i:02x} dev to{i}")
            self.on(i, f"hostname host{i}; ip link set lo up; ip addr add 10.77.0.{i}/24 dev eth0; ip link set eth0 up; "
                    + "".join(f"ip neigh add 10.77.0.{j} lladdr 02:00:00:00:00:{i:02x} dev eth0; "
                              for j in range(1, self.n + 1) if j != i)
                    + "; ".join(f"sysctl -qw '{s}'" for s in settings))
        for i in range(1, self.n + 1):
            self.on(i, "until grep -q up /sys/class/net/eth0/operstate; do sleep 0.05; done")
        if self.network:
            rate, delay = self.network
            self.on(0, "iptables-legacy -A FORWARD -j NFQUEUE --queue-num 0")
            relay = self.start(self.enter(0) + [f"{self.build}/tests/relay", str(rate), str(delay)], stdout=subprocess.PIPE)
            if relay.stdout.readline() != b"ready\n":
                sys.exit("hosts.py: no relay")

    def write_agent(self):
        """What mpirun calls in the place of ssh."""
        with open(f"{self.folder}/agent", "w") as f:
            cases = "".join(f"10.77.0.{i}) pid={self.pids[i]};; " for i in range(1, self.n + 1))
            f.write(f"#!/bin/sh\n[ $1 = -x ] && shift\nhost=$1; shift; case $host in {cases} esac\nexec nsenter -t $pid -n -u -m --wd='{os.getcwd()}' sh -c \"$*\"\n")
        os.chmod(f"{self.folder}/agent", 0o755)
        with open(f"{self.folder}/hosts", "w") as f:
            f.write("".join(f"10.77.0.{i}\n" for i in range(1, self.n + 1)))

    def __enter__(self):
        self.temporary = tempfile.TemporaryDirectory(prefix="weft-hosts-")
        self.folder = self.temporary.name
        try:
            self.make()
        except BaseException:
            self.__exit__()
            raise
        self.write_agent()
        return self

    def __exit__(self, *_):
        for process in reversed(self.started):
            process.kill()
            process.wait()
        self.temporary.cleanup()

    def run(self, command, host=1, **more):
        """The command's exit code."""
        environment = dict(os.environ, WEFT_AGENT=f"{self.folder}/agent", WEFT_HOSTS=f"{self.folder}/hosts")
        return self.start(self.enter(host) + command, env=environment, **more).wait()

    def bytes_sent(self, host):
        """What its link has counted, with all headers."""
        text = subprocess.run(self.enter(host) + ["cat", "/proc/net/dev"], check=True, capture_output=True, text=True).stdout
        return int(re.search(r"eth0:(.*)", text)[1].split()[8])


def mpirun(hosts, flavour, program):
    """The command that starts a rank on each host."""
    if flavour == "openmpi":
        os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        start = ["mpirun.openmpi", "--mca", "plm_rsh_agent", f"{hosts.folder}/agent", "--mca", "btl", "tcp,self",
                 "--mca", "btl_tcp_if_include", "10.77.0.0/24", "--mca", "oob_tcp_if_include", "10.77.0.0/24",
                 "--mca", "pml", "ob1", "--mca", "mpi_yield_when_idle", "1" if hosts.n > os.cpu_count() else "0", "--hostfile", f"{hosts.folder}/hosts", "--map-by", "node", "--bind-to", "none"]
    else:
        os.environ.update(UCX_TLS="tcp,self", UCX_NET_DEVICES="eth0", MPIR_CVAR_NOLOCAL="1")
        start = ["mpirun.mpich", "-launcher", "ssh", "-launcher-exec", f"{hosts.folder}/agent", "-f", f"{hosts.folder}/hosts",
                 "-iface", "eth0"]
    return start + ["-n", str(hosts.n)] + program


# ---- the link by itself ------------------------------------------------------------------------


def serve(listener):
    """Each connection says how many bytes are to come, and gets one back when they have; 0: each byte comes back."""
    while True:
        c, _ = listener.accept()
        c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        n, room = int.from_bytes(c.recv(8, socket.MSG_WAITALL), "big"), bytearray(1 << 20)
        if n == 0:
            while c.send(c.recv(1)):
                pass
        while n > 0:
            n -= c.recv_into(room)
        c.send(b"!")


def link_part(what, address):
    if what == "serve":
        serve(socket.create_server((address, 7700)))
    c = socket.create_connection((address, 7700), timeout=10)
    c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    n = 0 if what == "ping" else int(what)
    c.sendall(n.to_bytes(8, "big"))
    if n == 0:
        took = []
        for _ in range(300):
            began = time.monotonic()
            c.send(b"x"), c.recv(1)
            took.append(time.monotonic() - began)
        took.sort()
        print(f"ping-pong: {1e6 * statistics.median(took):.0f} us, a tenth below {1e6 * took[30]:.0f}, "
              f"a tenth above {1e6 * took[270]:.0f}")
    else:
        data, began, left = bytes(1 << 22), time.monotonic(), n
        while left > 0:
            left -= c.send(data[: min(left, len(data))])
        c.recv(1)
        seconds = time.monotonic() - began
        print(f"{n / 1e6:.0f} MB to {address}: {8e-9 * n / seconds:.3f} Gbit/s")


def check_link(hosts):
    me = [sys.executable, os.path.abspath(__file__), "--part"]
    for i in (1, 2):
        hosts.start(hosts.enter(i) + me + ["serve", f"10.77.0.{i}"])
    time.sleep(0.3)
    rate = hosts.network[0] if hosts.network else 20e9
    bulk = str(int(rate / 8))  # of a second
    hosts.run(me + ["ping", "10.77.0.2"])
    hosts.run(me + [bulk, "10.77.0.2"])
    print("both ways at once:", flush=True)
    other = hosts.start(hosts.enter(2) + me + [bulk, "10.77.0.1"])
    hosts.run(me + [bulk, "10.77.0.2"])
    other.wait()
    return 0


def main():
    if sys.argv[1:2] == ["--part"]:
        return link_part(*sys.argv[2:])
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--hosts", type=int, default=2)
    p.add_argument("--network", help="RATE,DELAY")
    p.add_argument("--build", default="build")
    p.add_argument("--sysctl", action="append", default=[], help="net.ipv4.NAME=VALUE, on every host")
    p.add_argument("--mpi", choices=["openmpi", "mpich"], default="openmpi")
    p.add_argument("--mpirun", action="store_true")
    p.add_argument("--link", action="store_true")
    p.add_argument("command", nargs=argparse.REMAINDER)
    a = p.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    network = [quantity(x) for x in a.network.split(",")] if a.network else None
    with Hosts(a.hosts, network, os.path.abspath(a.build), a.sysctl) as hosts:
        if a.link:
            return check_link(hosts)
        code = hosts.run(mpirun(hosts, a.mpi, a.command) if a.mpirun else a.command)
        print("hosts.py: sent by their links:", *(hosts.bytes_sent(i) for i in range(1, hosts.n + 1)), "bytes", file=sys.stderr)
        return code


if __name__ == "__main__":
    sys.exit(main())
