"""`strobe sensors convert`: what it writes is what nuScenes' files hold, as PyPI's mcap and rosbags read it."""
import json
import os
import subprocess
import textwrap
import unittest

from nuscenes_database import Database
from support import Case, need, strobe

PYTHON = os.environ.get("STROBE_TEST_PYTHON") or "python3"

# Every message of a bag by PyPI's mcap (CRCs checked) and by rosbags, both compared; then what they hold.
READER = textwrap.dedent("""
    import hashlib, json, pathlib, sys
    import numpy
    from mcap.reader import make_reader
    from rosbags.rosbag2 import Reader
    from rosbags.typesys import Stores, get_typestore, get_types_from_msg
    path = pathlib.Path(sys.argv[1])
    store = get_typestore(Stores.ROS2_JAZZY)
    out = {"messages": [], "schemas": {}, "channels": {}, "metadata": {}}
    with path.open("rb") as file:
        reader = make_reader(file, validate_crcs=True)
        summary = reader.get_summary()
        added = {}
        for schema in summary.schemas.values():
            text = schema.data.decode()
            if schema.name not in store.fielddefs:
                added.update({k: v for k, v in get_types_from_msg(text, schema.name).items()
                              if k not in store.fielddefs})
        store.register(added)
        for schema in summary.schemas.values():
            out["schemas"][schema.name] = [schema.encoding, schema.data.decode() ==
                                           store.generate_msgdef(schema.name, ros_version=2)[0]]
        for channel in summary.channels.values():
            name = summary.schemas[channel.schema_id].name
            out["channels"][channel.topic] = {**channel.metadata, "type": name,
                                              "hash_is_right": channel.metadata["topic_type_hash"] == store.hash_rihs01(name)}
        for record in reader.iter_metadata():
            out["metadata"][record.name] = record.metadata
        by_mcap = [(channel.topic, message.log_time, message.data, message.publish_time)
                   for _, channel, message in reader.iter_messages()]
    with Reader(path.parent) as bag:
        by_rosbags = [(connection.topic, time, data) for connection, time, data in bag.messages()]
        out["qos"] = {c.topic: [q.depth, q.reliability.name, q.durability.name]
                      for c in bag.connections for q in c.ext.offered_qos_profiles}
        out["count"] = bag.message_count
    assert sorted((t, n, bytes(d)) for t, n, d, _ in by_mcap) == sorted((t, n, bytes(d)) for t, n, d in by_rosbags)

    def plain(value):
        if hasattr(value, "__msgtype__"):
            return {k: plain(v) for k, v in vars(value).items() if k != "__msgtype__"}
        if isinstance(value, numpy.ndarray) and value.dtype == numpy.uint8:
            return hashlib.sha256(value.tobytes()).hexdigest()
        if isinstance(value, (list, numpy.ndarray)):
            return [plain(v) for v in value]
        return value.item() if isinstance(value, numpy.generic) else value

    for topic, log_time, data, publish_time in by_mcap:
        name = out["channels"][topic]["type"]
        message = store.deserialize_cdr(data, name)
        assert bytes(store.serialize_cdr(message, name)) == bytes(data), topic
        out["messages"].append([topic, log_time, publish_time, plain(message)])
    json.dump(out, sys.stdout)
""")


def sha256(path):
    import hashlib
    return hashlib.sha256(path.read_bytes()).hexdigest()


class Bag(Case):
    def setUp(self):
        super().setUp()
        if subprocess.run([PYTHON, "-c", "import mcap, rosbags"], capture_output=True).returncode:
            self.skipTest("PyPI's mcap and rosbags are absent")

    def convert(self, root, *flags):
        bag = self.folder / "bag" / "drive.mcap"
        bag.parent.mkdir(exist_ok=True)
        done = strobe("sensors", "convert", root, "-o", bag, "--format", "json", *flags)
        self.assertEqual(done.returncode, 0, done.stderr)
        read = subprocess.run([PYTHON, "-c", READER, bag], capture_output=True, text=True)
        self.assertEqual(read.returncode, 0, read.stderr)
        return json.loads(done.stdout), json.loads(read.stdout)

    def test_real_key_frame(self):
        root = need("sensors/nuscenes")
        tables = {name: json.loads((root / "v1.0-mini" / f"{name}.json").read_text())
                  for name in ("sample_data", "sample_annotation", "calibrated_sensor", "sensor", "ego_pose")}
        channel_of = {c["token"]: next(s["channel"] for s in tables["sensor"] if s["token"] == c["sensor_token"])
                      for c in tables["calibrated_sensor"]}
        for compression in ("zstd", "lz4", "none"):
            with self.subTest(compression=compression):
                said, bag = self.convert(root, "--scene", "scene-0061", "--compression", compression)
                self.assertIsNone(said["synthetic"])
                self.assertEqual(said["messages"], len(bag["messages"]))
                self.assertEqual(bag["count"], len(bag["messages"]))
                self.assertTrue(all(s == ["ros2msg", True] for s in bag["schemas"].values()), bag["schemas"])
                self.assertTrue(all(c["hash_is_right"] for c in bag["channels"].values()))
                self.assertIn("rosbag2", bag["metadata"])
                self.assertNotIn("synthetic", bag["metadata"]["strobe"])
                self.assertEqual(bag["qos"]["/tf_static"], [1, "RELIABLE", "TRANSIENT_LOCAL"])
                self.assertEqual(bag["qos"]["/tf"][0], 100)
        by_topic = {}
        for topic, log_time, publish_time, message in bag["messages"]:
            self.assertEqual(log_time, publish_time)
            by_topic.setdefault(topic, []).append((log_time, message))
            if "header" in message:
                stamp = message["header"]["stamp"]
                self.assertEqual(stamp["sec"] * 10**9 + stamp["nanosec"], log_time)
        for row in tables["sample_data"]:
            channel = channel_of[row["calibrated_sensor_token"]]
            topic = "/LIDAR_TOP" if channel == "LIDAR_TOP" else f"/{channel}/image_rect_compressed"
            [(time, message)] = by_topic[topic]
            self.assertEqual(time, row["timestamp"] * 1000)
            self.assertEqual(message["header"]["frame_id"], channel)
            self.assertEqual(message["data"], sha256(root / row["filename"]))
            if channel != "LIDAR_TOP":
                [(_, info)] = by_topic[f"/{channel}/camera_info"]
                sensor = next(c for c in tables["calibrated_sensor"] if c["token"] == row["calibrated_sensor_token"])
                self.assertEqual(info["k"], [v for line in sensor["camera_intrinsic"] for v in line])
                self.assertEqual((info["width"], info["height"]), (1600, 900))
                self.assertEqual(message["format"], "jpeg")
        [(_, cloud)] = by_topic["/LIDAR_TOP"]
        self.assertEqual([f["name"] for f in cloud["fields"]], ["x", "y", "z", "intensity", "ring"])
        self.assertEqual((cloud["point_step"], cloud["width"], cloud["row_step"]), (20, 34688, 693760))
        poses = {row["timestamp"] * 1000: row for row in tables["ego_pose"]}
        self.assertEqual(len(by_topic["/tf"]), 7)
        for time, message in by_topic["/tf"]:
            [transform] = message["transforms"]
            self.assertEqual((transform["header"]["frame_id"], transform["child_frame_id"]), ("map", "base_link"))
            t, r = transform["transform"]["translation"], transform["transform"]["rotation"]
            self.assertEqual([t["x"], t["y"], t["z"]], poses[time]["translation"])
            self.assertEqual([r["w"], r["x"], r["y"], r["z"]], poses[time]["rotation"])
        [(_, static)] = by_topic["/tf_static"]
        self.assertEqual(sorted(t["child_frame_id"] for t in static["transforms"]), sorted(channel_of.values()))
        [(_, boxes)] = by_topic["/annotations"]
        self.assertEqual(len(boxes["detections"]), len(tables["sample_annotation"]))
        for box, row in zip(boxes["detections"], tables["sample_annotation"]):
            size = box["bbox"]["size"]
            self.assertEqual([size["y"], size["x"], size["z"]], row["size"])
            self.assertEqual(box["id"], row["instance_token"])

    def test_the_same_payload_as_other_software_made_of_this_frame(self):
        root, digests = need("sensors/nuscenes"), need("sensors/mcap/nuscenes_sample_digests.jsonl")
        want = {}
        for line in digests.read_text().splitlines():
            row = json.loads(line)
            want.setdefault(row.get("topic"), set()).add(row.get("sha256") or row.get("data_sha256"))
        bag = self.folder / "ours.mcap"
        self.assertEqual(strobe("sensors", "convert", root, "--scene", "scene-0061", "-o", bag).returncode, 0)
        script = ("import hashlib, json, sys\nfrom mcap.reader import make_reader\nout = []\n"
                  "for _, c, m in make_reader(open(sys.argv[1], 'rb')).iter_messages():\n"
                  "    out.append([c.topic, hashlib.sha256(m.data).hexdigest()])\njson.dump(out, sys.stdout)")
        theirs = need("sensors/mcap/nuscenes_sample_none.mcap")
        both = [json.loads(subprocess.run([PYTHON, "-c", script, path], capture_output=True, text=True, check=True).stdout)
                for path in (bag, theirs)]
        ours, others = (sorted(pair for pair in bag if pair[0] not in ("/pose", "/tf_static")) for bag in both)
        self.assertEqual(ours, others)

    def test_a_stream_of_one_frame_is_called_synthetic(self):
        root = need("sensors/nuscenes")
        said, bag = self.convert(root, "--scene", "scene-0061", "--repeat", "5", "--rate", "20", "--topics", "pperf",
                                 "--channels", "LIDAR_TOP,CAM_FRONT")
        self.assertEqual(said["synthetic"], "scene-0061 repeated 5 times at 20 Hz")
        self.assertEqual(bag["metadata"]["strobe"]["synthetic"], said["synthetic"])
        clouds = [(time, message) for topic, time, _, message in bag["messages"] if topic == "/lidar_data"]
        self.assertEqual([b[0] - a[0] for a, b in zip(clouds, clouds[1:])], [50_000_000] * 4)
        self.assertEqual({m["header"]["frame_id"] for _, m in clouds}, {"9d9bf11fb0e144c8b446d54a8a00184f"})
        pictures = [m for topic, _, _, m in bag["messages"] if topic == "/image_data/CAM_FRONT"]
        self.assertEqual({m["header"]["frame_id"] for m in pictures}, {"e3d495d4ac534d54b321f50006683844"})
        self.assertEqual(bag["qos"]["/lidar_data"], [5, "BEST_EFFORT", "VOLATILE"])

    def test_sweeps_and_spans(self):
        database = Database(seed=3, scenes=1, samples=4, objects=20, sweeps=2)
        root = database.write(self.folder / "root")
        for row in database.tables["sample_data"]:
            path = root / row["filename"]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(row["token"].encode() * 5)  # 160 bytes: 8 points, or no picture at all
        lidar = sorted((r["timestamp"], r["is_key_frame"]) for r in database.tables["sample_data"]
                       if "LIDAR_TOP" in r["filename"])
        for flags, want in (([], [t for t, key in lidar if key]), (["--sweeps"], [t for t, _ in lidar]),
                            (["--sweeps", "--start", "0.4", "--end", "1.2"], None)):
            _, bag = self.convert(root, "--scene", "scene-0103", *flags)
            times = [time for topic, time, _, _ in bag["messages"] if topic == "/LIDAR_TOP"]
            if want is None:
                first = min(r["timestamp"] for r in database.tables["sample_data"])
                want = [t for t, _ in lidar if 0.4 <= (t - first) * 1e-6 <= 1.2]
                self.assertTrue(0 < len(want) < len(lidar))
            self.assertEqual(times, [t * 1000 for t in want])
            self.assertEqual(sorted(m[1] for m in bag["messages"][1:]), [m[1] for m in bag["messages"][1:]])

    def test_metadata_of_another_bag_stays(self):
        root = need("sensors/nuscenes")
        (self.folder / "metadata.yaml").write_text("rosbag2_bagfile_information: {}\n")
        done = strobe("sensors", "convert", root, "--scene", "scene-0061", "-o", self.folder / "a.mcap")
        self.assertEqual(done.returncode, 0)
        self.assertIn("another bag's", done.stderr)
        self.assertEqual((self.folder / "metadata.yaml").read_text(), "rosbag2_bagfile_information: {}\n")

    def test_refusals(self):
        database = Database(seed=4, scenes=1, samples=2, objects=5)
        root = database.write(self.folder / "root")

        def convert(*flags, scene="scene-0103"):
            return strobe("sensors", "convert", root, "--scene", scene, "-o", self.folder / "out.mcap", *flags)

        self.refused(convert(scene="scene-0104"), "scene-0104", "scene-0103")
        self.refused(convert("--channels", "CAM_FRON"), "CAM_FRON", "CAM_FRONT")
        self.refused(convert("--compression", "zip"), "zip", "zstd")
        self.refused(convert("--start", "100"), "100")
        self.refused(convert("--rate", "1e-12"), "--rate 1e-12", "0.001")
        self.refused(convert("--threads", "-4"), "--threads -4")
        self.refused(strobe("sensors", "convert", root, "--scene", "scene-0103", "-o", ""), "name of the output")
        self.refused(convert(), "no such file")  # the sensors' files were not written
        lidar = next(r for r in database.tables["sample_data"] if "LIDAR_TOP" in r["filename"])
        for row in database.tables["sample_data"]:
            path = root / row["filename"]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(bytes(40))
        (root / lidar["filename"]).write_bytes(bytes(33))
        self.refused(convert(), "33 bytes", lidar["filename"])
        self.assertFalse((self.folder / "out.mcap").exists())
        (root / "v1.0-mini" / "ego_pose.json").unlink()
        self.refused(convert(), "ego_pose.json")


if __name__ == "__main__":
    unittest.main()
