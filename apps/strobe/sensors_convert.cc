// `strobe sensors convert`: a scene of nuScenes as a bag of ROS 2 messages.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/file.h"
#include "base/table.h"
#include "interrupt.h"
#include "progress_line.h"
#include "report/table_format.h"
#include "sensors/nuscenes.h"
#include "sensors/nuscenes_bag.h"
#include "sensors/nuscenes_stream.h"
#include "sensors_command.h"

namespace strobe::app {

namespace {

using Json = nlohmann::ordered_json;
using namespace strobe::sensors;

class SensorsConvert : public Word {
 public:
  const char* name() const override { return "convert"; }
  const char* summary() const override { return "A scene of nuScenes as a bag of ROS 2 messages"; }

  void declare(CLI::App& app) override {
    app.add_option("root", root_, "Folder of the nuScenes data set")->required();
    app.add_option("--scene", stream_.scene, "Name or token of the scene, such as scene-0061")->required();
    app.add_option("-o,--output", output_, "The bag, BAG.mcap")->required();
    app.add_option("--version", version_, "Folder of the tables, such as v1.0-mini (default: the one there is)");
    app.add_option("--compression", compression_, "zstd, lz4 or none")->capture_default_str();
    app.add_option("--channels", stream_.channels, "Only these, e.g. LIDAR_TOP,CAM_FRONT")->delimiter(',');
    app.add_flag("--sweeps", stream_.sweeps, "Also what lies between key frames");
    app.add_option("--start", stream_.start_s, "Seconds of the scene left out at its beginning");
    app.add_option("--end", end_, "Seconds from the scene's beginning up to which it is taken");
    app.add_option("--repeat", stream_.repeat, "The stream this often, one after the other (synthetic)");
    app.add_option("--rate", stream_.rate_hz, "Frames a second, by stretching time (synthetic)");
    app.add_option("--topics", topics_, "channel, or pperf: /lidar_data, /image_data/CAM_*, tokens as frame_id")
        ->capture_default_str();
    app.add_option("--threads", threads_, "That compress (default: all cores)");
    app.add_option("--format", format_, "text, csv or json")->capture_default_str();
    app.add_flag("-q,--quiet", quiet_, "No progress and no remarks on stderr");
  }

  Result<int> run() override {
    STROBE_ASSIGN(const report::Format format, report::parse_format(format_));
    BagOptions bag;
    STROBE_ASSIGN(bag.compression, parse_mcap_compression(compression_));
    if (threads_ < 0) return usage_error(fmt::format("--threads {}: expected 1 or more", threads_));
    STROBE_ASSIGN(stream_.style, parse_topic_style(topics_));
    if (end_) stream_.end_s = *end_;
    bag.threads = threads_ > 0 ? threads_ : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    STROBE_TRY(check_replaceable(output_));
    STROBE_ASSIGN(const NuScenes database, NuScenes::open(root_, version_));
    STROBE_ASSIGN(NuScenesStream stream, NuScenesStream::open(database, stream_));
    bag.source = fmt::format("nuScenes {} {}", database.version(), stream_.scene);
    const auto& stop = stop_on_interrupt();
    BagSummary written;
    {
      ProgressLine progress(!quiet_);
      STROBE_ASSIGN(written, write_bag(stream, output_, bag, [&](uint64_t messages) {
                      progress.show([&] { return fmt::format("message {} of {}", messages, stream.messages()); });
                      return stop.load();
                    }));
    }
    if (!quiet_) remarks(stream, written);
    print(stream, written, format);
    if (written.messages < stream.messages())
      return Error(ErrorKind::kInterrupted,
                   fmt::format("{}: stopped after {} of {} messages", output_, written.messages, stream.messages()));
    return 0;
  }

 private:
  void remarks(const NuScenesStream& stream, const BagSummary& bag) const {
    if (!stream.left_out().empty())
      fmt::print(stderr, "strobe: left out, as they are no LiDAR and no camera: {}\n",
                 fmt::join(stream.left_out(), ", "));
    if (!bag.metadata_beside)
      fmt::print(stderr, "strobe: the metadata.yaml beside {} is another bag's and was left as it is\n", output_);
  }

  void print(const NuScenesStream& stream, const BagSummary& bag, report::Format format) const {
    const double seconds = static_cast<double>(bag.last_ns - bag.first_ns) * 1e-9;
    if (format == report::Format::kJson) {
      Json out = {{"output", output_},          {"messages", bag.messages}, {"bytes", bag.bytes},
                  {"first_ns", bag.first_ns},   {"last_ns", bag.last_ns},   {"duration_s", seconds},
                  {"compression", compression_}};
      out["synthetic"] = stream.synthetic().empty() ? Json(nullptr) : Json(stream.synthetic());
      out["topics"] = Json::array();
      for (const BagTopic& topic : bag.topics)
        out["topics"].push_back({{"topic", topic.topic.name},
                                 {"type", topic.topic.type},
                                 {"channel", topic.topic.channel},
                                 {"messages", topic.messages},
                                 {"bytes", topic.bytes}});
      fmt::print("{}\n", out.dump(2, ' ', false, Json::error_handler_t::replace));
      return;
    }
    Table table(fmt::format("{}: {} messages, {:.3f} s", output_, bag.messages, seconds),
                {{"topic", "", 0, true}, {"type", "", 0, true}, {"messages", "", 0}, {"bytes", "", 0}});
    for (const BagTopic& topic : bag.topics)
      table.add_row({topic.topic.name, std::string(topic.topic.type), static_cast<int64_t>(topic.messages),
                     static_cast<int64_t>(topic.bytes)});
    if (!stream.synthetic().empty()) table.notes.push_back(fmt::format("synthetic stream: {}", stream.synthetic()));
    fmt::print("{}", report::format_table(table, format));
  }

  StreamOptions stream_;
  std::string root_, output_, version_, compression_ = "zstd", topics_ = "channel", format_ = "text";
  std::optional<double> end_;
  int threads_ = 0;
  bool quiet_ = false;
};

}  // namespace

std::unique_ptr<Word> make_sensors_convert() {
  return std::make_unique<SensorsConvert>();
}

}  // namespace strobe::app
