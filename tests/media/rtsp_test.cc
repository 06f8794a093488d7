// RTSP for real: against GStreamer's server on loopback, and against one that accepts and then says nothing.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "media/media_test.h"

namespace strobe::media {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// A TCP socket that listens on a free port of loopback.
class Listener {
 public:
  Listener() : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(socket_, 8), 0);
    socklen_t length = sizeof address;
    ::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &length);
    port_ = ntohs(address.sin_port);
  }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  ~Listener() { ::close(socket_); }
  int port() const { return port_; }

 private:
  int socket_;
  int port_ = 0;
};

int free_port() {
  return Listener().port();
}
std::string url(int port) {
  return "rtsp://127.0.0.1:" + std::to_string(port) + "/live";
}

// The server program in a process of its own.
class Server {
 public:
  explicit Server(int port) {
    int channel[2];
    EXPECT_EQ(::pipe(channel), 0);
    process_ = ::fork();
    if (process_ == 0) {
      ::dup2(channel[1], STDOUT_FILENO);
      ::close(channel[0]);
      ::close(channel[1]);
      const std::string program = std::string(test::binaries_folder()) + "/strobe_test_rtsp_server";
      ::execl(program.c_str(), program.c_str(), std::to_string(port).c_str(), nullptr);
      std::_Exit(127);
    }
    ::close(channel[1]);
    char word[6] = {};
    ready_ = ::read(channel[0], word, 5) == 5 && std::string(word) == "ready";
    ::close(channel[0]);
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server() { kill(); }
  bool ready() const { return ready_; }
  void signal(int number) const { ::kill(process_, number); }
  void kill() {
    if (process_ <= 0) return;
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
    process_ = -1;
  }

 private:
  pid_t process_ = -1;
  bool ready_ = false;
};

#define STROBE_REQUIRE_SERVER()                                                                    \
  if (!std::filesystem::exists(std::string(test::binaries_folder()) + "/strobe_test_rtsp_server")) \
  GTEST_SKIP() << "no RTSP server to test with (libgstrtspserver-1.0-dev)"

class Rtsp : public ::testing::TestWithParam<SourceOptions::RtspTransport> {
 protected:
  SourceOptions options() const {
    SourceOptions options;
    options.rtsp_transport = GetParam();
    options.timeout_s = 3;
    return options;
  }
};

TEST_P(Rtsp, GivesFramesAtTheirPace) {
  STROBE_REQUIRE_SERVER();
  const int port = free_port();
  const Server server(port);
  ASSERT_TRUE(server.ready());
  auto source = open_source(url(port), options());
  ASSERT_TRUE(source) << source.error().to_string();
  const SourceInfo& info = (*source)->info();
  EXPECT_EQ(info.width, 160);
  EXPECT_EQ(info.height, 120);
  EXPECT_EQ(info.kind, "rtsp");
  EXPECT_EQ(info.codec, "h264");
  EXPECT_TRUE(info.live);
  EXPECT_EQ(info.frames, 0);
  const Played played = play(**source, 50);
  EXPECT_TRUE(played.error.empty()) << played.error;
  ASSERT_EQ(played.frames.size(), 50U);
  EXPECT_EQ(played.frames[49].index, 49);
  EXPECT_GT(played.frames[49].time_s, 0.8);
  EXPECT_LT(played.frames[49].time_s, 6);
  EXPECT_NE(raw_pixels(*played.frames[20].picture), raw_pixels(*played.frames[40].picture)) << "the ball moves";
  EXPECT_EQ((*source)->reconnected(), 0);
}

TEST_P(Rtsp, ComesBackWhenTheServerDoes) {
  STROBE_REQUIRE_SERVER();
  const int port = free_port();
  auto server = std::make_unique<Server>(port);
  ASSERT_TRUE(server->ready());
  SourceOptions patient = options();
  patient.timeout_s = 1;  // over UDP a dead server is only silent
  patient.reconnects = 20;
  auto source = open_source(url(port), patient);
  ASSERT_TRUE(source) << source.error().to_string();
  ASSERT_EQ(play(**source, 10).frames.size(), 10U);
  server->kill();
  std::thread nurse([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(700));
    server = std::make_unique<Server>(port);
  });
  const Played played = play(**source, 40);
  nurse.join();
  EXPECT_TRUE(played.error.empty()) << played.error;
  ASSERT_EQ(played.frames.size(), 40U);
  EXPECT_GE((*source)->reconnected(), 1);
  for (size_t i = 0; i < 40; ++i) EXPECT_EQ(played.frames[i].index, static_cast<int64_t>(10 + i));
  EXPECT_GT(played.frames[39].time_s, played.frames[0].time_s);
}

TEST_P(Rtsp, GivesUpOnAServerThatStaysAway) {
  STROBE_REQUIRE_SERVER();
  const int port = free_port();
  Server server(port);
  ASSERT_TRUE(server.ready());
  SourceOptions hasty = options();
  hasty.timeout_s = 1;
  hasty.reconnects = 2;
  auto source = open_source(url(port), hasty);
  ASSERT_TRUE(source) << source.error().to_string();
  ASSERT_EQ(play(**source, 5).frames.size(), 5U);
  server.kill();
  const auto start = Clock::now();
  const Played played = play(**source);
  EXPECT_EQ(played.kind, ErrorKind::kIo);
  EXPECT_THAT(played.error, HasSubstr("and 2 tries to connect again: "));
  EXPECT_LT(seconds_since(start), 8);
}

// The server process is stopped, not ended: connections stay open and nothing comes.
TEST_P(Rtsp, SilenceIsATimeOut) {
  STROBE_REQUIRE_SERVER();
  const int port = free_port();
  const Server server(port);
  ASSERT_TRUE(server.ready());
  SourceOptions hasty = options();
  hasty.timeout_s = 1.5;
  hasty.reconnects = 0;
  auto source = open_source(url(port), hasty);
  ASSERT_TRUE(source) << source.error().to_string();
  ASSERT_EQ(play(**source, 5).frames.size(), 5U);
  server.signal(SIGSTOP);
  const auto start = Clock::now();
  const Played rest = play(**source);
  EXPECT_LT(seconds_since(start), 4);
  EXPECT_EQ(rest.kind, ErrorKind::kIo);
  EXPECT_THAT(rest.error, StartsWith(url(port) + ": lost after "));
  EXPECT_THAT(rest.error, HasSubstr("no data for 1500 ms"));
}

TEST_P(Rtsp, StopEndsABlockedRead) {
  STROBE_REQUIRE_SERVER();
  const int port = free_port();
  const Server server(port);
  ASSERT_TRUE(server.ready());
  std::atomic<bool> stop = false;
  SourceOptions stoppable = options();
  stoppable.timeout_s = 30;
  stoppable.stop = &stop;
  auto blocked = open_source(url(port), stoppable);
  ASSERT_TRUE(blocked) << blocked.error().to_string();
  ASSERT_EQ(play(**blocked, 5).frames.size(), 5U);
  server.signal(SIGSTOP);
  Clock::time_point stopped_at;
  std::thread user([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(600));
    stopped_at = Clock::now();
    stop = true;
  });
  const Played rest = play(**blocked);
  const auto ended_at = Clock::now();
  user.join();
  EXPECT_TRUE(rest.error.empty()) << rest.error;
  const double delay = std::chrono::duration<double>(ended_at - stopped_at).count();
  EXPECT_GT(delay, 0) << "it waited for data until the user stopped it";
  EXPECT_LT(delay, 0.5) << "0.1 s, and room for a busy machine";
}

INSTANTIATE_TEST_SUITE_P(Transports, Rtsp,
                         ::testing::Values(SourceOptions::RtspTransport::kTcp, SourceOptions::RtspTransport::kUdp),
                         [](const auto& transport) {
                           return transport.param == SourceOptions::RtspTransport::kTcp ? "Tcp" : "Udp";
                         });

TEST(RtspServerless, NobodyListens) {
  const std::string address = url(free_port());
  auto source = open_source(address, {});
  ASSERT_FALSE(source);
  EXPECT_EQ(source.error().kind(), ErrorKind::kIo);
  EXPECT_THAT(source.error().to_string(), StartsWith(address + ": cannot be opened: Connection refused"));
}

TEST(RtspServerless, AServerThatSaysNothing) {
  const Listener silent;
  SourceOptions options;
  options.timeout_s = 0.6;
  const auto start = Clock::now();
  auto source = open_source(url(silent.port()), options);
  ASSERT_FALSE(source);
  EXPECT_GT(seconds_since(start), 0.5);
  EXPECT_LT(seconds_since(start), 2);
  EXPECT_EQ(source.error().kind(), ErrorKind::kIo);
  EXPECT_EQ(source.error().to_string(), url(silent.port()) + ": no answer within 600 ms");
}

TEST(RtspServerless, StopWhileOpening) {
  const Listener silent;
  std::atomic<bool> stop = false;
  SourceOptions options;
  options.timeout_s = 30;
  options.stop = &stop;
  const auto start = Clock::now();
  std::thread user([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    stop = true;
  });
  auto source = open_source(url(silent.port()), options);
  const double took = seconds_since(start);
  user.join();
  ASSERT_FALSE(source);
  EXPECT_EQ(source.error().kind(), ErrorKind::kInterrupted);
  EXPECT_LT(took, 0.7);
}

}  // namespace
}  // namespace strobe::media
