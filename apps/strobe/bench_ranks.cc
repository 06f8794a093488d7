#include "bench_ranks.h"

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>

#include "base/file.h"

namespace strobe::app {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr int64_t kLookMs = 200;

fs::path file_of(const fs::path& output_dir, int rank) {
  return output_dir / (".rank_" + std::to_string(rank) + ".json");
}

int64_t now_ms() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::milliseconds(1);
}

// Nothing yet, or left by another run.
bool read_rank(const fs::path& output_dir, const bench::Rank& own, int rank, RankEnd& out) {
  const auto text = read_file(file_of(output_dir, rank));
  if (!text) return false;
  const Json json = Json::parse(*text, nullptr, false);
  try {
    if (!json.is_object() || json.at("run").get<std::string>() != own.run) return false;
    out.process.process = json.at("process").get<int>();
    out.process.gpu = json.at("gpu").get<int>();
    out.process.device = json.at("device").get<int>();
    out.process.recorded = json.at("recorded").get<bool>();
    out.process.folder = output_dir / out.process.name();
    out.end.started = true;
    out.end.finished = json.at("finished").get<bool>();
    out.end.reason = json.at("reason").get<std::string>();
    out.end.seconds = json.at("seconds").get<double>();
    return true;
  } catch (const Json::exception&) {
    return false;
  }
}

}  // namespace

void forget_rank(const fs::path& output_dir, const bench::Rank& rank) {
  std::error_code ignored;
  fs::remove(file_of(output_dir, rank.rank), ignored);
}

Result<void> tell_rank(const fs::path& output_dir, const bench::Rank& rank, const RankEnd& end) {
  const Json json{{"run", rank.run},
                  {"process", end.process.process},
                  {"gpu", end.process.gpu},
                  {"device", end.process.device},
                  {"recorded", end.process.recorded},
                  {"finished", end.end.finished},
                  {"reason", end.end.reason},
                  {"seconds", end.end.seconds}};
  return write_file(file_of(output_dir, rank.rank), json.dump());
}

std::vector<RankEnd> gather_ranks(const fs::path& output_dir, const bench::Rank& rank, const RankEnd& own,
                                  double timeout_s, const bench::HeldSignals& signals) {
  std::vector<RankEnd> all(static_cast<size_t>(rank.size));
  std::vector<bool> heard(all.size());
  all[0] = own;
  heard[0] = true;
  const int64_t start_ms = now_ms();
  bool give_up = false;
  for (size_t left = all.size() - 1; left > 0 && !give_up;) {
    for (size_t i = 1; i < all.size(); ++i) {
      if (heard[i] || !read_rank(output_dir, rank, static_cast<int>(i), all[i])) continue;
      heard[i] = true;
      --left;
    }
    if (left == 0) break;
    const int signal = signals.wait(kLookMs);
    give_up = (signal != 0 && signal != SIGCHLD) ||
              (timeout_s > 0 && now_ms() - start_ms > static_cast<int64_t>(timeout_s * 1000));
  }
  for (size_t i = 1; i < all.size(); ++i) {
    if (heard[i]) continue;
    all[i].process.process = static_cast<int>(i);
    all[i].end.reason = "its task has not said how it ended";
  }
  return all;
}

}  // namespace strobe::app
