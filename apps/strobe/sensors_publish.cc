// `strobe sensors publish`: a scene of nuScenes as ROS 2 topics.
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <thread>

#include "interrupt.h"
#include "sensors/nuscenes_stream.h"
#include "sensors_command.h"
#include "sensors_replay.h"

namespace strobe::app {

using namespace strobe::sensors;

namespace {

struct PublishFlags {
  std::string root, scene, style = "channel", transport = "all", format = "text";
  std::vector<std::string> channels;
  double rate = 0, start = 0, end = 1e9, wait = 2;
  int repeat = 1, domain = -1, inferencers = 0;
  bool sweeps = false, loop = false, clock = false, quiet = false;
};

DdsTopic word_topic(const std::string& name) {
  const char* type = ros::type_name<ros::String>();
  const ros::MessageType* known = ros::find_message_type(type);
  return {name, type, known != nullptr ? std::string(known->rihs01) : "", {}};
}

class SceneSource : public MessageSource {
 public:
  SceneSource(const NuScenes& database, const StreamOptions& options, NuScenesStream stream)
      : database_(database), options_(options), stream_(std::move(stream)) {
    for (const StreamTopic& topic : stream_.topics()) {
      const ros::MessageType* known = ros::find_message_type(topic.type);
      topics_.push_back(
          {topic.name, std::string(topic.type), known != nullptr ? std::string(known->rihs01) : "", topic.qos});
    }
  }
  const std::vector<DdsTopic>& topics() const override { return topics_; }
  Result<bool> next(PacedMessage& message) override {
    StreamMessage next;
    STROBE_ASSIGN(const bool more, stream_.next(next));
    if (!more) return false;
    message = {next.topic, next.time_ns, next.cdr};
    return true;
  }
  Result<void> rewind() override {
    STROBE_ASSIGN(stream_, NuScenesStream::open(database_, options_));
    return {};
  }
  int64_t period_ns() const override {
    constexpr double kKeyFrames_hz = 2, kSweeps_hz = 20;  // of nuScenes
    return std::llround(1e9 / (options_.rate_hz > 0 ? options_.rate_hz : options_.sweeps ? kSweeps_hz : kKeyFrames_hz));
  }
  const NuScenesStream& stream() const { return stream_; }

 private:
  const NuScenes& database_;
  StreamOptions options_;
  NuScenesStream stream_;
  std::vector<DdsTopic> topics_;
};

class PublishCommand : public Word {
 public:
  const char* name() const override { return "publish"; }
  const char* summary() const override { return "A scene of nuScenes as ROS 2 topics"; }

  void declare(CLI::App& app) override {
    PublishFlags& f = flags_;
    app.add_option("root", f.root, "Folder of nuScenes: v1.0-*, samples, sweeps")->required();
    app.add_option("--scene", f.scene, "By name or token")->required();
    app.add_option("--channels", f.channels, "Only these, e.g. LIDAR_TOP,CAM_FRONT")->delimiter(',');
    app.add_option("--rate", f.rate, "Frames a second of the first channel (default: as recorded)");
    app.add_flag("--sweeps", f.sweeps, "Also what lies between key frames");
    app.add_option("--start", f.start, "From so many seconds after the scene's beginning on")->capture_default_str();
    app.add_option("--end", f.end, "Up to so many seconds (default: all)");
    app.add_option("--repeat", f.repeat, "The scene so often, one after the other")->capture_default_str();
    app.add_flag("--loop", f.loop, "Again from the beginning, until Ctrl-C; stamps repeat");
    app.add_option("--style", f.style, "Of topics: channel (/CAM_FRONT/...) or pperf (/image_data/CAM_FRONT)")
        ->capture_default_str();
    app.add_flag("--clock", f.clock, "Publish /clock with the stamps' time");
    app.add_option(
        "--wait-ready", f.inferencers,
        "Begin after so many messages \"1\" on inferencer_ready; end with TERMINATE on terminate_inferencers");
    app.add_option("--domain", f.domain, "Default: ROS_DOMAIN_ID, else 0");
    app.add_option("--transport", f.transport, "all, udp or shared-memory")->capture_default_str();
    app.add_option("--wait", f.wait, "Seconds to wait for a first reader, at most")->capture_default_str();
    app.add_option("--format", f.format, "text, csv or json")->capture_default_str();
    app.add_flag("-q,--quiet", f.quiet, "No remarks on stderr");
    app.footer("Example:\n  strobe sensors publish nuscenes --scene scene-0061 --rate 10 --repeat 100");
  }

  Result<int> run() override {
    STROBE_ASSIGN(const report::Format format, report::parse_format(flags_.format));
    STROBE_ASSIGN(const StreamOptions stream_options, parse_options());
    DdsOptions dds;
    STROBE_ASSIGN(dds.transport, parse_transport(flags_.transport));
    if (flags_.domain != -1) dds.domain = flags_.domain;
    STROBE_ASSIGN(const NuScenes database, NuScenes::open(flags_.root));
    STROBE_ASSIGN(NuScenesStream stream, NuScenesStream::open(database, stream_options));
    SceneSource source(database, stream_options, std::move(stream));
    STROBE_ASSIGN(const std::shared_ptr<DdsParticipant> participant, join_dds(dds));

    const std::atomic<bool>& stop = stop_on_interrupt();
    std::unique_ptr<DdsPublisher> farewell;
    if (flags_.inferencers > 0) {
      STROBE_ASSIGN(farewell, participant->create_publisher(word_topic("terminate_inferencers")));
      STROBE_TRY(wait_for_inferencers(*participant, stop));
    }
    ReplayOptions options;
    options.loop = flags_.loop, options.clock = flags_.clock;
    options.wait = std::chrono::milliseconds(static_cast<int64_t>(flags_.wait * 1000));
    STROBE_ASSIGN(const ReplaySummary summary,
                  sensors::replay(source, *participant, options, stop, [&](const std::string& text) { remark(text); }));
    if (farewell) {
      CdrWriter writer;
      STROBE_TRY(farewell->publish(ros::encode(ros::String{"TERMINATE"}, writer)));
      farewell->wait_until_taken(std::chrono::seconds(2));
    }
    std::vector<std::string> notes;
    if (!source.stream().synthetic().empty()) notes.push_back("Synthetic: " + source.stream().synthetic() + ".");
    for (const std::string& channel : source.stream().left_out()) notes.push_back("Left out: " + channel + ".");
    print_sent(fmt::format("Publication of {}", flags_.scene), summary, std::move(notes), format);
    return 0;
  }

 private:
  Result<StreamOptions> parse_options() const {
    if (!(flags_.rate >= 0 && flags_.rate < 1e6))
      return usage_error(fmt::format("--rate {:g}: expected frames a second, above 0", flags_.rate));
    if (flags_.repeat < 1) return usage_error(fmt::format("--repeat {}: expected at least 1", flags_.repeat));
    if (flags_.inferencers < 0)
      return usage_error(fmt::format("--wait-ready {}: expected a count", flags_.inferencers));
    if (!(flags_.wait >= 0 && flags_.wait < 1e6))
      return usage_error(fmt::format("--wait {:g}: expected seconds, 0 or more", flags_.wait));
    if (!(flags_.start >= 0) || !(flags_.end > flags_.start))
      return usage_error("--start and --end: expected 0 <= start < end, in seconds");
    StreamOptions options;
    STROBE_ASSIGN(options.style, parse_topic_style(flags_.style));
    options.scene = flags_.scene, options.channels = flags_.channels, options.sweeps = flags_.sweeps;
    options.start_s = flags_.start, options.end_s = flags_.end;
    options.repeat = static_cast<uint32_t>(flags_.repeat), options.rate_hz = flags_.rate;
    return options;
  }

  void remark(const std::string& sentence) const {
    if (!flags_.quiet) std::fprintf(stderr, "strobe: %s\n", sentence.c_str());
  }

  Result<void> wait_for_inferencers(DdsParticipant& participant, const std::atomic<bool>& stop) const {
    STROBE_ASSIGN(const auto ready, participant.create_subscriber(word_topic("inferencer_ready")));
    remark(fmt::format("waiting for {} \"1\" on inferencer_ready", flags_.inferencers));
    DdsSample sample;
    for (int count = 0; count < flags_.inferencers && !stop;) {
      STROBE_ASSIGN(const bool any, ready->take(sample, std::chrono::milliseconds(100)));
      if (!any) continue;
      const auto word = ros::decode<ros::String>(sample.cdr);
      if (word && word->data == "1") ++count;
    }
    if (stop) return Error(ErrorKind::kInterrupted, "stopped while waiting for inferencers");
    return {};
  }

  PublishFlags flags_;
};

}  // namespace

std::unique_ptr<Word> make_sensors_publish() {
  return std::make_unique<PublishCommand>();
}

}  // namespace strobe::app
