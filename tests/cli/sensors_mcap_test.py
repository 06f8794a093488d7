"""strobe sensors dump and info, from outside: the conformance pairs, real bags, damage, what is no MCAP file."""
import json
import subprocess
import unittest

from support import STROBE, Case, need, strobe

LISTING = {
    "records": [
        {"type": "Header", "fields": [["library", "lib"], ["profile", "ros2"]]},
        {"type": "Schema", "fields": [["data", ["117"]], ["encoding", "ros2msg"], ["id", "1"], ["name", "a/msg/B"]]},
        {"type": "Channel", "fields": [["id", "1"], ["message_encoding", "cdr"],
                                       ["metadata", {"offered_qos_profiles": "- history: 1\n  depth: 5\n  reliability: 2\n"
                                                                             "  durability: 2\n"}],
                                       ["schema_id", "1"], ["topic", "/t\u00fc\"\n"]]},
        *({"type": "Message", "fields": [["channel_id", "1"], ["data", ["0", "255", str(i)]],
                                         ["log_time", str(10**18 + i * 10**8)], ["publish_time", str(i)],
                                         ["sequence", str(i)]]} for i in range(11)),
        {"type": "Metadata", "fields": [["metadata", {"rain": "10"}], ["name", "weather"]]},
        {"type": "DataEnd", "fields": [["data_section_crc", "0"]]},
    ],
    "meta": {"variant": {"features": ["ch", "mx", "st", "rsh", "rch", "chx", "mdx", "sum"]}},
}


class McapTest(Case):
    def file(self, features=None):
        listing = json.loads(json.dumps(LISTING))
        if features is not None:
            listing["meta"]["variant"]["features"] = features
        (self.folder / "listing.json").write_text(json.dumps(listing))
        path = self.folder / "bag.mcap"
        done = strobe("sensors", "dump", self.folder / "listing.json", "--write", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        return path

    def info(self, path, *words):
        done = strobe("sensors", "info", path, "--format", "json", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout), done.stderr

    def records(self, path):
        done = strobe("sensors", "dump", path, "--records")
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()], done.stderr

    def test_conformance_pairs(self):
        root = need("sensors/mcap/conformance")
        pairs = sorted(root.glob("*/*.json"))[::16]
        self.assertGreaterEqual(len(pairs), 13)
        for listing in pairs:
            records, notes = self.records(listing.with_suffix(".mcap"))
            self.assertEqual(records, json.loads(listing.read_text())["records"], listing.name)
            self.assertEqual(notes, "")
            out = self.folder / "out.mcap"
            self.assertEqual(strobe("sensors", "dump", listing, "--write", out).returncode, 0)
            self.assertEqual(out.read_bytes(), listing.with_suffix(".mcap").read_bytes(), listing.name)

    def same_message(self, ours, theirs, place):
        """ours: JSON; theirs: rosbags' dataclass, NumPy array, list or value."""
        if hasattr(theirs, "__dataclass_fields__"):
            fields = [name for name in theirs.__dataclass_fields__  # constants are in capitals
                      if name not in ("__msgtype__", "structure_needs_at_least_one_member") and not name.isupper()]
            self.assertEqual(sorted(ours), sorted(fields), place)
            for name in ours:
                self.same_message(ours[name], getattr(theirs, name), f"{place}.{name}")
        elif hasattr(theirs, "tolist") and ours == theirs.tolist():
            pass  # the quick way for pictures
        elif isinstance(ours, list):
            self.assertEqual(len(ours), len(theirs), place)
            for i, (a, b) in enumerate(zip(ours, theirs)):
                self.same_message(a, b, f"{place}[{i}]")
        elif ours in ("nan", "inf", "-inf") and not isinstance(theirs, str):
            self.assertEqual(repr(float(theirs)), ours, place)
        elif isinstance(ours, float):
            self.assertAlmostEqual(ours, float(theirs), delta=abs(ours) * 1e-6, msg=place)
        else:
            self.assertEqual(ours, theirs, place)

    def test_messages_are_what_rosbags_reads(self):
        try:
            from rosbags.rosbag2.storage_mcap import McapReader
            from rosbags.typesys import Stores, get_types_from_msg, get_typestore
        except ImportError:
            self.skipTest("PyPI's rosbags is absent")
        for name in ("bags/rosbags_rs_test_bag.mcap", "nuscenes_sample_zstd.mcap"):
            path = need(f"sensors/mcap/{name}")
            done = strobe("sensors", "dump", path, "--messages", "--elements", "0")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            lines = [json.loads(line) for line in done.stdout.splitlines()]
            reader = McapReader(path)
            reader.open()
            store = get_typestore(Stores.EMPTY)
            for connection in reader.connections:
                types = get_types_from_msg(connection.msgdef.data, connection.msgtype)
                store.register({key: value for key, value in types.items() if key not in store.types})
            theirs = {}
            for connection, time, data in reader.messages(reader.connections, None, None):
                theirs.setdefault((connection.topic, time), []).append(store.deserialize_cdr(data, connection.msgtype))
            self.assertEqual(len(lines), sum(map(len, theirs.values())))
            self.assertEqual([line["log_time"] for line in lines], sorted(line["log_time"] for line in lines))
            for line in lines:
                self.same_message(line["message"], theirs[line["topic"], line["log_time"]].pop(0), line["topic"])

    def test_json_messages_and_ones_that_are_too_deep(self):
        listing = json.loads(json.dumps(LISTING))
        channel = next(record for record in listing["records"] if record["type"] == "Channel")
        for field in channel["fields"]:
            if field[0] == "message_encoding":
                field[1] = "json"
        texts = ['{"b":1,"a":[true,null]}', "[" * 300_000 + "]" * 300_000, '{"b":']
        messages = [record for record in listing["records"] if record["type"] == "Message"]
        for record, text in zip(messages, texts):
            record["fields"][1][1] = [str(byte) for byte in text.encode()]
        (self.folder / "listing.json").write_text(json.dumps(listing))
        path = self.folder / "bag.mcap"
        self.assertEqual(strobe("sensors", "dump", self.folder / "listing.json", "--write", path).returncode, 0)
        done = strobe("sensors", "dump", path, "--messages")
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual(lines[0]["message"], {"b": 1, "a": [True, None]})
        self.assertEqual([line["bytes"] for line in lines[1:3]], [600_000, 5])
        self.assertEqual(done.stderr.count("note: "), 1)
        with open("/dev/full", "w") as full:
            done = subprocess.run([STROBE, "sensors", "dump", path, "--messages"], stdout=full, stderr=subprocess.PIPE,
                                  text=True)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("standard output", done.stderr)

    def test_messages_that_cannot_be_told_are_counted_bytes(self):
        done = strobe("sensors", "dump", self.file(), "--messages")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout.splitlines()[0])["bytes"], 3)
        self.assertEqual(done.stderr.count("note: "), 1)  # once a channel
        done = strobe("sensors", "dump", self.file(), "--messages", "--topic", "/lidar")
        self.assertEqual(done.returncode, 2)
        self.assertIn("no topic /lidar", done.stderr)

    def test_what_is_dumped_is_what_was_written(self):
        records, notes = self.records(self.file())
        self.assertEqual(notes, "")
        # The chunk is closed at the end: metadata stands before it.
        *front, metadata, _ = LISTING["records"]
        self.assertEqual(records[: len(front) + 1], [front[0], metadata, *front[1:]])
        self.assertEqual([record["type"] for record in records[len(front) + 1:]],
                         ["DataEnd", "Schema", "Channel", "Statistics", "MetadataIndex", "ChunkIndex"]
                         + ["SummaryOffset"] * 5 + ["Footer"])

    def test_info(self):
        info, notes = self.info(self.file())
        self.assertEqual(notes, "")
        self.assertEqual((info["profile"], info["library"], info["messages"]), ("ros2", "lib", 11))
        self.assertEqual((info["indexed"], info["complete"], info["faults"]), (True, True, []))
        self.assertAlmostEqual(info["duration_s"], 1.0)
        (channel,) = info["channels"]
        self.assertEqual((channel["type"], channel["count"], channel["bytes"]), ("a/msg/B", 11, 33))
        self.assertEqual((channel["first"], channel["last"]), (10**18, 10**18 + 10**9))
        self.assertAlmostEqual(channel["rate_hz"], 10.0)
        self.assertEqual(channel["qos"], "best effort, volatile, keep last 5")
        self.assertEqual(info["topics"]["/t\u00fc\"\n"]["count"], 11)
        self.assertEqual([c["compression"] for c in info["chunks"]], ["none"])
        self.assertEqual(info["metadata"], [{"name": "weather", "metadata": {"rain": "10"}}])
        quick, _ = self.info(self.folder / "bag.mcap", "--quick")
        self.assertEqual((quick["messages"], quick["channels"][0]["count"]), (11, 11))
        self.assertIsNone(quick["channels"][0]["bytes"])
        text = strobe("sensors", "info", self.folder / "bag.mcap")
        self.assertEqual(text.returncode, 0)
        self.assertIn("11 messages, 1.000000 s: 2001-09-09 01:46:40.000000 UTC", text.stdout)

    def test_a_file_without_index_is_read_all_the_same(self):
        info, _ = self.info(self.file(features=["ch"]))
        self.assertEqual((info["messages"], info["indexed"], info["faults"]), (11, False, []))

    def test_a_cut_file_gives_what_is_left(self):
        path = self.file(features=[])
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) * 2 // 3])
        info, notes = self.info(path)
        self.assertGreater(info["messages"], 3)
        self.assertLess(info["messages"], 11)
        self.assertFalse(info["complete"])
        self.assertTrue(any("cut off" in fault for fault in info["faults"]))
        self.assertIn("note: ", notes)
        records, notes = self.records(path)
        self.assertEqual(sum(record["type"] == "Message" for record in records), info["messages"])
        self.assertIn("cut off", notes)

    def test_a_damaged_chunk_is_said(self):
        path = self.file()
        damaged = bytearray(path.read_bytes())
        damaged[damaged.index(b"\0\xff\x05")] ^= 1
        path.write_bytes(damaged)
        info, notes = self.info(path)
        self.assertEqual(info["messages"], 0)
        self.assertTrue(any("CRC is wrong; skipped" in fault for fault in info["faults"]))
        self.assertIn("note: ", notes)

    def test_what_is_refused(self):
        text = self.folder / "notes.txt"
        text.write_text("no MCAP file, though long enough to be one")
        for word in ("info", "dump"):
            self.refused(strobe("sensors", word, text), "notes.txt", "not an MCAP file")
            self.refused(strobe("sensors", word, self.folder / "none.mcap"), "none.mcap", "no such file")
            self.refused(strobe("sensors", word, self.folder), "expected an MCAP file")
        self.refused(strobe("sensors", "info", self.file(), "--format", "xml"), "xml")
        self.refused(strobe("sensors", "dump", text, "--write", self.folder / "out.mcap"), "notes.txt")
        self.assertFalse((self.folder / "out.mcap").exists())

    def test_real_bags_have_the_digests_of_another_reader(self):
        root = need("sensors/mcap/bags")
        for line in (root / "digests.jsonl").read_text().splitlines():
            expected = json.loads(line)
            info, notes = self.info(root / expected["file"], "--digests")
            self.assertEqual(notes, "")
            self.assertEqual(info["topics"], expected["topics"], expected["file"])


if __name__ == "__main__":
    unittest.main()
