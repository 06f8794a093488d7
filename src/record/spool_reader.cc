#include "record/spool_reader.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <optional>
#include <set>

#include "base/crc32.h"
#include "record/clock.h"
#include "record/decode.h"
#include "record/encode.h"
#include "record/layout.h"
#include "record/names.h"
#include "record/spool_scan.h"
#include "record/zstd_codec.h"
#include "strobe/base/result.h"

namespace strobe::record {
namespace {

using OnEvent = std::function<void(const SpoolThread&, const SpoolEvent&)>;

// Everything of one process in the folder.
class ProcessReader {
 public:
  ProcessReader(const std::filesystem::path& stem, SpoolSummary& summary) : summary_(summary) {
    // A live recording may get a thread between the two scans: then once more.
    for (int attempt = 0; attempt < 3; ++attempt) {
      Faults faults;
      scan(stem, faults);
      if (attempt < 2 && missing_rings() > 0) continue;
      for (const auto& [kind, count] : faults) summary_.faults[kind] += count;
      break;
    }
    if (const uint64_t missing = missing_rings(); missing > 0) summary_.faults["missing ring"] += missing;
  }

  void read(const OnEvent& on_event) {
    if (!spool_) return;
    const ClockMap clock(spool_->header_clock_is_counter, spool_->clock);
    if (clock.rejected() > 0) summary_.faults["clock pair out of order"] += clock.rejected();
    add_fact("clock", spool_->clock_note);
    for (const auto& ring : rings_) spool_->threads.try_emplace(ring.serial).first->second.tid = ring.tid;
    for (const auto& [serial, thread] : spool_->threads) read_thread(serial, thread, clock, on_event);
    summary_.dropped += spool_->unattached_dropped;
  }

 private:
  // In this order a live recording is read whole: what leaves a ring after it was copied is in the spool by the time
  // that is scanned, and every name that either uses is in the names file last.
  void scan(const std::filesystem::path& stem, Faults& faults) {
    rings_.clear();
    for (const auto& path : ring_files(stem)) {
      auto ring = read_ring(path, faults);
      if (ring) rings_.push_back(std::move(*ring));
    }
    if (rings_.empty() && never_began(stem)) {
      spool_.reset();
      return;
    }
    spool_ = scan_spool(stem.string() + ".spool", faults);
    auto names = read_whole(stem.string() + ".names");
    if (!names) {
      ++faults["missing names file"];
      return;
    }
    uint64_t damaged = 0;
    names_ = parse_names(*names, damaged);
    if (damaged > 0) faults["damaged name"] += damaged;
  }

  // STEM.N.ring
  static std::vector<std::filesystem::path> ring_files(const std::filesystem::path& stem) {
    std::vector<std::filesystem::path> found;
    std::error_code failed;
    for (const auto& entry : std::filesystem::directory_iterator(stem.parent_path(), failed)) {
      if (entry.path().extension() == ".ring" && entry.path().stem().stem() == stem.filename())
        found.push_back(entry.path());
    }
    std::sort(found.begin(), found.end());
    return found;
  }

  // Threads that have not ended have a ring, or its file is gone with their last records.
  uint64_t missing_rings() const {
    if (!spool_) return 0;
    return static_cast<uint64_t>(std::count_if(spool_->threads.begin(), spool_->threads.end(), [&](const auto& entry) {
      return !entry.second.ended && std::none_of(rings_.begin(), rings_.end(),
                                                 [&](const RingCopy& ring) { return ring.serial == entry.first; });
    }));
  }

  void read_thread(uint32_t serial, const ThreadBlocks& thread, const ClockMap& clock, const OnEvent& on_event) {
    ++summary_.threads;
    SpoolThread who;
    who.pid = spool_->pid;
    who.tid = thread.tid;
    who.process_name = spool_->process_name;
    who.utc_minus_monotonic_ns = spool_->clock.empty() ? 0 : utc_offset(spool_->clock.front());
    who.ended = thread.ended;
    const Decoder::Sink sink = [&](const SpoolEvent& event) {
      ++summary_.events;
      on_event(who, event);
    };
    Decoder decoder(names_, clock, summary_.faults);
    uint64_t next = 0;
    const auto expect = [&](uint64_t from) {
      if (from == next) return;
      decoder.gap();
      ++summary_.faults["missing records"];
    };
    for (const BlockPlace& place : thread.blocks) {
      if (place.to <= next) continue;  // seen already: a copy of a block
      expect(place.from);
      next = place.to;
      if (!spool_->read(place, payload_)) {
        ++summary_.faults["damaged block"];
        decoder.gap();
        continue;
      }
      decoder.block(payload_, sink);
    }
    uint64_t lost = thread.dropped;
    for (const RingCopy& ring : rings_) {
      if (ring.serial != serial) continue;
      lost = std::max(lost, ring.dropped);
      const uint64_t from = std::max(ring.tail, next);
      if (from >= ring.head) continue;
      expect(from);
      const Encoded encoded = encode({ring.words.data(), ring.words.size() - 1}, from, ring.head, payload_);
      if (encoded.damaged) ++summary_.faults["damaged ring"];
      decoder.block(payload_, sink);
      next = encoded.to;
    }
    if (thread.ended && next < thread.end) ++summary_.faults["missing records"];
    if (lost > decoder.dropped()) {
      SpoolEvent event;
      event.type = SpoolEvent::Type::kDropped;
      event.time_ns = decoder.last_time_ns();
      event.integer = static_cast<int64_t>(lost - decoder.dropped());
      sink(event);
    }
    summary_.dropped += std::max(lost, decoder.dropped());
  }

  static int64_t utc_offset(const ClockPair& pair) {
    return static_cast<int64_t>(static_cast<uint64_t>(pair.realtime_ns) - static_cast<uint64_t>(pair.monotonic_ns));
  }

  // Facts of several processes that differ are listed one after the other.
  void add_fact(const std::string& key, const std::string& value) {
    std::string& have = summary_.facts[key];
    if (have.find(value) != std::string::npos && !have.empty()) return;
    have += (have.empty() ? "" : "; ") + value;
  }

  SpoolSummary& summary_;
  std::vector<RingCopy> rings_;
  std::optional<SpoolScan> spool_;
  std::vector<std::string> names_;
  std::vector<uint8_t> payload_;
};

}  // namespace

Result<SpoolSummary> read_spool(const std::filesystem::path& folder, const OnEvent& on_event) {
  std::error_code failed;
  if (!std::filesystem::is_directory(folder, failed)) return not_found(folder.string() + ": no such folder");
  std::set<std::filesystem::path> stems;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failed)) {
    const std::filesystem::path& path = entry.path();
    if (path.extension() == ".spool") stems.insert(path.parent_path() / path.stem());
  }
  if (failed) return io_error("cannot list " + folder.string() + ": " + failed.message());
  if (stems.empty()) return bad_data(folder.string() + ": no recording in it (expected *.spool files)");
  SpoolSummary summary;
  for (const auto& stem : stems) ProcessReader(stem, summary).read(on_event);
  return summary;
}

}  // namespace strobe::record
