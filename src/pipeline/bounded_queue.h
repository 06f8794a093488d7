// BoundedQueue: the joint between two stages. Full means that the producer waits (back-pressure), or, for a live
// source, that the oldest item gives way.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>

namespace strobe::pipeline {

template <typename T>
class BoundedQueue {
 public:
  explicit BoundedQueue(size_t capacity) : capacity_(capacity) {}

  // Waits while full. False when the queue was cancelled: the item is lost with it.
  bool push(T item) {
    std::unique_lock lock(mutex_);
    not_full_.wait(lock, [&] { return items_.size() < capacity_ || cancelled_; });
    if (cancelled_) return false;
    items_.push_back(std::move(item));
    not_empty_.notify_one();
    return true;
  }

  // Never waits: a full queue hands back its oldest item, which is thereby dropped.
  std::optional<T> push_or_displace(T item) {
    std::optional<T> displaced;
    const std::lock_guard lock(mutex_);
    if (items_.size() >= capacity_) {
      displaced = std::move(items_.front());
      items_.pop_front();
    }
    items_.push_back(std::move(item));
    not_empty_.notify_one();
    return displaced;
  }

  // Never waits: a full queue refuses the item, which the caller keeps.
  bool try_push(T& item) {
    const std::lock_guard lock(mutex_);
    if (items_.size() >= capacity_) return false;
    items_.push_back(std::move(item));
    not_empty_.notify_one();
    return true;
  }

  // Waits for an item; nothing when the queue is closed and empty, or cancelled. on_pop runs while the queue is locked,
  // so that what it does follows the order of the items.
  std::optional<T> pop(const std::function<void(T&)>& on_pop = {}) {
    std::unique_lock lock(mutex_);
    not_empty_.wait(lock, [&] { return !items_.empty() || closed_ || cancelled_; });
    if (cancelled_ || items_.empty()) return std::nullopt;
    T item = std::move(items_.front());
    items_.pop_front();
    if (on_pop) on_pop(item);
    not_full_.notify_one();
    return item;
  }

  // No more items will come; those inside are still handed out.
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    not_empty_.notify_all();
  }

  // Everybody goes home: waiting calls return at once and the items are dropped.
  void cancel() {
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
    items_.clear();
    not_empty_.notify_all();
    not_full_.notify_all();
  }

  size_t size() const {
    const std::lock_guard lock(mutex_);
    return items_.size();
  }

 private:
  const size_t capacity_;
  mutable std::mutex mutex_;
  std::condition_variable not_empty_, not_full_;
  std::deque<T> items_;
  bool closed_ = false;
  bool cancelled_ = false;
};

}  // namespace strobe::pipeline
