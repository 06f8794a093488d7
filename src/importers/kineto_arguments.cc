// Arguments of events: what a device did comes into its own columns, the rest stays as arguments but for what only the
// profiler itself could use.
#include <array>
#include <charconv>
#include <optional>

#include "importers/decimal.h"
#include "importers/kineto_builder.h"

namespace strobe::importers {

using json::Value;
using trace::DeviceOp;
using trace::RangeKind;
using trace::StringId;

enum class KinetoBuilder::Role : uint8_t {
  kUnseen,
  kPlain,       // kept as it is
  kNoise,       // numbers of the profiler's own rows, and what follows from other columns
  kExternalId,  // kept under one name for all ages
  // Columns of a device operation (and kCorrelation of a call).
  kCorrelation,
  kDevice,
  kStream,
  kContext,
  kBytes,
  kGrid,
  kBlock,
  kRegisters,
  kShared,
  kSyncKind,
  kWaitStream,
  kWaitCorrelation,
};

namespace {

// Whole numbers only; traces write -1 also as 4294967295 (streams) and 18446744073709551615.
std::optional<int64_t> integer(const Value& value) {
  int64_t number = 0;
  const char* const end = value.text.data() + value.text.size();
  const auto result = std::from_chars(value.text.data(), end, number);
  if (result.ec == std::errc() && result.ptr == end) return number;
  uint64_t large = 0;
  const auto unsigned_result = std::from_chars(value.text.data(), end, large);
  if (unsigned_result.ec == std::errc() && unsigned_result.ptr == end) return static_cast<int64_t>(large);
  return std::nullopt;
}

int32_t id_of(const Value& value) {
  const int64_t number = integer(value).value_or(trace::kNone);
  return number < INT32_MIN || number > UINT32_MAX ? trace::kNone : static_cast<int32_t>(static_cast<uint32_t>(number));
}

int32_t small(const Value& value) {
  const int64_t number = integer(value).value_or(-1);
  return number < 0 || number > INT32_MAX ? -1 : static_cast<int32_t>(number);
}

// "[32, 1, 2]".
void read_triple(std::string_view text, uint32_t (&triple)[3]) {
  const char* at = text.data();
  const char* const end = at + text.size();
  for (uint32_t& one : triple) {
    while (at != end && (*at < '0' || *at > '9')) ++at;
    const auto result = std::from_chars(at, end, one);
    if (result.ec != std::errc()) return;
    at = result.ptr;
  }
}

struct Word {
  std::string_view text;
  uint8_t number;
};

template <size_t kCount>
uint8_t number_in(std::string_view text, const std::array<Word, kCount>& words, uint8_t otherwise) {
  for (const Word& word : words)
    if (text.find(word.text) != std::string_view::npos) return word.number;
  return otherwise;
}

uint8_t memory_kind(std::string_view text) {
  static constexpr std::array<Word, 7> kWords{{{"Device Static", 5},
                                               {"Managed Static", 6},
                                               {"Pageable", 0},
                                               {"Pinned", 1},
                                               {"Device", 2},
                                               {"Array", 3},
                                               {"Managed", 4}}};
  return number_in(text, kWords, 7);
}

// "Memcpy HtoD (Pageable -> Device)", "CopyHostToDevice" (ROCm), "Memset (Device)".
void read_copy(std::string_view name, RangeKind kind, DeviceOp& op) {
  static constexpr std::array<Word, 14> kCopies{{{"HtoD", 1},
                                                 {"DtoH", 2},
                                                 {"HtoA", 3},
                                                 {"AtoH", 4},
                                                 {"AtoA", 5},
                                                 {"AtoD", 6},
                                                 {"DtoA", 7},
                                                 {"DtoD", 8},
                                                 {"HtoH", 9},
                                                 {"PtoP", 10},
                                                 {"HostToDevice", 1},
                                                 {"DeviceToHost", 2},
                                                 {"DeviceToDevice", 8},
                                                 {"HostToHost", 9}}};
  const size_t open = name.find('(');
  const std::string_view inside = open == std::string_view::npos ? std::string_view{} : name.substr(open);
  if (kind == RangeKind::kSet) {
    op.target_kind = memory_kind(inside);
    return;
  }
  op.copy_kind = number_in(name.substr(0, open), kCopies, 0);
  const size_t arrow = inside.find("->");
  if (arrow == std::string_view::npos) return;
  op.source_kind = memory_kind(inside.substr(0, arrow));
  op.target_kind = memory_kind(inside.substr(arrow));
}

uint8_t sync_type(std::string_view text) {
  static constexpr std::array<Word, 6> kWords{{{"Stream Wait Event", 2},
                                               {"Event Sync", 1},
                                               {"Stream Sync", 3},
                                               {"Context Sync", 4},
                                               {"Stream Synchronize", 3},
                                               {"Device Sync", 4}}};
  return number_in(text, kWords, 0);
}

}  // namespace

KinetoBuilder::Role KinetoBuilder::role_of(StringId key) {
  if (key >= roles_.size()) roles_.resize(key + 1, Role::kUnseen);
  if (roles_[key] != Role::kUnseen) return roles_[key];
  struct Row {
    std::string_view key;
    Role role;
  };
  static constexpr std::array<Row, 33> kRows{{
      {"External id", Role::kExternalId},
      {"external id", Role::kExternalId},
      {"correlation", Role::kCorrelation},
      {"device", Role::kDevice},
      {"stream", Role::kStream},
      {"context", Role::kContext},
      {"bytes", Role::kBytes},
      {"grid", Role::kGrid},
      {"block", Role::kBlock},
      {"registers per thread", Role::kRegisters},
      {"shared memory", Role::kShared},
      {"cuda_sync_kind", Role::kSyncKind},
      {"wait_on_stream", Role::kWaitStream},
      {"wait_on_cuda_event_record_corr_id", Role::kWaitCorrelation},
      {"cbid", Role::kNoise},
      {"cid", Role::kNoise},
      {"queued", Role::kNoise},
      {"kind", Role::kNoise},
      {"Ev Idx", Role::kNoise},
      {"Profiler Event Index", Role::kNoise},
      {"Record function id", Role::kNoise},
      {"Trace name", Role::kNoise},
      {"Trace iteration", Role::kNoise},
      {"external ts", Role::kNoise},
      {"Device", Role::kNoise},
      {"blocks per SM", Role::kNoise},
      {"warps per SM", Role::kNoise},
      {"memory bandwidth (GB/s)", Role::kNoise},
      {"Python id", Role::kNoise},
      {"Python parent id", Role::kNoise},
      {"Python module id", Role::kNoise},
      {"src", Role::kNoise},
      {"dst", Role::kNoise},
  }};
  roles_[key] = Role::kPlain;
  const std::string_view text = timeline_.strings[key];
  for (const Row& row : kRows)
    if (row.key == text) roles_[key] = row.role;
  return roles_[key];
}

void KinetoBuilder::add_argument(int32_t range, StringId key, const Value& value) {
  std::variant<int64_t, double, StringId> stored;
  if (value.type == json::Type::kBare) {
    double real = 0;
    const char* const end = value.text.data() + value.text.size();
    if (value.text == "null") return;
    if (const auto whole = integer(value)) {
      stored = *whole;
    } else if (value.text == "true" || value.text == "false") {
      stored = int64_t{value.text == "true"};
    } else if (const auto result = std::from_chars(value.text.data(), end, real);
               result.ec == std::errc() && result.ptr == end) {
      stored = real;
    } else {
      stored = text(value);
    }
  } else {
    if (value.text.empty() || value.text == "[]" || value.text == "{}") return;
    stored = text(value);
  }
  timeline_.arguments.range.push_back(range);
  timeline_.arguments.key.push_back(key);
  timeline_.arguments.value.push_back(stored);
}

void KinetoBuilder::add_arguments(const Event& event, int32_t range, RangeKind kind, bool known) {
  for (const EventArgument& arg : event.args) {
    StringId key = cache_.intern(arg.key);
    const Role role = known ? role_of(key) : Role::kPlain;
    switch (role) {
      case Role::kNoise:
        continue;
      case Role::kCorrelation:
        if (kind == RangeKind::kApi) {
          timeline_.api_calls.push_back({.range = range, .correlation = integer(arg.value).value_or(0)});
          continue;
        }
        if (is_device(kind)) continue;
        break;
      case Role::kExternalId:
        // Those of calls and kernels say what launch and parent say.
        if (kind == RangeKind::kApi || is_device(kind)) continue;
        key = cache_.intern("External id");
        break;
      case Role::kUnseen:
      case Role::kPlain:
        break;
      default:
        if (is_device(kind)) continue;
        break;
    }
    add_argument(range, key, arg.value);
  }
}

DeviceOp KinetoBuilder::device_op(const Event& event, RangeKind kind, Place& place, int32_t& context) {
  DeviceOp op;
  for (const EventArgument& arg : event.args) {
    const Value& value = arg.value;
    switch (role_of(cache_.intern(arg.key))) {
      case Role::kCorrelation:
        op.correlation = integer(value).value_or(0);
        break;
      case Role::kDevice:
        place.pid = id_of(value);
        break;
      case Role::kStream:
        place.tid = id_of(value);
        break;
      case Role::kContext:
        context = id_of(value);
        break;
      case Role::kBytes:
        op.bytes = integer(value).value_or(-1);
        break;
      case Role::kGrid:
        read_triple(value.text, op.grid);
        break;
      case Role::kBlock:
        read_triple(value.text, op.block);
        break;
      case Role::kRegisters:
        op.registers = small(value);
        break;
      case Role::kShared:
        // The sum of static and dynamic; which is which the trace does not tell.
        op.dynamic_shared = small(value);
        break;
      case Role::kSyncKind:
        op.sync_type = sync_type(value.text);
        break;
      case Role::kWaitStream:
        op.sync_stream = id_of(value);
        break;
      case Role::kWaitCorrelation:
        op.sync_correlation = integer(value).value_or(0);
        break;
      default:
        break;
    }
  }
  if (kind == RangeKind::kCopy || kind == RangeKind::kSet) read_copy(event.name.text, kind, op);
  if (kind == RangeKind::kSync && op.sync_type == 0) op.sync_type = sync_type(event.name.text);
  return op;
}

void KinetoBuilder::add_property(std::string_view key, const Value& value) {
  constexpr size_t kLongest = 512;
  const auto as_text = [](const Value& scalar) {
    return scalar.type == json::Type::kEscaped ? json::unescape(scalar.text) : std::string(scalar.text);
  };
  const auto scalars = [&](const Value& object, const std::string& prefix) {
    const char* at = object.text.data();
    (void)json::scan_object(at, at + object.text.size(), [&](std::string_view name, const char*& p, const char* end) {
      Value member;
      const json::Scan result = json::scan_value(p, end, member);
      if (result == json::Scan::kDone && (member.is_string() || member.type == json::Type::kBare) &&
          member.text.size() <= kLongest)
        timeline_.facts[prefix + std::string(name)] = as_text(member);
      return result;
    });
  };
  if (key == "baseTimeNanoseconds") base_ns_ = scaled_decimal(value.text, 0);
  is_pytorch_ |= key == "schemaVersion" || key == "deviceProperties" || key == "distributedInfo";
  if (key == "distributedInfo" && value.type == json::Type::kObject) return scalars(value, "distributed.");
  if (key == "deviceProperties" && value.type == json::Type::kArray) {
    // One object a device, none inside another.
    size_t device = 0;
    for (size_t at = value.text.find('{'); at != std::string_view::npos; at = value.text.find('{', at + 1))
      scalars({json::Type::kObject, value.text.substr(at)}, "device." + std::to_string(device++) + ".");
    return;
  }
  if (value.is_string() || value.type == json::Type::kBare) {
    if (value.text.size() <= kLongest) timeline_.facts["trace." + std::string(key)] = as_text(value);
  }
}

}  // namespace strobe::importers
