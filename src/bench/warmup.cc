#include "bench/warmup.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/statistics.h"

namespace strobe::bench {
namespace {

constexpr size_t kBatch = 5;
constexpr size_t kLeastForBatches = 50;
constexpr size_t kLeast = 4;
constexpr double kMadToSigma = 1.4826;
constexpr double kFarthest = 2;  // robust standard deviations

std::vector<double> limited(std::span<const double> values) {
  std::vector<double> out(values.begin(), values.end());
  const double median = quantile(out, 0.5);
  std::vector<double> distances;
  for (const double value : out) distances.push_back(std::abs(value - median));
  const double reach = kFarthest * kMadToSigma * quantile(std::move(distances), 0.5);
  if (reach > 0)
    for (double& value : out) value = std::clamp(value, median - reach, median + reach);
  return out;
}

}  // namespace

Truncation mser(std::span<const double> values) {
  if (values.size() < kLeast) return {};
  const size_t batch = values.size() >= kLeastForBatches ? kBatch : 1;
  const std::vector<double> near = limited(values);
  std::vector<double> means;
  for (size_t i = 0; i + batch <= near.size(); i += batch) means.push_back(mean(std::span(near).subspan(i, batch)));
  // Sums from the back: of what is left after each cut.
  const size_t count = means.size(), latest = count / 2;
  const double shift = means.back();
  double sum = 0, squares = 0, best = 0;
  size_t cut = count;
  for (size_t d = count; d-- > 0;) {
    const double value = means[d] - shift;
    sum += value;
    squares += value * value;
    if (d > latest) continue;
    const auto left = static_cast<double>(count - d);
    const double deviation = std::max(0.0, squares - sum * sum / left) / (left * left);
    // Of equally good cuts the earliest.
    if (cut == count || deviation <= best) {
      best = deviation;
      cut = d;
    }
  }
  return {cut * batch, cut < latest};
}

Warmup resolve(const Warmup& wanted, const RangeTimes& ranges, bool* settled) {
  if (settled != nullptr) *settled = true;
  if (!wanted.automatic) return wanted;
  std::map<std::string, std::vector<std::pair<int64_t, double>>> levels;
  for (const auto& range : ranges)
    if (range.closed_batch() && *range.batch->items > 0)
      levels[std::string(parent_path(range.path))].emplace_back(range.batch->index, range.cpu_ms);
  Warmup found{.front = 0, .back = 0, .automatic = true};
  for (auto& [level, batches] : levels) {
    std::sort(batches.begin(), batches.end());
    std::vector<double> times;
    for (const auto& [index, ms] : batches) times.push_back(ms);
    const Truncation front = mser(times);
    times.erase(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(front.drop));
    std::reverse(times.begin(), times.end());
    const Truncation back = mser(times);
    found.front = std::max(found.front, static_cast<int64_t>(front.drop));
    found.back = std::max(found.back, static_cast<int64_t>(back.drop));
    if (settled != nullptr && !(front.settled && back.settled)) *settled = false;
  }
  return found;
}

Result<Warmup> parse_warmup(std::string_view text) {
  if (text == "auto") return Warmup{.front = 0, .back = 0, .automatic = true};
  int64_t count = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (failed != std::errc{} || end != text.data() + text.size() || count < 0)
    return usage_error("warm-up '" + std::string(text) + "': expected a number of batches (0 or more) or auto");
  return Warmup{.front = count, .back = count};
}

Result<Rules> parse_rules(std::string_view name) {
  if (name == "strobe") return Rules::kStrobe;
  if (name == "original") return Rules::kOriginal;
  return usage_error("rules '" + std::string(name) + "': expected strobe or original");
}

}  // namespace strobe::bench
