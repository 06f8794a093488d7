#include "analyze/critical_path_tenants.h"

#include <algorithm>
#include <limits>

#include "analyze/blame.h"
#include "analyze/critical_path_rows.h"
#include "base/suggest.h"

namespace strobe::analyze {

using trace::kNone;
using trace::Timeline;

namespace {

Result<int32_t> find_frame(const TenantTrace& trace, const WindowChoice& choice) {
  int32_t tenant = kNone;
  if (!choice.tenant.empty()) {
    tenant = trace.find_tenant(choice.tenant);
    std::vector<std::string> names;
    for (const TenantInfo& one : trace.tenants) names.push_back(one.name);
    if (tenant == kNone)
      return not_found("no tenant '" + choice.tenant + "' in the trace; " + suggest(choice.tenant, names));
  }
  const int64_t id = *choice.frame;
  int32_t found = kNone;
  std::string owners;
  int64_t first = std::numeric_limits<int64_t>::max(), last = std::numeric_limits<int64_t>::min();
  for (size_t i = 0; i < trace.frames.size(); ++i) {
    const TenantFrame& frame = trace.frames[i];
    if (tenant != kNone && frame.tenant != tenant) continue;
    first = std::min(first, frame.id), last = std::max(last, frame.id);
    if (frame.id != id) continue;
    if (found != kNone && frame.tenant != trace.frames[static_cast<size_t>(found)].tenant)
      return usage_error("several tenants have a frame " + std::to_string(id) + ": choose one, e.g. --tenant " +
                         trace.tenants[static_cast<size_t>(frame.tenant)].name);
    found = static_cast<int32_t>(i);
  }
  if (found == kNone)
    return not_found("no frame " + std::to_string(id) + (choice.tenant.empty() ? "" : " of " + choice.tenant) +
                     "; frames are " + std::to_string(first) + " to " + std::to_string(last));
  if (!trace.frames[static_cast<size_t>(found)].finished())
    return not_found("frame " + std::to_string(id) + " did not finish: it was dropped or the run ended before");
  return found;
}

class Walker {
 public:
  Walker(const Timeline& timeline, const BlameAnalysis& analysis, CriticalPath& path)
      : timeline_(timeline), analysis_(analysis), trace_(analysis.trace), path_(path) {}

  void account(int32_t frame) {
    for (const PathPiece& piece : frame_account(trace_, frame)) add(piece, frame, piece.start_ns, piece.end_ns);
  }

  // Back from done; whatever held the frame up takes the place of its wait.
  void strict(int32_t number) {
    const TenantFrame& frame = trace_.frames[static_cast<size_t>(number)];
    int64_t at = frame.done_ns;
    int32_t current = number;
    std::vector<PathPiece> pieces = frame_account(trace_, current);
    // Noise could let two frames point at each other at one instant.
    constexpr int kMostJumps = 64;
    int64_t reached = at;
    for (int jumps = 0; at > frame.stamp_ns; ++jumps) {
      if (at < reached) jumps = 0, reached = at;
      const auto piece = std::find_if(pieces.rbegin(), pieces.rend(),
                                      [at](const PathPiece& one) { return one.start_ns < at && at <= one.end_ns; });
      if (piece == pieces.rend()) {  // before that frame's stamp: nothing more is known of it
        wait(frame.stamp_ns, at, "(unknown)", false);
        break;
      }
      const int64_t from = std::max(piece->start_ns, frame.stamp_ns);
      const int32_t blocker = jumps < kMostJumps ? holder_of(*piece, at, current) : kNone;
      if (blocker == kNone) {
        add(*piece, current, from, at);
        at = from;
        continue;
      }
      const TenantStage& stage = trace_.stages[static_cast<size_t>(blocker)];
      const int64_t ended = std::min(at, blocked_until_);
      if (ended < at) {  // it had let go before
        add(*piece, current, std::max(from, ended), at);
        at = std::max(from, ended);
        if (at <= from) continue;
      }
      const int32_t before = current;
      current = stage.frame;
      pieces = frame_account(trace_, current);
      // An account that does not cover this instant (a frame that did not finish, a stage off its path) is of no use.
      const bool covers = std::any_of(pieces.begin(), pieces.end(),
                                      [at](const PathPiece& one) { return one.start_ns < at && at <= one.end_ns; });
      if (covers && current != before) continue;
      current = before;
      pieces = frame_account(trace_, current);
      add(*piece_at(pieces, at), current, std::max(piece_at(pieces, at)->start_ns, frame.stamp_ns), at);
      at = std::max(piece_at(pieces, at)->start_ns, frame.stamp_ns);
    }
    std::reverse(path_.segments.begin(), path_.segments.end());
  }

 private:
  static std::vector<PathPiece>::const_iterator piece_at(const std::vector<PathPiece>& pieces, int64_t at) {
    return std::find_if(pieces.begin(), pieces.end(),
                        [at](const PathPiece& one) { return one.start_ns < at && at <= one.end_ns; });
  }

  // The stage whose doing a wait was for, at this instant; kNone: none is known. Sets blocked_until_.
  int32_t holder_of(const PathPiece& piece, int64_t at, int32_t frame) {
    if (piece.kind == PathPiece::Kind::kWait) {
      const int32_t holder = analysis_.blocker[static_cast<size_t>(piece.operation)];
      if (holder == kNone) return kNone;
      const TenantOperation& operation = trace_.operations[static_cast<size_t>(holder)];
      if (operation.stage == kNone || trace_.stages[static_cast<size_t>(operation.stage)].frame == frame ||
          operation.end_ns <= piece.start_ns)
        return kNone;
      blocked_until_ = operation.end_ns;
      return operation.stage;
    }
    if (piece.kind != PathPiece::Kind::kQueue) return kNone;
    for (int32_t i = trace_.stages[static_cast<size_t>(piece.stage)].before_on_lane; i != kNone;
         i = trace_.stages[static_cast<size_t>(i)].before_on_lane) {
      const TenantStage& stage = trace_.stages[static_cast<size_t>(i)];
      if (stage.end_ns <= piece.start_ns) return kNone;
      if (stage.start_ns >= at || stage.frame == frame) continue;
      blocked_until_ = stage.end_ns;
      return i;
    }
    return kNone;
  }

  std::string_view keep(const std::string& name) { return *path_.names.insert(name).first; }

  void wait(int64_t from, int64_t to, const std::string& name, bool is_explained) {
    PathSegment segment{from, to, true, kNone, kNone, kNone, keep(name)};
    segment.is_explained = is_explained;
    path_.segments.push_back(segment);
  }

  void add(const PathPiece& piece, int32_t frame, int64_t from, int64_t to) {
    if (to <= from) return;
    const std::string tenant =
        trace_.tenants[static_cast<size_t>(trace_.frames[static_cast<size_t>(frame)].tenant)].name;
    const auto stage_name = [&] {
      return std::string(timeline_.strings[trace_.stages[static_cast<size_t>(piece.stage)].name]);
    };
    switch (piece.kind) {
      case PathPiece::Kind::kComm:
        return wait(from, to, tenant + "/comm", true);
      case PathPiece::Kind::kQueue:
        return wait(from, to, tenant + "/queue", trace_.stages[static_cast<size_t>(piece.stage)].cause_known);
      case PathPiece::Kind::kEnd:
        return wait(from, to, tenant + "/(unknown)", false);
      case PathPiece::Kind::kWait: {
        const TenantOperation& operation = trace_.operations[static_cast<size_t>(piece.operation)];
        return wait(from, to,
                    tenant + "/" + stage_name() + " waits for " + blamed_resource_name(trace_, operation.resource),
                    true);
      }
      case PathPiece::Kind::kService:
        break;
    }
    const TenantStage& stage = trace_.stages[static_cast<size_t>(piece.stage)];
    std::string name = tenant + "/" + stage_name();
    if (piece.operation != kNone) {
      const std::string operation(timeline_.strings[trace_.operations[static_cast<size_t>(piece.operation)].name]);
      if (operation != stage_name()) name += "/" + operation;
    }
    path_.segments.push_back({from, to, false, stage.range, stage.lane, piece.operation, keep(name)});
  }

  const Timeline& timeline_;
  const BlameAnalysis& analysis_;
  const TenantTrace& trace_;
  CriticalPath& path_;
  int64_t blocked_until_ = 0;
};

}  // namespace

Result<CriticalPath> critical_path_tenants(const Timeline& timeline, const WindowChoice& choice) {
  STROBE_ASSIGN(TenantTrace trace, tenant_trace(timeline));
  STROBE_ASSIGN(const int32_t number, find_frame(trace, choice));
  const BlameAnalysis analysis = blame(std::move(trace));
  const TenantFrame& frame = analysis.trace.frames[static_cast<size_t>(number)];
  CriticalPath path;
  path.title = "Critical path of frame " + std::to_string(frame.id) + " of " +
               analysis.trace.tenants[static_cast<size_t>(frame.tenant)].name;
  path.length_ns = frame.latency_ns();
  Walker walker(timeline, analysis, path);
  if (choice.strict)
    walker.strict(number);
  else
    walker.account(number);
  path.nodes = static_cast<size_t>(frame.stage_count);
  for (int32_t i = frame.first_stage; i < frame.first_stage + frame.stage_count; ++i)
    path.edges += static_cast<size_t>(analysis.trace.stages[static_cast<size_t>(i)].edge_count);
  path.by_type = {{"hand-over", path.edges}};
  path.rows = path_rows(path, {});
  return path;
}

}  // namespace strobe::analyze
