#include "analyze/blame.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "analyze/blame_operations.h"

namespace strobe::analyze {

using trace::kNone;

std::string blamed_name(const TenantTrace& trace, int32_t by, int32_t tenant) {
  if (by == tenant) return "self";
  const auto count = static_cast<int32_t>(trace.tenants.size());
  if (by < count) return trace.tenants[static_cast<size_t>(by)].name;
  constexpr const char* kNames[] = {"system", "recorder", "idle", "unknown"};
  return kNames[by - count];
}

std::string blamed_resource_name(const TenantTrace& trace, int32_t resource) {
  if (resource == kNone) return "?";
  const auto count = static_cast<int32_t>(trace.resources.size());
  if (resource < count) return trace.resources[static_cast<size_t>(resource)].name;
  return "queue:" + trace.tenants[static_cast<size_t>(resource - count)].name;
}

bool BlameGates::because() const {
  return reasons().empty();
}

bool BlameGates::exploratory() const {
  constexpr double kTooNoisy = 20e3;
  return sigma_ns > kTooNoisy;
}

std::vector<std::string> BlameGates::reasons() const {
  constexpr double kLeastKnown = 0.99, kMostUnknown = 0.05;
  std::vector<std::string> all;
  const auto percent = [](double share) {
    const std::string text = std::to_string(std::floor(share * 1000) / 10);
    return text.substr(0, text.find('.') + 2) + " %";
  };
  if (lost_records > 0) all.push_back(std::to_string(lost_records) + " records are lost");
  // Noise alone lets a few look like it.
  if (contradictions * 1000 > operations)
    all.push_back(std::to_string(contradictions) + " records contradict each other");
  if (edges_known < kLeastKnown) all.push_back("of the hand-overs " + percent(edges_known) + " are recorded");
  if (!sigma_known) all.emplace_back("the noise of the clocks is not known");
  if (unknown_share > kMostUnknown) all.push_back(percent(unknown_share) + " of the waits have no known holder");
  if (known_state < kLeastKnown)
    all.push_back("what threads did is known for " + percent(known_state) + " of the time");
  if (exploratory()) all.emplace_back("the clocks are too noisy");
  return all;
}

namespace {

double sum(const std::vector<BlameCell>& cells) {
  return std::accumulate(cells.begin(), cells.end(), 0.0,
                         [](double total, const BlameCell& cell) { return total + cell.ns; });
}

// The stages on a frame's critical path, the first one first, each with the time at which the path left it.
struct PathStage {
  int32_t stage;
  int64_t from_ns;  // where the wait for it began: the end of what it came after
  int64_t until_ns;
};

std::vector<PathStage> path_of(const TenantTrace& trace, const TenantFrame& frame) {
  std::vector<PathStage> path;
  if (frame.stage_count == 0) return path;
  int32_t last = frame.first_stage;
  for (int32_t i = frame.first_stage; i < frame.first_stage + frame.stage_count; ++i)
    if (trace.stages[static_cast<size_t>(i)].end_ns >= trace.stages[static_cast<size_t>(last)].end_ns) last = i;
  int64_t at = std::max(frame.arrival_ns, std::min(frame.done_ns, trace.stages[static_cast<size_t>(last)].end_ns));
  for (int32_t i = last; i != kNone;) {
    const TenantStage& stage = trace.stages[static_cast<size_t>(i)];
    const int64_t start = std::clamp(stage.start_ns, frame.arrival_ns, at);
    int32_t cause = kNone;
    for (int32_t k = stage.first_edge; k < stage.first_edge + stage.edge_count; ++k) {
      const int32_t before = trace.edges[static_cast<size_t>(k)];
      if (before >= i) continue;
      if (cause == kNone ||
          trace.stages[static_cast<size_t>(before)].end_ns > trace.stages[static_cast<size_t>(cause)].end_ns)
        cause = before;
    }
    const int64_t from = cause == kNone
                             ? frame.arrival_ns
                             : std::clamp(trace.stages[static_cast<size_t>(cause)].end_ns, frame.arrival_ns, start);
    path.push_back({i, from, at});
    at = from;
    i = cause;
  }
  std::reverse(path.begin(), path.end());
  return path;
}

class Accountant {
 public:
  explicit Accountant(BlameAnalysis& analysis)
      : analysis_(analysis),
        trace_(analysis.trace),
        operations_(blame_operations(analysis.trace)),
        pushed_(analysis.trace.operations.size()),
        band_(static_cast<int64_t>(std::ceil(analysis.trace.dead_band_ns()))) {}

  void run();

 private:
  // Cells of what a stage waited for, without its wait in the queue before it.
  std::vector<BlameCell> cells_of(int32_t stage);
  void add_operation(std::vector<BlameCell>& cells, int32_t operation);
  const std::vector<BlameCell>& push_cells(int32_t operation, int depth);
  void add_consumer(std::vector<BlameCell>& cells, int32_t stage, int64_t from, int64_t to, int32_t queue, int depth);
  struct Backlog {
    int32_t frame;
    double ns;
  };
  void queue_wait(const PathStage& where, const TenantFrame& frame, std::vector<BlameCell>& cells,
                  std::vector<Backlog>* backlog);
  void account(int32_t number);
  void set_foreign();
  double longest(const TenantFrame& frame, const std::vector<double>& intrinsic) const;

  BlameAnalysis& analysis_;
  const TenantTrace& trace_;
  OperationBlame operations_;
  std::vector<std::vector<BlameCell>> pushed_;
  int64_t band_;
  double known_ns_ = 0, all_ns_ = 0, waits_ns_ = 0, unknown_ns_ = 0;
};

// What the consumer's thread did between two instants: its service delayed the push as such, its waits are handed on.
void Accountant::add_consumer(std::vector<BlameCell>& cells, int32_t stage_number, int64_t from, int64_t to,
                              int32_t queue, int depth) {
  const TenantStage& stage = trace_.stages[static_cast<size_t>(stage_number)];
  const int64_t begin = std::max(from, stage.start_ns), end = std::min(to, stage.end_ns);
  double left = static_cast<double>(end - begin);
  for (int32_t i = stage.first_operation; i < stage.first_operation + stage.operation_count; ++i) {
    const TenantOperation& operation = trace_.operations[static_cast<size_t>(i)];
    const auto overlap = [&](int64_t a, int64_t b) {
      return static_cast<double>(std::max<int64_t>(0, std::min(b, end) - std::max(a, begin)));
    };
    const auto share_of = [](double part, int64_t a, int64_t b) {
      return b > a ? part / static_cast<double>(b - a) : 0.0;
    };
    const double waiting =
        share_of(overlap(operation.ready_ns, operation.start_ns), operation.ready_ns, operation.start_ns);
    const double served = share_of(overlap(operation.start_ns, operation.end_ns), operation.start_ns, operation.end_ns);
    if (operation.is_push) {
      if (waiting <= 0) continue;
      for (const BlameCell& cell : push_cells(i, depth + 1)) {
        add_cell(cells, cell.by, cell.resource, cell.ns * waiting);
        left -= cell.ns * waiting;
      }
      continue;
    }
    // Waits for an exclusive resource lie before the start, everything else is stretch of the service.
    const bool waits = operation.start_ns > operation.ready_ns && operation.resource != kNone &&
                       trace_.resources[static_cast<size_t>(operation.resource)].kind == ResourceKind::kExclusive;
    const auto add = [&](const BlameCell& cell, double part) {
      add_cell(cells, cell.by, cell.resource, part);
      left -= part;
    };
    for (uint32_t k = operations_.first[static_cast<size_t>(i)]; k < operations_.first[static_cast<size_t>(i) + 1]; ++k)
      if (const BlameCell& cell = operations_.cells[k]; !waits || cell.resource != operation.resource)
        add(cell, cell.ns * served);
    if (!waits || waiting <= 0) continue;
    for (const BlameCell& cell : blame_wait(trace_, operations_.servers[static_cast<size_t>(operation.resource)], i,
                                            std::max(operation.ready_ns, begin), std::min(operation.start_ns, end)))
      add(cell, cell.ns);
  }
  if (left > 0) add_cell(cells, stage.tenant, queue, left);
}

const std::vector<BlameCell>& Accountant::push_cells(int32_t number, int depth) {
  std::vector<BlameCell>& cells = pushed_[static_cast<size_t>(number)];
  const TenantOperation& operation = trace_.operations[static_cast<size_t>(number)];
  constexpr int kDeepest = 16;
  if (!cells.empty() || operation.start_ns <= operation.ready_ns || operation.stage == kNone) return cells;
  const TenantStage& pushing = trace_.stages[static_cast<size_t>(operation.stage)];
  const TenantFrame& frame = trace_.frames[static_cast<size_t>(pushing.frame)];
  // The thread that took over.
  int32_t consumer = kNone;
  for (int32_t i = operation.stage + 1; i < frame.first_stage + frame.stage_count && consumer == kNone; ++i) {
    const TenantStage& next = trace_.stages[static_cast<size_t>(i)];
    for (int32_t k = next.first_edge; k < next.first_edge + next.edge_count; ++k)
      if (trace_.edges[static_cast<size_t>(k)] == operation.stage && next.lane != pushing.lane && next.cause_known)
        consumer = i;
  }
  std::vector<BlameCell> found;
  double left = static_cast<double>(operation.start_ns - operation.ready_ns);
  if (consumer != kNone && depth < kDeepest) {
    for (int32_t i = trace_.stages[static_cast<size_t>(consumer)].before_on_lane; i != kNone;
         i = trace_.stages[static_cast<size_t>(i)].before_on_lane) {
      const TenantStage& busy = trace_.stages[static_cast<size_t>(i)];
      if (busy.end_ns <= operation.ready_ns) break;
      if (busy.start_ns >= operation.start_ns) continue;
      add_consumer(found, i, operation.ready_ns, operation.start_ns, operation.resource, depth);
    }
    left -= sum(found);
  }
  const Blamed rest = consumer == kNone ? Blamed::kUnknown : Blamed::kIdle;
  if (left > 0) add_cell(found, blamed(trace_, rest), operation.resource, left);
  pushed_[static_cast<size_t>(number)] = std::move(found);
  return pushed_[static_cast<size_t>(number)];
}

void Accountant::add_operation(std::vector<BlameCell>& cells, int32_t number) {
  const TenantOperation& operation = trace_.operations[static_cast<size_t>(number)];
  const int64_t wait = operation.start_ns - operation.ready_ns;
  const bool is_dead = static_cast<double>(wait) < trace_.dead_band_ns();
  if (operation.is_push) {
    if (wait > 0 && !is_dead)
      for (const BlameCell& cell : push_cells(number, 0)) add_cell(cells, cell.by, cell.resource, cell.ns);
    return;
  }
  for (uint32_t k = operations_.first[static_cast<size_t>(number)];
       k < operations_.first[static_cast<size_t>(number) + 1]; ++k)
    add_cell(cells, operations_.cells[k].by, operations_.cells[k].resource, operations_.cells[k].ns);
  const ResourceKind kind = operation.resource == kNone
                                ? ResourceKind::kShared
                                : trace_.resources[static_cast<size_t>(operation.resource)].kind;
  // Who waits for what has no holder waits for somebody nobody knows.
  if (wait > 0 && !is_dead && kind != ResourceKind::kExclusive)
    add_cell(cells, blamed(trace_, Blamed::kUnknown), operation.resource, static_cast<double>(wait));
}

std::vector<BlameCell> Accountant::cells_of(int32_t number) {
  const TenantStage& stage = trace_.stages[static_cast<size_t>(number)];
  std::vector<BlameCell> cells = operations_.of_stage[static_cast<size_t>(number)];
  for (int32_t i = stage.first_operation; i < stage.first_operation + stage.operation_count; ++i)
    add_operation(cells, i);
  return cells;
}

// A frame waits for a thread: what that did meanwhile was its tenant's own earlier frames.
void Accountant::queue_wait(const PathStage& where, const TenantFrame& frame, std::vector<BlameCell>& cells,
                            std::vector<Backlog>* backlog) {
  const TenantStage& stage = trace_.stages[static_cast<size_t>(where.stage)];
  const int64_t from = where.from_ns, to = std::clamp(stage.start_ns, from, std::max(from, where.until_ns));
  const int32_t queue = thread_queue(trace_, frame.tenant);
  if (to - from <= band_) return;
  if (!stage.cause_known) {
    add_cell(cells, blamed(trace_, Blamed::kUnknown), queue, static_cast<double>(to - from));
    return;
  }
  int64_t left_until = to;  // what lies before it is not yet accounted for
  double unexplained = 0;
  for (int32_t i = stage.before_on_lane; i != kNone && left_until > from;
       i = trace_.stages[static_cast<size_t>(i)].before_on_lane) {
    const TenantStage& busy = trace_.stages[static_cast<size_t>(i)];
    int64_t end = std::min(busy.end_ns, left_until);
    if (end <= from) break;
    if (left_until - end <= 2 * band_) end = left_until;  // noise
    const int64_t start = std::max(busy.start_ns, from);
    if (end <= start) continue;
    unexplained += static_cast<double>(left_until - end);
    const auto held = static_cast<double>(end - start);
    add_cell(cells, busy.tenant, queue, held);
    if (backlog && busy.tenant == frame.tenant && busy.frame != stage.frame) backlog->push_back({busy.frame, held});
    left_until = start;
  }
  if (left_until - from <= 2 * band_ && left_until < to) {  // noise; to the last that was found
    add_cell(cells, frame.tenant, queue, static_cast<double>(left_until - from));
  } else {
    unexplained += static_cast<double>(left_until - from);
  }
  const Blamed nobody = trace_.lost_records > 0 ? Blamed::kUnknown : Blamed::kIdle;
  add_cell(cells, blamed(trace_, nobody), queue, unexplained);
  analysis_.stage_idle_ns[static_cast<size_t>(where.stage)] = unexplained;
}

double Accountant::longest(const TenantFrame& frame, const std::vector<double>& intrinsic) const {
  std::vector<double> ends(static_cast<size_t>(frame.stage_count), 0);
  double most = 0;
  for (size_t i = 0; i < ends.size(); ++i) {
    const TenantStage& stage = trace_.stages[static_cast<size_t>(frame.first_stage) + i];
    for (int32_t k = stage.first_edge; k < stage.first_edge + stage.edge_count; ++k)
      ends[i] = std::max(ends[i], ends[static_cast<size_t>(trace_.edges[static_cast<size_t>(k)] - frame.first_stage)]);
    ends[i] += intrinsic[i];
    most = std::max(most, ends[i]);
  }
  return most;
}

void Accountant::account(int32_t number) {
  const TenantFrame& frame = trace_.frames[static_cast<size_t>(number)];
  FrameBlame& blame = analysis_.frames[static_cast<size_t>(number)];
  const std::vector<PathStage> path = path_of(trace_, frame);
  const auto latency = static_cast<double>(frame.latency_ns());
  const int32_t unknown = blamed(trace_, Blamed::kUnknown), queue = thread_queue(trace_, frame.tenant);
  std::vector<Backlog> backlog;
  std::vector<double> intrinsic(static_cast<size_t>(frame.stage_count), 0);
  std::vector<uint8_t> on_path(static_cast<size_t>(frame.stage_count), 0);
  double cut_ns = 0;  // of stages that the path left before their end
  for (const PathStage& part : path) {
    const TenantStage& stage = trace_.stages[static_cast<size_t>(part.stage)];
    queue_wait(part, frame, blame.direct, &backlog);
    const size_t index = static_cast<size_t>(part.stage - frame.first_stage);
    on_path[index] = 1;
    const auto whole = static_cast<double>(stage.end_ns - stage.start_ns);
    const double held =
        std::clamp(static_cast<double>(part.until_ns - std::max(stage.start_ns, part.from_ns)), 0.0, whole);
    const double share = whole > 0 ? held / whole : 1;
    for (const BlameCell& cell : cells_of(part.stage)) {
      add_cell(blame.direct, cell.by, cell.resource, cell.ns * share);
      intrinsic[index] -= cell.ns;
    }
    intrinsic[index] += whole;
    cut_ns += (whole - held) * (whole > 0 ? intrinsic[index] / whole : 0);
  }
  const int64_t ended = path.empty() ? frame.arrival_ns : path.back().until_ns;
  if (frame.done_ns - ended > band_) add_cell(blame.direct, unknown, queue, static_cast<double>(frame.done_ns - ended));
  // Off the path: it delayed nothing, but counts for what the longest path would have been.
  for (int32_t i = 0; i < frame.stage_count; ++i) {
    if (on_path[static_cast<size_t>(i)]) continue;
    const int32_t stage = frame.first_stage + i;
    const TenantStage& off = trace_.stages[static_cast<size_t>(stage)];
    intrinsic[static_cast<size_t>(i)] = static_cast<double>(off.end_ns - off.start_ns);
    for (const BlameCell& cell : cells_of(stage)) {
      add_cell(blame.absorbed, cell.by, cell.resource, cell.ns);
      intrinsic[static_cast<size_t>(i)] -= cell.ns;
    }
  }
  std::erase_if(blame.direct, [](const BlameCell& cell) { return cell.ns <= 0; });
  const double delayed = sum(blame.direct);
  blame.intrinsic_path_ns = latency - delayed;
  const double comm = static_cast<double>(frame.arrival_ns - frame.stamp_ns);
  blame.intrinsic_longest_ns = std::max(blame.intrinsic_path_ns, comm + longest(frame, intrinsic) - cut_ns);

  blame.with_backlog = blame.direct;
  for (const Backlog& wait : backlog) {
    const std::vector<BlameCell>& earlier = analysis_.frames[static_cast<size_t>(wait.frame)].with_backlog;
    const double its = sum(earlier), passed = std::min(wait.ns, its);
    if (passed <= 0) continue;
    add_cell(blame.with_backlog, frame.tenant, queue, -passed);
    for (const BlameCell& cell : earlier) add_cell(blame.with_backlog, cell.by, cell.resource, cell.ns / its * passed);
  }
  constexpr double kRounding = 1e-3;
  std::erase_if(blame.with_backlog, [](const BlameCell& cell) { return cell.ns <= kRounding; });

  if (!frame.counts) return;
  double of_unknown = 0;
  for (const BlameCell& cell : blame.direct) of_unknown += cell.by == unknown ? cell.ns : 0;
  double gaps = 0;  // inside stages, where a lost operation may have been
  if (trace_.lost_records > 0)
    for (const PathPiece& piece : frame_account(trace_, number))
      if (piece.kind == PathPiece::Kind::kService && piece.operation == kNone && piece.end_ns - piece.start_ns > band_)
        gaps += static_cast<double>(piece.end_ns - piece.start_ns);
  known_ns_ -= gaps;
  waits_ns_ += delayed;
  unknown_ns_ += of_unknown;
  all_ns_ += latency;
  known_ns_ += latency - of_unknown;
}

void Accountant::set_foreign() {
  const auto tenants = static_cast<int32_t>(trace_.tenants.size());
  const auto is_core = [this](int32_t resource) {
    return resource < static_cast<int32_t>(trace_.resources.size()) &&
           trace_.resources[static_cast<size_t>(resource)].kind == ResourceKind::kCores;
  };
  analysis_.foreign_cpu_ns.assign(trace_.operations.size(), 0);
  analysis_.nobody_ns.assign(trace_.operations.size(), 0);
  analysis_.stage_idle_ns.assign(trace_.stages.size(), 0);
  analysis_.stage_foreign_ns.assign(trace_.stages.size(), 0);
  for (size_t i = 0; i < trace_.operations.size(); ++i)
    for (uint32_t k = operations_.first[i]; k < operations_.first[i + 1]; ++k)
      if (const BlameCell& cell = operations_.cells[k]; cell.by >= tenants)
        (is_core(cell.resource) ? analysis_.foreign_cpu_ns : analysis_.nobody_ns)[i] +=
            is_core(cell.resource) || cell.by >= blamed(trace_, Blamed::kIdle) ? cell.ns : 0;
  for (size_t i = 0; i < trace_.stages.size(); ++i)
    for (const BlameCell& cell : operations_.of_stage[i])
      if (cell.by >= tenants) analysis_.stage_foreign_ns[i] += cell.ns;
}

void Accountant::run() {
  analysis_.frames.resize(trace_.frames.size());
  set_foreign();
  std::vector<int32_t> order;
  for (size_t i = 0; i < trace_.frames.size(); ++i)
    if (trace_.frames[i].finished()) order.push_back(static_cast<int32_t>(i));
  const auto begun = [this](int32_t number) {
    const TenantFrame& frame = trace_.frames[static_cast<size_t>(number)];
    return frame.stage_count > 0 ? trace_.stages[static_cast<size_t>(frame.first_stage)].start_ns : frame.arrival_ns;
  };
  // An earlier frame's blame is known before it is handed on.
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return begun(a) < begun(b); });
  for (const int32_t number : order) account(number);

  analysis_.intrinsic_ns = std::move(operations_.intrinsic_ns);
  analysis_.blocker = std::move(operations_.blocker);
  analysis_.estimated = std::move(operations_.estimated);
  analysis_.beside_idle_ns = operations_.beside_idle_ns;
  for (const auto& [program, ns] : operations_.programs)
    analysis_.programs.emplace_back(trace_.programs[static_cast<size_t>(program)], ns);
  std::stable_sort(analysis_.programs.begin(), analysis_.programs.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  analysis_.unmeasured_pairs = operations_.unmeasured_pairs;
  BlameGates& gates = analysis_.gates;
  gates.lost_records = trace_.lost_records + trace_.operations_without_stage + trace_.stages_without_frame;
  gates.operations = trace_.operations.size();
  gates.contradictions = trace_.contradictions + operations_.contradictions;
  if (trace_.edges_wanted > 0)
    gates.edges_known = static_cast<double>(trace_.edges_recorded) / static_cast<double>(trace_.edges_wanted);
  gates.sigma_known = trace_.sigma_ns.has_value();
  gates.sigma_ns = trace_.sigma_ns.value_or(0);
  gates.unknown_share = waits_ns_ > 0 ? unknown_ns_ / waits_ns_ : 0;
  // Time that two records tell differently is known of neither.
  const double known = known_ns_ - static_cast<double>(operations_.contradicted_ns);
  gates.known_state = all_ns_ > 0 ? std::max(0.0, known / all_ns_) : 1;
}

}  // namespace

BlameAnalysis blame(TenantTrace trace) {
  BlameAnalysis analysis;
  analysis.trace = std::move(trace);
  Accountant(analysis).run();
  return analysis;
}

std::vector<PathPiece> frame_account(const TenantTrace& trace, int32_t number) {
  const TenantFrame& frame = trace.frames[static_cast<size_t>(number)];
  std::vector<PathPiece> pieces;
  int64_t at = frame.stamp_ns;
  const auto emit = [&](PathPiece::Kind kind, int64_t to, int32_t stage, int32_t operation) {
    if (to <= at) return;
    pieces.push_back({kind, at, to, stage, operation});
    at = to;
  };
  emit(PathPiece::Kind::kComm, frame.arrival_ns, kNone, kNone);
  for (const PathStage& part : path_of(trace, frame)) {
    const TenantStage& stage = trace.stages[static_cast<size_t>(part.stage)];
    const auto until = [&](int64_t time) { return std::min(time, part.until_ns); };
    emit(PathPiece::Kind::kQueue, until(stage.start_ns), part.stage, kNone);
    for (int32_t i = stage.first_operation; i < stage.first_operation + stage.operation_count; ++i) {
      const TenantOperation& operation = trace.operations[static_cast<size_t>(i)];
      // What an operation leaves around those inside it is its own.
      emit(PathPiece::Kind::kService, until(operation.ready_ns), part.stage, operation.inside);
      emit(PathPiece::Kind::kWait, until(operation.start_ns), part.stage, i);
      const bool is_outer = i + 1 < stage.first_operation + stage.operation_count &&
                            trace.operations[static_cast<size_t>(i) + 1].inside == i;
      if (!is_outer) emit(PathPiece::Kind::kService, until(operation.end_ns), part.stage, i);
    }
    emit(PathPiece::Kind::kService, until(stage.end_ns), part.stage, kNone);
  }
  emit(PathPiece::Kind::kEnd, frame.done_ns, kNone, kNone);
  return pieces;
}

}  // namespace strobe::analyze
