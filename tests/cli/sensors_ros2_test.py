"""strobe sensors publish and replay against PyPI's cyclonedds: what arrives, the hand-shake, Ctrl-C."""
import json
import os
import pathlib
import signal
import subprocess
import time
import unittest

from support import STROBE, Case, need, strobe

PYTHON = os.environ.get("STROBE_TEST_PYTHON", "")
PEER = pathlib.Path(__file__).resolve().parent.parent / "sensors" / "dds_peer.py"
BAG = "sensors/mcap/nuscenes_sample_zstd.mcap"
DOMAIN = str(1 + os.getpid() % 100)

# Says "1" twice, then prints what comes on terminate_inferencers.
INFERENCER = """
import sys, time
from dataclasses import dataclass
from cyclonedds.core import Policy, Qos
from cyclonedds.domain import DomainParticipant
from cyclonedds.idl import IdlStruct
from cyclonedds.pub import DataWriter
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic
from cyclonedds.util import duration
@dataclass
class String_(IdlStruct, typename="std_msgs.msg.dds_.String_"):
    data: str
p = DomainParticipant(int(sys.argv[1]))
q = Qos(Policy.Reliability.Reliable(duration(seconds=1)), Policy.History.KeepLast(10))
reader = DataReader(p, Topic(p, "rt/terminate_inferencers", String_), qos=q)
writer = DataWriter(p, Topic(p, "rt/inferencer_ready", String_), qos=q)
end = time.monotonic() + 30
while not writer.get_matched_subscriptions() and time.monotonic() < end: time.sleep(.01)
time.sleep(1.5)
for word in "0", "1", "1": writer.write(String_(word))
while time.monotonic() < end:
    for word in reader.take():
        if hasattr(word, "data"): print(word.data, flush=True); sys.exit(0)
    time.sleep(.01)
sys.exit(4)
"""


class Ros2(Case):
    def setUp(self):
        super().setUp()
        if not PYTHON or subprocess.run([PYTHON, "-c", "import cyclonedds"], capture_output=True).returncode != 0:
            self.skipTest("PyPI's cyclonedds is absent")
        done = strobe("sensors", "replay", need(BAG), "--wait", 0, "--domain", DOMAIN)
        if done.returncode == 2 and "DDS" in done.stderr:
            self.skipTest(done.stderr.strip())

    def test_sweeps_arrive(self):
        root = need("sensors/nuscenes")
        peer = subprocess.Popen([PYTHON, PEER, "read", DOMAIN, "rt/LIDAR_TOP", "10"], stdout=subprocess.PIPE, text=True)
        done = strobe("sensors", "publish", root, "--scene", "scene-0061", "--rate", 10, "--repeat", 10, "--channels",
                      "LIDAR_TOP", "--domain", DOMAIN, "--wait", 20, "--format", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = peer.communicate(timeout=60)[0].splitlines()
        self.assertEqual(lines[0], "matched")
        clouds = [json.loads(line) for line in lines[1:]]
        self.assertEqual([cloud["width"] for cloud in clouds], [34688] * 10)
        told = json.loads(done.stdout)
        self.assertIn("ynthetic", told["notes"][0])
        self.assertGreaterEqual(told["late_ms"]["max"], told["late_ms"]["p50"])

    def test_hand_shake_of_inferencers(self):
        root = need("sensors/nuscenes")
        with subprocess.Popen([PYTHON, "-c", INFERENCER, DOMAIN], stdout=subprocess.PIPE, text=True) as inferencer:
            done = strobe("sensors", "publish", root, "--scene", "scene-0061", "--channels", "LIDAR_TOP", "--wait-ready", 2,
                          "--domain", DOMAIN, "--wait", 0)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(inferencer.communicate(timeout=60)[0], "TERMINATE\n")

    def test_interrupted_loop_ends_whole(self):
        run = subprocess.Popen([STROBE, "sensors", "replay", need(BAG), "--loop", "--rate", "2", "--wait", "0", "--domain",
                                DOMAIN, "--format", "json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        time.sleep(3)
        run.send_signal(signal.SIGINT)
        out, err = run.communicate(timeout=30)
        self.assertEqual(run.returncode, 0, err)
        told = json.loads(out)
        self.assertTrue(told["stopped"])
        self.assertGreater(told["rounds"], 1)

    def test_what_is_off_is_refused(self):
        bag = need(BAG)
        self.refused(strobe("sensors", "replay", bag, "--rate", 0), "--rate 0")
        self.refused(strobe("sensors", "replay", bag, "--topics", "/none"), "no topic /none")
        self.refused(strobe("sensors", "replay", bag, "--qos", "best"), "--qos best")
        self.refused(strobe("sensors", "replay", bag, "--domain", 500), "domain 500")
        self.refused(strobe("sensors", "replay", bag, "--start", 5, "--end", 2), "--end 2")


if __name__ == "__main__":
    unittest.main()
