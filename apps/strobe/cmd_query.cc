#include "analyze/query.h"

#include <cstdio>
#include <string>
#include <vector>

#include "ask.h"
#include "command.h"
#include "trace/open.h"

namespace strobe::app {
namespace {

// Rows are printed in parts, so that a large result needs no memory. Text is aligned within a part.
class Printer {
 public:
  explicit Printer(report::Format format) : format_(format) {}

  void begin(const std::vector<std::string>& names) {
    for (const std::string& name : names) columns_.push_back({name, "", 6, true});
    part_ = Table("", columns_);
    if (format_ == report::Format::kJson) std::fputs("{\n  \"rows\": [", stdout);
  }
  bool add(const std::vector<Cell>& row) {
    part_.add_row(row);
    if (part_.row_count() == kRows) flush();
    return std::ferror(stdout) == 0;
  }
  void end() {
    if (part_.row_count() > 0 || is_first_) flush();
    if (format_ == report::Format::kJson) std::fputs("\n  ]\n}\n", stdout);
  }

 private:
  static constexpr size_t kRows = 1000;

  void flush() {
    std::string text = report::format_table(part_, format_);
    if (format_ == report::Format::kJson) {
      // Only what stands between the brackets of "rows".
      const size_t begin = text.find('[') + 1, end = text.rfind(']');
      text = text.substr(begin, end - begin);
      while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
      if (!is_first_) text.insert(0, ",");
    } else if (!is_first_) {
      for (int line = format_ == report::Format::kCsv ? 1 : 2; line > 0; --line) text.erase(0, text.find('\n') + 1);
    }
    std::fwrite(text.data(), 1, text.size(), stdout);
    part_ = Table("", columns_);
    is_first_ = false;
  }

  report::Format format_;
  std::vector<Column> columns_;
  Table part_;
  bool is_first_ = true;
};

class QueryCommand : public Command {
 public:
  const char* name() const override { return "query"; }
  const char* summary() const override { return "SQL on a trace file, read-only"; }
  const char* group() const override { return "Ask"; }
  const char* example() const override {
    return "strobe query out/trace.sqlite \"SELECT value, COUNT(*) FROM STROBE_RANGE JOIN StringIds ON "
           "StringIds.id = nameId GROUP BY 1\" --format csv";
  }

  void declare(CLI::App& app) override {
    app.add_option("trace", trace_, "Trace file, or a folder with one; any SQLite file")->required();
    app.add_option("sql", sql_, "One statement that reads; the tables: docs/trace-format.md")->required();
    app.add_option("--format", format_, "text, csv (a missing value is empty) or json (null)")->capture_default_str();
  }

  Result<int> run() override {
    STROBE_ASSIGN(const report::Format format, report::parse_format(format_));
    STROBE_ASSIGN(const std::vector<std::filesystem::path> files, trace::trace_files(trace_));
    if (files.empty()) return not_found(trace_ + ": no *.sqlite file in this folder");
    if (files.size() > 1) {
      std::string names;
      for (const auto& file : files) names += (names.empty() ? "" : ", ") + file.lexically_relative(trace_).string();
      return usage_error(trace_ + ": holds several traces, name one of them: " + names);
    }
    Printer printer(format);
    STROBE_TRY(analyze::query(files.front(), sql_,
                              {[&](const std::vector<std::string>& names) { printer.begin(names); },
                               [&](const std::vector<Cell>& row) { return printer.add(row); }}));
    printer.end();
    return 0;
  }

 private:
  std::string trace_, sql_, format_ = "text";
};

}  // namespace

std::unique_ptr<Command> make_query_command() {
  return std::make_unique<QueryCommand>();
}

}  // namespace strobe::app
