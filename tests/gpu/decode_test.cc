#include "gpu/decode.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>

#include "gpu/cupti_abi.h"

namespace strobe::gpu {
namespace {

namespace abi = cupti;

class Decode : public ::testing::Test {
 protected:
  TextId intern(std::string_view text) {
    return {ids_.try_emplace(std::string(text), static_cast<uint32_t>(ids_.size() + 1)).first->second};
  }
  template <typename Raw>
  std::span<const std::byte> bytes(const Raw& raw, size_t size = sizeof(Raw)) {
    return {reinterpret_cast<const std::byte*>(&raw), size};
  }
  template <typename Wanted, typename Raw>
  Wanted decoded(const Raw& raw, size_t size = sizeof(Raw)) {
    Record record;
    EXPECT_TRUE(decoder_.decode(bytes(raw, size), record));
    return std::get<Wanted>(record);
  }

  std::map<std::string, uint32_t> ids_;
  ActivityDecoder decoder_{{text_in_memory, [this](std::string_view text) { return intern(text); }}};
};

TEST_F(Decode, AKernelWithAllThatIsKnownOfIt) {
  const char name[] = "_Z4gemmPf";
  abi::KernelRecord raw{};
  raw.kind = abi::kConcurrentKernel;
  raw.registers_per_thread = 168;
  raw.start = 100, raw.end = 250, raw.queued = 40, raw.submitted = 60;
  raw.device = 1, raw.context = 2, raw.stream = 13;
  raw.grid[0] = 10, raw.grid[1] = 20, raw.grid[2] = 30;
  raw.block[0] = 128, raw.block[1] = 2, raw.block[2] = -1;
  raw.static_shared = 512, raw.dynamic_shared = 98304;
  raw.correlation = 77;
  raw.name = reinterpret_cast<uint64_t>(name);
  raw.graph_node = uint64_t{1} << 40 | 5, raw.graph = 9;
  raw.cluster[0] = 2;
  raw.local_total = 1, raw.local_total_v2 = uint64_t{1} << 33;
  const auto kernel = decoded<Kernel>(raw);
  EXPECT_EQ(kernel.start.ns, 100U);
  EXPECT_EQ(kernel.end.ns, 250U);
  EXPECT_EQ(kernel.queued.ns, 40U);
  EXPECT_EQ(kernel.place.device, 1U);
  EXPECT_EQ(kernel.place.stream, 13U);
  EXPECT_EQ(kernel.grid, (std::array<uint32_t, 3>{10, 20, 30}));
  EXPECT_EQ(kernel.block, (std::array<uint32_t, 3>{128, 2, 0}));  // what cannot be is 0
  EXPECT_EQ(kernel.registers, 168U);
  EXPECT_EQ(kernel.dynamic_shared, 98304);
  EXPECT_EQ(kernel.correlation, 77U);
  EXPECT_EQ(kernel.name.id, ids_.at(name));
  EXPECT_EQ(kernel.graph_node, uint64_t{1} << 40 | 5);
  EXPECT_EQ(kernel.cluster[0], 2U);
  EXPECT_EQ(kernel.local_bytes, uint64_t{1} << 33);
}

TEST_F(Decode, RecordsOfOlderLibrariesAreShorter) {
  abi::KernelRecord kernel{};
  kernel.kind = abi::kConcurrentKernel;
  kernel.start = 1, kernel.end = 2;
  kernel.graph_node = 3;
  kernel.cluster[0] = 8;  // not of that version, so it must not be looked at
  EXPECT_EQ(decoded<Kernel>(kernel, offsetof(abi::KernelRecord, cluster)).cluster[0], 0U);
  abi::SynchronizationRecord sync{};
  sync.kind = abi::kSynchronization;
  sync.type = 2, sync.stream = 7, sync.event_sync = 99;
  EXPECT_EQ(decoded<Sync>(sync, 40).event_sync, 0U);
  EXPECT_EQ(decoded<Sync>(sync).event_sync, 99U);
  abi::CudaEventRecord event{};
  event.kind = abi::kCudaEvent;
  event.device = 3;
  EXPECT_EQ(decoded<EventRecorded>(event, 24).place.device, kNoNumber);
  EXPECT_EQ(decoded<EventRecorded>(event).place.device, 3U);
  EXPECT_EQ(decoder_.faults().total(), 0U);
}

TEST_F(Decode, RecordsOfNewerLibrariesAreLonger) {
  struct {
    abi::ApiRecord known;
    uint64_t more[4];
  } raw{};
  raw.known = {abi::kDriver, 307, 10, 20, 1, 2, 3, 700};
  const auto call = decoded<Call>(raw);
  EXPECT_EQ(call.is_driver, 1U);
  EXPECT_EQ(call.function, 307U);
  EXPECT_EQ(call.thread, 2U);
  EXPECT_EQ(call.return_value, 700U);
}

TEST_F(Decode, CopiesSetsAndTheRest) {
  abi::MemcpyRecord copy{};
  copy.kind = abi::kMemcpy;
  copy.copy_kind = 1, copy.source_kind = 2, copy.target_kind = 3, copy.flags = 1;
  copy.bytes = 1 << 20, copy.start = 5, copy.end = 6;
  EXPECT_EQ(decoded<Copy>(copy).bytes, 1U << 20);
  EXPECT_EQ(decoded<Copy>(copy).is_async, 1U);
  abi::MemcpyPeerRecord peer{};
  peer.kind = abi::kMemcpy2;
  peer.copy_kind = 10, peer.source_device = 1, peer.target_device = 2;
  EXPECT_EQ(decoded<Copy>(peer).target_device, 2U);
  abi::MemsetRecord set{};
  set.kind = abi::kMemset;
  set.value = 0xAB, set.bytes = 4096, set.memory_kind = 3;
  EXPECT_EQ(decoded<Set>(set).value, 0xABU);
  abi::OverheadRecord overhead{};
  overhead.kind = abi::kOverhead;
  overhead.overhead_kind = 2 << 16, overhead.object_kind = abi::kObjectThread;
  overhead.object.of_thread.process = 10, overhead.object.of_thread.thread = 11;
  EXPECT_EQ(decoded<Overhead>(overhead).thread, 11U);
  overhead.object_kind = abi::kObjectContext;
  EXPECT_EQ(decoded<Overhead>(overhead).process, 0U);
  abi::ExternalCorrelationRecord external{abi::kExternalCorrelation, 3, 1234567890123, 42, 0};
  EXPECT_EQ(decoded<External>(external).id, 1234567890123U);
  abi::MarkerRecord marker{};
  marker.kind = abi::kMarker;
  marker.flags = abi::kMarkerStart, marker.time = 12, marker.id = 3;
  marker.object_kind = abi::kObjectThread, marker.object.of_thread.thread = 9;
  marker.name = reinterpret_cast<uint64_t>("layer1");
  const auto read = decoded<Marker>(marker);
  EXPECT_EQ(read.name.id, ids_.at("layer1"));
  EXPECT_EQ(read.domain, TextId{});
  abi::ContextRecord context{};
  context.kind = abi::kContext;
  context.context = 4, context.device = 1, context.is_green = 1, context.multiprocessors = 16;
  EXPECT_EQ(decoded<Context>(context).multiprocessors, 16U);
  abi::StreamRecord stream{abi::kStream, 4, 13, static_cast<uint32_t>(-5), 2, 0};
  EXPECT_EQ(decoded<Stream>(stream).priority, -5);
  abi::NameRecord name{};
  name.kind = abi::kName, name.object_kind = abi::kObjectStream;
  name.object.of_stream.context = 4, name.object.of_stream.stream = 13;
  name.name = reinterpret_cast<uint64_t>("copies");
  EXPECT_EQ(decoded<ObjectName>(name).place.stream, 13U);
  abi::GraphTraceRecord graph{};
  graph.kind = abi::kGraphTrace, graph.start = 1, graph.end = 9, graph.graph = 6, graph.correlation = 2;
  EXPECT_EQ(decoded<GraphLaunch>(graph).graph, 6U);
  EXPECT_EQ(decoded<GraphLaunch>(graph, 48).graph, 6U);
  abi::MemoryRecord memory{};
  memory.kind = abi::kMemory2, memory.operation = 2, memory.memory_kind = 3, memory.address = 0x7f00, memory.bytes = 64;
  EXPECT_EQ(decoded<Memory>(memory).is_release, 1U);
  abi::MemoryPoolRecord pool{};
  pool.kind = abi::kMemoryPool, pool.operation = 1, pool.size = 1 << 21;
  EXPECT_EQ(decoded<MemoryPool>(pool).size, 1U << 21);
  abi::EnvironmentRecord environment{};
  environment.kind = abi::kEnvironment, environment.environment_kind = abi::kPower, environment.values[0] = 350'000;
  EXPECT_EQ(decoded<Environment>(environment).values[0], 350'000U);
}

TEST_F(Decode, WhatIsNotKnownOrTooShortIsCounted) {
  Record record;
  const uint32_t strange[2] = {4711, 0};
  EXPECT_FALSE(decoder_.decode(bytes(strange), record));
  EXPECT_FALSE(decoder_.decode(bytes(strange), record));
  EXPECT_EQ(decoder_.faults().unknown_kinds.at(4711), 2U);
  const uint32_t kernel[2] = {abi::kConcurrentKernel, 0};
  EXPECT_FALSE(decoder_.decode(bytes(kernel), record));
  EXPECT_FALSE(decoder_.decode({}, record));
  EXPECT_EQ(decoder_.faults().short_records, 2U);
}

TEST_F(Decode, LongTextsAreCut) {
  const std::string endless(100'000, 'x');
  EXPECT_EQ(text_in_memory(reinterpret_cast<uint64_t>(endless.data())).size(), 64U << 10);
}

TEST(WalkRecords, StaysInsideTheBuffer) {
  std::mt19937 random(3);
  alignas(8) std::byte buffer[256]{};
  for (int round = 0; round < 2000; ++round) {
    std::vector<ptrdiff_t> steps;
    for (int i = 0; i < 12; ++i) steps.push_back(static_cast<ptrdiff_t>(random() % 320) - 32);
    size_t at = 0;
    ptrdiff_t last = -1;
    size_t seen = 0;
    const bool whole = walk_records(
        {buffer, sizeof buffer},
        [&](const std::byte*& record) {
          if (at == steps.size()) return false;
          record = buffer + steps[at++];
          return true;
        },
        [&](std::span<const std::byte> record) {
          const ptrdiff_t begin = record.data() - buffer;
          ASSERT_GE(begin, 0);
          ASSERT_GT(begin, last);
          ASSERT_LE(begin + static_cast<ptrdiff_t>(record.size()), 256);
          ASSERT_GE(record.size(), 8U);
          last = begin;
          seen += record.size();
        });
    ASSERT_LE(seen, 256U);
    // It goes on to the end only where all lie one behind the other.
    const bool in_order = std::is_sorted(steps.begin(), steps.end());
    ASSERT_TRUE(in_order || !whole);
  }
}

}  // namespace
}  // namespace strobe::gpu
