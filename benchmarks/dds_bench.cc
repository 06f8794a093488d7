// Links: strobe_sensors
// Latency of LiDAR-sized messages over DDS between two processes of this host: from the stamp that the writer puts into
// the header until the reader has the bytes. benchmarks/peers/dds.sh runs it.
//   strobe_dds_bench all|udp|shared-memory COUNT HZ BYTES DOMAIN
#include <fmt/format.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/statistics.h"
#include "sensors/dds.h"
#include "sensors/ros_messages.h"

namespace {

using namespace strobe;
using namespace strobe::sensors;
using namespace std::chrono_literals;

struct Case {
  std::string transport;
  int count = 100;
  double rate_hz = 20;
  size_t bytes = 693'760;
  int domain = 0;
};

int64_t now_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_REALTIME, &time);
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

DdsTopic topic() {
  return {"/bench", ros::type_name<ros::PointCloud2>(), "", {}};
}

Result<std::shared_ptr<DdsParticipant>> join(const Case& what) {
  DdsOptions options;
  options.domain = what.domain;
  options.transport = what.transport == "udp"             ? DdsTransport::kUdp
                      : what.transport == "shared-memory" ? DdsTransport::kSharedMemory
                                                          : DdsTransport::kAll;
  return join_dds(options);
}

Result<void> read(const Case& what) {
  STROBE_ASSIGN(const auto participant, join(what));
  STROBE_ASSIGN(const auto subscriber, participant->create_subscriber(topic()));
  std::vector<double> late_ms;
  DdsSample sample;
  for (int i = 0; i < what.count; ++i) {
    STROBE_ASSIGN(const bool any, subscriber->take(sample, i == 0 ? 20s : 3s));
    if (!any) break;
    const int64_t now = now_ns();
    STROBE_ASSIGN(const ros::PointCloud2 cloud, ros::decode<ros::PointCloud2>(sample.cdr));
    if (cloud.data.size() != what.bytes) return bad_data("a cloud of another size");
    late_ms.push_back(
        static_cast<double>(now - int64_t{cloud.header.stamp.sec} * 1'000'000'000 - cloud.header.stamp.nanosec) / 1e6);
  }
  std::sort(late_ms.begin(), late_ms.end());
  if (late_ms.empty()) return bad_data("nothing arrived");
  fmt::print("{:14} {:4}/{:<4} {:8.3f} {:8.3f} {:8.3f}\n", what.transport, late_ms.size(), what.count,
             quantile_sorted(late_ms, 0.5), quantile_sorted(late_ms, 0.95), late_ms.back());
  return {};
}

Result<void> write(const Case& what) {
  STROBE_ASSIGN(const auto participant, join(what));
  STROBE_ASSIGN(const auto publisher, participant->create_publisher(topic()));
  if (!publisher->wait_for_readers(1, 20s)) return not_found("no reader came");
  ::usleep(1'000'000);
  const std::vector<uint8_t> data(what.bytes, 7);
  ros::PointCloud2 cloud;
  cloud.header.frame_id = "LIDAR_TOP";
  cloud.fields = {{"x", 0, 7, 1}, {"y", 4, 7, 1}, {"z", 8, 7, 1}, {"intensity", 12, 7, 1}, {"ring", 16, 7, 1}};
  cloud.point_step = 20;
  cloud.width = static_cast<uint32_t>(what.bytes / 20);
  cloud.data = data;
  CdrWriter writer;
  for (int i = 0; i < what.count; ++i) {
    const int64_t now = now_ns();
    cloud.header.stamp.sec = static_cast<int32_t>(now / 1'000'000'000);
    cloud.header.stamp.nanosec = static_cast<uint32_t>(now % 1'000'000'000);
    STROBE_TRY(publisher->publish(ros::encode(cloud, writer)));
    ::usleep(static_cast<useconds_t>(1e6 / what.rate_hz));
  }
  publisher->wait_until_taken(5s);
  return {};
}

int done(const Result<void>& result) {
  if (result) return 0;
  fmt::print(stderr, "{}\n", result.error().to_string());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  Case what;
  what.transport = argc > 1 ? argv[1] : "all";
  if (argc > 2) what.count = std::atoi(argv[2]);
  if (argc > 3) what.rate_hz = std::atof(argv[3]);
  if (argc > 4) what.bytes = static_cast<size_t>(std::atol(argv[4]));
  what.domain = argc > 5 ? std::atoi(argv[5]) : 1 + ::getpid() % 100;
  const pid_t reader = ::fork();  // before the library has threads
  if (reader == 0) {
    const int code = done(read(what));
    std::fflush(stdout);
    ::_exit(code);
  }
  const int code = done(write(what));
  int status = 0;
  ::waitpid(reader, &status, 0);
  return code != 0 || status != 0 ? 1 : 0;
}
