#include "predict/training_memory.h"

#include <gtest/gtest.h>

#include <random>

#include "predict/caching_allocator.h"

namespace strobe::predict {
namespace {

constexpr int64_t kMiB = 1 << 20;

LayerRow conv(int64_t in, int64_t out, int64_t kernel, int64_t side, int32_t from) {
  LayerRow row;
  row.type = LayerKind::kConv;
  row.ic = in;
  row.oc = out;
  row.kh = row.kw = kernel;
  row.sh = row.sw = 1;
  row.ph = row.pw = kernel / 2;
  row.ih = row.iw = row.oh = row.ow = side;
  row.inputs = {from};
  return row;
}

LayerRow elementwise(LayerKind kind, int64_t channels, int64_t side, std::vector<int32_t> from, bool inplace) {
  LayerRow row;
  row.type = kind;
  row.ic = row.oc = channels;
  row.ih = row.iw = row.oh = row.ow = side;
  row.inplace = inplace;
  row.inputs = std::move(from);
  return row;
}

TEST(CachingAllocator, TakesSegmentsAsItsSizesSay) {
  CachingAllocator allocator;
  EXPECT_EQ(allocator.allocate(0), CachingAllocator::kNone);
  allocator.allocate(1);  // 512 bytes of a segment of 2 MiB
  EXPECT_EQ(allocator.live(), 512);
  EXPECT_EQ(allocator.reserved(), 2 * kMiB);
  allocator.allocate(kMiB);  // fits into what is left of it
  EXPECT_EQ(allocator.reserved(), 2 * kMiB);
  allocator.allocate(kMiB + 1);  // the first large one
  EXPECT_EQ(allocator.reserved(), 22 * kMiB);
  allocator.allocate(11 * kMiB);  // fits into what is left of that
  EXPECT_EQ(allocator.reserved(), 22 * kMiB);
  allocator.allocate(25 * kMiB);  // a segment of its own, in steps of 2 MiB
  EXPECT_EQ(allocator.reserved(), 48 * kMiB);
}

TEST(CachingAllocator, FreeNeighboursBecomeOneWithinTheirSegmentOnly) {
  CachingAllocator allocator;
  const auto a = allocator.allocate(8 * kMiB), b = allocator.allocate(8 * kMiB);  // both of one segment of 20 MiB
  EXPECT_EQ(allocator.reserved(), 20 * kMiB);
  allocator.release(a);
  allocator.release(b);
  allocator.allocate(18 * kMiB);  // the segment is whole again
  EXPECT_EQ(allocator.reserved(), 20 * kMiB);
  // Two free segments of 10 MiB do not make one of 20.
  CachingAllocator other;
  const auto c = other.allocate(10 * kMiB), d = other.allocate(10 * kMiB);
  other.release(c);
  other.release(d);
  other.allocate(20 * kMiB);
  EXPECT_EQ(other.reserved(), 40 * kMiB);
  EXPECT_EQ(other.peak_live(), 20 * kMiB);
}

TEST(CachingAllocator, LargeBlocksKeepARemainderOfUpToOneMiB) {
  CachingAllocator allocator;
  allocator.release(allocator.allocate(12 * kMiB));
  allocator.allocate(11 * kMiB);  // the remainder of 1 MiB stays with it
  EXPECT_EQ(allocator.live(), 12 * kMiB);
  CachingAllocator other;
  other.release(other.allocate(12 * kMiB));
  other.allocate(10 * kMiB);
  EXPECT_EQ(other.live(), 10 * kMiB);
}

TEST(CachingAllocator, HoldsForAnyOrderWhatLivesAndGivesAllBack) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 20; ++round) {
    CachingAllocator allocator;
    std::vector<std::pair<CachingAllocator::Handle, int64_t>> held;
    int64_t bytes = 0;
    for (int i = 0; i < 400; ++i) {
      if (held.empty() || random() % 5 < 3) {
        const auto wanted = static_cast<int64_t>(random() % (uint64_t{1} << (8 + random() % 18))) + 1;
        held.emplace_back(allocator.allocate(wanted), wanted);
        bytes += wanted;
      } else {
        const size_t at = random() % held.size();
        allocator.release(held[at].first);
        bytes -= held[at].second;
        held.erase(held.begin() + static_cast<int64_t>(at));
      }
      ASSERT_GE(allocator.live(), bytes);
      ASSERT_LE(allocator.live(), allocator.peak_live());
      ASSERT_LE(allocator.peak_live(), allocator.reserved());
    }
    for (const auto& [handle, size] : held) allocator.release(handle);
    EXPECT_EQ(allocator.live(), 0);
    // Every segment is whole again, so that what was held at most fits into what is reserved.
    const int64_t reserved = allocator.reserved();
    allocator.allocate(kMiB);
    EXPECT_LE(allocator.reserved(), reserved + 2 * kMiB);
  }
}

// Three layers of 4 channels on 512 x 512, a batch of one: each tensor is T = 4 x 4 x 512 x 512 bytes = 4 MiB, the
// input of one channel 1 MiB.
TEST(TrainingMemory, ThreeLayersByHand) {
  LayerList list;
  list.rows = {conv(1, 4, 1, 512, -1), elementwise(LayerKind::kRelu, 4, 512, {0}, false), conv(4, 4, 1, 512, 1)};
  // Forward: input 1, conv 4, relu 4, conv 4. The first conv's output is kept by nobody once relu has read it: gone.
  // Backward starts with input 1 + relu 4 + result 4 and the gradient of the result 4 = 13.
  //   last conv: + gradient of relu's output 4 + its weights' 512 bytes; then the gradient of the result goes.
  // Peak: 1 + 4 + 4 + 4 + 4 MiB + 512.
  // relu: input 1 + relu 4 + result 4 + two gradients 8: the same without the 512. First conv: less.
  const StepMemory memory = training_step_memory(list, 1);
  EXPECT_EQ(memory.peak_live, 17.0 * kMiB + 512);
  // 1 MiB and 512 bytes lie in a small segment of 2 MiB; tensors of 4 MiB lie five to a segment of 20 MiB.
  EXPECT_EQ(memory.reserved, 22.0 * kMiB);

  // In place, relu and the first conv share a tensor: nothing is released in forward, the peak is the same.
  list.rows[1].inplace = true;
  EXPECT_EQ(training_step_memory(list, 1).peak_live, 17.0 * kMiB + 512);
  EXPECT_EQ(saved_bytes(list), 4.0 * kMiB);
}

TEST(TrainingMemory, GradientsOfATensorReadTwiceAreAdded) {
  // x = conv(input); y = x + conv(x)
  LayerList list;
  list.rows = {conv(1, 4, 1, 512, -1), conv(4, 4, 1, 512, 0), elementwise(LayerKind::kAdd, 4, 512, {1, 0}, false)};
  // The gradient of y is that of x and of the inner conv's output: one tensor. Inner conv, backward: input 1, x 4,
  // y 4, gradient of y 4, gradient by conv 4; then their sum 4: 21 MiB, x being released before the sum is made as the
  // inner conv was the last to need it: 17 MiB.
  EXPECT_EQ(training_step_memory(list, 1).peak_live, 17.0 * kMiB + 512);
}

TEST(TrainingMemory, WorkspaceOfTheGradientOfTheInput) {
  LayerList list;
  list.rows = {conv(1, 4, 1, 512, -1), conv(4, 4, 3, 512, 0)};
  // Without: input 1, first output 4, result 4, both gradients 8 and 9 x 16 weights: 576 bytes, rounded to 1024.
  EXPECT_EQ(training_step_memory(list, 1, 0).peak_live, 17.0 * kMiB + 1024);
  // 2.25 (4 + 4) MiB = 18 MiB for a moment before the weights.
  EXPECT_EQ(training_step_memory(list, 1).peak_live, 35.0 * kMiB);
  list.rows[1].kh = list.rows[1].kw = 1;  // 1 x 1 needs none
  EXPECT_EQ(training_step_memory(list, 1).peak_live, 17.0 * kMiB + 512);
}

TEST(TrainingMemory, PoolsKeepIndicesAndBatchNormItsStatistics) {
  LayerList list;
  LayerRow pool = elementwise(LayerKind::kMaxPool, 4, 512, {0}, false);
  pool.oh = pool.ow = 256;
  list.rows = {conv(1, 4, 1, 512, -1), pool};
  // Of the conv's output, and 8 bytes for each of the pool's 4 x 256 x 256 outputs.
  EXPECT_EQ(saved_bytes(list), 4.0 * kMiB + 8.0 * 4 * 256 * 256);
  list.rows = {conv(1, 4, 1, 512, -1), elementwise(LayerKind::kBatchNorm, 4, 512, {0}, false)};
  EXPECT_EQ(saved_bytes(list), 4.0 * kMiB + 8 * 4);
}

TEST(TrainingMemory, GrowsWithTheBatchAndNeedsNothingForNothing) {
  EXPECT_EQ(training_step_memory({}, 4).reserved, 0);
  LayerList list;
  list.rows = {conv(3, 16, 3, 64, -1), elementwise(LayerKind::kRelu, 16, 64, {0}, true), conv(16, 32, 3, 64, 1)};
  double last = 0;
  for (int64_t batch = 1; batch <= 64; batch *= 2) {
    const StepMemory memory = training_step_memory(list, batch);
    EXPECT_GT(memory.peak_live, last);
    EXPECT_GE(memory.reserved, memory.peak_live);
    last = memory.peak_live;
  }
}

// Three convolutions in a row, then the sum of the first and the last: the first must stay, the second goes.
TEST(InferenceMemory, TensorsLiveToTheirLastReader) {
  LayerList list;
  for (int32_t i = 0; i < 4; ++i) {
    LayerRow row;
    row.type = i < 3 ? LayerKind::kConv : LayerKind::kAdd;
    row.ic = row.oc = 1;
    row.kh = row.kw = row.sh = row.sw = i < 3 ? 1 : 0;
    row.ih = row.iw = row.oh = row.ow = 512;  // 1 MiB
    row.inputs = i < 3 ? std::vector<int32_t>{i - 1} : std::vector<int32_t>{0, 2};
    list.rows.push_back(row);
  }
  // The input and at most three others: first, second and third; first, third and the sum.
  EXPECT_EQ(inference_memory(list, 1).peak_live, 4.0 * 1024 * 1024);
  EXPECT_EQ(inference_memory(list, 8).peak_live, 32.0 * 1024 * 1024);
  list.rows.back().inputs = {1, 2};
  EXPECT_EQ(inference_memory(list, 1).peak_live, 4.0 * 1024 * 1024);
  list.rows.pop_back();  // a chain: the input, what is read and what is written
  EXPECT_EQ(inference_memory(list, 1).peak_live, 3.0 * 1024 * 1024);
  EXPECT_GT(training_step_memory(list, 1, 0).peak_live, 4.0 * 1024 * 1024);
  EXPECT_EQ(inference_memory({}, 1).peak_live, 0);
}

}  // namespace
}  // namespace strobe::predict
