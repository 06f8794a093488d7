#include "gpu/log_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <random>

#include "gpu/fake.h"

namespace strobe::gpu {
namespace {

using testing::Folder;

std::vector<Record> records_of(const std::filesystem::path& path, GpuLog* head = nullptr) {
  std::vector<Record> records;
  const auto log = read_log(path, [&records](const Record& record) { records.push_back(record); });
  EXPECT_TRUE(log) << log.error().to_string();
  if (log && head != nullptr) *head = *log;
  return records;
}

// All fields of a record as numbers and texts.
struct Fields {
  std::vector<std::string> values;
  void operator()(TextId value) { values.push_back(std::to_string(value.id)); }
  void operator()(CuptiTime value) { values.push_back(std::to_string(value.ns)); }
  void operator()(const std::string& value) { values.push_back(value); }
  void operator()(auto value) { values.push_back(std::to_string(value)); }
};
std::vector<std::string> fields_of(Record record) {
  Fields fields;
  fields.values.push_back(std::to_string(record.index()));
  std::visit([&fields](auto& one) { one.fields(fields); }, record);
  return fields.values;
}

struct Randomly {
  std::mt19937_64& random;
  uint64_t number() { return random() >> (random() % 64); }
  void operator()(TextId& value) { value.id = static_cast<uint32_t>(number()); }
  void operator()(CuptiTime& value) { value.ns = number(); }
  void operator()(std::string& value) { value.assign(random() % 40, static_cast<char>(random())); }
  void operator()(double& value) { value = static_cast<double>(static_cast<int64_t>(number())) / 3; }
  void operator()(auto& value) { value = static_cast<std::remove_cvref_t<decltype(value)>>(number()); }
};

template <size_t... Kind>
Record random_record(std::mt19937_64& random, std::index_sequence<Kind...>) {
  const size_t wanted = random() % sizeof...(Kind);
  Record record;
  ((Kind == wanted ? void(record.emplace<Kind>()) : void()), ...);
  std::visit([&random](auto& one) { one.fields(Randomly{random}); }, record);
  return record;
}

TEST(LogFile, EveryRecordComesBackAsItWas) {
  const Folder folder;
  std::mt19937_64 random(11);
  std::vector<Record> written;
  std::filesystem::path path;
  {
    const auto log = LogWriter::create(folder.path());
    ASSERT_TRUE(log);
    path = (*log)->path();
    for (int i = 0; i < 20'000; ++i) {
      written.push_back(random_record(random, std::make_index_sequence<std::variant_size_v<Record>>()));
      (*log)->add(written.back());
      const bool flushed = random() % 3000 != 0 || (*log)->flush();
      EXPECT_TRUE(flushed);
    }
  }
  GpuLog head;
  const auto read = records_of(path, &head);
  EXPECT_EQ(head.pid, ::getpid());
  EXPECT_TRUE(head.faults.empty());
  ASSERT_EQ(read.size(), written.size());
  for (size_t i = 0; i < read.size(); ++i) ASSERT_EQ(fields_of(read[i]), fields_of(written[i])) << i;
}

TEST(LogFile, TextsAreDefinedBeforeTheyAreUsedAndOnce) {
  const Folder folder;
  std::filesystem::path path;
  {
    const auto log = LogWriter::create(folder.path());
    path = (*log)->path();
    EXPECT_EQ((*log)->intern(""), TextId{});
    const TextId a = (*log)->intern("a"), b = (*log)->intern("b");
    EXPECT_NE(a, b);
    EXPECT_EQ((*log)->intern("a"), a);
  }
  const auto read = records_of(path);
  ASSERT_EQ(read.size(), 2U);
  EXPECT_EQ(std::get<TextDefinition>(read[1]).text, "b");
}

TEST(LogFile, WhatWasWrittenSurvivesACut) {
  const Folder folder;
  std::filesystem::path path;
  uintmax_t whole = 0;
  {
    const auto log = LogWriter::create(folder.path());
    path = (*log)->path();
    (*log)->add(Fact{"a", "1"});
    EXPECT_TRUE((*log)->flush());
    whole = std::filesystem::file_size(path);
    (*log)->add(Fact{"b", "2"});
  }
  std::string bytes;
  {
    std::ifstream file(path, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(file), {});
  }
  const uintmax_t all = bytes.size();
  // Cut anywhere in the second block: the first one is there, and nothing is counted as damage.
  for (uintmax_t size = whole; size < all; ++size) {
    std::ofstream(path, std::ios::binary) << bytes.substr(0, size);
    GpuLog head;
    EXPECT_EQ(records_of(path, &head).size(), 1U) << size;
    EXPECT_TRUE(head.faults.empty()) << size;
  }
}

TEST(LogFile, DamageIsCountedNeverTaken) {
  const Folder folder;
  std::filesystem::path path;
  {
    const auto log = LogWriter::create(folder.path());
    path = (*log)->path();
    for (int i = 0; i < 100; ++i) (*log)->add(Fact{"key " + std::to_string(i), "value"});
  }
  std::string bytes;
  {
    std::ifstream file(path, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(file), {});
  }
  for (size_t at = 16; at < bytes.size(); at += 3) {
    std::string broken = bytes;
    broken[at] = static_cast<char>(broken[at] ^ 0x41);
    std::ofstream(path, std::ios::binary) << broken;
    std::vector<Record> records;
    const auto log = read_log(path, [&records](const Record& record) { records.push_back(record); });
    ASSERT_TRUE(log);
    // A wrong length may look like a block that was cut short.
    EXPECT_TRUE(records.empty()) << at;
  }
  std::ofstream(path, std::ios::binary) << "something else";
  EXPECT_FALSE(read_log(path, [](const Record&) {}));
}

TEST(LogFile, LaterFieldsAndKindsAreSteppedOver) {
  // A Loss with one field more, and a record of a kind that does not exist yet, between two known ones.
  std::vector<uint8_t> plain{5, 22, 1, 'x', 3, 99, 3, 200, 1, 7, 5, 22, 1, 'y', 4, 0};
  std::vector<Record> records;
  ASSERT_TRUE(detail::read_records(plain, [&records](const Record& record) { records.push_back(record); }));
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(std::get<Loss>(records[0]).count, 3U);
  EXPECT_EQ(std::get<Loss>(records[1]).kind, "y");
}

TEST(LogFile, AFullDiskLosesRecordsAndCountsThem) {
  const auto log = LogWriter::create("/dev/shm");
  if (!log) GTEST_SKIP() << "/dev/shm cannot be written to";
  (*log)->abandon();  // every write fails from here on
  (*log)->add(Fact{"a", "1"});
  EXPECT_FALSE((*log)->flush());
  EXPECT_EQ((*log)->lost(), 1U);
  std::filesystem::remove((*log)->path());
}

}  // namespace
}  // namespace strobe::gpu
