#include "exporters/csv.h"

#include <unistd.h>

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "exporters/byte_sink.h"
#include "exporters/names.h"
#include "exporters/text.h"

namespace strobe::exporters {

namespace fs = std::filesystem;

namespace {

using trace::StringId;
using trace::Timeline;

class Rows {
 public:
  explicit Rows(ByteSink& sink) : sink_(sink) {}

  void header(std::string_view names) { sink_.append(std::string(names) + "\r\n"); }
  Rows& text(std::string_view value) {
    comma();
    clean_.clear();
    append_utf8(clean_, value);
    // Spaces at the ends stay with every reader only inside quotes.
    const bool outer_space = !clean_.empty() && (clean_.front() == ' ' || clean_.back() == ' ');
    if (!outer_space && clean_.find_first_of(",\"\r\n") == std::string::npos) {
      sink_.append(clean_);
      return *this;
    }
    std::string& out = sink_.buffer();
    out += '"';
    for (const char c : clean_) {
      if (c == '"') out += '"';
      out += c;
    }
    out += '"';
    return *this;
  }
  Rows& number(int64_t value) {
    comma();
    append(sink_.buffer(), value);
    return *this;
  }
  Rows& real(double value) {
    comma();
    append(sink_.buffer(), value);
    return *this;
  }
  // Empty where there is none.
  Rows& number_or_none(bool known, int64_t value) { return known ? number(value) : text({}); }
  void end() {
    sink_.append("\r\n");
    first_ = true;
    sink_.flush_if_full();
  }

 private:
  void comma() {
    if (!std::exchange(first_, false)) sink_.buffer() += ',';
  }

  ByteSink& sink_;
  std::string clean_;
  bool first_ = true;
};

void processes(const Timeline& timeline, Rows& rows) {
  rows.header("pid,name");
  for (const trace::Process& process : timeline.processes)
    rows.number(process.pid).text(timeline.strings[process.name]).end();
}

void lanes(const Timeline& timeline, Rows& rows) {
  constexpr std::string_view kKinds[] = {"thread", "stream", "copy engine"};
  rows.header("lane,kind,pid,tid,name,device,context");
  for (size_t i = 0; i < timeline.lanes.size(); ++i) {
    const trace::Lane& lane = timeline.lanes[i];
    rows.number(static_cast<int64_t>(i)).text(kKinds[static_cast<size_t>(lane.kind)]).number(lane.pid).number(lane.tid);
    rows.text(timeline.strings[lane.name]).number_or_none(lane.device != trace::kNone, lane.device);
    rows.number_or_none(lane.context != trace::kNone, lane.context).end();
  }
}

void ranges(const Timeline& timeline, Rows& rows) {
  rows.header(
      "range,kind,name,category,domain,start_ns,end_ns,duration_ns,lane,pid,tid,frame,parent,is_async,open,"
      "correlation");
  const trace::Ranges& all = timeline.ranges;
  size_t call = 0, op = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    const auto lane_index = static_cast<size_t>(all.lane[i]);
    const auto range = static_cast<int32_t>(i);
    rows.number(range).text(name_of(all.kind[i])).text(timeline.strings[all.name[i]]);
    rows.text(timeline.strings[all.category_of(i)]).text(timeline.strings[all.domain_of(i)]);
    rows.number(all.start_ns[i]).number(all.end_ns[i]).number(all.end_ns[i] - all.start_ns[i]).number(all.lane[i]);
    rows.number(timeline.lanes[lane_index].pid).number(timeline.lanes[lane_index].tid);
    rows.number_or_none(all.frame[i] != trace::kNoFrame, all.frame[i]);
    rows.number_or_none(all.parent[i] != trace::kNone, all.parent[i]);
    rows.number(all.is_async[i]).number(all.open[i]);
    int64_t correlation = 0;
    for (; call < timeline.api_calls.size() && timeline.api_calls[call].range <= range; ++call)
      if (timeline.api_calls[call].range == range) correlation = timeline.api_calls[call].correlation;
    for (; op < timeline.device_ops.size() && timeline.device_ops[op].range <= range; ++op)
      if (timeline.device_ops[op].range == range) correlation = timeline.device_ops[op].correlation;
    rows.number_or_none(correlation != 0, correlation).end();
  }
}

void arguments(const Timeline& timeline, Rows& rows) {
  rows.header("of,row,key,type,value");
  const auto write = [&](std::string_view of, int32_t row, StringId key, const auto& value) {
    constexpr std::string_view kTypes[] = {"int", "double", "text"};
    rows.text(of).number(row).text(timeline.strings[key]).text(kTypes[value.index()]);
    if (const auto* whole = std::get_if<0>(&value)) {
      rows.number(*whole);
    } else if (const auto* real = std::get_if<1>(&value)) {
      rows.real(*real);
    } else {
      rows.text(timeline.strings[std::get<2>(value)]);
    }
    rows.end();
  };
  const trace::Arguments& of_ranges = timeline.arguments;
  for (size_t i = 0; i < of_ranges.size(); ++i)
    write("range", of_ranges.range[i], of_ranges.key[i], of_ranges.value[i]);
  const trace::MarkArguments& of_marks = timeline.mark_arguments;
  for (size_t i = 0; i < of_marks.size(); ++i) write("mark", of_marks.mark[i], of_marks.key[i], of_marks.value[i]);
}

void marks(const Timeline& timeline, Rows& rows) {
  rows.header("mark,name,category,domain,time_ns,lane,frame");
  const trace::Marks& all = timeline.marks;
  for (size_t i = 0; i < all.size(); ++i) {
    rows.number(static_cast<int64_t>(i)).text(timeline.strings[all.name[i]]);
    rows.text(timeline.strings[all.category_of(i)]).text(timeline.strings[all.domain_of(i)]).number(all.time_ns[i]);
    rows.number_or_none(all.lane[i] != trace::kNone, all.lane[i]);
    rows.number_or_none(all.frame[i] != trace::kNoFrame, all.frame[i]).end();
  }
}

void flows(const Timeline& timeline, Rows& rows) {
  rows.header("name,from_ns,to_ns,from_range,to_range,from_lane,to_lane");
  const trace::Flows& all = timeline.flows;
  const auto index = [&rows](int32_t value) { rows.number_or_none(value != trace::kNone, value); };
  for (size_t i = 0; i < all.size(); ++i) {
    rows.text(timeline.strings[all.name[i]]).number(all.from_ns[i]).number(all.to_ns[i]);
    for (const auto* column : {&all.from_range, &all.to_range, &all.from_lane, &all.to_lane}) index((*column)[i]);
    rows.end();
  }
}

void counters(const Timeline& timeline, Rows& rows) {
  rows.header("time_ns,name,pid,lane,value");
  const trace::Counters& all = timeline.counters;
  for (size_t i = 0; i < all.size(); ++i) {
    rows.number(all.time_ns[i]).text(timeline.strings[all.name[i]]).number(all.pid[i]);
    rows.number_or_none(all.lane_of(i) != trace::kNone, all.lane_of(i)).real(all.value[i]).end();
  }
}

void device(const Timeline& timeline, Rows& rows) {
  rows.header(
      "range,kind,launch,correlation,bytes,copy,from_memory,to_memory,sync,sync_stream,sync_correlation,grid_x,grid_y,"
      "grid_z,block_x,block_y,block_z,registers,static_shared_bytes,dynamic_shared_bytes");
  for (const trace::DeviceOp& op : timeline.device_ops) {
    rows.number(op.range).text(name_of(timeline.ranges.kind[static_cast<size_t>(op.range)]));
    rows.number_or_none(op.launch != trace::kNone, op.launch).number_or_none(op.correlation != 0, op.correlation);
    rows.number_or_none(op.bytes >= 0, op.bytes).text(name_of(kCopyKinds, op.copy_kind));
    rows.text(name_of(kMemoryKinds, op.source_kind)).text(name_of(kMemoryKinds, op.target_kind));
    rows.text(name_of(kSyncKinds, op.sync_type)).number_or_none(op.sync_stream != trace::kNone, op.sync_stream);
    rows.number_or_none(op.sync_correlation != 0, op.sync_correlation);
    for (const auto& sizes : {op.grid, op.block})
      for (int axis = 0; axis < 3; ++axis) rows.number_or_none(sizes[axis] != 0, sizes[axis]);
    for (const int32_t value : {op.registers, op.static_shared, op.dynamic_shared})
      rows.number_or_none(value >= 0, value);
    rows.end();
  }
}

void layers(const Timeline& timeline, Rows& rows) {
  rows.header("layer,name,type,shape,parameters,flop,bytes");
  for (size_t i = 0; i < timeline.layers.size(); ++i) {
    const trace::NetworkLayer& layer = timeline.layers[i];
    rows.number(static_cast<int64_t>(i)).text(timeline.strings[layer.name]).text(timeline.strings[layer.type]);
    rows.text(timeline.strings[layer.shape]).number(layer.parameters).number(layer.flop).number(layer.bytes).end();
  }
}

// Lists stand in one field, with spaces between.
void kernels(const Timeline& timeline, Rows& rows) {
  rows.header("kernel,name,type,implementation,layers,durations_ns");
  const auto list = [&rows](const auto& values) {
    std::string text;
    for (const auto value : values) text.append(text.empty() ? "" : " ").append(std::to_string(value));
    rows.text(text);
  };
  for (size_t i = 0; i < timeline.kernels.size(); ++i) {
    const trace::NetworkKernel& kernel = timeline.kernels[i];
    rows.number(static_cast<int64_t>(i)).text(timeline.strings[kernel.name]).text(timeline.strings[kernel.type]);
    rows.text(timeline.strings[kernel.implementation]);
    list(kernel.layers);
    list(kernel.duration_ns);
    rows.end();
  }
}

void facts(const Timeline& timeline, Rows& rows) {
  rows.header("name,value");
  rows.text("trace.utc_start_ns").number(timeline.utc_start_ns).end();
  rows.text("trace.duration_ns").number(timeline.duration_ns).end();
  for (const auto& [name, value] : timeline.facts) rows.text(name).text(value).end();
}

void losses(const Timeline& timeline, Rows& rows) {
  rows.header("kind,name,count");
  if (timeline.losses.dropped_records > 0)
    rows.text("dropped").text("records").text(std::to_string(timeline.losses.dropped_records)).end();
  for (const auto& [name, count] : timeline.losses.faults)
    rows.text("fault").text(name).text(std::to_string(count)).end();
}

void table(const Table& one, Rows& rows) {
  for (const Column& column : one.columns()) rows.text(column.name);
  rows.end();
  for (const auto& row : one.rows()) {
    for (const Cell& cell : row) {
      if (const auto* whole = std::get_if<int64_t>(&cell)) {
        rows.number(*whole);
      } else if (const auto* real = std::get_if<double>(&cell)) {
        rows.real(*real);
      } else {
        const auto* text = std::get_if<std::string>(&cell);
        rows.text(text != nullptr ? *text : std::string());
      }
    }
    rows.end();
  }
}

using File = std::pair<std::string, std::function<void(Rows& rows)>>;

std::vector<File> files_of(const Timeline& timeline) {
  using Write = void (*)(const Timeline&, Rows&);
  std::vector<File> files;
  for (const auto& [name, write] : std::initializer_list<std::pair<const char*, Write>>{{"processes.csv", processes},
                                                                                        {"lanes.csv", lanes},
                                                                                        {"ranges.csv", ranges},
                                                                                        {"arguments.csv", arguments},
                                                                                        {"marks.csv", marks},
                                                                                        {"flows.csv", flows},
                                                                                        {"counters.csv", counters},
                                                                                        {"device.csv", device},
                                                                                        {"layers.csv", layers},
                                                                                        {"kernels.csv", kernels},
                                                                                        {"facts.csv", facts},
                                                                                        {"losses.csv", losses}})
    files.emplace_back(name, [&timeline, write = write](Rows& rows) { write(timeline, rows); });
  files.emplace_back("tables.csv", [&timeline](Rows& rows) {
    rows.header("file,title,notes");
    for (size_t i = 0; i < timeline.tables.size(); ++i) {
      std::string notes;
      for (const std::string& note : timeline.tables[i].notes) notes.append(notes.empty() ? "" : "\n").append(note);
      rows.text("table_" + std::to_string(i + 1) + ".csv").text(timeline.tables[i].title()).text(notes).end();
    }
  });
  for (size_t i = 0; i < timeline.tables.size(); ++i)
    files.emplace_back("table_" + std::to_string(i + 1) + ".csv",
                       [&timeline, i](Rows& rows) { table(timeline.tables[i], rows); });
  return files;
}

// Removed with what is in it, unless it has been renamed.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(fs::path path) : path_(std::move(path)) {}
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

Result<void> write_folder(const Timeline& timeline, const fs::path& output) {
  std::error_code code;
  if (fs::exists(output, code) && !fs::is_directory(output, code))
    return io_error(output.string() + ": is a file; expected the name of a folder, or of a file that ends in .csv");
  STROBE_TRY(make_writable_folder(output));
  // Inside the folder, so that a rename stays on one file system.
  const TemporaryFolder temporary(output / (".part-" + std::to_string(::getpid())));
  STROBE_TRY(make_writable_folder(temporary.path()));
  const std::vector<File> files = files_of(timeline);
  for (const auto& [name, write] : files)
    STROBE_TRY(write_whole_file(temporary.path() / name, false, [&write = write](ByteSink& sink) {
      Rows rows(sink);
      write(rows);
    }));
  for (const auto& [name, write] : files) {
    fs::rename(temporary.path() / name, output / name, code);
    if (code) return io_error((output / name).string() + ": " + code.message());
  }
  return {};
}

}  // namespace

Result<void> write_csv(const Timeline& timeline, const fs::path& output) {
  std::error_code ignored;
  if (output.extension() != ".csv" || fs::is_directory(output, ignored)) return write_folder(timeline, output);
  return write_whole_file(output, false, [&timeline](ByteSink& sink) {
    Rows rows(sink);
    ranges(timeline, rows);
  });
}

}  // namespace strobe::exporters
