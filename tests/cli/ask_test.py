"""Commands that ask a trace: stats, kernels, memcpy, idle, launches, compare, query, advise."""
import csv
import io
import json
import sqlite3
import unittest

from support import Case, need, strobe

BASE, TEST = "traces/kineto/resnet50_train_nw0_a.json.gz", "traces/kineto/resnet50_train_nw4_a.json.gz"


def rows(done):
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["rows"]


class Ask(Case):
    def test_another_tools_trace_answers(self):
        trace = need(BASE)
        kernels = rows(strobe("kernels", trace, "--by", "layer", "--top", 2, "--format", "json"))
        self.assertEqual([len(kernels), kernels[0]["layer"]], [2, "aten::cudnn_convolution_backward_input"])
        for key in ("name", "count", "total_ns", "mean_ns", "min_ns", "max_ns", "p99_ns", "queue_delay_ns"):
            self.assertIn(key, kernels[0])
        stats = rows(strobe("stats", trace, "--by", "memcpy", "--filter", "^Memcpy", "--format", "json"))
        self.assertEqual([(row["name"], row["count"]) for row in stats], [("Memcpy HtoD (Pageable -> Device)", 12)])
        self.assertEqual(rows(strobe("memcpy", trace, "--format", "json"))[0]["bytes"], 115607040)
        device = rows(strobe("idle", trace, "--rules", "hta", "--format", "json"))[0]
        self.assertEqual([device["compute_ns"], device["idle_ns"]], [492891000, 327463000])
        frames = rows(strobe("launches", trace, "--by-frame", "--format", "json"))
        self.assertEqual({row["verdict"] for row in frames}, {"host-bound"})
        self.assertEqual(rows(strobe("advise", trace, "--format", "json"))[0]["where"],
                         "the host: in enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__")

    def test_explain_says_what_the_other_commands_say(self):
        trace = need(BASE)
        whole = json.loads(strobe("explain", trace, "--range", "ProfilerStep", "--instance", 2, "--top", 3, "--format",
                                  "json").stdout)
        self.assertEqual(list(whole), ["ranges", "device_time", "work", "kernels", "copies", "launches", "findings",
                                       "critical_path"])
        for key, question in (("ranges", ("stats", trace, "--top", 3)), ("kernels", ("kernels", trace, "--top", 3)),
                              ("device_time", ("idle", trace)), ("copies", ("memcpy", trace)),
                              ("launches", ("launches", trace)), ("findings", ("advise", trace)),
                              ("critical_path", ("critical-path", trace, "--range", "ProfilerStep", "--instance", 2))):
            self.assertEqual(whole[key], json.loads(strobe(*question, "--format", "json").stdout), key)
        text = strobe("explain", trace).stdout
        for title in ("Statistics by range", "Device time", "Kernels", "Findings"):
            self.assertIn(title, text)
        self.assertNotIn("Critical path", text)
        log = json.loads(strobe("explain", need("traces/nvprof/profiling_torch_log_full.txt"), "--format", "json").stdout)
        self.assertEqual(list(log), ["imported", "imported_2", "imported_3"])
        self.refused(strobe("explain", trace, "--instance", 2), "--range")
        self.refused(strobe("explain", trace, "--range", "no such"), "no range 'no such'")

    def test_compare_says_how_sure_it_is(self):
        a, b = need(BASE), need(TEST)
        done = strobe("compare", b, a, "--metric", "operator:aten::conv2d", "--format", "json", "--fail-above", 1.0)
        answer = json.loads(done.stdout)
        self.assertEqual(done.returncode, 1 if answer["ci95"][0] > 1 else 0)
        self.assertEqual(list(answer), ["metric", "statistic", "a", "b", "ratio", "ci95", "verdict"])
        self.assertAlmostEqual(answer["ratio"], answer["b"]["mean"] / answer["a"]["mean"])
        self.assertTrue(answer["ci95"][0] <= answer["ratio"] <= answer["ci95"][1])
        same = json.loads(strobe("compare", a, a, "--metric", "operator:aten::conv2d", "--format", "json").stdout)
        self.assertEqual([same["ratio"], same["verdict"]], [1, "no difference"])
        few = json.loads(strobe("compare", a, b, "--metric", "frame", "--format", "json").stdout)
        self.assertEqual([few["ci95"], few["verdict"]], [None, "too few samples"])
        self.refused(strobe("compare", a, b, "--metric", "frame", "--fail-above", 1.05), "too few samples")
        self.refused(strobe("compare", a, b, "--metric", "operator:aten::conv2"), "did you mean aten::conv2d")
        self.refused(strobe("compare", a, b, "--fail-above", 1.05), "--metric")
        for value, expected in (("-1", "a ratio above 0"), ("0", "a ratio above 0"), ("nan", "a number"),
                                ("inf", "a finite number")):
            self.refused(strobe("compare", a, b, "--metric", "frame", "--fail-above", value), "--fail-above", expected)
        self.refused(strobe("idle", a, "--threshold-ns", -1), "0 to 1000000000000")

    def test_queries_in_every_format(self):
        trace = self.folder / "t.sqlite"
        with sqlite3.connect(trace) as database:
            database.execute("CREATE TABLE t (n INTEGER, s TEXT)")
            database.executemany("INSERT INTO t VALUES (?, ?)", [(i, None if i == 1 else f"a,{i}") for i in range(2500)])
        done = strobe("query", trace, "SELECT n, s FROM t ORDER BY n", "--format", "csv")
        lines = list(csv.reader(io.StringIO(done.stdout)))
        self.assertEqual(lines[:3], [["n", "s"], ["0", "a,0"], ["1", ""]])
        self.assertEqual(len(lines), 2501)
        answer = rows(strobe("query", trace, "SELECT n, s FROM t ORDER BY n", "--format", "json"))
        self.assertEqual([len(answer), answer[1], answer[2499]["n"]], [2500, {"n": 1, "s": None}, 2499])
        self.assertEqual(rows(strobe("query", trace, "SELECT n FROM t WHERE n < 0", "--format", "json")), [])
        text = strobe("query", trace, "SELECT n FROM t")
        self.assertEqual(len(text.stdout.splitlines()), 2502)
        self.assertEqual(strobe("query", trace, "SELECT n FROM t WHERE n < 0", "--format", "csv").stdout, "n\n")

    def test_errors_are_one_line(self):
        trace = self.folder / "t.sqlite"
        sqlite3.connect(trace).execute("CREATE TABLE t (n INTEGER)").connection.close()
        self.refused(strobe("query", trace, "SELECT m FROM t"), "no such column: m", "character 8")
        self.refused(strobe("query", trace, "DELETE FROM t"), "only read")
        self.refused(strobe("query", self.folder / "none", "SELECT 1"), "no such file")
        for command in ("stats", "kernels", "memcpy", "idle", "launches", "advise"):
            self.refused(strobe(command, self.folder / "none"), "no such file")
            self.refused(strobe(command, self.folder / "none", "--format", "xml"), "text, csv and json")
        self.refused(strobe("stats", trace, "--by", "colour"), "expected one of range")
        self.refused(strobe("stats", trace, "--filter", "("), "regular expression")
        self.refused(strobe("kernels", trace, "--by", "colour"), "expected name, layer")
        self.refused(strobe("idle", trace, "--rules", "x"), "strobe or hta")


if __name__ == "__main__":
    unittest.main()
