#include "critical_path_text.h"

namespace strobe::app {
namespace {

std::string counts_json(const std::vector<std::pair<std::string, size_t>>& counts) {
  std::string text = "{";
  for (const auto& [name, count] : counts)
    text += (text.size() > 1 ? ", \"" : "\"") + name + "\": " + std::to_string(count);
  return text + "}";
}

std::string head(const analyze::CriticalPath& path) {
  std::string text = "\n  \"length_ns\": " + std::to_string(path.length_ns) +
                     ",\n  \"nodes\": " + std::to_string(path.nodes) + ",\n  \"edges\": " + std::to_string(path.edges) +
                     ",\n  \"by_type\": " + counts_json(path.by_type) + ",";
  if (path.path_nodes > 0)
    text += "\n  \"path_nodes\": " + std::to_string(path.path_nodes) +
            ",\n  \"path_edges\": " + std::to_string(path.path_edges) +
            ",\n  \"path_events\": " + std::to_string(path.events.size()) +
            ",\n  \"path_by_type\": " + counts_json(path.path_by_type) + ",";
  return text;
}

}  // namespace

std::string critical_path_text(const analyze::CriticalPath& path, const Table& table, report::Format format) {
  std::string text = report::format_table(table, format);
  if (format == report::Format::kJson) text.insert(text.find('{') + 1, head(path));
  return text;
}

std::string counts_text(const std::vector<std::pair<std::string, size_t>>& counts) {
  std::string text;
  for (const auto& [name, count] : counts) text += (text.empty() ? "" : ", ") + name + " " + std::to_string(count);
  return text;
}

}  // namespace strobe::app
