#include "pipeline/bounded_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <thread>

namespace strobe::pipeline {
namespace {

TEST(BoundedQueue, KeepsOrderAndEndsAfterClose) {
  BoundedQueue<int> queue(3);
  for (const int value : {1, 2, 3}) EXPECT_TRUE(queue.push(value));
  queue.close();
  EXPECT_EQ(queue.pop(), 1);
  EXPECT_EQ(queue.pop(), 2);
  EXPECT_EQ(queue.pop(), 3);
  EXPECT_EQ(queue.pop(), std::nullopt);
}

TEST(BoundedQueue, AFullOneMakesTheProducerWait) {
  BoundedQueue<int> queue(1);
  queue.push(1);
  std::atomic<bool> second_in{false};
  std::thread producer([&] {
    queue.push(2);
    second_in = true;
  });
  int refused = 3;
  while (queue.try_push(refused)) FAIL() << "a full queue took an item";
  EXPECT_FALSE(second_in);
  EXPECT_EQ(queue.pop(), 1);
  EXPECT_EQ(queue.pop(), 2);
  producer.join();
  EXPECT_TRUE(second_in);
}

TEST(BoundedQueue, DisplacesTheOldest) {
  BoundedQueue<int> queue(2);
  EXPECT_EQ(queue.push_or_displace(1), std::nullopt);
  EXPECT_EQ(queue.push_or_displace(2), std::nullopt);
  EXPECT_EQ(queue.push_or_displace(3), 1);
  EXPECT_EQ(queue.pop(), 2);
  EXPECT_EQ(queue.pop(), 3);
}

TEST(BoundedQueue, CancelFreesAWaitingProducerAndAWaitingConsumer) {
  BoundedQueue<int> full(1), empty(1);
  full.push(1);
  std::thread producer([&] { EXPECT_FALSE(full.push(2)); });
  std::thread consumer([&] { EXPECT_EQ(empty.pop(), std::nullopt); });
  full.cancel();
  empty.cancel();
  producer.join();
  consumer.join();
  EXPECT_EQ(full.pop(), std::nullopt);
}

TEST(BoundedQueue, ManyThreadsLoseAndDoubleNothing) {
  BoundedQueue<int> queue(4);
  std::atomic<long> sum{0};
  std::atomic<int> count{0};
  std::vector<std::thread> consumers, producers;
  for (int i = 0; i < 3; ++i)
    consumers.emplace_back([&] {
      while (auto value = queue.pop()) {
        sum += *value;
        ++count;
      }
    });
  for (int p = 0; p < 3; ++p)
    producers.emplace_back([&, p] {
      for (int i = 0; i < 10000; ++i) queue.push(p * 10000 + i);
    });
  for (auto& thread : producers) thread.join();
  queue.close();
  for (auto& thread : consumers) thread.join();
  EXPECT_EQ(count, 30000);
  EXPECT_EQ(sum, 29999L * 30000 / 2);
}

TEST(BoundedQueue, OnPopFollowsTheOrderOfItemsAcrossConsumers) {
  BoundedQueue<int> queue(8);
  std::vector<int> order;  // guarded by the queue's lock
  std::vector<std::thread> consumers;
  for (int i = 0; i < 4; ++i)
    consumers.emplace_back([&] {
      while (queue.pop([&](int& value) { order.push_back(value); })) {
      }
    });
  for (int i = 0; i < 5000; ++i) queue.push(i);
  queue.close();
  for (auto& thread : consumers) thread.join();
  std::vector<int> expected(5000);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(order, expected);
}

}  // namespace
}  // namespace strobe::pipeline
