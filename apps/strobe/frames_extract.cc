#include "frames_extract.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <filesystem>
#include <limits>
#include <mutex>

#include "base/file.h"
#include "collect/machine.h"
#include "media/sink.h"
#include "media/source.h"
#include "pipeline/runner.h"
#include "report/table_format.h"

namespace strobe::app {

namespace fs = std::filesystem;

namespace {

// Times of frames are whole numbers of a time base as doubles; a frame that lies on a tick must not miss it.
constexpr double kRounding_s = 1e-6;
constexpr int kLargestSide = 16384;

Result<void> check(const ExtractFlags& flags) {
  if (flags.format != "png" && flags.format != "jpg")
    return usage_error(fmt::format("--format {}: expected png or jpg", flags.format));
  if (!(flags.fps > 0) || !std::isfinite(flags.fps))
    return usage_error(fmt::format("--fps {:g}: expected more than 0", flags.fps));
  if (flags.every < 0) return usage_error(fmt::format("--every {}: expected at least 1", flags.every));
  if (flags.quality < 1 || flags.quality > 100)
    return usage_error(fmt::format("--quality {}: expected 1 to 100", flags.quality));
  if (flags.prefix.find('/') != std::string::npos || flags.prefix.starts_with("."))
    return usage_error(fmt::format("--prefix {}: expected the beginning of a file name", flags.prefix));
  return {};
}

// One extraction: what was taken, and what of it has been written.
class Extraction {
 public:
  Extraction(const ExtractFlags& flags, FramePicker picker, media::PictureOptions options)
      : flags_(flags), picker_(picker), options_(options) {}

  // The next frame that is wanted; nothing at the end.
  Result<std::optional<media::Frame>> next(media::Source& source) {
    for (;;) {
      STROBE_ASSIGN(std::optional<media::Frame> frame, source.next());
      if (!frame || picker_.is_past(frame->time_s)) return std::optional<media::Frame>();
      ++seen_;
      last_time_s_ = frame->time_s;
      if (!picker_.takes(frame->time_s)) continue;
      taken_.push_back({frame->index, frame->time_s});
      return frame;
    }
  }

  // number: the frame's place among those taken, from 0.
  Result<void> write(const media::Frame& frame, int64_t number) {
    STROBE_TRY(media::write_picture(fs::path(flags_.output) / name(number), frame, options_));
    const std::lock_guard lock(mutex_);
    written_.push_back(number);
    return {};
  }

  Result<void> write_index() {
    std::sort(written_.begin(), written_.end());
    Table index("Frames", {{"file", "", 0}, {"frame", "", 0}, {"time_s", "", 6}});
    for (const int64_t number : written_) {
      const Taken& taken = taken_[static_cast<size_t>(number)];
      index.add_row({name(number), taken.frame, std::round(taken.time_s * 1e9) / 1e9});
    }
    return write_file(fs::path(flags_.output) / "frames.csv", report::format_table(index, report::Format::kCsv));
  }

  // Pictures of the same name that an earlier extraction left: they would be taken for this one's.
  size_t strangers() const {
    std::error_code failed;
    size_t count = 0;
    for (fs::directory_iterator it(flags_.output, failed), end; !failed && it != end; it.increment(failed)) {
      long long number = 0;
      const std::string file = it->path().filename().string(), before = flags_.prefix + "_";
      if (file.starts_with(before) && file.ends_with("." + flags_.format) &&
          std::sscanf(file.c_str() + before.size(), "%lld", &number) == 1 && file == name(number - 1) &&
          !std::binary_search(written_.begin(), written_.end(), number - 1))
        ++count;
    }
    return count;
  }

  int64_t seen() const { return seen_; }
  double last_time_s() const { return last_time_s_; }
  size_t written() const { return written_.size(); }

 private:
  std::string name(int64_t number) const {
    return fmt::format("{}_{:06}.{}", flags_.prefix, number + 1, flags_.format);
  }

  struct Taken {
    int64_t frame;
    double time_s;
  };
  const ExtractFlags& flags_;
  FramePicker picker_;
  media::PictureOptions options_;
  std::deque<Taken> taken_;  // by number; filled by the reading thread, read after the run
  std::mutex mutex_;
  std::vector<int64_t> written_;
  int64_t seen_ = 0;
  double last_time_s_ = 0;
};

}  // namespace

bool FramePicker::takes(double time_s) {
  if (time_s < start_s_ - kRounding_s || is_past(time_s)) return false;
  if (every_ > 0) return seen_++ % every_ == 0;
  const double ticks = (time_s + kRounding_s - start_s_) * fps_;
  if (ticks < static_cast<double>(next_tick_)) return false;
  next_tick_ = static_cast<int64_t>(std::min(ticks, 9e15)) + 1;
  return true;
}

Result<double> parse_time(const std::string& flag, const std::string& text) {
  const auto wrong = [&] {
    return usage_error(
        fmt::format("{} {}: expected seconds, mm:ss or hh:mm:ss, e.g. 90, 1:30 or 0:01:30.5", flag, text));
  };
  double seconds = 0;
  size_t begin = 0;
  for (int part = 0;; ++part) {
    const size_t end = std::min(text.find(':', begin), text.size());
    const std::string digits = text.substr(begin, end - begin);
    const bool is_last = end == text.size();
    if (part == 3 || digits.empty() ||
        digits.find_first_not_of(is_last ? "0123456789." : "0123456789") != std::string::npos)
      return wrong();
    char* rest = nullptr;
    const double value = std::strtod(digits.c_str(), &rest);
    if (*rest != '\0' || !std::isfinite(value) || (part > 0 && value >= 60)) return wrong();
    seconds = seconds * 60 + value;
    if (is_last) return seconds;
    begin = end + 1;
  }
}

Result<PictureSize> parse_size(const std::string& text) {
  PictureSize size;
  if (text.empty()) return size;
  int end = 0;
  if (std::sscanf(text.c_str(), "%5dx%5d%n", &size.width, &size.height, &end) != 2 ||
      static_cast<size_t>(end) != text.size() || size.width < 0 || size.height < 0 || size.width > kLargestSide ||
      size.height > kLargestSide || size.width + size.height == 0)
    return usage_error(
        fmt::format("--size {}: expected WIDTHxHEIGHT up to {}, e.g. 640x360, or 640x0 for the height "
                    "that belongs to it",
                    text, kLargestSide));
  return size;
}

Result<int> extract_frames(const ExtractFlags& flags, const std::atomic<bool>& stop) {
  STROBE_TRY(check(flags));
  double start_s = 0, end_s = std::numeric_limits<double>::infinity();
  if (!flags.start.empty()) {
    STROBE_ASSIGN(start_s, parse_time("--start", flags.start));
  }
  if (!flags.end.empty()) {
    STROBE_ASSIGN(end_s, parse_time("--end", flags.end));
  }
  if (end_s <= start_s) return usage_error(fmt::format("--end {}: not after the start", flags.end));
  STROBE_ASSIGN(const PictureSize size, parse_size(flags.size));
  const int workers = std::max(1, static_cast<int>(collect::allowed_cores()));
  media::SourceOptions source_options;
  source_options.stop = &stop;
  source_options.pictures_in_flight = 4 * workers + 6;
  STROBE_ASSIGN(const auto source, media::open_source(flags.input, source_options));
  STROBE_ASSIGN(const OutputFolder output_folder, OutputFolder::make(flags.output));

  Extraction extraction(flags, {start_s, end_s, flags.fps, flags.every},
                        {.quality = flags.quality, .width = size.width, .height = size.height});
  pipeline::RunnerOptions options;
  options.queue_capacity = 2 * static_cast<size_t>(workers);
  options.stop = &stop;
  const std::vector<pipeline::Stage> stages = {
      {.name = "write", .workers = workers, .work = [&](pipeline::Batch& batch, size_t i, int) {
         return extraction.write(batch.frames[i].frame, batch.frames[i].frame.index);
       }}};
  const pipeline::RunnerResult result = pipeline::run_pipeline(
      "read", [&] { return extraction.next(*source); }, [](pipeline::Batch&) {}, stages, nullptr, options);
  STROBE_TRY(extraction.write_index());
  fmt::print("{} pictures out of {} frames in {}, listed in {}\n", extraction.written(), extraction.seen(),
             flags.output, (fs::path(flags.output) / "frames.csv").string());
  if (!flags.quiet) {
    if (const size_t strangers = extraction.strangers(); strangers > 0)
      fmt::print(stderr, "strobe: {} holds {} more pictures of that name, which are not of this video\n", flags.output,
                 strangers);
    if (source->damaged() > 0)
      fmt::print(stderr, "strobe: {} damaged packets or frames of the video were skipped\n", source->damaged());
    if (extraction.written() == 0 && result.ended && !result.stopped && start_s > extraction.last_time_s())
      fmt::print(stderr, "strobe: the last frame is at {:.3f} s, before --start\n", extraction.last_time_s());
  }
  if (!result.ended) return Error(result.ended.error());
  if (result.stopped) return Error(ErrorKind::kInterrupted, "interrupted");
  return 0;
}

}  // namespace strobe::app
