#include "trace/spool_import.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>

#include <thread>

#include "base/file.h"
#include "strobe/record/annotate.h"
#include "support/test_data.h"
#include "trace/open.h"
#include "trace/store.h"
#include "trace/timeline_maker.h"

namespace strobe::trace {
namespace {

using test::ScratchFolder;
using testing::ElementsAre;
using testing::HasSubstr;

// The rows of ranges with this name.
std::vector<size_t> rows(const Timeline& timeline, std::string_view name) {
  std::vector<size_t> found;
  for (size_t i = 0; i < timeline.ranges.size(); ++i)
    if (timeline.strings[timeline.ranges.name[i]] == name) found.push_back(i);
  return found;
}

void record_two_threads() {
  const record::Name infer("infer"), batch("batch"), queue("queue"), depth("depth"), drop("drop"), request("request");
  record::name_thread("main");
  record::fact("engine", "torch");
  record::fact("engine", "openvino");
  const uint64_t id = record::new_id();
  {
    record::Range outer("read", 4);
    record::Range inner("decode");
    record::flow_out(queue, id);
  }
  record::async_begin(request, id, 4);
  std::thread worker([&] {
    record::name_thread("worker");
    record::Range range(infer, 4);
    record::flow_in(queue, id);
    range.arg(batch, int64_t{8}).arg(batch, 0.5).arg(batch, std::string_view("eight"));
    record::counter(depth, 3);
    record::mark(drop, 5);
    record::async_end(request, id);
  });
  worker.join();
}

TEST(ImportSpool, GivesBackWhatAProgramRecorded) {
  const ScratchFolder folder;
  ASSERT_TRUE(record::start({.folder = folder / "spool", .process_name = "camera"}));
  record_two_threads();
  ASSERT_TRUE(record::stop());
  const auto timeline = import_spool(folder / "spool");
  ASSERT_TRUE(timeline) << timeline.error().to_string();

  ASSERT_EQ(timeline->ranges.size(), 4U);
  const size_t read = rows(*timeline, "read").at(0), decode = rows(*timeline, "decode").at(0);
  const size_t infer = rows(*timeline, "infer").at(0), request = rows(*timeline, "request").at(0);
  const Ranges& ranges = timeline->ranges;
  EXPECT_EQ(ranges.parent[decode], static_cast<int32_t>(read));
  EXPECT_EQ(ranges.frame[decode], 4);
  EXPECT_EQ(ranges.parent[infer], kNone);
  EXPECT_NE(ranges.lane[infer], ranges.lane[read]);
  EXPECT_EQ(timeline->strings[timeline->lanes[static_cast<size_t>(ranges.lane[infer])].name], "worker");
  EXPECT_EQ(ranges.is_async[request], 1);
  EXPECT_EQ(ranges.frame[request], 4);
  EXPECT_GE(ranges.end_ns[request], ranges.start_ns[infer]);
  for (const uint8_t open : ranges.open) EXPECT_EQ(open, 0);

  ASSERT_EQ(timeline->flows.size(), 1U);
  EXPECT_EQ(timeline->flows.from_range[0], static_cast<int32_t>(decode));
  EXPECT_EQ(timeline->flows.to_range[0], static_cast<int32_t>(infer));
  ASSERT_EQ(timeline->arguments.size(), 3U);
  EXPECT_EQ(std::get<int64_t>(timeline->arguments.value[0]), 8);
  EXPECT_EQ(std::get<double>(timeline->arguments.value[1]), 0.5);
  EXPECT_EQ(timeline->strings[std::get<StringId>(timeline->arguments.value[2])], "eight");
  EXPECT_THAT(timeline->counters.value, ElementsAre(3));
  EXPECT_THAT(timeline->marks.frame, ElementsAre(5));
  EXPECT_EQ(timeline->facts.at("engine"), "openvino");
  ASSERT_EQ(timeline->processes.size(), 1U);
  EXPECT_EQ(timeline->processes[0].pid, ::getpid());
  EXPECT_EQ(timeline->strings[timeline->processes[0].name], "camera");
  EXPECT_EQ(timeline->losses.dropped_records, 0U);
  EXPECT_TRUE(timeline->losses.faults.empty());
  // Within a minute of the system's own clock.
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  EXPECT_NEAR(static_cast<double>(timeline->utc_start_ns),
              static_cast<double>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count()), 60e9);
  EXPECT_LT(timeline->duration_ns, 60'000'000'000);

  for (const auto& path : {folder / "spool", folder.path()}) {  // itself, and a run's folder around it
    const auto opened = open_trace(path);
    ASSERT_TRUE(opened) << opened.error().to_string();
    EXPECT_EQ(test::difference(*timeline, *opened), "");
  }
}

// From the calls to the file: categories and payload of ranges, intervals and marks, counters of threads.
TEST(ImportSpool, CategoriesAndPayloadReachTheFile) {
  const ScratchFolder folder;
  ASSERT_TRUE(record::start({.folder = folder / "spool"}));
  const record::Category layer("layer", "engine"), loss("loss");
  const record::Name why("why"), infer("infer");
  {
    record::Range range(infer, 1, layer);
    range.arg(record::Batch{2, 8});
    record::mark("dropped 7", 7, loss, {{why, "late"}});
    record::thread_counter(why, 3);
  }
  const uint64_t id = record::new_id();
  record::async_begin("request", id, 1, layer, {{why, 1}});
  record::async_end(id, {{why, 2}});
  ASSERT_TRUE(record::stop());
  const auto imported = import_spool(folder / "spool");
  ASSERT_TRUE(imported);
  ASSERT_TRUE(write_store(*imported, folder / "t.sqlite"));
  const auto timeline = read_store(folder / "t.sqlite");
  ASSERT_TRUE(timeline) << timeline.error().to_string();
  EXPECT_EQ(test::difference(*imported, *timeline), "");

  const auto text = [&](StringId string) { return std::string(timeline->strings[string]); };
  ASSERT_EQ(timeline->ranges.size(), 2U);
  for (size_t i = 0; i < 2; ++i)
    EXPECT_EQ(text(timeline->ranges.domain_of(i)) + "/" + text(timeline->ranges.category_of(i)), "engine/layer");
  std::vector<std::string> arguments;
  for (size_t i = 0; i < timeline->arguments.size(); ++i)
    arguments.push_back(text(timeline->ranges.name[static_cast<size_t>(timeline->arguments.range[i])]) + " " +
                        text(timeline->arguments.key[i]) + " " +
                        std::to_string(std::get<int64_t>(timeline->arguments.value[i])));
  EXPECT_THAT(arguments, ElementsAre("infer batch_index 2", "infer total_items 8", "request why 1", "request why 2"));
  ASSERT_EQ(timeline->mark_arguments.size(), 1U);
  EXPECT_EQ(text(timeline->marks.name[0]) + " " + text(timeline->marks.category_of(0)), "dropped 7 loss");
  EXPECT_EQ(text(std::get<StringId>(timeline->mark_arguments.value[0])), "late");
  EXPECT_EQ(timeline->counters.lane_of(0), timeline->ranges.lane[0]);
  EXPECT_TRUE(timeline->losses.faults.empty());
}

// kill -9 in the middle of the work: what the program had acknowledged is there, and what was under way is open.
TEST(ImportSpool, AKilledProgramLeavesAReadableTrace) {
  const ScratchFolder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    if (!record::start({.folder = folder / "spool", .process_name = "victim"})) ::_exit(1);
    record::push(record::Name("run"));
    for (int64_t frame = 0; frame < 1000; ++frame) record::Range range("infer", frame);
    record::push(record::Name("last"), 1000);
    ::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  const auto timeline = import_spool(folder / "spool");
  ASSERT_TRUE(timeline) << timeline.error().to_string();
  const size_t run = rows(*timeline, "run").at(0), last = rows(*timeline, "last").at(0);
  EXPECT_EQ(rows(*timeline, "infer").size(), 1000U);
  EXPECT_EQ(timeline->ranges.open[run], 1);
  EXPECT_EQ(timeline->ranges.open[last], 1);
  EXPECT_EQ(timeline->ranges.end_ns[run], timeline->duration_ns);
  EXPECT_EQ(timeline->ranges.parent[last], static_cast<int32_t>(run));
  EXPECT_EQ(timeline->losses.dropped_records, 0U);
  ASSERT_TRUE(write_store(*timeline, folder / "t.sqlite"));
  const auto read = read_store(folder / "t.sqlite");
  ASSERT_TRUE(read);
  EXPECT_EQ(test::difference(*timeline, *read), "");
}

// What a killed grid leaves: a folder a cell, each with a recorder's spool.
TEST(OpenTrace, TakesTheOnlyRecordingOfSubfoldersAndNamesSeveral) {
  const ScratchFolder folder;
  const auto record_in = [&](const std::string& cell) {
    ASSERT_TRUE(make_writable_folder((folder / "out") / cell / "spool"));
    ASSERT_TRUE(record::start({.folder = (folder / "out") / cell / "spool", .process_name = cell}));
    { record::Range range("infer", 0); }
    ASSERT_TRUE(record::stop());
  };
  record_in("000_policy=fifo");
  const auto one = open_trace(folder / "out");
  ASSERT_TRUE(one) << one.error().to_string();
  EXPECT_EQ(rows(*one, "infer").size(), 1U);
  record_in("001_policy=edf");
  const auto two = open_trace(folder / "out");
  ASSERT_FALSE(two);
  EXPECT_EQ(two.error().kind(), ErrorKind::kUsage);
  EXPECT_THAT(two.error().to_string(),
              HasSubstr("holds several recordings, name one of them: 000_policy=fifo, 001_policy=edf"));
}

TEST(OpenTrace, TakesAFileAFolderWithOneTraceAndRefusesTheRest) {
  const ScratchFolder folder;
  const Timeline timeline = test::random_timeline(3, 50);
  ASSERT_TRUE(make_writable_folder(folder / "out"));
  const auto refusal = [](const std::filesystem::path& path, ErrorKind kind) {
    const auto opened = open_trace(path);
    EXPECT_FALSE(opened);
    if (opened) return std::string();
    EXPECT_EQ(opened.error().kind(), kind);
    return opened.error().to_string();
  };
  EXPECT_THAT(refusal(folder / "absent", ErrorKind::kNotFound), HasSubstr("absent: no such file or folder"));
  EXPECT_THAT(refusal(folder / "out", ErrorKind::kNotFound), HasSubstr("no trace in this folder"));
  ASSERT_TRUE(write_store(timeline, folder / "out/torch.sqlite"));
  for (const auto& path : {folder / "out", folder / "out/torch.sqlite"}) {
    const auto opened = open_trace(path);
    ASSERT_TRUE(opened) << opened.error().to_string();
    EXPECT_EQ(test::difference(timeline, *opened), "");
  }
  ASSERT_TRUE(write_store(timeline, folder / "out/openvino.sqlite"));
  EXPECT_THAT(refusal(folder / "out", ErrorKind::kUsage), HasSubstr("name one of them: openvino.sqlite, torch.sqlite"));
  // One folder up: a run of two engines has a subfolder each.
  const auto files = trace_files(folder.path());
  ASSERT_TRUE(files);
  EXPECT_THAT(*files, ElementsAre(folder / "out/openvino.sqlite", folder / "out/torch.sqlite"));
}

}  // namespace
}  // namespace strobe::trace
