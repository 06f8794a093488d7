#include "predict/layer_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <map>

#include "base/csv_text.h"
#include "base/file.h"

namespace strobe::predict {
namespace {

struct KindName {
  LayerKind kind;
  std::string_view name;
};
constexpr std::array<KindName, 14> kKinds = {{{LayerKind::kConv, "conv"},
                                              {LayerKind::kBatchNorm, "bn"},
                                              {LayerKind::kRelu, "relu"},
                                              {LayerKind::kRelu6, "relu6"},
                                              {LayerKind::kMaxPool, "maxpool"},
                                              {LayerKind::kAveragePool, "avgpool"},
                                              {LayerKind::kLinear, "linear"},
                                              {LayerKind::kAdd, "add"},
                                              {LayerKind::kCat, "cat"},
                                              {LayerKind::kConvTranspose, "conv_transpose"},
                                              {LayerKind::kActivation, "activation"},
                                              {LayerKind::kSlice, "slice"},
                                              {LayerKind::kUpsample, "upsample"},
                                              {LayerKind::kSoftmax, "softmax"}}};

// As in the room models: no side of a tensor is longer, so that sums of products of two fit int64_t.
constexpr int64_t kMaxSide = int64_t{1} << 28;
constexpr int64_t kMaxKernel = int64_t{1} << 16;

// The whole numbers of a row, by column.
struct NumberColumn {
  const char* name;
  int64_t LayerRow::*member;
  int64_t low, high;
};
constexpr std::array<NumberColumn, 13> kNumbers = {{{"ic", &LayerRow::ic, 1, kMaxSide},
                                                    {"oc", &LayerRow::oc, 1, kMaxSide},
                                                    {"kh", &LayerRow::kh, 0, kMaxKernel},
                                                    {"kw", &LayerRow::kw, 0, kMaxKernel},
                                                    {"sh", &LayerRow::sh, 0, kMaxKernel},
                                                    {"sw", &LayerRow::sw, 0, kMaxKernel},
                                                    {"ph", &LayerRow::ph, 0, kMaxKernel},
                                                    {"pw", &LayerRow::pw, 0, kMaxKernel},
                                                    {"groups", &LayerRow::groups, 1, kMaxSide},
                                                    {"ih", &LayerRow::ih, 1, kMaxKernel},
                                                    {"iw", &LayerRow::iw, 1, kMaxKernel},
                                                    {"oh", &LayerRow::oh, 1, kMaxKernel},
                                                    {"ow", &LayerRow::ow, 1, kMaxKernel}}};
constexpr const char* kHeader = "net,level,index,type,ic,oc,kh,kw,sh,sw,ph,pw,groups,ih,iw,oh,ow,bias,inplace,inputs\n";

struct Columns {
  size_t net, level, index, type, bias, inplace, inputs;
  std::array<size_t, kNumbers.size()> numbers;

  static Result<Columns> of(const CsvText& csv) {
    Columns columns{};
    STROBE_ASSIGN(columns.net, csv.column("net"));
    STROBE_ASSIGN(columns.level, csv.column("level"));
    STROBE_ASSIGN(columns.index, csv.column("index"));
    STROBE_ASSIGN(columns.type, csv.column("type"));
    STROBE_ASSIGN(columns.bias, csv.column("bias"));
    STROBE_ASSIGN(columns.inplace, csv.column("inplace"));
    STROBE_ASSIGN(columns.inputs, csv.column("inputs"));
    for (size_t i = 0; i < kNumbers.size(); ++i) {
      STROBE_ASSIGN(columns.numbers[i], csv.column(kNumbers[i].name));
    }
    return columns;
  }
};

Result<std::vector<int32_t>> parse_inputs(const CsvText& csv, size_t row, size_t column, int64_t index) {
  const std::string_view text = csv.field(row, column);
  const auto wrong = [&] {
    return csv.wrong(row, column, "indices of earlier rows (-1: the network's input), with ; between them");
  };
  std::vector<int32_t> inputs;
  const char* const end = text.data() + text.size();
  for (const char* at = text.data();; ++at) {
    int32_t input = 0;
    const auto [next, code] = std::from_chars(at, end, input);
    if (code != std::errc() || input < -1 || input >= index) return wrong();
    inputs.push_back(input);
    if (next == end) return inputs;
    if (*next != ';') return wrong();
    at = next;
  }
}

// What a row of this type must have beyond numbers in range.
Result<void> check_row(const CsvText& csv, const Columns& columns, size_t row, const LayerRow& layer) {
  const auto column = [&](int64_t LayerRow::*member) {
    const auto found =
        std::find_if(kNumbers.begin(), kNumbers.end(), [&](const auto& c) { return c.member == member; });
    return columns.numbers[static_cast<size_t>(found - kNumbers.begin())];
  };
  const bool convolves = layer.type == LayerKind::kConv || layer.type == LayerKind::kConvTranspose;
  const bool pools = layer.type == LayerKind::kMaxPool || layer.type == LayerKind::kAveragePool;
  const std::string expected = fmt::format("1 or more for {}", to_string(layer.type));
  if (convolves || pools)
    for (const auto side : {&LayerRow::kh, &LayerRow::kw})
      if (layer.*side < 1) return csv.wrong(row, column(side), expected);
  if (convolves)
    for (const auto side : {&LayerRow::sh, &LayerRow::sw})
      if (layer.*side < 1) return csv.wrong(row, column(side), expected);
  if (layer.ic % layer.groups != 0 || layer.oc % layer.groups != 0)
    return csv.wrong(row, column(&LayerRow::groups),
                     fmt::format("a divisor of {} and {} channels", layer.ic, layer.oc));
  return {};
}

Result<LayerRow> parse_row(const CsvText& csv, const Columns& columns, size_t row, int64_t index) {
  LayerRow layer;
  const auto kind = layer_kind(csv.field(row, columns.type));
  if (!kind) return csv.wrong(row, columns.type, "one of " + layer_kind_names());
  layer.type = *kind;
  for (size_t i = 0; i < kNumbers.size(); ++i) {
    STROBE_ASSIGN(layer.*kNumbers[i].member, csv.integer(row, columns.numbers[i], kNumbers[i].low, kNumbers[i].high));
  }
  STROBE_ASSIGN(const int64_t bias, csv.integer(row, columns.bias, 0, 1));
  STROBE_ASSIGN(const int64_t inplace, csv.integer(row, columns.inplace, 0, 1));
  layer.bias = bias == 1;
  layer.inplace = inplace == 1;
  STROBE_ASSIGN(layer.inputs, parse_inputs(csv, row, columns.inputs, index));
  STROBE_TRY(check_row(csv, columns, row, layer));
  return layer;
}

}  // namespace

std::string_view to_string(LayerKind kind) {
  return std::find_if(kKinds.begin(), kKinds.end(), [&](const auto& known) { return known.kind == kind; })->name;
}

std::optional<LayerKind> layer_kind(std::string_view name) {
  const auto found = std::find_if(kKinds.begin(), kKinds.end(), [&](const auto& known) { return known.name == name; });
  if (found == kKinds.end()) return std::nullopt;
  return found->kind;
}

std::string layer_kind_names() {
  std::string names;
  for (const auto& known : kKinds) names += fmt::format("{}{}", names.empty() ? "" : ", ", known.name);
  return names;
}

double LayerRow::parameters() const {
  const auto in = static_cast<double>(ic), out = static_cast<double>(oc);
  switch (type) {
    case LayerKind::kConv:
    case LayerKind::kConvTranspose:
      return in / static_cast<double>(groups) * out * static_cast<double>(kh * kw) + (bias ? out : 0);
    case LayerKind::kLinear:
      return in * out + (bias ? out : 0);
    case LayerKind::kBatchNorm:
      return 2 * out;
    default:
      return 0;
  }
}

double LayerList::parameters() const {
  double sum = 0;
  for (const LayerRow& row : rows) sum += row.parameters();
  return sum;
}

Result<std::vector<LayerList>> parse_layer_lists(std::string text) {
  STROBE_ASSIGN(const CsvText csv, CsvText::parse(std::move(text)));
  STROBE_ASSIGN(const Columns columns, Columns::of(csv));
  std::vector<LayerList> lists;
  std::map<std::pair<std::string_view, int64_t>, size_t> places;
  for (size_t row = 0; row < csv.row_count(); ++row) {
    const std::string_view net = csv.field(row, columns.net);
    if (net.empty()) return csv.wrong(row, columns.net, "the name of a network");
    STROBE_ASSIGN(const int64_t level, csv.integer(row, columns.level, 0, kMaxLevel));
    const auto [place, is_new] = places.try_emplace({net, level}, lists.size());
    if (is_new) lists.push_back({std::string(net), level, {}});
    std::vector<LayerRow>& rows = lists[place->second].rows;
    const auto next = static_cast<int64_t>(rows.size());
    STROBE_ASSIGN(const int64_t index, csv.integer(row, columns.index, 0, std::numeric_limits<int32_t>::max()));
    if (index != next)
      return csv.wrong(row, columns.index, fmt::format("{}, the next of {} level {}", next, net, level));
    STROBE_ASSIGN(LayerRow layer, parse_row(csv, columns, row, index));
    rows.push_back(std::move(layer));
  }
  return lists;
}

Result<std::vector<LayerList>> read_layer_lists(const std::filesystem::path& path) {
  STROBE_ASSIGN(std::string text, read_file(path));
  auto lists = parse_layer_lists(std::move(text));
  if (!lists) return std::move(lists).error().at(path.string());
  return lists;
}

std::string format_layer_lists(const std::vector<LayerList>& lists) {
  std::string out = kHeader;
  for (const LayerList& list : lists) {
    const std::string net = csv_field(list.net);
    for (size_t index = 0; index < list.rows.size(); ++index) {
      const LayerRow& row = list.rows[index];
      out += fmt::format("{},{},{},{}", net, list.level, index, to_string(row.type));
      for (const NumberColumn& number : kNumbers) out += fmt::format(",{}", row.*number.member);
      out += fmt::format(",{:d},{:d},{}\n", row.bias, row.inplace, fmt::join(row.inputs, ";"));
    }
  }
  return out;
}

}  // namespace strobe::predict
