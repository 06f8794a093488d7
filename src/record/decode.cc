#include "record/decode.h"

#include <cstring>

#include "record/names.h"
#include "record/varint.h"

namespace strobe::record {
namespace {

// Reads fields off one block; any read past the end makes it !ok and yields zeros.
class Fields {
 public:
  explicit Fields(std::span<const uint8_t> bytes) : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}
  bool more() const { return ok_ && at_ < end_; }
  bool ok() const { return ok_; }
  uint8_t byte() { return *at_++; }
  uint64_t number() {
    uint64_t value = 0;
    const uint8_t* next = ok_ ? get_varint(at_, end_, value) : nullptr;
    ok_ = next != nullptr;
    if (ok_) at_ = next;
    return ok_ ? value : 0;
  }
  int64_t difference() { return unzigzag(number()); }
  double real() {
    double value = 0;
    ok_ = ok_ && end_ - at_ >= 8;
    if (!ok_) return 0;
    std::memcpy(&value, at_, 8);
    at_ += 8;
    return value;
  }
  std::string_view text() {
    const uint64_t bytes = number();
    ok_ = ok_ && bytes <= static_cast<uint64_t>(end_ - at_);
    if (!ok_) return {};
    const std::string_view value(reinterpret_cast<const char*>(at_), bytes);
    at_ += bytes;
    return value;
  }

 private:
  const uint8_t* at_;
  const uint8_t* end_;
  bool ok_ = true;
};

}  // namespace

std::string_view Decoder::name_of(uint64_t id) {
  if ((id & kDynamicName) != 0) {
    const auto found = dynamic_.find(id & ~uint64_t{kDynamicName});
    if (found != dynamic_.end()) return found->second;
  } else if (id < names_.size()) {
    return names_[id];
  }
  count_fault("name without definition");
  return "(unknown name)";
}

void Decoder::put_category(uint64_t id, SpoolEvent& event) {
  const auto category = id > 0 && id <= names_.size() ? parse_category(names_[id - 1]) : std::optional<CategoryText>();
  if (!category) {
    count_fault("category without definition");
    return;
  }
  event.category = category->name;
  event.domain = category->domain;
}

bool Decoder::count_fault(const char* kind) {
  ++faults_[kind];
  return false;
}

void Decoder::block(std::span<const uint8_t> bytes, const Sink& sink) {
  Fields in(bytes);
  uint64_t cut = 0;
  int64_t frame = -1;
  int64_t now = last_time_ns_;
  const auto read_time = [&] {
    cut += static_cast<uint64_t>(in.difference());
    now = clock_.to_monotonic_ns(clock_.widen(cut & kClockMask));
  };
  const auto read_frame = [&] {
    frame = static_cast<int64_t>(static_cast<uint64_t>(frame) + static_cast<uint64_t>(in.difference()));
    return frame;
  };
  using Type = SpoolEvent::Type;
  struct Shape {
    uint64_t name, key;
    int64_t value;
  };
  std::vector<Shape> shapes;
  while (in.more()) {
    const uint8_t raw = in.byte();
    SpoolEvent event;
    if (raw == kDefineShape && shapes.size() < kMaxShapes) {
      const uint64_t name = in.number();
      shapes.push_back({name, in.number(), 0});
      continue;
    }
    if ((raw & kShaped) != 0) {
      const size_t index = raw & (kMaxShapes - 1);
      if (index >= shapes.size()) {
        count_fault("unknown record");
        return;
      }
      Shape& shape = shapes[index];
      read_time();
      if ((raw & kSameFrame) == 0) read_frame();
      if ((raw & kSameValue) == 0)
        shape.value = static_cast<int64_t>(static_cast<uint64_t>(shape.value) + static_cast<uint64_t>(in.difference()));
      if (!in.ok()) break;
      event.type = Type::kRangeBegin;
      event.time_ns = last_time_ns_ = now;
      event.name = name_of(shape.name);
      event.frame = frame;
      ++open_;
      after_event_ = false;
      sink(event);
      if (shape.key == 0) continue;
      SpoolEvent argument;
      argument.type = Type::kArgumentInt;
      argument.time_ns = now;
      argument.name = name_of(shape.key - 1);
      argument.integer = shape.value;
      sink(argument);
      continue;
    }
    bool deliver = true;
    const auto type = static_cast<RecordType>(raw & ~kFlags);
    if ((raw & kFlags & ~allowed_flags(type)) != 0) {
      count_fault("unknown record");
      return;
    }
    switch (type) {
      case RecordType::kRangeBegin:
      case RecordType::kMark: {
        const bool mark = type == RecordType::kMark;
        event.type = mark ? Type::kMark : Type::kRangeBegin;
        read_time();
        event.name = name_of(in.number());
        event.frame = read_frame();
        if ((raw & kCategorized) != 0) put_category(in.number(), event);
        if (!mark) ++open_;
        break;
      }
      case RecordType::kRangeEnd:
        event.type = Type::kRangeEnd;
        read_time();
        deliver = open_ > 0 || count_fault("range end without begin");
        if (deliver) --open_;
        break;
      case RecordType::kAsyncBegin:
        event.type = Type::kAsyncBegin;
        read_time();
        event.name = name_of(in.number());
        event.frame = read_frame();
        event.id = in.number();
        if ((raw & kCategorized) != 0) put_category(in.number(), event);
        break;
      case RecordType::kAsyncEnd:
      case RecordType::kFlowOut:
      case RecordType::kFlowIn:
        event.type = type == RecordType::kAsyncEnd  ? Type::kAsyncEnd
                     : type == RecordType::kFlowOut ? Type::kFlowOut
                                                    : Type::kFlowIn;
        read_time();
        event.name = name_of(in.number());
        event.id = in.number();
        break;
      case RecordType::kArgInt:
        event.type = Type::kArgumentInt;
        event.name = name_of(in.number());
        event.integer = in.difference();
        break;
      case RecordType::kArgDouble:
        event.type = Type::kArgumentDouble;
        event.name = name_of(in.number());
        event.number = in.real();
        break;
      case RecordType::kArgText:
        event.type = Type::kArgumentText;
        event.name = name_of(in.number());
        event.text = in.text();
        break;
      case RecordType::kCounter:
        event.type = Type::kCounter;
        read_time();
        event.name = name_of(in.number());
        event.number = in.real();
        event.of_thread = (raw & kOfThread) != 0;
        break;
      case RecordType::kCounterInt:
        event.type = Type::kCounter;
        read_time();
        event.name = name_of(in.number());
        event.integer = in.difference();
        event.number = static_cast<double>(event.integer);
        event.of_thread = (raw & kOfThread) != 0;
        break;
      case RecordType::kAsyncEndAny:
        event.type = Type::kAsyncEndAny;
        read_time();
        event.id = in.number();
        break;
      case RecordType::kThreadName:
        event.type = Type::kThreadName;
        read_time();
        event.text = in.text();
        break;
      case RecordType::kFact: {
        event.type = Type::kFact;
        read_time();
        const uint64_t key_bytes = in.number();
        const std::string_view both = in.text();
        event.name = both.substr(0, key_bytes);
        event.text = both.substr(event.name.size());
        break;
      }
      case RecordType::kDropped:
        event.type = Type::kDropped;
        read_time();
        event.integer = static_cast<int64_t>(in.number());
        if (in.ok()) dropped_ += static_cast<uint64_t>(event.integer);
        break;
      case RecordType::kDefine: {
        const uint64_t slot = in.number();
        dynamic_[slot] = in.text();
        deliver = false;
        break;
      }
      default:
        count_fault("unknown record");
        return;
    }
    if (!in.ok()) break;
    last_time_ns_ = now;
    event.time_ns = now;
    const bool argument =
        event.type == Type::kArgumentInt || event.type == Type::kArgumentDouble || event.type == Type::kArgumentText;
    event.of_event = argument && (raw & kOfEvent) != 0;
    if (event.of_event)
      deliver = after_event_ || count_fault("argument without what it belongs to");
    else if (argument && open_ == 0)
      deliver = count_fault("argument outside of a range");
    if (!argument && type != RecordType::kDefine) {
      after_event_ = event.type == Type::kMark || event.type == Type::kAsyncBegin || event.type == Type::kAsyncEnd ||
                     event.type == Type::kAsyncEndAny;
    }
    if (deliver) sink(event);
  }
  if (!in.ok()) count_fault("unreadable record");
}

}  // namespace strobe::record
