#include "sensors/dds_replay.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <time.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/statistics.h"
#include "sensors/ros_messages.h"

namespace strobe::sensors {

namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kClockPeriod = kSecond / 40;
constexpr int64_t kSlice = kSecond / 10;  // how long Ctrl-C may go unseen

// From the moment a writer knows a reader until the reader knows the writer: 0.75 s of cyclonedds 11, which passes over
// what was written before.
constexpr int64_t kSettle = kSecond;
constexpr size_t kRemembered = 100'000;  // an endless loop's memory stays flat

int64_t now_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * kSecond + time.tv_nsec;
}

void sleep_until(int64_t moment_ns) {
  const timespec time{moment_ns / kSecond, moment_ns % kSecond};
  while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr) == EINTR) {
  }
}

// One run of replay(): publishers, the pace, and what became of it.
class Replay {
 public:
  Replay(MessageSource& source, const ReplayOptions& options, const std::atomic<bool>& stop,
         const std::function<void(const std::string&)>& tell)
      : source_(source), options_(options), stop_(stop), tell_(tell) {}

  Result<void> open(DdsParticipant& participant) {
    for (const DdsTopic& topic : source_.topics()) {
      STROBE_ASSIGN(publishers_.emplace_back(), participant.create_publisher(topic));
      summary_.topics.push_back({topic.name});
    }
    if (!options_.clock) return {};
    const ros::MessageType* type = ros::find_message_type(ros::type_name<ros::Clock>());
    DdsTopic topic{"/clock", ros::type_name<ros::Clock>(), type != nullptr ? std::string(type->rihs01) : "", {}};
    topic.qos.depth = 1;
    STROBE_ASSIGN(clock_, participant.create_publisher(topic));
    return {};
  }

  void wait_for_readers() {
    const auto none = [&] {
      return std::none_of(publishers_.begin(), publishers_.end(), [](const auto& p) { return p->readers() > 0; });
    };
    const int64_t end = now_ns() + options_.wait.count() * 1'000'000;
    while (none() && now_ns() < end && !stop_) sleep_until(now_ns() + kSecond / 50);
    if (!none() && !stop_) sleep_until(now_ns() + kSettle);
  }

  Result<ReplaySummary> run() {
    // The kernel may be up to 50 us late by default, so as to wake up less often.
    ::prctl(PR_SET_TIMERSLACK, 1UL);
    PacedMessage message;
    STROBE_ASSIGN(bool more, source_.next(message));
    if (!more) return usage_error("no messages: expected some to send");
    start_ = now_ns();
    int64_t round_begin = start_, last_due = start_, first = message.time_ns, previous = message.time_ns;
    uint64_t in_round = 0;
    summary_.rounds = 1;
    while (!stop_) {
      if (!more) {
        if (!options_.loop) break;
        const int64_t span = last_due - round_begin;
        if (const int64_t period = source_.period_ns(); period > 0)
          round_begin += (span / period + 1) * period;
        else
          round_begin =
              last_due + std::max<int64_t>(in_round > 1 ? span / static_cast<int64_t>(in_round - 1) : 0, 1'000'000);
        STROBE_TRY(source_.rewind());
        STROBE_ASSIGN(more, source_.next(message));
        if (!more) break;
        first = previous = message.time_ns, in_round = 0;
        ++summary_.rounds;
      }
      const auto after = static_cast<double>(message.time_ns - first) / options_.rate;
      const int64_t due = round_begin + std::llround(after);
      if (!sleep(due, previous, message.time_ns)) break;
      STROBE_TRY(send(message, due));
      previous = message.time_ns, last_due = due;
      ++in_round;
      STROBE_ASSIGN(more, source_.next(message));
    }
    return finish();
  }

 private:
  // False where the user stopped it.
  bool sleep(int64_t due, int64_t from_ns, int64_t to_ns) {
    const int64_t begin = now_ns(), slice = clock_ ? kClockPeriod : kSlice;
    for (int64_t next = begin + slice; next < due; next += slice) {
      sleep_until(next);
      if (stop_) return false;
      if (clock_) {
        const double share = static_cast<double>(next - begin) / static_cast<double>(due - begin);
        tell_time(from_ns + std::llround(share * static_cast<double>(to_ns - from_ns)));
      }
    }
    if (due > now_ns()) sleep_until(due);
    return !stop_;
  }

  void tell_time(int64_t time_ns) {
    ros::Clock clock;
    clock.clock.sec = static_cast<int32_t>(time_ns / kSecond);
    clock.clock.nanosec = static_cast<uint32_t>(time_ns % kSecond);
    // A clock that is not heard does not stop the data.
    if (auto sent = clock_->publish(ros::encode(clock, writer_)); !sent && !clock_failed_) {
      clock_failed_ = true;
      tell_(sent.error().to_string());
    }
  }

  Result<void> send(const PacedMessage& message, int64_t due) {
    const double late_ms = static_cast<double>(std::max<int64_t>(now_ns() - due, 0)) / 1e6;
    summary_.late_max_ms = std::max(summary_.late_max_ms, late_ms);
    if (late_ms_.size() < kRemembered) {
      late_ms_.push_back(late_ms);
    } else {
      late_ms_[summary_.messages % kRemembered] = late_ms;
    }
    if (clock_) tell_time(message.time_ns);
    DdsPublisher& publisher = *publishers_[message.topic];
    STROBE_TRY(publisher.publish(message.cdr));
    ReplaySummary::Topic& topic = summary_.topics[message.topic];
    ++topic.messages, ++summary_.messages;
    summary_.bytes += message.cdr.size();
    if (topic.readers_gone == 0 && publisher.readers_gone() > 0) {
      topic.readers_gone = publisher.readers_gone();
      tell_(fmt::format("a reader of {} is gone; sending goes on", topic.name));
    }
    return {};
  }

  ReplaySummary finish() {
    summary_.stopped = stop_;
    summary_.seconds = static_cast<double>(now_ns() - start_) / kSecond;
    // A reader that is a moment behind gets the last messages, too.
    for (size_t i = 0; i < publishers_.size(); ++i) {
      summary_.topics[i].readers = publishers_[i]->readers();
      summary_.topics[i].readers_gone = publishers_[i]->readers_gone();
      if (summary_.topics[i].readers > 0) publishers_[i]->wait_until_taken(std::chrono::milliseconds(500));
    }
    if (!late_ms_.empty()) {
      std::sort(late_ms_.begin(), late_ms_.end());
      summary_.late_p50_ms = quantile_sorted(late_ms_, 0.5);
      summary_.late_p99_ms = quantile_sorted(late_ms_, 0.99);
    }
    return summary_;
  }

  MessageSource& source_;
  const ReplayOptions& options_;
  const std::atomic<bool>& stop_;
  const std::function<void(const std::string&)>& tell_;
  std::vector<std::unique_ptr<DdsPublisher>> publishers_;
  std::unique_ptr<DdsPublisher> clock_;
  CdrWriter writer_;
  ReplaySummary summary_;
  std::vector<double> late_ms_;
  int64_t start_ = 0;
  bool clock_failed_ = false;
};

// The words that stand behind "key:", one for each profile.
std::vector<std::string_view> values_of(std::string_view yaml, std::string_view key) {
  std::vector<std::string_view> values;
  for (size_t at = yaml.find(key); at != std::string_view::npos; at = yaml.find(key, at + 1)) {
    const bool begins = at == 0 || std::string_view(" \n\t-{,\"'").find(yaml[at - 1]) != std::string_view::npos;
    size_t end = at + key.size();
    while (end < yaml.size() && (yaml[end] == '"' || yaml[end] == '\'')) ++end;
    if (!begins || end >= yaml.size() || yaml[end] != ':') continue;
    const size_t first = yaml.find_first_not_of(" \"'", end + 1);
    if (first == std::string_view::npos) break;
    values.push_back(yaml.substr(first, yaml.find_first_of(" \n\r\t,}\"'#", first) - first));
  }
  return values;
}

}  // namespace

Result<ReplaySummary> replay(MessageSource& source, DdsParticipant& participant, const ReplayOptions& options,
                             const std::atomic<bool>& stop, const std::function<void(const std::string&)>& tell) {
  if (!(options.rate > 0) || !std::isfinite(options.rate))
    return usage_error(fmt::format("rate {:g}: expected a number above 0", options.rate));
  Replay run(source, options, stop, tell);
  STROBE_TRY(run.open(participant));
  run.wait_for_readers();
  return run.run();
}

ros::Qos parse_offered_qos(std::string_view yaml) {
  ros::Qos qos;
  // rmw's numbers: reliability 1 reliable, 2 best effort; durability 1 transient local, 2 volatile; history 1 keep
  // last, 2 keep all, 3 unknown (DDS does not tell it to others).
  const auto reliability = values_of(yaml, "reliability");
  const auto is = [](std::string_view number, std::string_view name) {
    return [=](std::string_view value) { return value == number || value == name; };
  };
  if (!reliability.empty() && std::all_of(reliability.begin(), reliability.end(), is("2", "best_effort")))
    qos.reliability = ros::Qos::Reliability::kBestEffort;
  const auto durability = values_of(yaml, "durability");
  if (std::any_of(durability.begin(), durability.end(), is("1", "transient_local")))
    qos.durability = ros::Qos::Durability::kTransientLocal;
  uint32_t deepest = 0;
  for (const std::string_view text : values_of(yaml, "depth")) {
    uint32_t depth = 0;
    std::from_chars(text.data(), text.data() + text.size(), depth);
    deepest = std::max(deepest, depth);
  }
  if (deepest > 0) qos.depth = std::min(deepest, 10'000U);
  return qos;
}

}  // namespace strobe::sensors
