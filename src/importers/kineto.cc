#include "importers/kineto.h"

#include <cstring>
#include <string>

#include "base/json_scan.h"
#include "importers/kineto_builder.h"

namespace strobe::importers {
namespace {

using json::Scan;
using json::Value;

// Nothing that a trace means as one event or property is longer.
constexpr size_t kLongest = size_t{16} << 20;
// Damaged places that are told one by one.
constexpr int kPlacesTold = 20;

class Reader {
 public:
  Reader(ByteStream& stream, const ImportOptions& options)
      : stream_(stream), options_(options), builder_(options.format == "chrome"), at_(stream.begin()) {}

  Result<trace::Timeline> run() {
    if (peek() == '\xef' && stream_.end() - at_ >= 3) at_ += 3;  // UTF-8 byte order mark
    bool complete = true;
    if (peek() == '[') {
      ++at_;
      found_events_ = true;
      (void)events();  // the closing bracket may be missing
    } else if (peek() == '{') {
      ++at_;
      complete = properties();
    } else {
      complete = false;
    }
    if (stopped_) {
      builder_.add_fault("import stopped by the user at byte " + std::to_string(offset()) + " of the JSON", 1);
    } else if (!complete && !told_damage_) {
      builder_.add_fault("the JSON breaks off at byte " + std::to_string(offset()), 1);
    }
    if (!stream_.damage().empty()) builder_.add_fault(stream_.damage(), 1);
    if (builder_.event_count() == 0 && !stopped_) {
      if (!found_events_) return bad_data("no \"traceEvents\" in it, expected a Chrome or PyTorch trace");
      if (!complete || told_damage_) return bad_data("no event in it can be read, expected a Chrome or PyTorch trace");
    }
    const bool is_pytorch = builder_.is_pytorch() && options_.format != "chrome";
    trace::Timeline timeline = builder_.finish();
    timeline.facts["import.format"] = is_pytorch ? "kineto" : "chrome";
    return timeline;
  }

 private:
  uint64_t offset() const { return stream_.offset_of(at_); }

  bool refill() {
    if (options_.on_progress) options_.on_progress(stream_.file_done(), stream_.file_size());
    stopped_ |= options_.stop && options_.stop->load(std::memory_order_relaxed);
    if (stopped_) return false;
    const bool more = stream_.refill(at_);
    at_ = stream_.begin();
    return more;
  }

  // The next character that is no space, nor a comma (of which careless writers leave too many); 0 at the end.
  char peek() {
    for (;;) {
      while (at_ != stream_.end() && (json::is_space(*at_) || *at_ == ',')) ++at_;
      if (at_ != stream_.end()) return *at_ == 0 ? '\1' : *at_;
      if (!refill()) return 0;
    }
  }

  // Calls scan(at, end) until it is done or gives up; where the text ends inside, with more of it.
  template <typename OnText>
  Scan scan_whole(OnText&& scan) {
    for (;;) {
      const char* at = at_;
      const Scan result = scan(at, stream_.end());
      if (result == Scan::kDone) at_ = at;
      if (result != Scan::kMore) return result;
      if (static_cast<size_t>(stream_.end() - at_) > kLongest || !refill()) return Scan::kMore;
    }
  }

  // Events up to the bracket that closes them. False: the text ended first.
  bool events() {
    for (;;) {
      const char next = peek();
      if (next == 0) return false;
      if (next == ']') {
        ++at_;
        return true;
      }
      const Scan result =
          next == '{' ? scan_whole([this](const char*& at, const char* end) { return scan_event(at, end, event_); })
                      : Scan::kBad;
      if (result == Scan::kDone) {
        builder_.add(event_);
      } else if (stopped_ || !find_next_event()) {
        return false;
      }
    }
  }

  // From something that cannot be read at at_ to the next event. False: there is none.
  bool find_next_event() {
    const uint64_t from = offset();
    bool found = false;
    if (at_ != stream_.end()) ++at_;
    while (!found) {
      const void* brace =
          at_ == stream_.end() ? nullptr : std::memchr(at_, '{', static_cast<size_t>(stream_.end() - at_));
      at_ = brace ? static_cast<const char*>(brace) : stream_.end();
      if (!brace) {
        if (!refill()) break;
        continue;
      }
      const char* at = at_;
      Scan result = scan_event(at, stream_.end(), event_);
      if (result == Scan::kMore && static_cast<size_t>(stream_.end() - at_) <= kLongest && refill()) continue;
      if (stopped_) break;
      found = result == Scan::kDone && event_.phase != 0 && event_.name.type != json::Type::kNone;
      if (!found) ++at_;
    }
    tell_damage(from, offset() - from, found);
    return found;
  }

  void tell_damage(uint64_t from, uint64_t bytes, bool goes_on) {
    told_damage_ = true;
    const std::string place = " at byte " + std::to_string(from) + ": bytes that were skipped";
    if (!goes_on) {
      builder_.add_fault("the JSON breaks off" + place, bytes);
    } else if (++damaged_places_ <= kPlacesTold) {
      builder_.add_fault("damaged JSON" + place, bytes);
    } else {
      builder_.add_fault("damaged JSON at further places: bytes that were skipped", bytes);
    }
  }

  // Members of the outermost object. False: the text ended before its closing brace.
  bool properties() {
    for (;;) {
      const char next = peek();
      if (next == 0) return false;
      if (next == '}') return true;
      Value key;
      if (next != '"' || scan_whole([&key](const char*& at, const char* end) {
                           return json::scan_value(at, end, key);
                         }) != Scan::kDone) {
        // Where the outermost object is torn, its events may still be there.
        if (stopped_ || !find_next_event()) return false;
        found_events_ = true;
        if (!events()) return false;
        continue;
      }
      const std::string name(key.text);
      if (peek() == ':') ++at_;
      if (!property(name, peek())) return false;
    }
  }

  bool property(const std::string& name, char first) {
    if (name == "traceEvents" && first == '[') {
      ++at_;
      found_events_ = true;
      return events();
    }
    const bool nested = first == '[' || first == '{';
    if (nested && name != "deviceProperties" && name != "distributedInfo") return skip_nested();
    Value value;
    const Scan result =
        scan_whole([&value](const char*& at, const char* end) { return json::scan_value(at, end, value); });
    if (result == Scan::kDone) {
      builder_.add_property(name, value);
      return true;
    }
    if (stopped_ || result == Scan::kMore || at_ == stream_.end()) return false;
    tell_damage(offset(), 1, true);
    ++at_;
    return true;
  }

  // A value of any length that is of no use to us, without holding it.
  bool skip_nested() {
    size_t depth = 0;
    bool in_string = false, after_backslash = false;
    for (;;) {
      for (; at_ != stream_.end(); ++at_) {
        const char c = *at_;
        if (in_string) {
          if (after_backslash) {
            after_backslash = false;
          } else if (c == '\\') {
            after_backslash = true;
          } else if (c == '"') {
            in_string = false;
          }
        } else if (c == '"') {
          in_string = true;
        } else if (c == '[' || c == '{') {
          ++depth;
        } else if ((c == ']' || c == '}') && --depth == 0) {
          ++at_;
          return true;
        }
      }
      if (!refill()) return false;
    }
  }

  ByteStream& stream_;
  const ImportOptions& options_;
  KinetoBuilder builder_;
  const char* at_;
  Event event_;
  int damaged_places_ = 0;
  bool told_damage_ = false, stopped_ = false, found_events_ = false;
};

}  // namespace

Result<trace::Timeline> import_kineto(ByteStream& stream, const ImportOptions& options) {
  return Reader(stream, options).run();
}

}  // namespace strobe::importers
