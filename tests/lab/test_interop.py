# SPDX-License-Identifier: GPL-2.0-or-later
"""The reflector with FRRouting (TCP-MD5), GoBGP, ExaBGP and BIRD as clients, and a scripted client as the far
end: announce, withdraw, refresh, restart and session loss in both directions. ExaBGP 4 can't originate EVPN
routes, so towards us it only asks for a refresh. BIRD before 2.19 has no EVPN, so there it is the refusal that
counts; the environment variable BIRD names one that has it (birdc is beside it), else those tests are skipped."""
import json
import os
import re
import shutil
import signal
import subprocess
import unittest

import labkit
import test_differential as routes
from labkit import wait_for
from scripted import DAEMON, KEEPALIVE, Reflector

FAR = "10.98.0.9"
FRR, GOBGP, EXABGP, BIRD, BIRD_EVPN = (f"10.98.0.{n}" for n in range(1, 6))
PASSWORD = "exchange"
MACS = {"frr": "02:00:00:00:f0:01", "gobgp": "02:00:00:00:f0:02", "bird_evpn": "02:00:00:00:f0:05"}
FAR_MAC = "02:00:00:00:f0:09"

FRR_CONF = f"""
frr defaults datacenter
hostname frr
router bgp 65000
 bgp router-id {FRR}
 no bgp default ipv4-unicast
 neighbor {DAEMON} remote-as 65000
 neighbor {DAEMON} update-source {FRR}
 neighbor {DAEMON} password {PASSWORD}
 neighbor {DAEMON} timers 3 9
 neighbor {DAEMON} timers connect 1
 address-family l2vpn evpn
  neighbor {DAEMON} activate
  advertise-all-vni
 exit-address-family
"""
# It would try to connect every 5 seconds at most, so here we connect.
GOBGP_CONF = f"""
global: {{ config: {{ as: 65000, router-id: {GOBGP}, local-address-list: [{GOBGP}] }} }}
neighbors:
  - config: {{ neighbor-address: {DAEMON}, peer-as: 65000 }}
    transport: {{ config: {{ local-address: {GOBGP}, passive-mode: true }} }}
    timers: {{ config: {{ idle-hold-time-after-reset: 1 }} }}
    afi-safis: [{{ config: {{ afi-safi-name: l2vpn-evpn }} }}]
"""
# Commands for ExaBGP come over a FIFO that the test writes.
EXABGP_CONF = """
process watch {{ run /bin/sh -c "cat > {folder}/exabgp.json"; encoder json; }}
process command {{ run /bin/sh -c "while :; do cat {folder}/exabgp.fifo; done"; encoder text; }}
neighbor {daemon} {{
  router-id {exabgp}; local-address {exabgp}; local-as 65000; peer-as 65000;
  capability {{ route-refresh enable; }}
  family {{ l2vpn evpn; }}
  api {{ processes [ watch, command ]; receive {{ parsed; update; }} }}
}}
"""
BIRD_CONF = f"""
router id {BIRD};
protocol device {{ }}
protocol bgp reflector {{
  strict bind on;
  local {BIRD} as 65000;
  neighbor {DAEMON} as 65000;
  connect delay time 1; connect retry time 1; error wait time 1, 1;
  ipv4 {{ import all; export none; }};
}}
"""
# Routes are announced and withdrawn by enabling and disabling their protocol.
BIRD_EVPN_CONF = f"""
router id {BIRD_EVPN};
evpn table evpntab;
protocol device {{ }}
protocol direct {{ ipv4; }}
protocol static routes {{
  disabled;
  evpn {{ table evpntab; }};
  route evpn mac {BIRD_EVPN}:1 0 {MACS["bird_evpn"]} * blackhole {{
    bgp_ext_community.add((rt, 65000, 100));
    bgp_ext_community.add((generic, 0x030c0000, 8));
  }};
}}
protocol bgp reflector {{
  strict bind on;
  local {BIRD_EVPN} as 65000;
  neighbor {DAEMON} as 65000;
  connect delay time 1; connect retry time 1; error wait time 1, 1;
  evpn {{ table evpntab; igp table master4; import all; export all; }};
}}
"""


def bird_with_evpn():
    """(bird, birdc) that BIRD names, or why there is none."""
    bird = os.environ.get("BIRD")
    if not bird:
        return None, "the environment variable BIRD does not name a BIRD with EVPN (2.19 or newer)"
    path = shutil.which(bird)
    if not path:
        return None, f"there is no {bird}"
    version = subprocess.run([path, "--version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    found = re.search(r"(\d+)\.(\d+)", version.stdout)
    if not found or tuple(map(int, found.groups())) < (2, 19):
        return None, f"{version.stdout.strip()} has no EVPN, 2.19 or newer has"
    birdc = os.path.join(os.path.dirname(path), "birdc")
    return (path, birdc if os.path.exists(birdc) else "birdc"), None


class Interop(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        missing = [p for p in ("peerland", "peerlan") if not (labkit.BUILD / "bin" / p).exists()]
        if missing:
            raise unittest.SkipTest(f"not built: {missing}")
        active = "as: 65000, role: reflector-client, connect-retry: 1, arp-nd-community: false"
        common = active + ", passive: true"
        cls.rr = Reflector("plinterop", [
            f"address: {FAR}, {common}", f"address: {GOBGP}, {active}, local-address: {DAEMON}", f"address: {EXABGP}, {common}",
            f"address: {BIRD}, {common}", f"address: {BIRD_EVPN}, {common}", f"address: {FRR}, {common}, hold-time: 9, password: {PASSWORD}"])
        cls.addClassCleanup(cls.rr.stop)
        cls.folder = cls.rr.folder
        cls.folder.chmod(0o755)
        cls.processes = {}
        cls.addClassCleanup(cls.end_all)
        cls.far = routes.Observer(cls.rr.net, FAR)
        cls.installed = {"frr": os.path.exists("/usr/lib/frr/bgpd"), "gobgp": bool(shutil.which("gobgpd")),
                         "exabgp": bool(shutil.which("exabgp")), "bird": bool(shutil.which("bird"))}
        cls.bird_programs, cls.no_bird_evpn = bird_with_evpn()
        cls.installed["bird_evpn"] = cls.bird_programs is not None
        for name, there in cls.installed.items():
            if there:
                getattr(cls, f"prepare_{name}", lambda: None)()
                getattr(cls, f"start_{name}")()

    @classmethod
    def end_all(cls):
        for process in cls.processes.values():
            process.kill()
            process.wait()

    @classmethod
    def start(cls, name, *argv, env=None):
        cls.processes[name] = cls.rr.net.start(*argv, log=cls.folder / f"{name}.log", env=env)

    @classmethod
    def kill(cls, name, number=signal.SIGKILL):
        cls.processes[name].send_signal(number)
        cls.processes[name].wait(10)

    # --- FRRouting: zebra and bgpd over a bridge with a VXLAN device
    @classmethod
    def prepare_frr(cls):
        for command in (f"addr add {FRR}/32 dev lo", "link add br1 type bridge", "link add vx1 type vxlan id 100 local " + FRR + " dstport 4789 nolearning",
                        "link set vx1 master br1", "link set br1 up", "link set vx1 up", "link add p1 type veth peer name p2",
                        "link set p1 master br1", "link set p1 up", "link set p2 up"):
            cls.rr.net.run("ip", *command.split())
        frr = cls.folder / "frr"
        frr.mkdir()
        (frr / "bgpd.conf").write_text(FRR_CONF)
        (frr / "zebra.conf").write_text("hostname frr\n")
        (frr / "vtysh.conf").write_text("")
        subprocess.run(["chown", "-R", "frr:frr", frr], check=True)

    @classmethod
    def frr_daemon(cls, name, *more):
        frr = cls.folder / "frr"
        cls.start(name, f"/usr/lib/frr/{name}", "-f", frr / f"{name}.conf", "-i", frr / f"{name}.pid", "--vty_socket", frr,
                  "-z", frr / "zserv.api", "-P", "0", "--log", "stdout", *more)

    @classmethod
    def start_frr(cls):
        cls.frr_daemon("zebra")
        wait_for("zebra", (cls.folder / "frr" / "zserv.api").exists)
        cls.frr_daemon("bgpd", "-p", "0")

    def vtysh(self, *commands):
        words = [w for c in commands for w in ("-c", c)]
        return self.rr.net.run("vtysh", "--vty_socket", self.folder / "frr", "--config_dir", self.folder / "frr", *words,
                               check=False).stdout

    def frr_has(self, mac):
        return mac in self.vtysh("show bgp l2vpn evpn route type macip")

    def frr_announces(self, there):
        self.rr.net.run("bridge", "fdb", "replace" if there else "del", MACS["frr"], "dev", "p1", "master",
                        *(["static"] if there else []))

    # --- GoBGP
    @classmethod
    def start_gobgp(cls):
        (cls.folder / "gobgp.yaml").write_text(GOBGP_CONF)
        cls.start("gobgp", "gobgpd", "-t", "yaml", "-f", cls.folder / "gobgp.yaml", "--api-hosts", "127.0.0.1:50051",
                  "--pprof-disable")

    def gobgp(self, *argv, check=True):
        return self.rr.net.run("gobgp", *argv, check=check).stdout

    def gobgp_has(self, mac):
        return mac in self.gobgp("global", "rib", "-a", "evpn", check=False)

    def gobgp_announces(self, there):
        self.gobgp("global", "rib", "-a", "evpn", "add" if there else "del", "macadv", MACS["gobgp"], "0.0.0.0", "etag", "0", "label",
                   "100", "rd", "10.98.0.2:1", *(["rt", "65000:100", "encap", "vxlan"] if there else []))

    # --- ExaBGP
    @classmethod
    def prepare_exabgp(cls):
        os.mkfifo(cls.folder / "exabgp.fifo")
        cls.folder.joinpath("exabgp.conf").write_text(EXABGP_CONF.format(folder=cls.folder, daemon=DAEMON, exabgp=EXABGP))

    @classmethod
    def start_exabgp(cls):
        cls.start("exabgp", "exabgp", cls.folder / "exabgp.conf",
                  env={"exabgp.api.cli": "false", "exabgp.daemon.user": "root", "exabgp.tcp.attempts": "0"})

    def exabgp_updates(self):
        """[(mac, announced)] since its start, in order."""
        out = []
        path = self.folder / "exabgp.json"
        for line in path.read_text().splitlines() if path.exists() else []:
            try:
                update = json.loads(line)["neighbor"].get("message", {}).get("update", {})
            except ValueError:
                continue  # half written
            for hop in update.get("announce", {}).get("l2vpn evpn", {}).values():
                out += [(r.get("mac", "").lower(), True) for r in hop]
            out += [(r.get("mac", "").lower(), False) for r in update.get("withdraw", {}).get("l2vpn evpn", [])]
        return out

    def exabgp_has(self, mac):
        return dict(self.exabgp_updates()).get(mac, False)

    # --- BIRD
    @classmethod
    def start_bird(cls):
        (cls.folder / "bird.conf").write_text(BIRD_CONF)
        cls.start("bird", "bird", "-f", "-c", cls.folder / "bird.conf", "-s", cls.folder / "bird.ctl")

    # --- BIRD with EVPN
    @classmethod
    def start_bird_evpn(cls):
        (cls.folder / "bird-evpn.conf").write_text(BIRD_EVPN_CONF)
        cls.start("bird_evpn", cls.bird_programs[0], "-f", "-c", cls.folder / "bird-evpn.conf", "-s",
                  cls.folder / "bird-evpn.ctl")

    def birdc_evpn(self, *words):
        return self.rr.net.run(self.bird_programs[1], "-s", self.folder / "bird-evpn.ctl", *words).stdout

    def bird_evpn_has(self, mac):
        return mac in self.birdc_evpn("show", "route", "table", "evpntab")

    def bird_evpn_announces(self, there):
        self.birdc_evpn("enable" if there else "disable", "routes")

    # --- common
    def setUp(self):
        self.far.send(b"", KEEPALIVE)

    def need(self, name):
        if not self.installed[name]:
            self.skipTest(self.no_bird_evpn if name == "bird_evpn" else f"{name} is not installed")

    def up(self, address):
        return self.rr.state(address) == "Established"

    def neighbor(self, address):
        return next(n for n in self.rr.show("neighbors") if n["address"] == address)

    def far_has(self, mac):
        octets = bytes.fromhex(mac.replace(":", ""))
        self.far.socket.settimeout(0.05)
        self.far.until(lambda: False)  # all that has come
        return any(route[0] == 2 and route[25:31] == octets for route, _, _ in self.far.held.values())

    def far_announces(self, there):
        route = routes.mac_route(bytes.fromhex(FAR_MAC.replace(":", "")))
        if there:
            self.far.send(routes.update(routes.reach(route, hop=b"\x0a\x62\0\x09"), routes.USUAL))
        else:
            self.far.send(routes.update(routes.unreach(route)))

    def far_again(self):
        type(self).far = routes.Observer(self.rr.net, FAR)

    def lose_session(self, address, from_them):
        """Ends the TCP connection without a word: the kernel's, one end or the other."""
        ends = ["src", f"{address}", "dst", DAEMON] if from_them else ["src", DAEMON, "dst", f"{address}"]
        self.rr.net.run("ss", "-K", *ends)

    def check_announce_and_withdraw(self, name, address):
        self.need(name)
        wait_for(f"{name}'s session", lambda: self.up(address))
        has, announces = getattr(self, f"{name}_has"), getattr(self, f"{name}_announces", None)
        self.far_announces(True)
        wait_for(f"our route in {name}", lambda: has(FAR_MAC))
        self.far_announces(False)
        wait_for(f"our route to leave {name}", lambda: not has(FAR_MAC))
        if announces:
            mac = MACS[name]
            announces(True)
            wait_for(f"{name}'s route at the far end", lambda: self.far_has(mac))
            announces(False)
            wait_for(f"{name}'s route to leave the far end", lambda: not self.far_has(mac))

    def both_announce(self, name, address):
        self.need(name)
        wait_for(f"{name}'s session", lambda: self.up(address))
        self.far_announces(True)
        self.addCleanup(self.far_announces, False)
        announces = getattr(self, f"{name}_announces", None)
        if announces:
            announces(True)
            self.addCleanup(announces, False)
        self.wait_both(name, address)

    def wait_both(self, name, address):
        wait_for(f"{name}'s session", lambda: self.up(address))
        wait_for(f"our route in {name}", lambda: getattr(self, f"{name}_has")(FAR_MAC))
        mac = MACS.get(name)
        if mac:
            wait_for(f"{name}'s route at the far end", lambda: self.far_has(mac))

    def check_refresh(self, name, address, ask):
        self.both_announce(name, address)
        before = self.neighbor(address)
        ask()
        wait_for("our table to be sent again", lambda: self.neighbor(address)["updates_out"] > before["updates_out"])
        self.wait_both(name, address)
        self.assertEqual(self.neighbor(address)["established_count"], before["established_count"])

    def check_restart(self, name, address, program=None, announce_again=False):
        """Theirs, then ours."""
        self.both_announce(name, address)
        self.kill(program or name)
        mac = MACS.get(name)
        if mac:
            wait_for(f"{name}'s route to leave the far end", lambda: not self.far_has(mac))
        wait_for("the session's end", lambda: not self.up(address))
        getattr(self, f"restart_{name}", getattr(self, f"start_{name}"))()
        wait_for(f"{name}'s session", lambda: self.up(address))
        if announce_again:  # it keeps nothing over a restart
            wait_for(f"{name} to take commands", lambda: self.announced_again(name))
        self.wait_both(name, address)

        self.rr.end(signal.SIGKILL)
        self.rr.start()
        self.far_again()
        self.far_announces(True)
        self.wait_both(name, address)

    def announced_again(self, name):
        try:
            getattr(self, f"{name}_announces")(True)
            return True
        except subprocess.CalledProcessError:
            return False

    def restart_frr(self):
        self.frr_daemon("bgpd", "-p", "0")

    def check_session_loss(self, name, address):
        self.both_announce(name, address)
        for from_them in (True, False):
            count = self.neighbor(address)["established_count"]
            self.lose_session(address, from_them)
            wait_for("the session to come back", lambda: self.neighbor(address)["established_count"] > count)
            self.wait_both(name, address)
        # And that of the far end: withdrawn there.
        self.far.close()
        wait_for(f"our route to leave {name}", lambda: not getattr(self, f"{name}_has")(FAR_MAC))
        self.far_again()
        self.far_announces(True)
        self.wait_both(name, address)

    # --- tests
    def test_frr_announce_and_withdraw(self):
        self.check_announce_and_withdraw("frr", FRR)

    def test_frr_refresh(self):
        self.check_refresh("frr", FRR, lambda: self.vtysh("clear bgp l2vpn evpn * soft in"))

    def test_frr_restart(self):
        self.check_restart("frr", FRR, "bgpd")

    def test_frr_session_loss(self):
        self.check_session_loss("frr", FRR)

    def test_frr_md5_wrong_password_keeps_the_session_down(self):
        self.need("frr")
        wait_for("FRRouting's session", lambda: self.up(FRR))
        self.vtysh("configure terminal", "router bgp 65000", f"neighbor {DAEMON} password wrong")
        self.addCleanup(lambda: wait_for("FRRouting's session", lambda: self.up(FRR)))
        self.addCleanup(self.vtysh, "configure terminal", "router bgp 65000", f"neighbor {DAEMON} password {PASSWORD}")
        wait_for("the session's end", lambda: not self.up(FRR))
        failures = self.counted("TCPMD5Failure")
        wait_for("refused segments", lambda: self.counted("TCPMD5Failure") > failures + 1)
        self.assertFalse(self.up(FRR))

    def counted(self, name):
        rows = [line.split() for line in self.rr.net.run("cat", "/proc/net/netstat").stdout.splitlines()]
        for names, values in zip(rows[::2], rows[1::2]):
            if name in names:
                return int(values[names.index(name)])
        return 0

    def test_gobgp_announce_and_withdraw(self):
        self.check_announce_and_withdraw("gobgp", GOBGP)

    def test_gobgp_refresh(self):
        # It keeps what it received and never asks; but it can send everything again, which is no change.
        self.both_announce("gobgp", GOBGP)
        before, told = self.neighbor(GOBGP), len(self.far.received)
        self.gobgp("neighbor", DAEMON, "softresetout", "-a", "evpn")
        wait_for("its table again", lambda: self.neighbor(GOBGP)["updates_in"] > before["updates_in"])
        self.wait_both("gobgp", GOBGP)
        self.assertEqual(len(self.far.received), told)

    def test_gobgp_restart(self):
        self.check_restart("gobgp", GOBGP, announce_again=True)

    def test_gobgp_session_loss(self):
        self.check_session_loss("gobgp", GOBGP)

    def test_exabgp_announce_and_withdraw(self):
        self.check_announce_and_withdraw("exabgp", EXABGP)

    def test_exabgp_refresh(self):
        self.check_refresh("exabgp", EXABGP, lambda: (self.folder / "exabgp.fifo").write_text(
            f"neighbor {DAEMON} announce route-refresh l2vpn evpn\n"))

    def test_exabgp_restart(self):
        self.check_restart("exabgp", EXABGP)

    def test_exabgp_session_loss(self):
        self.check_session_loss("exabgp", EXABGP)

    # --- BIRD 2.0 has no family in common with us: RFC 5492 section 3 lets us refuse the session, and say why.
    def birdc(self, *words):
        return self.rr.net.run("birdc", "-s", self.folder / "bird.ctl", *words).stdout

    def bird_is_refused(self):
        """The NOTIFICATION that we sent, which BIRD read."""
        n = wait_for("the refusal", lambda: (lambda n: n if n["last_notification_direction"] == "sent" else None)(
            self.neighbor(BIRD)))
        self.assertIn("Unsupported Capability", n["last_notification"])
        self.assertEqual(n["last_notification_data"].replace(" ", ""), "010400190046")  # 1: multiprotocol, of 25/70
        wait_for("BIRD to say so", lambda: re.search(
            r"Required capability missing|Unsupported capability", self.birdc("show", "protocols", "all", "reflector")))

    def test_bird_session(self):
        self.need("bird")
        self.bird_is_refused()
        self.assertTrue(self.rr.alive())
        self.assertTrue(self.up(FAR))
        self.assertEqual(self.neighbor(BIRD)["established_count"], 0)

    def test_bird_comes_again(self):
        """Each side by itself, after BIRD's restart, and after ours."""
        self.need("bird")
        def opens():
            return self.neighbor(BIRD)["messages_in_by_type"]["open"]
        self.bird_is_refused()
        before = opens()
        wait_for("another attempt", lambda: opens() > before, 130)
        self.birdc("restart", "reflector")
        self.kill("bird", signal.SIGTERM)
        before = opens()
        self.start_bird()
        wait_for("an attempt after its restart", lambda: opens() > before, 130)
        self.bird_is_refused()
        self.rr.end(signal.SIGKILL)
        self.rr.start()
        self.far_again()
        wait_for("an attempt after our restart", lambda: opens() > 0, 130)
        self.bird_is_refused()
        self.assertEqual(self.neighbor(BIRD)["established_count"], 0)

    def test_bird_evpn_announce_and_withdraw(self):
        self.check_announce_and_withdraw("bird_evpn", BIRD_EVPN)

    def test_bird_evpn_refresh(self):
        self.check_refresh("bird_evpn", BIRD_EVPN, lambda: self.birdc_evpn("reload", "in", "reflector"))

    def test_bird_evpn_restart(self):
        self.check_restart("bird_evpn", BIRD_EVPN, announce_again=True)

    def test_bird_evpn_session_loss(self):
        self.check_session_loss("bird_evpn", BIRD_EVPN)


# Without graceful restart it sends no End-of-RIB, for which routes wait a minute (RFC 4684 section 6).
GOBGP_RTC_CONF = GOBGP_CONF.replace("    afi-safis: [{ config: { afi-safi-name: l2vpn-evpn } }]\n", """\
    graceful-restart: { config: { enabled: true, restart-time: 5 } }
    afi-safis:
      - { config: { afi-safi-name: l2vpn-evpn }, mp-graceful-restart: { config: { enabled: true } } }
      - { config: { afi-safi-name: rtc }, mp-graceful-restart: { config: { enabled: true } } }
""")


class RouteTargetConstrain(unittest.TestCase):
    """RFC 4684 with GoBGP: each side is told only what it asks for."""

    @classmethod
    def setUpClass(cls):
        if not shutil.which("gobgpd"):
            raise unittest.SkipTest("gobgp is not installed")
        common = "as: 65000, role: reflector-client, connect-retry: 1, arp-nd-community: false"
        cls.rr = Reflector("plrtc", [f"address: {FAR}, {common}, passive: true",
                                     f"address: {GOBGP}, {common}, local-address: {DAEMON}, route-target-constrain: true"])
        cls.addClassCleanup(cls.rr.stop)
        (cls.rr.folder / "gobgp.yaml").write_text(GOBGP_RTC_CONF)
        cls.start_gobgp()
        cls.addClassCleanup(cls.end)
        cls.far = routes.Observer(cls.rr.net, FAR)

    @classmethod
    def start_gobgp(cls):
        cls.process = cls.rr.net.start("gobgpd", "-t", "yaml", "-f", cls.rr.folder / "gobgp.yaml", "--api-hosts",
                                       "127.0.0.1:50051", "--pprof-disable", log=cls.rr.folder / "gobgp.log")

    @classmethod
    def end(cls):
        cls.process.kill()
        cls.process.wait()

    def gobgp(self, *argv, check=True):
        return self.rr.net.run("gobgp", *argv, check=check).stdout

    def neighbor(self, address):
        return next(n for n in self.rr.show("neighbors") if n["address"] == address)

    def far_announces(self, number, target):
        value = routes.struct.pack("!BBHI", 0, 2, 65000, target) + routes.TARGETS[8:]
        self.far.send(routes.update(routes.reach(routes.mac_route(routes.mac_of(number))), routes.ORIGIN, routes.AS_PATH,
                                    routes.LOCAL_PREF, routes.attribute(0xc0, 16, value)))

    def gobgp_has(self, number):
        return mac_text(routes.mac_of(number)) in self.gobgp("neighbor", DAEMON, "adj-in", "-a", "evpn", check=False)

    def established(self):
        wait_for("the session with both families", lambda: len(self.neighbor(GOBGP)["families"]) == 2
                 and self.neighbor(GOBGP)["state"] == "Established")
        wait_for("GoBGP to take commands", lambda: not self.rr.net.run("gobgp", "global", check=False).returncode)

    def test_gobgp(self):
        self.established()
        self.far_announces(1, 100)
        self.far_announces(2, 200)
        wait_for("both routes here", lambda: len(self.rr.show("routes")) == 2)
        self.gobgp("vrf", "add", "blue", "rd", f"{GOBGP}:2", "rt", "both", "65000:200")
        wait_for("its membership", lambda: self.neighbor(GOBGP)["memberships"] == 1)
        wait_for("the route that it asks for", lambda: self.gobgp_has(2))
        self.assertFalse(self.gobgp_has(1))
        # What comes later is told or not, too; the last one says that all others were there to be told.
        self.far_announces(3, 100)
        self.far_announces(4, 200)
        wait_for("the next route that it asks for", lambda: self.gobgp_has(4))
        self.assertFalse(self.gobgp_has(1) or self.gobgp_has(3))
        self.gobgp("vrf", "add", "red", "rd", f"{GOBGP}:1", "rt", "both", "65000:100")
        wait_for("all routes", lambda: all(self.gobgp_has(n) for n in (1, 2, 3, 4)))
        # Memberships go with the session (GoBGP 3.10 ends at "vrf del" with this family).
        self.end()
        wait_for("the session's end", lambda: self.neighbor(GOBGP)["memberships"] == 0)
        self.start_gobgp()
        self.established()
        self.gobgp("vrf", "add", "red", "rd", f"{GOBGP}:1", "rt", "both", "65000:100")
        wait_for("the routes that it asks for now", lambda: self.gobgp_has(1) and self.gobgp_has(3))
        self.assertFalse(self.gobgp_has(2) or self.gobgp_has(4))
        # We have a client that does not take part: we ask for everything, and GoBGP's route comes.
        mac = MACS["gobgp"]
        self.gobgp("global", "rib", "-a", "evpn", "add", "macadv", mac, "0.0.0.0", "etag", "0", "label", "300", "rd",
                   f"{GOBGP}:3", "rt", "65000:300", "encap", "vxlan")
        self.far.socket.settimeout(0.05)
        octets = bytes.fromhex(mac.replace(":", ""))
        def told():
            self.far.until(lambda: False)
            return any(route[0] == 2 and route[25:31] == octets for route, _, _ in self.far.held.values())
        wait_for("GoBGP's route at the far end", told)


def mac_text(octets):
    return ":".join(f"{b:02x}" for b in octets)


if __name__ == "__main__":
    unittest.main()
