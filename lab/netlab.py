#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs a containerlab topology (kind: linux) in network namespaces of this machine, without containers.

    netlab.py up FILE [--name LAB] [--only a,b] [--build DIR]
    netlab.py exec FILE NODE -- COMMAND...
    netlab.py down FILE | ps

A node is a named network namespace (clab-LAB-NODE, so `ip netns exec` works) and one process, its
init, in mount, PID, UTS and IPC namespaces of its own. Init sees the machine's files, with /run,
/var/tmp, /sys, a bpffs at /sys/fs/bpf, and /etc/peerlan, /etc/frr, /etc/gobgp as its own; it lays the
`binds` over that and becomes the image's entrypoint, node.sh. All processes of a node die with its
init, and with it the mounts, the bpffs and all that was pinned there: nothing on the machine has to
be cleaned but the namespace's name. What runs is written down in /run/peerlan-lab/LAB before it is used.
"""
import argparse
import concurrent.futures
import ctypes
import fcntl
import json
import os
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
STATE = os.environ.get("PEERLAN_LAB_STATE", "/run/peerlan-lab")
PRIVATE_ETC = ("peerlan", "frr", "gobgp")  # empty in a node, as in the image
PROGRAMS = ("peerland", "peerlan", "peerlan-frames")  # of the build folder's bin/, in a node's PATH
IGNORED_NODE_KEYS = {"image", "kind", "network-mode", "labels", "env", "binds", "exec", "group"}
NAMESPACES = ["--net", "--mount", "--uts", "--ipc", "--pid"]


class LabError(Exception):
    pass


# --- the file -------------------------------------------------------------------------------------


class Topology:
    """What a *.clab.yml says, with defaults, kinds and groups applied to the nodes."""

    def __init__(self, path, name=None):
        import yaml  # not needed by a node's init

        self.path = os.path.abspath(path)
        self.folder = os.path.dirname(self.path)
        try:
            with open(self.path, encoding="utf-8") as f:
                doc = yaml.safe_load(f)
            self.name = name or doc["name"]
            topology = doc["topology"]
            nodes = topology["nodes"]
        except (OSError, yaml.YAMLError, KeyError, TypeError) as e:
            raise LabError(f"{path}: not a containerlab file: {e!r}") from e
        if not self.name.replace("-", "").replace("_", "").isalnum():
            raise LabError(f"lab name {self.name!r}: letters, digits, - and _ only")
        self.nodes = {}
        for node, own in nodes.items():
            own = own or {}
            kind = own.get("kind", topology.get("defaults", {}).get("kind", "linux"))
            if kind != "linux":
                raise LabError(f"{path}: node {node}: kind {kind} can't run in a namespace, only linux")
            layers = [topology.get("defaults", {}), topology.get("kinds", {}).get(kind) or {}]
            if "group" in own:
                layers.append(topology.get("groups", {}).get(own["group"]) or {})
            merged = {"binds": [], "exec": [], "env": {}}
            for layer in [*layers, own]:
                unknown = set(layer) - IGNORED_NODE_KEYS
                if unknown:
                    raise LabError(f"{path}: node {node}: unsupported keys {', '.join(sorted(unknown))}")
                merged["binds"] += layer.get("binds", [])
                merged["exec"] += layer.get("exec", [])
                merged["env"].update(layer.get("env", {}))
            self.nodes[node] = merged
        self.links = []
        for link in topology.get("links", []):
            ends = [end.split(":", 1) for end in link["endpoints"]]
            for node, interface in ends:
                if node not in self.nodes:
                    raise LabError(f"{path}: link to unknown node {node}")
                if len(interface) > 15:
                    raise LabError(f"{path}: interface name {interface} is longer than 15 characters")
            self.links.append(ends)

    def binds(self, node):
        for bind in self.nodes[node]["binds"]:
            source, target = bind.split(":")[:2]
            source = os.path.normpath(os.path.join(self.folder, source))
            if not os.path.exists(source):
                raise LabError(f"node {node}: {source} does not exist")
            if (source + "/").startswith(("/run/", "/var/tmp/", "/sys/")):
                raise LabError(f"node {node}: {source}: that folder is hidden in a node")
            yield source, target

    def netns(self, node):
        return f"clab-{self.name}-{node}"


# --- processes ------------------------------------------------------------------------------------


def start_time(pid):
    """Field 22 of /proc/PID/stat: with the pid it names one process for ever. None: not there."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return None if fields[0] in "ZX" else int(fields[19])
    except (OSError, IndexError):
        return None


def alive(process):
    return bool(process) and start_time(process["pid"]) == process["start"]


def kill(process):
    if not alive(process):
        return
    try:
        os.kill(process["pid"], signal.SIGKILL)
    except ProcessLookupError:
        return
    deadline = time.monotonic() + 10
    while alive(process) and time.monotonic() < deadline:
        time.sleep(0.005)


def same_netns(pid, netns):
    try:
        a, b = os.stat(f"/proc/{pid}/ns/net"), os.stat(f"/run/netns/{netns}")
        return (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino)
    except OSError:
        return False


def run(*argv, check=True, **kw):
    r = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                       stdin=subprocess.DEVNULL, **kw)
    if check and r.returncode:
        raise LabError(f"{shlex.join(argv)}: {r.stdout.strip() or 'exit ' + str(r.returncode)}")
    return r


# --- state ----------------------------------------------------------------------------------------


class State:
    """What of a lab exists, on disk before it exists, so that any later `down` finds it."""

    def __init__(self, lab):
        self.lab = lab
        self.folder = os.path.join(STATE, lab)
        self.file = os.path.join(self.folder, "state.json")
        self.nodes = {}
        self.source = ""
        try:
            with open(self.file, encoding="utf-8") as f:
                doc = json.load(f)
            self.nodes, self.source = doc["nodes"], doc["file"]
        except (OSError, ValueError, KeyError):
            pass

    def save(self):
        os.makedirs(os.path.join(self.folder, "log"), exist_ok=True)
        temporary = self.file + ".new"
        with open(temporary, "w", encoding="utf-8") as f:
            json.dump({"file": self.source, "nodes": self.nodes}, f, indent=1)
        os.replace(temporary, self.file)

    def log(self, node):
        return os.path.join(self.folder, "log", node + ".log")


class Lock:
    """One command at a time per lab."""

    def __init__(self, lab):
        self.path = os.path.join(STATE, lab + ".lock")

    def __enter__(self):
        while True:
            try:
                os.makedirs(STATE, exist_ok=True)
                self.fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            except FileNotFoundError:  # the last other lab took the folder along
                continue
            fcntl.flock(self.fd, fcntl.LOCK_EX)
            try:  # the one who held it may have removed the file
                if os.stat(self.path).st_ino == os.fstat(self.fd).st_ino:
                    return self
            except OSError:
                pass
            os.close(self.fd)

    def __exit__(self, *_):
        if not os.path.exists(os.path.join(self.path[: -len(".lock")], "state.json")):
            os.unlink(self.path)
        os.close(self.fd)
        try:
            os.rmdir(STATE)  # when this was the last lab
        except OSError:
            pass


# --- a node's init --------------------------------------------------------------------------------

libc = ctypes.CDLL(None, use_errno=True)
MS_BIND, MS_REC, MS_PRIVATE, MNT_DETACH = 4096, 16384, 1 << 18, 2


def mount(source, target, kind, flags=0, data=None):
    e = lambda s: s.encode() if s is not None else None
    if libc.mount(e(source), e(target), e(kind), flags, e(data)):
        raise OSError(ctypes.get_errno(), f"mount {source} on {target}: {os.strerror(ctypes.get_errno())}")


def materialize(path):
    """Makes `path`, a folder below /etc, one of the node's own; what stands in it stays visible."""
    parts, at = path.split("/")[2:], "/etc"
    for part in parts:
        at = f"{at}/{part}"
        if os.path.islink(at) or not os.path.exists(at):
            behind = os.path.realpath(at) if os.path.islink(at) else None
            if behind:
                os.unlink(at)
            os.mkdir(at, 0o755)
            for name in os.listdir(behind) if behind and os.path.isdir(behind) else []:
                os.symlink(os.path.join(behind, name), os.path.join(at, name))


def node_init(spec):
    """Runs as process 1 of a node, inside its network namespace: mounts, then the entrypoint."""
    mount(None, "/", None, MS_REC | MS_PRIVATE)
    # Copies of other namespaces' names would keep those namespaces alive after `ip netns del`.
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        names = [line.split()[4] for line in f if " - nsfs " in line]
    for name in names:
        libc.umount2(name.encode(), MNT_DETACH)
    mount("sysfs", "/sys", "sysfs")
    try:
        mount("bpf", "/sys/fs/bpf", "bpf")
    except OSError as e:  # no BPF in this kernel: the daemon will say so
        print(e, flush=True)
    for folder in ("/run", "/var/tmp"):
        mount("tmpfs", folder, "tmpfs", 0, "mode=1777" if folder == "/var/tmp" else "mode=755")
    # /etc: a tmpfs with links to the machine's own entries.
    os.mkdir("/run/machine-etc")
    mount("/etc", "/run/machine-etc", None, MS_BIND)
    mount("tmpfs", "/etc", "tmpfs", 0, "mode=755")
    for name in os.listdir("/run/machine-etc"):
        if name not in PRIVATE_ETC:
            os.symlink(f"/run/machine-etc/{name}", f"/etc/{name}")
    for name in PRIVATE_ETC:
        os.mkdir(f"/etc/{name}", 0o755)
    os.mkdir("/run/bin")
    for name, target in spec["programs"].items():
        os.symlink(target, f"/run/bin/{name}")
    for source, target in spec["binds"]:
        target = os.path.normpath(target)
        if target.startswith("/etc/"):
            materialize(os.path.dirname(target))
            if os.path.islink(target):
                os.unlink(target)
        elif target.startswith(("/run/", "/var/tmp/")):
            os.makedirs(os.path.dirname(target), exist_ok=True)
        if not os.path.exists(target):
            if os.path.isdir(source):
                os.mkdir(target)
            else:
                os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))
        mount(source, target, None, MS_BIND | MS_REC)
    socket.sethostname(spec["name"])
    os.chdir("/")
    os.execve(spec["entrypoint"], [spec["entrypoint"]], {**os.environ, **spec["env"]})


# --- up -------------------------------------------------------------------------------------------


def programs(build):
    found = {"peerlan-node": os.path.join(HERE, "node.sh")}
    for name in PROGRAMS:
        if os.path.exists(os.path.join(build, "bin", name)):
            found[name] = os.path.join(build, "bin", name)
    return found


def node_environment(own):
    path = os.environ.get("PATH", "")
    return {"PATH": f"/run/bin:/usr/sbin:/usr/bin:/sbin:/bin:{path}", **{k: str(v) for k, v in own.items()}}


def start_node(topology, state, node, build):
    netns = topology.netns(node)
    spec = {"name": node, "binds": list(topology.binds(node)), "programs": programs(build),
            "env": node_environment(topology.nodes[node]["env"]),
            "entrypoint": os.path.join(HERE, "node.sh")}
    run("ip", "netns", "add", netns)
    run("ip", "-n", netns, "link", "set", "lo", "up")
    with open(state.log(node), "ab") as log:
        outer = subprocess.Popen(
            ["nsenter", f"--net=/run/netns/{netns}", "unshare", "--mount", "--uts", "--ipc", "--pid",
             "--fork", "--kill-child=SIGKILL", "--mount-proc", "--propagation", "private",
             sys.executable, os.path.abspath(__file__), "init", json.dumps(spec)],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    record = state.nodes[node]
    record["outer"] = {"pid": outer.pid, "start": start_time(outer.pid)}
    deadline = time.monotonic() + 20
    while True:  # until init has become the entrypoint
        if outer.poll() is not None:
            with open(state.log(node), encoding="utf-8", errors="replace") as f:
                raise LabError(f"node {node} did not start: {f.read()[-2000:]}")
        try:
            with open(f"/proc/{outer.pid}/task/{outer.pid}/children", encoding="ascii") as f:
                children = f.read().split()
            if children:
                with open(f"/proc/{children[0]}/cmdline", "rb") as f:
                    words = f.read().split(b"\0")
                if spec["entrypoint"].encode() in words[:3]:
                    record["init"] = {"pid": int(children[0]), "start": start_time(children[0])}
                    return
        except OSError:
            pass
        if time.monotonic() > deadline:
            raise LabError(f"node {node} did not start within 20 s")
        time.sleep(0.005)


def tx_checksums_off(netns, interface):
    """As `ethtool -K INTERFACE tx off`: a frame that never meets hardware needs its real checksum."""
    here = os.open("/proc/self/ns/net", os.O_RDONLY)
    there = os.open(f"/run/netns/{netns}", os.O_RDONLY)
    try:
        if libc.setns(there, 0):
            raise OSError(ctypes.get_errno(), f"setns {netns}")
        try:
            s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        finally:
            if libc.setns(here, 0):
                raise SystemExit("can't come back to the network namespace")
    finally:
        os.close(there)
        os.close(here)
    with s:  # struct ethtool_value { cmd ETHTOOL_STXCSUM; data }, struct ifreq, SIOCETHTOOL
        value = ctypes.create_string_buffer(struct.pack("=II", 0x17, 0))
        fcntl.ioctl(s, 0x8946, struct.pack("16sP16x", interface.encode(), ctypes.addressof(value)))


def make_link(topology, state, link):
    (node_a, if_a), (node_b, if_b) = link
    if node_a not in state.nodes or node_b not in state.nodes:
        for (node, interface), (_, far) in ((link[0], link[1]), (link[1], link[0])):
            if node in state.nodes:  # --only left the far node out: its end is up, in this node
                netns, far = topology.netns(node), f"far-{far}"[:12] + str(topology.links.index(link))
                run("ip", "-n", netns, "link", "add", interface, "type", "veth", "peer", "name", far)
                for end in (interface, far):
                    run("ip", "-n", netns, "link", "set", end, "up")
        return
    a, b = topology.netns(node_a), topology.netns(node_b)
    run("ip", "link", "add", if_a, "netns", a, "type", "veth", "peer", "name", if_b, "netns", b)
    for netns, interface in ((a, if_a), (b, if_b)):
        tx_checksums_off(netns, interface)
        run("ip", "-n", netns, "link", "set", interface, "up")


def inside(state, node, argv):
    record = state.nodes.get(node)
    if not record or not alive(record.get("init")):
        raise LabError(f"node {node} of lab {state.lab} is not running")
    return ["nsenter", "-t", str(record["init"]["pid"]), *NAMESPACES, "--", *argv]


def run_exec(topology, state, node):
    env = {**os.environ, **node_environment(topology.nodes[node]["env"])}
    for line in topology.nodes[node]["exec"]:
        r = run(*inside(state, node, shlex.split(line)), check=False, env=env)
        if r.returncode:
            raise LabError(f"node {node}: exec {line!r}: {r.stdout.strip()} (exit {r.returncode})")


def in_parallel(function, items):
    """The first failure is raised after all have ended."""
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for future in [pool.submit(function, item) for item in items]:
            future.result()


def up(topology, only, build):
    wanted = [n for n in topology.nodes if not only or n in only]
    if only and set(only) - set(topology.nodes):
        raise LabError(f"no such node: {', '.join(sorted(set(only) - set(topology.nodes)))}")
    state = State(topology.name)
    if state.nodes:
        if set(state.nodes) == set(wanted) and all(
                alive(r.get("init")) and r.get("ready") for r in state.nodes.values()):
            print(f"lab {topology.name} is up already")
            return
        take_down(topology.name)
        state = State(topology.name)
    for node in wanted:
        if os.path.exists(f"/run/netns/{topology.netns(node)}"):
            raise LabError(f"namespace {topology.netns(node)} is there and not ours")
        list(topology.binds(node))  # says what is missing before anything is made
    began = time.monotonic()
    state.source = topology.path
    state.nodes = {n: {"netns": topology.netns(n)} for n in wanted}
    state.save()
    try:
        in_parallel(lambda n: start_node(topology, state, n, build), wanted)
        state.save()
        for link in topology.links:
            make_link(topology, state, link)
        in_parallel(lambda n: run_exec(topology, state, n), wanted)
        for node in wanted:
            state.nodes[node]["ready"] = True
        state.save()
    except BaseException:
        state.save()
        with Uninterrupted():
            take_down(topology.name)
        raise
    print(f"lab {topology.name}: {len(wanted)} nodes up in {time.monotonic() - began:.1f} s")


class Uninterrupted:
    """Cleaning up is not stopped half-way by a second Ctrl-C."""

    def __enter__(self):
        self.old = {s: signal.signal(s, signal.SIG_IGN) for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}

    def __exit__(self, *_):
        for s, handler in self.old.items():
            signal.signal(s, handler)


# --- down -----------------------------------------------------------------------------------------


def take_down(lab):
    state = State(lab)
    for node, record in state.nodes.items():
        netns = record["netns"]
        kill(record.get("init"))  # the kernel ends all processes of its PID namespace
        kill(record.get("outer"))
        if not os.path.exists(f"/run/netns/{netns}"):
            continue
        # Processes that somebody put into the network namespace only, by `ip netns exec`; and an init
        # that started just before its record could be written.
        for _ in range(50):
            pids = [p for p in run("ip", "netns", "pids", netns, check=False).stdout.split() if p.isdigit()]
            if not pids:
                break
            for pid in map(int, pids):
                if pid != os.getpid() and same_netns(pid, netns):
                    kill({"pid": pid, "start": start_time(pid)})
        run("ip", "netns", "del", netns, check=False)
    shutil.rmtree(state.folder, ignore_errors=True)


# --- commands -------------------------------------------------------------------------------------


def list_labs():
    for lab in sorted(os.listdir(STATE)) if os.path.isdir(STATE) else []:
        state = State(lab)
        for node, record in sorted(state.nodes.items()):
            init = record.get("init")
            print(f"{lab:12} {node:10} {record['netns']:24} "
                  f"{'running, init ' + str(init['pid']) if alive(init) else 'dead'}")


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "init":
        node_init(json.loads(sys.argv[2]))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sub = parser.add_subparsers(dest="command", required=True)
    for command in ("up", "down", "exec"):
        p = sub.add_parser(command)
        p.add_argument("file")
        p.add_argument("--name", help="lab name instead of the file's")
        if command == "up":
            p.add_argument("--only", help="comma-separated nodes; links to others lead nowhere")
            p.add_argument("--build", default=os.path.join(HERE, "..", "build", "release"),
                           help="build folder with the programs (default: build/release)")
        if command == "exec":
            p.add_argument("node")
            p.add_argument("argv", nargs=argparse.REMAINDER)
    sub.add_parser("ps")
    args = parser.parse_args()
    if args.command == "ps":
        return list_labs()
    if os.geteuid():
        raise LabError("needs root")
    topology = Topology(args.file, args.name)
    if args.command == "exec":
        argv = args.argv[1:] if args.argv[:1] == ["--"] else args.argv
        if args.node not in topology.nodes or not argv:
            raise LabError(f"usage: netlab.py exec FILE NODE -- COMMAND; nodes: {', '.join(topology.nodes)}")
        os.environ.update(node_environment(topology.nodes[args.node]["env"]))
        os.execvp("nsenter", inside(State(topology.name), args.node, argv))
    for s in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(s, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
    with Lock(topology.name):
        if args.command == "up":
            up(topology, args.only.split(",") if args.only else None, os.path.abspath(args.build))
        else:
            with Uninterrupted():
                take_down(topology.name)


if __name__ == "__main__":
    try:
        main()
    except LabError as error:
        sys.exit(f"netlab: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
