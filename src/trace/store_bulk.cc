#include "trace/store_bulk.h"

#include "trace/bulk_table.h"

namespace strobe::trace {

namespace {

class Writer {
 public:
  Writer(const Timeline& timeline, BulkFile& file, const RootPages& roots)
      : timeline_(timeline), file_(file), roots_(roots) {}

  Result<void> write() {
    STROBE_TRY(write_ranges());
    STROBE_TRY(write_device_ops());
    STROBE_TRY(write_captures());
    STROBE_TRY(write_api_calls());
    STROBE_TRY(write_marks());
    STROBE_TRY(write_arguments("STROBE_ARGUMENT", timeline_.arguments, timeline_.arguments.range));
    STROBE_TRY(write_arguments("STROBE_MARK_ARGUMENT", timeline_.mark_arguments, timeline_.mark_arguments.mark));
    STROBE_TRY(write_flows());
    STROBE_TRY(write_counters());
    STROBE_TRY(write_counter_lanes());
    STROBE_TRY(write_categories("STROBE_RANGE_CATEGORY", timeline_.ranges));
    return write_categories("STROBE_MARK_CATEGORY", timeline_.marks);
  }

 private:
  BulkTable table(const char* name) { return file_.table(roots_.at(name)); }

  Result<void> write_ranges() {
    const Ranges& ranges = timeline_.ranges;
    BulkTable table = this->table("STROBE_RANGE");
    for (size_t i = 0; i < ranges.size(); ++i) {
      table.row(static_cast<int64_t>(i));
      table.null();
      table.integer(i < ranges.kind.size() ? static_cast<int64_t>(ranges.kind[i]) : 0);
      table.integer(ranges.lane[i]);
      table.integer(ranges.start_ns[i]);
      table.integer(ranges.end_ns[i]);
      table.integer(ranges.name[i]);
      table.integer_unless(ranges.frame[i], kNoFrame);
      table.integer(ranges.open[i]);
      table.integer(ranges.is_async[i]);
    }
    return table.finish();
  }

  Result<void> write_device_ops() {
    BulkTable table = this->table("STROBE_DEVICE_OP");
    for (const DeviceOp& op : timeline_.device_ops) {
      table.row(op.range);
      table.null();
      table.integer_unless(op.launch, kNone);
      table.integer_unless(op.correlation, 0);
      table.integer_unless(op.bytes, -1);
      for (const uint8_t value : {op.copy_kind, op.source_kind, op.target_kind, op.sync_type}) table.integer(value);
      table.integer_unless(op.sync_stream, kNone);
      table.integer_unless(op.sync_correlation, 0);
      for (const uint32_t size : op.grid) table.integer(size);
      for (const uint32_t size : op.block) table.integer(size);
      for (const int32_t value : {op.registers, op.static_shared, op.dynamic_shared}) table.integer_unless(value, -1);
    }
    return table.finish();
  }

  Result<void> write_captures() {
    BulkTable table = this->table("STROBE_CAPTURE");
    for (const DeviceOp& op : timeline_.device_ops) {
      if (op.capture == kNone) continue;
      table.row(op.range);
      table.null();
      table.integer(op.capture);
    }
    return table.finish();
  }

  Result<void> write_api_calls() {
    BulkTable table = this->table("STROBE_API_CALL");
    for (const ApiCall& call : timeline_.api_calls) {
      table.row(call.range);
      table.null();
      table.integer_unless(call.correlation, 0);
    }
    return table.finish();
  }

  Result<void> write_marks() {
    const Marks& marks = timeline_.marks;
    BulkTable table = this->table("STROBE_MARK");
    for (size_t i = 0; i < marks.size(); ++i) {
      table.row(static_cast<int64_t>(i));
      table.null();
      table.integer(marks.time_ns[i]);
      table.integer(marks.name[i]);
      table.integer(marks.lane[i]);
      table.integer_unless(marks.frame[i], kNoFrame);
    }
    return table.finish();
  }

  // owners: of ranges or marks.
  template <typename Rows>
  Result<void> write_arguments(const char* name, const Rows& arguments, const std::vector<int32_t>& owners) {
    BulkTable table = this->table(name);
    for (size_t i = 0; i < arguments.size(); ++i) {
      table.row(static_cast<int64_t>(i) + 1);
      table.integer(owners[i]);
      table.integer(arguments.key[i]);
      const auto& value = arguments.value[i];
      const auto* integer = std::get_if<int64_t>(&value);
      const auto* real = std::get_if<double>(&value);
      integer ? table.integer(*integer) : table.null();
      real ? table.real(*real) : table.null();
      integer || real ? table.null() : table.integer(std::get<StringId>(value));
    }
    return table.finish();
  }

  Result<void> write_flows() {
    const Flows& flows = timeline_.flows;
    BulkTable table = this->table("STROBE_FLOW");
    for (size_t i = 0; i < flows.size(); ++i) {
      table.row(static_cast<int64_t>(i) + 1);
      table.integer(flows.name[i]);
      table.integer(flows.from_ns[i]);
      table.integer(flows.to_ns[i]);
      for (const auto* column : {&flows.from_range, &flows.to_range, &flows.from_lane, &flows.to_lane})
        table.integer_unless((*column)[i], kNone);
    }
    return table.finish();
  }

  Result<void> write_counters() {
    const Counters& counters = timeline_.counters;
    BulkTable table = this->table("STROBE_COUNTER");
    for (size_t i = 0; i < counters.size(); ++i) {
      table.row(static_cast<int64_t>(i) + 1);
      table.integer(counters.time_ns[i]);
      table.integer(counters.name[i]);
      table.integer(counters.pid[i]);
      table.real(counters.value[i]);
    }
    return table.finish();
  }

  Result<void> write_counter_lanes() {
    BulkTable table = this->table("STROBE_COUNTER_LANE");
    for (size_t i = 0; i < timeline_.counters.lane.size(); ++i) {
      if (timeline_.counters.lane[i] == kNone) continue;
      table.row(static_cast<int64_t>(i));
      table.null();
      table.integer(timeline_.counters.lane[i]);
    }
    return table.finish();
  }

  // Of Ranges or Marks.
  template <typename Owners>
  Result<void> write_categories(const char* name, const Owners& owners) {
    BulkTable table = this->table(name);
    for (size_t i = 0; i < owners.size(); ++i) {
      if (owners.category_of(i) == 0 && owners.domain_of(i) == 0) continue;
      table.row(static_cast<int64_t>(i));
      table.null();
      table.integer_unless(owners.category_of(i), 0);
      table.integer_unless(owners.domain_of(i), 0);
    }
    return table.finish();
  }

  const Timeline& timeline_;
  BulkFile& file_;
  const RootPages& roots_;
};

}  // namespace

Result<RootPages> root_pages(Database& database) {
  STROBE_ASSIGN(Statement tables, database.prepare("SELECT name, rootpage FROM sqlite_master WHERE type = 'table'"));
  RootPages roots;
  for (;;) {
    STROBE_ASSIGN(const bool more, tables.step());
    if (!more) return roots;
    roots[std::string(tables.text(0))] = tables.integer(1);
  }
}

Result<void> write_bulk_tables(const Timeline& timeline, const std::filesystem::path& path, const RootPages& roots) {
  STROBE_ASSIGN(BulkFile file, BulkFile::open(path));
  STROBE_TRY(Writer(timeline, file, roots).write());
  return file.close();
}

}  // namespace strobe::trace
