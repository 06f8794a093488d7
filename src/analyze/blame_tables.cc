#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "analyze/blame.h"
#include "analyze/cells.h"
#include "analyze/notes.h"
#include "base/statistics.h"

namespace strobe::analyze {

using trace::kNone;

namespace {

constexpr double kMs = 1e6;

struct Group {
  std::vector<int32_t> frames;  // of which the cells are added
  std::vector<int32_t> minus;   // and of which they are taken off (means)
};

bool is_miss(const TenantFrame& frame) {
  return frame.deadline_ns > 0 && frame.latency_ns() > frame.deadline_ns;
}

std::vector<Group> groups_of(const TenantTrace& trace, BlameOf what) {
  std::vector<Group> groups(trace.tenants.size());
  for (size_t i = 0; i < trace.frames.size(); ++i) {
    const TenantFrame& frame = trace.frames[i];
    if (!frame.finished() || !frame.counts || (what == BlameOf::kMisses && !is_miss(frame))) continue;
    groups[static_cast<size_t>(frame.tenant)].frames.push_back(static_cast<int32_t>(i));
  }
  if (what != BlameOf::kTail) return groups;
  for (Group& group : groups) {
    std::vector<int32_t> order = std::move(group.frames);
    std::stable_sort(order.begin(), order.end(), [&trace](int32_t a, int32_t b) {
      return trace.frames[static_cast<size_t>(a)].latency_ns() < trace.frames[static_cast<size_t>(b)].latency_ns();
    });
    const size_t count = order.size(), top = std::max<size_t>(1, count / 100);
    group.frames.clear();
    if (count < 4) continue;
    group.frames.assign(order.end() - static_cast<std::ptrdiff_t>(top), order.end());
    group.minus.assign(order.begin() + static_cast<std::ptrdiff_t>(count / 4),
                       order.begin() + static_cast<std::ptrdiff_t>(count * 3 / 4));
  }
  return groups;
}

void merge(std::vector<BlameCell>& into, const std::vector<BlameCell>& cells, double weight) {
  for (const BlameCell& cell : cells) {
    const auto found = std::find_if(into.begin(), into.end(), [&cell](const BlameCell& other) {
      return other.by == cell.by && other.resource == cell.resource;
    });
    if (found == into.end())
      into.push_back({cell.by, cell.resource, cell.ns * weight});
    else
      found->ns += cell.ns * weight;
  }
}

const char* title_of(BlameOf what) {
  switch (what) {
    case BlameOf::kAll:
      return "Who delayed whom";
    case BlameOf::kMisses:
      return "Who delayed the frames that missed their deadline";
    case BlameOf::kTail:
      return "What makes the tail: the slowest 1 % of frames less the middle half";
  }
  return "";
}

std::string milliseconds(double ns) {
  const double ms = ns / kMs;
  char text[32];
  std::snprintf(text, sizeof text, ms < 0.1 ? "%.3f ms" : ms < 10 ? "%.2f ms" : "%.1f ms", ms);
  return text;
}

// "a 0.38 ms, b 0.50 ms": what a frame of theirs waited for a core beside an idle one, where it is worth a word.
std::string beside_idle_cores(const BlameAnalysis& analysis) {
  constexpr double kWorthIt = 0.01;  // of the latency
  const TenantTrace& trace = analysis.trace;
  std::vector<double> latency(trace.tenants.size(), 0), frames(trace.tenants.size(), 0);
  for (const TenantFrame& frame : trace.frames) {
    if (!frame.finished() || !frame.counts) continue;
    latency[static_cast<size_t>(frame.tenant)] += static_cast<double>(frame.latency_ns());
    ++frames[static_cast<size_t>(frame.tenant)];
  }
  std::string text;
  for (size_t i = 0; i < analysis.beside_idle_ns.size(); ++i)
    if (analysis.beside_idle_ns[i] > 0 && analysis.beside_idle_ns[i] >= kWorthIt * latency[i])
      text += (text.empty() ? "" : ", ") + trace.tenants[i].name + " " +
              milliseconds(analysis.beside_idle_ns[i] / frames[i]);
  return text;
}

void add_notes(const BlameAnalysis& analysis, Table& table) {
  table.coverage = analysis.gates.known_state;
  const std::vector<std::string> reasons = analysis.gates.reasons();
  if (!reasons.empty()) {
    std::string text = "who is named was there while it happened, no more may be said: ";
    for (size_t i = 0; i < reasons.size(); ++i) text += (i == 0 ? "" : "; ") + reasons[i];
    table.notes.push_back(std::move(text));
  }
  if (analysis.gates.exploratory())
    table.notes.emplace_back("exploratory: clock noise above 20 us moves time between cells");
  std::string estimated;
  for (size_t i = 0; i < analysis.estimated.size(); ++i)
    if (analysis.estimated[i]) estimated += (estimated.empty() ? "" : ", ") + analysis.trace.resources[i].name;
  if (!estimated.empty())
    table.notes.push_back("estimated: of waits for a core (" + estimated +
                          ") the total is the kernel's, the split is by the others' CPU time" +
                          (analysis.trace.core_runs_off.empty() ? "" : "; " + analysis.trace.core_runs_off));
  if (const std::string waited = beside_idle_cores(analysis); !waited.empty())
    table.notes.push_back(
        "a frame waited for a core although another one was idle: " + waited +
        "; a thread may be woken up on the core of the one that wakes it: cores of its own avoid that");
  if (!analysis.programs.empty()) {
    constexpr size_t kMostNamed = 5;
    std::string text = "system: while these ran, stages waited for a core:";
    for (size_t i = 0; i < std::min(kMostNamed, analysis.programs.size()); ++i)
      text += (i == 0 ? " " : ", ") + analysis.programs[i].first + " " + milliseconds(analysis.programs[i].second);
    if (analysis.programs.size() > kMostNamed)
      text += " and " + std::to_string(analysis.programs.size() - kMostNamed) + " more";
    table.notes.push_back(std::move(text));
  }
  if (analysis.unmeasured_pairs > 0)
    table.notes.emplace_back(
        "operations ran beside each other whose slow-down was never measured: it is missing here (--calibration FILE)");
}

Cell rounded(double ns) {
  return int64_t{std::llround(ns)};
}

const BlameCell* cell_of(const std::vector<BlameCell>& cells, const BlameCell& like) {
  for (const BlameCell& cell : cells)
    if (cell.by == like.by && cell.resource == like.resource) return &cell;
  return nullptr;
}

}  // namespace

BlameSum sum_blame(const BlameAnalysis& analysis, BlameOf what) {
  const TenantTrace& trace = analysis.trace;
  const size_t count = trace.tenants.size();
  BlameSum sum;
  for (auto* cells : {&sum.direct, &sum.with_backlog, &sum.absorbed}) cells->resize(count);
  for (auto* values : {&sum.delay_ns, &sum.latency_ns, &sum.excess_ns, &sum.switching_ns}) values->assign(count, 0);
  const std::vector<Group> groups = groups_of(trace, what);
  for (size_t i = 0; i < count; ++i) {
    const auto add = [&](const std::vector<int32_t>& frames, double weight) {
      for (const int32_t number : frames) {
        const FrameBlame& blame = analysis.frames[static_cast<size_t>(number)];
        const auto latency = static_cast<double>(trace.frames[static_cast<size_t>(number)].latency_ns());
        merge(sum.direct[i], blame.direct, weight);
        merge(sum.with_backlog[i], blame.with_backlog, weight);
        merge(sum.absorbed[i], blame.absorbed, weight);
        sum.latency_ns[i] += weight * latency;
        sum.excess_ns[i] += weight * blame.excess_ns(latency);
        sum.switching_ns[i] += weight * blame.switching_ns();
        sum.delay_ns[i] += weight * (latency - blame.intrinsic_path_ns);
      }
    };
    sum.frames.push_back(groups[i].frames.size());
    const bool means = what == BlameOf::kTail;
    add(groups[i].frames, means && !groups[i].frames.empty() ? 1 / static_cast<double>(groups[i].frames.size()) : 1);
    if (!groups[i].minus.empty()) add(groups[i].minus, -1 / static_cast<double>(groups[i].minus.size()));
    for (auto* cells : {&sum.direct[i], &sum.with_backlog[i], &sum.absorbed[i]})
      std::stable_sort(cells->begin(), cells->end(),
                       [](const BlameCell& a, const BlameCell& b) { return a.ns > b.ns; });
  }
  return sum;
}

Table blame_matrix(const BlameAnalysis& analysis, BlameOf what, bool with_backlog) {
  const TenantTrace& trace = analysis.trace;
  const BlameSum sum = sum_blame(analysis, what);
  const auto& cells = with_backlog ? sum.with_backlog : sum.direct;
  const size_t tenants = trace.tenants.size();
  std::vector<uint8_t> used(tenants + kBlamedCount, 0);
  for (size_t i = 0; i < tenants; ++i) {
    used[i] = 1;
    for (const BlameCell& cell : cells[i]) used[static_cast<size_t>(cell.by)] = 1;
  }
  std::vector<Column> columns{{"tenant", "whose frames"},
                              {"frames", "that finished"},
                              {"latency_ms", "a frame"},
                              {"delay_ms", "of it: waits and stretch, the sum of what follows"}};
  constexpr int32_t kNobody = -2;
  std::vector<int32_t> by;
  for (size_t i = 0; i < used.size(); ++i) {
    if (!used[i]) continue;
    by.push_back(static_cast<int32_t>(i));
    columns.push_back({"by_" + blamed_name(trace, by.back(), kNobody), "ms a frame", 2});
  }
  columns.push_back({"most_on", "the resource with most of the delay"});
  Table table(title_of(what), std::move(columns));
  for (size_t i = 0; i < tenants; ++i) {
    if (sum.frames[i] == 0) continue;
    const double frames = what == BlameOf::kTail ? 1 : static_cast<double>(sum.frames[i]);
    std::vector<Cell> row{trace.tenants[i].name, static_cast<int64_t>(sum.frames[i]), sum.latency_ns[i] / frames / kMs,
                          sum.delay_ns[i] / frames / kMs};
    for (const int32_t who : by) {
      double ns = 0;
      for (const BlameCell& cell : cells[i]) ns += cell.by == who ? cell.ns : 0;
      row.push_back(cell_if(ns != 0, ns / frames / kMs));
    }
    std::vector<BlameCell> by_resource;
    for (const BlameCell& cell : cells[i]) merge(by_resource, {{0, cell.resource, cell.ns}}, 1);
    const auto most = std::max_element(by_resource.begin(), by_resource.end(),
                                       [](const BlameCell& a, const BlameCell& b) { return a.ns < b.ns; });
    row.push_back(cell(most == by_resource.end() || most->ns <= 0 ? "" : blamed_resource_name(trace, most->resource)));
    table.add_row(std::move(row));
  }
  add_notes(analysis, table);
  return table;
}

Table blame_cells(const BlameAnalysis& analysis, BlameOf what) {
  const TenantTrace& trace = analysis.trace;
  const BlameSum sum = sum_blame(analysis, what);
  Table table(title_of(what), {{"tenant", "whose frames"},
                               {"by", "who held what was waited for"},
                               {"resource", "what was waited for"},
                               {"ns", "on the critical path of its frames"},
                               {"with_backlog_ns", "the same, waits for earlier frames handed on"},
                               {"absorbed_ns", "off the path: delayed nothing"},
                               {"share", "of the tenant's delay"},
                               {"estimated", "1: split by others' CPU time"}});
  for (size_t i = 0; i < trace.tenants.size(); ++i) {
    std::vector<BlameCell> keys = sum.direct[i];
    for (const auto* more : {&sum.with_backlog[i], &sum.absorbed[i]})
      for (const BlameCell& cell : *more)
        if (!cell_of(keys, cell)) keys.push_back({cell.by, cell.resource, 0});
    for (const BlameCell& key : keys) {
      const BlameCell *with = cell_of(sum.with_backlog[i], key), *absorbed = cell_of(sum.absorbed[i], key);
      const bool estimated = static_cast<size_t>(key.resource) < analysis.estimated.size() &&
                             analysis.estimated[static_cast<size_t>(key.resource)];
      table.add_row({trace.tenants[i].name, blamed_name(trace, key.by, static_cast<int32_t>(i)),
                     blamed_resource_name(trace, key.resource), rounded(key.ns), rounded(with ? with->ns : 0),
                     rounded(absorbed ? absorbed->ns : 0), cell_if(sum.delay_ns[i] > 0, key.ns / sum.delay_ns[i]),
                     int64_t{estimated ? 1 : 0}});
    }
  }
  add_notes(analysis, table);
  return table;
}

Table blame_by_frame(const BlameAnalysis& analysis, bool misses_only) {
  const TenantTrace& trace = analysis.trace;
  Table table(misses_only ? "Blame of each deadline miss" : "Blame of each frame",
              {{"tenant", "whose frame"},
               {"frame", "its number"},
               {"latency_ms", "stamp to done"},
               {"late_ms", "beyond its deadline"},
               {"by", "who held what was waited for"},
               {"resource", "what was waited for"},
               {"ns", "on the frame's critical path"},
               {"with_backlog_ns", "the same, waits for earlier frames handed on"}});
  for (size_t i = 0; i < trace.frames.size(); ++i) {
    const TenantFrame& frame = trace.frames[i];
    if (!frame.finished() || !frame.counts || (misses_only && !is_miss(frame))) continue;
    const FrameBlame& blame = analysis.frames[i];
    std::vector<BlameCell> keys = blame.direct;
    for (const BlameCell& cell : blame.with_backlog)
      if (!cell_of(keys, cell)) keys.push_back({cell.by, cell.resource, 0});
    const double late = static_cast<double>(frame.latency_ns() - frame.deadline_ns) / kMs;
    for (const BlameCell& key : keys) {
      const BlameCell* with = cell_of(blame.with_backlog, key);
      table.add_row({trace.tenants[static_cast<size_t>(frame.tenant)].name, frame.id,
                     static_cast<double>(frame.latency_ns()) / kMs, cell_if(frame.deadline_ns > 0, std::max(0.0, late)),
                     blamed_name(trace, key.by, frame.tenant), blamed_resource_name(trace, key.resource),
                     rounded(key.ns), rounded(with ? with->ns : 0)});
    }
  }
  add_notes(analysis, table);
  return table;
}

std::vector<std::string> blame_sentences(const BlameAnalysis& analysis) {
  const TenantTrace& trace = analysis.trace;
  const BlameSum sum = sum_blame(analysis, BlameOf::kAll);
  const std::string word = analysis.gates.because() ? "because" : "while";
  std::vector<std::string> sentences;
  for (size_t i = 0; i < trace.tenants.size(); ++i) {
    if (sum.frames[i] == 0) {
      sentences.push_back(trace.tenants[i].name + ": no frame finished.");
      continue;
    }
    const auto frames = static_cast<double>(sum.frames[i]);
    const double latency = sum.latency_ns[i] / frames, delay = sum.delay_ns[i] / frames;
    std::string text = trace.tenants[i].name + ": a frame takes " + milliseconds(latency);
    constexpr double kNothing = 0.01;
    if (delay < kNothing * latency) {
      sentences.push_back(text + ", almost all of it its own work.");
      continue;
    }
    text += ", " + milliseconds(delay) + " of it waiting";
    const std::vector<BlameCell>& cells = sum.with_backlog[i];
    constexpr size_t kMostNamed = 2;
    size_t named = 0;
    for (const BlameCell& cell : cells) {
      if (named == kMostNamed || cell.ns < 0.1 * sum.delay_ns[i]) break;
      const std::string by = blamed_name(trace, cell.by, static_cast<int32_t>(i));
      const std::string resource = blamed_resource_name(trace, cell.resource);
      const std::string time = milliseconds(cell.ns / frames);
      text += named == 0 ? ": " : ", ";
      if (by == "unknown")
        text += time + " for " + resource + ", nobody knows whose";
      else if (by == "idle")
        text += time + " for " + resource + " that nobody held";
      else if (by == "self")
        text += time + " " + word + " its own earlier work held " + resource;
      else
        text += time + " " + word + " " + by + " held " + resource;
      ++named;
    }
    sentences.push_back(text + ".");
  }
  return sentences;
}

}  // namespace strobe::analyze
