#include "report/table_format.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/shorten.h"
#include "report/text_width.h"

namespace strobe::report {

namespace {

// A name in a cell for people is no longer: those of kernels have thousands of characters.
constexpr size_t kLongestText = 72;

// The shortest text that reads back as the same double.
std::string full_precision(double value) {
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  return {buffer, end};
}

std::string fixed(double value, int decimals) {
  char buffer[400];
  const int length = std::snprintf(buffer, sizeof buffer, "%.*f", std::clamp(decimals, 0, 20), value);
  return {buffer, static_cast<size_t>(length)};
}

std::string cell_for_people(const Cell& cell, const Column& column) {
  if (const auto* count = std::get_if<int64_t>(&cell)) return std::to_string(*count);
  if (const auto* measure = std::get_if<double>(&cell)) return fixed(*measure, column.decimals);
  if (const auto* text = std::get_if<std::string>(&cell))
    return column.whole ? printable(*text) : shorten(printable(*text), kLongestText);
  return "-";
}

bool holds_text(const Table& table, size_t column) {
  return std::any_of(table.rows().begin(), table.rows().end(),
                     [column](const auto& row) { return std::holds_alternative<std::string>(row[column]); });
}

void append_padded(std::string& out, const std::string& text, size_t width, bool right) {
  const size_t padding = width - std::min(width, display_width(text));
  if (right) out.append(padding, ' ');
  out += text;
  if (!right) out.append(padding, ' ');
}

void end_line(std::string& out) {
  while (!out.empty() && out.back() == ' ') out.pop_back();
  out += '\n';
}

std::string format_text(const Table& table) {
  const auto& columns = table.columns();
  std::vector<std::vector<std::string>> cells;
  cells.reserve(table.row_count());
  std::vector<size_t> width(columns.size());
  std::vector<bool> right(columns.size());
  for (size_t c = 0; c < columns.size(); ++c) {
    width[c] = display_width(printable(columns[c].name));
    right[c] = !holds_text(table, c);
  }
  for (const auto& row : table.rows()) {
    auto& line = cells.emplace_back();
    for (size_t c = 0; c < columns.size(); ++c) {
      line.push_back(cell_for_people(row[c], columns[c]));
      width[c] = std::max(width[c], display_width(line.back()));
    }
  }

  std::string out;
  if (!table.title().empty()) out += printable(table.title()) + "\n\n";
  for (size_t c = 0; c < columns.size(); ++c) {
    if (c > 0) out += "  ";
    append_padded(out, printable(columns[c].name), width[c], right[c]);
  }
  end_line(out);
  for (size_t c = 0; c < columns.size(); ++c) out += (c > 0 ? "  " : "") + std::string(width[c], '-');
  end_line(out);
  for (const auto& line : cells) {
    for (size_t c = 0; c < columns.size(); ++c) {
      if (c > 0) out += "  ";
      append_padded(out, line[c], width[c], right[c]);
    }
    end_line(out);
  }
  if (cells.empty()) out += "(no rows)\n";
  if (table.coverage || !table.notes.empty()) out += '\n';
  if (table.coverage) out += "coverage: " + fixed(*table.coverage * 100, 1) + " %\n";
  for (const auto& note : table.notes) out += "note: " + printable(note) + '\n';
  return out;
}

std::string csv_field(const std::string& text) {
  const bool outer_space = !text.empty() && (text.front() == ' ' || text.back() == ' ');
  if (!outer_space && text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

std::string format_csv(const Table& table) {
  std::string out;
  for (size_t c = 0; c < table.columns().size(); ++c) out += (c > 0 ? "," : "") + csv_field(table.columns()[c].name);
  out += '\n';
  for (const auto& row : table.rows()) {
    std::string line;
    for (size_t c = 0; c < row.size(); ++c) {
      if (c > 0) line += ',';
      if (const auto* count = std::get_if<int64_t>(&row[c])) line += std::to_string(*count);
      if (const auto* measure = std::get_if<double>(&row[c])) line += full_precision(*measure);
      if (const auto* text = std::get_if<std::string>(&row[c])) line += csv_field(*text);
    }
    // A lone missing value would be an empty line, which readers take for no record at all.
    out += line.empty() ? "\"\"" : line;
    out += '\n';
  }
  return out;
}

nlohmann::ordered_json cell_for_json(const Cell& cell) {
  if (const auto* count = std::get_if<int64_t>(&cell)) return *count;
  if (const auto* measure = std::get_if<double>(&cell)) {
    if (std::isfinite(*measure)) return *measure;
    return nullptr;
  }
  if (const auto* text = std::get_if<std::string>(&cell)) return *text;
  return nullptr;
}

std::string format_json(const Table& table) {
  nlohmann::ordered_json out;
  out["title"] = table.title();
  auto& rows = out["rows"] = nlohmann::ordered_json::array();
  for (const auto& row : table.rows()) {
    auto& object = rows.emplace_back(nlohmann::ordered_json::object());
    for (size_t c = 0; c < row.size(); ++c) object[table.columns()[c].name] = cell_for_json(row[c]);
  }
  if (table.coverage) out["coverage"] = cell_for_json(*table.coverage);
  if (!table.notes.empty()) out["notes"] = table.notes;
  return out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
}

}  // namespace

Result<Format> parse_format(const std::string& name) {
  if (name == "text") return Format::kText;
  if (name == "csv") return Format::kCsv;
  if (name == "json") return Format::kJson;
  return usage_error("unknown format '" + printable(name) + "'; the formats are text, csv and json");
}

std::string format_table(const Table& table, Format format) {
  switch (format) {
    case Format::kText:
      return format_text(table);
    case Format::kCsv:
      return format_csv(table);
    case Format::kJson:
      return format_json(table);
  }
  return {};
}

}  // namespace strobe::report
