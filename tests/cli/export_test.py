"""strobe export: every format from outside, and what it says when something is off."""
import csv
import gzip
import json
import os
import sqlite3
import unittest

from support import Case, need, strobe

KINETO = "traces/kineto/resnet50_train_nw0_a.json.gz"
NSYS = "traces/nsys/h100_2gpu_video_inference_1s.sqlite"
EVENTS = """{"traceEvents":[
{"ph":"M","name":"process_name","pid":1,"tid":1,"ts":0,"args":{"name":"demo"}},
{"ph":"X","name":"outer, \\"quoted\\"","cat":"x","pid":1,"tid":1,"ts":0,"dur":10.5,"args":{"key":"a\\r\\nb"}},
{"ph":"X","name":" inner","cat":"x","pid":1,"tid":1,"ts":1,"dur":2.001},
{"ph":"i","name":"mark","pid":1,"tid":1,"ts":3,"s":"t"},
{"ph":"C","name":"queue","pid":1,"ts":4,"args":{"value":2}},
{"ph":"s","name":"item","cat":"f","id":1,"pid":1,"tid":1,"ts":1.5},
{"ph":"f","name":"item","cat":"f","id":1,"pid":1,"tid":1,"ts":9,"bp":"e"}]}"""


def rows(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, strict=True))


class Export(Case):
    def small(self):
        path = self.folder / "small.json"
        path.write_text(EVENTS)
        return path

    def export(self, trace, form, name):
        path = self.folder / name
        done = strobe("export", trace, "--to", form, "-o", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        return path

    def test_csv(self):
        out = self.export(self.small(), "csv", "out")
        ranges = rows(out / "ranges.csv")
        self.assertEqual([row["name"] for row in ranges], ['outer, "quoted"', " inner"])
        self.assertEqual([(row["start_ns"], row["duration_ns"], row["parent"]) for row in ranges],
                         [("0", "10500", ""), ("1000", "2001", "0")])
        self.assertEqual(rows(out / "arguments.csv"),
                         [{"of": "range", "row": "0", "key": "key", "type": "text", "value": "a\r\nb"}])
        self.assertEqual(rows(out / "marks.csv")[0]["time_ns"], "3000")
        self.assertEqual((rows(out / "flows.csv")[0]["from_range"], rows(out / "flows.csv")[0]["to_range"]), ("1", "0"))
        self.assertEqual(rows(out / "counters.csv")[0]["value"], "2.0")
        self.assertIn("import.format", [row["name"] for row in rows(out / "facts.csv")])
        self.assertTrue((out / "ranges.csv").read_bytes().count(b"\r\n") == 3)
        self.assertEqual([name for name in os.listdir(out) if "part" in name], [])
        # Again over itself; and the ranges alone.
        self.export(self.small(), "csv", "out")
        self.assertEqual(rows(self.export(self.small(), "csv", "one.csv")), ranges)

    def test_chrome(self):
        plain = json.loads(self.export(self.small(), "chrome", "out.json").read_text(encoding="utf-8"))
        packed = json.loads(gzip.decompress(self.export(self.small(), "chrome", "out.json.gz").read_bytes()))
        self.assertEqual(plain, packed)
        self.assertEqual(plain["displayTimeUnit"], "ns")
        slices = [event for event in plain["traceEvents"] if event["ph"] == "X"]
        self.assertEqual([(event["ts"], event["dur"]) for event in slices], [(0, 10.5), (1, 2.001)])

    def test_chrome_comes_back(self):
        for trace in (need(KINETO), need(NSYS)):
            with self.subTest(trace=trace.name):
                back = self.export(trace, "chrome", "back.json.gz")
                queries = ("SELECT COUNT(*), SUM(end - start), MIN(start), MAX(end) FROM STROBE_RANGE",
                           "SELECT s.value, COUNT(*), SUM(r.end - r.start) FROM STROBE_RANGE r JOIN StringIds s "
                           "ON s.id = r.nameId WHERE r.kind BETWEEN 5 AND 8 GROUP BY 1 ORDER BY 1",
                           "SELECT COUNT(*), SUM(bytes), SUM(correlation), SUM(gridX * blockX), COUNT(launchId) "
                           "FROM STROBE_DEVICE_OP WHERE rangeId IN (SELECT id FROM STROBE_RANGE WHERE kind < 9)",
                           "SELECT COUNT(*), SUM(start) FROM STROBE_FLOW",
                           "SELECT COUNT(*), SUM(timestamp), SUM(value) FROM STROBE_COUNTER",
                           "SELECT COUNT(*), SUM(time) FROM STROBE_MARK")
                answers = []
                for source in (trace, back):
                    store = self.folder / "store.sqlite"
                    done = strobe("import", source, "-o", store, "--quiet")
                    self.assertEqual(done.returncode, 0, done.stderr)
                    with sqlite3.connect(store) as database:
                        answers.append([database.execute(query).fetchall() for query in queries])
                    database.close()
                for query, first, second in zip(queries, *answers):
                    self.assertEqual(first, second, query)

    def test_nsys(self):
        out = self.export(need(NSYS), "nsys", "out.sqlite")
        # As written for exports of Nsight Systems.
        query = ("SELECT s.value, COUNT(*), SUM(k.end - k.start) FROM CUPTI_ACTIVITY_KIND_KERNEL k "
                 "JOIN StringIds s ON s.id = k.demangledName JOIN CUPTI_ACTIVITY_KIND_RUNTIME r "
                 "ON r.correlationId = k.correlationId AND (r.globalTid & 0xFFFFFFFFFF000000) = k.globalPid "
                 "GROUP BY 1 ORDER BY 1")
        answers = []
        for path in (need(NSYS), out):
            with sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True) as database:
                answers.append(database.execute(query).fetchall())
            database.close()
        self.assertGreater(len(answers[0]), 3)
        self.assertEqual(answers[0], answers[1])

    def test_refusals(self):
        trace = self.small()
        out = self.folder / "out.x"
        self.refused(strobe("export", trace, "--to", "perfeto", "-o", out), "perfeto", "did you mean perfetto")
        self.refused(strobe("export", trace, "--to", "pdf", "-o", out), "pdf", "perfetto", "chrome", "csv", "nsys")
        self.refused(strobe("export", trace, "--to", "chrome", "-o", trace), trace, "input itself")
        self.refused(strobe("export", self.folder / "none.sqlite", "--to", "csv", "-o", out), "none.sqlite")
        self.refused(strobe("export", trace, "--to", "csv", "-o", trace), trace)
        for form in ("perfetto", "chrome", "nsys"):
            nowhere = self.folder / "none" / "out.x"
            self.refused(strobe("export", trace, "--to", form, "-o", nowhere), nowhere)
        (self.folder / "file").write_text("")
        self.refused(strobe("export", trace, "--to", "csv", "-o", self.folder / "file" / "out"), self.folder / "file")
        self.assertFalse(out.exists())
        self.assertEqual(sorted(os.listdir(self.folder)), ["file", "small.json"])

    def test_an_old_output_stays_until_the_new_one_is_whole(self):
        out = self.folder / "out.pftrace"
        out.write_text("old")
        self.refused(strobe("export", self.folder / "none", "--to", "perfetto", "-o", out), "none")
        self.assertEqual(out.read_text(), "old")
        self.export(self.small(), "perfetto", "out.pftrace")
        self.assertNotEqual(out.read_bytes(), b"old")

    def test_a_disk_that_is_full(self):
        import resource
        trace = need(KINETO)
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        for form in ("perfetto", "chrome", "csv"):
            out = self.folder / form
            self.refused(strobe("export", trace, "--to", form, "-o", out, preexec_fn=limit), out)
            self.assertEqual([name for name in os.listdir(self.folder) if "part" in name], [])

    def test_a_trace_that_breaks_off(self):
        cut = self.folder / "cut.json"
        cut.write_text(EVENTS[:EVENTS.index('{"ph":"s"')])
        done = strobe("export", cut, "--to", "perfetto", "-o", self.folder / "out.pftrace")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("breaks off", done.stderr)
        self.assertIn("2 ranges", done.stdout)


if __name__ == "__main__":
    unittest.main()
