#include "importers/nvprof.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "importers/nvprof_rows.h"

namespace strobe::importers {

using namespace nvprof;

namespace {

// What the table says that is being read. Columns of a log vary with nvprof's age and flags; its header tells them.
enum class Section : uint8_t { kNone, kSummary, kDependency, kTrace, kMetrics, kEvents, kMemory, kAvailable };

// "==261== Profiling result:" -> 261, "Profiling result:".
std::optional<std::pair<int32_t, std::string_view>> prefixed(std::string_view line) {
  if (!line.starts_with("==")) return std::nullopt;
  const size_t end = line.find("==", 2);
  if (end == std::string_view::npos) return std::nullopt;
  const auto pid = whole_number(line.substr(2, end - 2));
  if (!pid || *pid > INT32_MAX) return std::nullopt;
  return std::pair(static_cast<int32_t>(*pid), trimmed(line.substr(end + 2)));
}

Section section_of_header(const std::vector<std::string_view>& cells) {
  const auto has = [&cells](std::string_view name) {
    return std::find(cells.begin(), cells.end(), name) != cells.end();
  };
  if (cells.size() < 2) return Section::kNone;
  if (has("Critical path(%)") && has("Name")) return Section::kDependency;
  if (has("Time(%)") && has("Calls") && has("Name")) return Section::kSummary;
  if (cells[0] == "Start" && has("Duration") && has("Name")) return Section::kTrace;
  if (cells[0] == "Invocations" && has("Metric Name")) return Section::kMetrics;
  if (cells[0] == "Invocations" && has("Event Name")) return Section::kEvents;
  if (cells[0] == "Count" && has("Total Size") && has("Name")) return Section::kMemory;
  return Section::kNone;
}

class Reader {
 public:
  Reader(ByteStream& stream, const ImportOptions& options) : stream_(stream), options_(options) {}

  Result<trace::Timeline> run() {
    const char* at = stream_.begin();
    for (;;) {
      const auto* newline =
          at == stream_.end()
              ? nullptr
              : static_cast<const char*>(std::memchr(at, '\n', static_cast<size_t>(stream_.end() - at)));
      if (newline) {
        line({at, static_cast<size_t>(newline - at)});
        at = newline + 1;
        continue;
      }
      // A line without end is no nvprof's; dropping its start bounds the memory.
      constexpr size_t kLongest = size_t{1} << 20;
      if (static_cast<size_t>(stream_.end() - at) > kLongest) at = stream_.end();
      if (options_.on_progress) options_.on_progress(stream_.file_done(), stream_.file_size());
      const bool stop = options_.stop && options_.stop->load(std::memory_order_relaxed);
      if (stop) builder_.fault("import stopped by the user at byte " + std::to_string(stream_.offset_of(at)));
      if (stop || !stream_.refill(at)) break;
      at = stream_.begin();
    }
    if (at != stream_.end() && !(options_.stop && *options_.stop)) {
      last_line_ = true;
      line({at, static_cast<size_t>(stream_.end() - at)});
    }
    if (!stream_.damage().empty()) builder_.fault(stream_.damage());
    if (!any_)
      return bad_data("nothing of nvprof in it, expected tables under lines like \"==1234== Profiling result:\"");
    return builder_.finish();
  }

 private:
  void line(std::string_view text) {
    if (!text.empty() && text.back() == '\r') text.remove_suffix(1);
    if (const auto said = prefixed(text)) {
      pid_ = said->first;
      return message(said->second);
    }
    const std::string_view bare = trimmed(text);
    if (bare.empty()) return;
    const std::vector<std::string_view> cells = split_cells(bare, SIZE_MAX);
    if (const Section section = section_of_header(cells); section != Section::kNone) {
      section_ = section;
      columns_.assign(cells.begin(), cells.end());
      typed_ = cells[0] == "Type";
      if (typed_) columns_.erase(columns_.begin());
      any_ = true;
      return;
    }
    if (bare == "Available Metrics:" || bare == "Available Events:") {
      section_ = Section::kAvailable;
      available_ = bare == "Available Metrics:" ? "metric" : "event";
      any_ = true;
      return;
    }
    if (place(bare)) return;
    row(bare);
  }

  // Lines between "==": what comes next.
  void message(std::string_view said) {
    any_ = true;
    constexpr std::string_view kProfiling = "NVPROF is profiling process ", kCommand = "command: ";
    if (said.starts_with(kProfiling)) {
      const size_t command = said.find(kCommand);
      builder_.process(pid_, command == std::string_view::npos ? "" : said.substr(command + kCommand.size()));
    } else if (said.starts_with("Warning: ")) {
      builder_.warning(said.substr(9));
    } else if (said.starts_with("Profiling result:")) {
      section_ = Section::kNone;
      group_ = "GPU activities";
    } else if (said.starts_with("API calls:")) {
      section_ = Section::kNone;
      group_ = "API calls";
    } else if (said.ends_with("result:") || said.starts_with("Dependency Analysis")) {
      section_ = Section::kNone;
    }
  }

  // Lines that say to which device, kernel or domain the next rows belong.
  bool place(std::string_view bare) {
    if (section_ == Section::kMetrics || section_ == Section::kEvents || section_ == Section::kMemory) {
      if (bare.starts_with("Device \"")) {
        device_ = trimmed(bare.substr(8, bare.rfind('"') - 8));
        return true;
      }
      if (bare.starts_with("Kernel: ")) {
        kernel_ = trimmed(bare.substr(8));
        return true;
      }
    }
    if (section_ == Section::kAvailable && bare.ends_with(':')) {
      if (bare.starts_with("Device ")) device_ = bare.substr(7, bare.size() - 8);
      if (bare.starts_with("Domain ")) domain_ = bare.substr(7, bare.size() - 8);
      return bare.starts_with("Device ") || bare.starts_with("Domain ");
    }
    // The device of a table of unified memory stands before its header.
    if (bare.starts_with("Device \"") && bare.ends_with('"')) {
      device_ = bare.substr(8, bare.size() - 9);
      return true;
    }
    return false;
  }

  void row(std::string_view bare) {
    if (section_ == Section::kNone) return;
    if (section_ == Section::kAvailable) {
      const size_t colon = bare.find(":  ");
      if (colon == std::string_view::npos || bare.substr(0, colon).find(' ') != std::string_view::npos) return;
      builder_.available(available_, device_, domain_, bare.substr(0, colon), trimmed(bare.substr(colon + 1)));
      return;
    }
    if (section_ == Section::kSummary && typed_) {
      // "GPU activities:   58.21%  ...": the first row of a group.
      const auto cells = split_cells(bare, 2);
      if (cells.size() == 2 && cells[0].ends_with(':') && share(split_cells(cells[1], 2)[0])) {
        group_ = cells[0].substr(0, cells[0].size() - 1);
        bare = cells[1];
      }
    }
    const Row row{columns_, split_cells(bare, columns_.size())};
    bool starts_like_one = false, whole = false;
    switch (section_) {
      case Section::kSummary:
        starts_like_one = share(row.cell("Time(%)")).has_value();
        whole = builder_.summary(pid_, group_, row);
        break;
      case Section::kDependency:
        starts_like_one = share(row.cell("Critical path(%)")).has_value();
        whole = builder_.dependency(pid_, row);
        break;
      case Section::kTrace:
        starts_like_one = time_ns(row.cell("Start")) && time_ns(row.cell("Duration"));
        whole = builder_.traced(pid_, row);
        break;
      case Section::kMetrics:
      case Section::kEvents:
        starts_like_one = whole_number(row.cell("Invocations")) && row.cells.size() > 2;
        whole = builder_.counted(pid_, section_ == Section::kMetrics, device_, kernel_, row);
        break;
      default:
        starts_like_one = whole_number(row.cell("Count")) && row.cells.size() > 2;
        whole = builder_.unified_memory(pid_, device_, row);
        break;
    }
    // Other lines are what the program itself printed.
    if (!whole && starts_like_one)
      builder_.fault(last_line_ ? "the log breaks off inside a row" : "torn row of a table");
  }

  ByteStream& stream_;
  const ImportOptions& options_;
  Builder builder_;
  int32_t pid_ = 0;
  bool any_ = false, typed_ = false, last_line_ = false;
  Section section_ = Section::kNone;
  std::vector<std::string> columns_;
  std::string group_, device_, kernel_, domain_, available_;
};

}  // namespace

bool looks_like_nvprof(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (const auto said = prefixed(line)) {
      for (const std::string_view word :
           {"NVPROF", "Profiling", "profiling", "API calls:", "result:", "Dependency Analysis"})
        if (said->second.find(word) != std::string_view::npos) return true;
    }
    const std::string_view bare = trimmed(line);
    if (bare == "Available Metrics:" || bare == "Available Events:") return true;
    if (bare.size() < 512 && section_of_header(split_cells(bare, SIZE_MAX)) != Section::kNone) return true;
  }
  return false;
}

Result<trace::Timeline> import_nvprof(ByteStream& stream, const ImportOptions& options) {
  return Reader(stream, options).run();
}

}  // namespace strobe::importers
