// Damaged files: the reader never fails on them, counts what is off, and reads the rest.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <fstream>
#include <random>
#include <thread>

#include "record/child.h"
#include "record/layout.h"
#include "record/names.h"
#include "record/recorded.h"
#include "record/varint.h"
#include "strobe/record/annotate.h"
#include "support/test_data.h"

namespace strobe::record {
namespace {

using strobe::test::ScratchFolder;
using test::read_all;
using test::Type;

constexpr uint64_t kMarks = 20'000;

void record_marks() {
  const Name name("m");
  for (uint64_t i = 0; i < kMarks; ++i) {
    const Range range(std::string_view{"dynamic " + std::to_string(i % 50)}, static_cast<int64_t>(i));
    mark(name, static_cast<int64_t>(i));
  }
}

// A recording of several blocks; with `killed`, its rings are still there.
void make_recording(const ScratchFolder& folder, bool killed) {
  const pid_t child = test::fork_child([&] {
    Options options;
    options.folder = folder.path();
    options.ring_bytes = 65'536;
    options.block_when_full = true;
    if (!start(options)) ::_exit(3);
    record_marks();
    if (killed) ::kill(::getpid(), SIGKILL);
    if (!stop()) ::_exit(4);
  });
  test::wait_for(child);
}

std::filesystem::path file_with(const std::filesystem::path& folder, const std::string& extension) {
  std::filesystem::path biggest;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != extension) continue;
    if (biggest.empty() || entry.file_size() > std::filesystem::file_size(biggest)) biggest = entry.path();
  }
  return biggest;
}

std::string content_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
void set_content(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

uint64_t faults_of(const test::Recorded& recorded) {
  uint64_t faults = 0;
  for (const auto& [kind, count] : recorded.summary.faults) faults += count;
  return faults;
}

// What holds for any damage: the marks that come back are true ones, in order, once.
void expect_true_marks(const test::Recorded& recorded) {
  int64_t last = -1;
  for (const auto& thread : recorded.threads) {
    for (const auto& event : thread.events) {
      if (event.type != Type::kMark) continue;
      ASSERT_GT(event.frame, last);
      ASSERT_LT(event.frame, static_cast<int64_t>(kMarks));
      last = event.frame;
    }
  }
}

TEST(Damage, FlippedBytesOfTheSpoolCostTheirBlockOnly) {
  const ScratchFolder folder;
  make_recording(folder, false);
  const auto path = file_with(folder.path(), ".spool");
  const std::string whole = content_of(path);
  auto intact = read_all(folder.path());
  ASSERT_TRUE(intact);
  ASSERT_EQ(intact->count(Type::kMark), kMarks);
  ASSERT_GT(whole.size(), kHeaderBytes + 20'000);

  std::vector<size_t> places;
  for (size_t at = 0; at < sizeof(BlockHeader) + 16; ++at) places.push_back(kHeaderBytes + at);  // first block
  // The first block of records, every field of it.
  size_t records = kHeaderBytes;
  for (;;) {
    BlockHeader header{};
    whole.copy(reinterpret_cast<char*>(&header), sizeof header, records);
    if (header.kind == BlockKind::kRecords) break;
    records += sizeof header + (header.stored_bytes + 7) / 8 * 8;
  }
  for (size_t at = 0; at < sizeof(BlockHeader) + 64; ++at) places.push_back(records + at);
  std::mt19937 random(7);
  for (int i = 0; i < 60; ++i) places.push_back(kHeaderBytes + random() % (whole.size() - kHeaderBytes));
  for (const size_t at : places) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << random() % 8));
    set_content(path, damaged);
    auto recorded = read_all(folder.path());
    ASSERT_TRUE(recorded);
    expect_true_marks(*recorded);
    if (recorded->count(Type::kMark) < kMarks) {
      EXPECT_GT(faults_of(*recorded), 0U) << "silent loss after damage at " << at;
    }
    EXPECT_GT(recorded->count(Type::kMark), kMarks / 4) << "one damaged block, at " << at;
    if (HasFailure()) break;
  }
}

TEST(Damage, TheSpoolCutAnywhereReadsUpToThere) {
  const ScratchFolder folder;
  make_recording(folder, false);
  const auto path = file_with(folder.path(), ".spool");
  const std::string whole = content_of(path);
  std::mt19937 random(8);
  uint64_t most = 0;
  for (int i = 0; i < 80; ++i) {
    // The last block may end in up to seven bytes that only fill it up: without those nothing is lost.
    const size_t size = i < 20 ? kHeaderBytes + static_cast<size_t>(i) * 7 : random() % (whole.size() - 7);
    set_content(path, whole.substr(0, size));
    auto recorded = read_all(folder.path());
    ASSERT_TRUE(recorded);
    expect_true_marks(*recorded);
    most = std::max(most, recorded->count(Type::kMark));
    // Rings went with the clean stop: what is cut off cannot look like a kill.
    if (!recorded->threads.empty()) {
      EXPECT_GT(faults_of(*recorded), 0U) << "cut at " << size;
    }
    for (const auto& thread : recorded->threads) EXPECT_FALSE(thread.ended) << "cut at " << size;
  }
  EXPECT_GT(most, kMarks / 2);
}

TEST(Damage, HeadersRingsAndNamesAreNotTrusted) {
  const ScratchFolder folder;
  make_recording(folder, true);
  std::mt19937 random(9);
  for (const char* extension : {".spool", ".ring", ".names"}) {
    const auto path = file_with(folder.path(), extension);
    ASSERT_FALSE(path.empty()) << extension;
    const std::string whole = content_of(path);
    for (size_t at = 0; at < std::min<size_t>(whole.size(), 700); at += at < 100 ? 1 : 5) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(random());
      set_content(path, damaged);
      ASSERT_TRUE(read_all(folder.path())) << path << " damaged at " << at;
    }
    for (const size_t size : {0, 1, 8}) {
      set_content(path, whole.substr(0, size));
      auto recorded = read_all(folder.path());
      ASSERT_TRUE(recorded);
      EXPECT_GT(faults_of(*recorded), 0U) << extension << " cut to " << size;
    }
    std::filesystem::remove(path);
    auto without = read_all(folder.path());
    if (extension == std::string(".spool")) {
      EXPECT_EQ(without.error().kind(), ErrorKind::kBadData);
    } else {
      EXPECT_GT(faults_of(*without), 0U) << "without the " << extension;
    }
    set_content(path, whole);
  }
  auto recorded = read_all(folder.path());
  ASSERT_TRUE(recorded);
  EXPECT_EQ(recorded->count(Type::kMark), kMarks) << "whole again";
}

// Version 1 had fewer kinds of records, each as it still is.
TEST(Damage, TheVersionBeforeIsReadAndALaterOneIsNot) {
  const ScratchFolder folder;
  make_recording(folder, true);
  for (const uint32_t version : {1U, kFormatVersion + 1}) {
    for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
      if (entry.path().extension() == ".names") continue;
      std::string bytes = content_of(entry.path());
      std::memcpy(bytes.data() + offsetof(SpoolHeader, version), &version, sizeof version);
      set_content(entry.path(), bytes);
    }
    auto recorded = read_all(folder.path());
    ASSERT_TRUE(recorded);
    EXPECT_EQ(recorded->count(Type::kMark), version == 1 ? kMarks : 0U);
    EXPECT_EQ(recorded->summary.faults["unreadable spool header"], version == 1 ? 0U : 1U);
  }
}
static_assert(offsetof(SpoolHeader, version) == offsetof(RingHeader, version));

// Killed as it began: nothing was lost, so nothing is said.
TEST(Damage, ARecordingThatNeverBeganIsNone) {
  for (const size_t bytes : {size_t{0}, size_t{100}, kHeaderBytes}) {
    const ScratchFolder folder;
    for (const char* name : {"1-a.spool", "1-a.1.ring"})
      std::ofstream(folder / name, std::ios::binary) << std::string(bytes, '\0');
    if (bytes == kHeaderBytes) std::ofstream(folder / "1-a.names", std::ios::binary) << "STRO";
    auto recorded = read_all(folder.path());
    ASSERT_TRUE(recorded);
    EXPECT_THAT(recorded->summary.faults, testing::IsEmpty()) << bytes;
    EXPECT_EQ(recorded->summary.events, 0U);
  }
  const ScratchFolder folder;
  std::ofstream(folder / "1-a.spool", std::ios::binary) << std::string(2 * kHeaderBytes, '\0');
  auto wiped = read_all(folder.path());
  ASSERT_TRUE(wiped);
  EXPECT_EQ(wiped->summary.faults["unreadable spool header"], 1U);
}

TEST(Damage, RandomWordsInARingAreNoRecords) {
  const ScratchFolder folder;
  make_recording(folder, true);
  const auto path = file_with(folder.path(), ".ring");
  const std::string whole = content_of(path);
  std::mt19937 random(10);
  for (int round = 0; round < 100; ++round) {
    std::string damaged = whole;
    for (int i = 0; i < 400; ++i)
      damaged[kHeaderBytes + random() % (whole.size() - kHeaderBytes)] = static_cast<char>(random());
    set_content(path, damaged);
    ASSERT_TRUE(read_all(folder.path()));
  }
}

TEST(Varint, EveryLengthComesBack) {
  for (int bit = 0; bit < 64; ++bit) {
    for (const uint64_t value : {uint64_t{1} << bit, (uint64_t{1} << bit) - 1, ~uint64_t{0} >> bit}) {
      uint8_t bytes[kMaxVarintBytes];
      const uint8_t* end = put_varint(bytes, value);
      uint64_t back = 0;
      EXPECT_EQ(get_varint(bytes, end, back), end);
      EXPECT_EQ(back, value);
      EXPECT_EQ(get_varint(bytes, end - 1, back), nullptr);
      EXPECT_EQ(unzigzag(zigzag(static_cast<int64_t>(value))), static_cast<int64_t>(value));
    }
  }
  const uint8_t endless[12] = {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80};
  uint64_t value = 0;
  EXPECT_EQ(get_varint(endless, endless + 12, value), nullptr);
}

}  // namespace
}  // namespace strobe::record
