// The tables of an Nsight Systems SQLite export (schema 3.25), each with the question to Strobe's own tables that
// answers it: a trace file has them as views, an export of a trace has them as tables.
#pragma once

#include <span>
#include <string>

namespace strobe::trace::nsys {

inline constexpr const char* kSchemaVersion = "3.25.0";

struct TableDefinition {
  const char* name;
  const char* columns;  // as CREATE TABLE takes them: names, types, order and constraints are those of the export
  const char* select;   // the same columns out of STROBE_* tables
};

// Those that are answered by a question. What is the same in a trace file and in an export is in kCommonTables.
std::span<const TableDefinition> derived_tables();

// CREATE VIEW, with the names of the columns.
std::string view_of(const TableDefinition& table);
// CREATE TABLE.
std::string table_of(const TableDefinition& table);

// META_DATA_EXPORT, StringIds, the session's time, diagnostics, and the enumerations with their rows.
extern const char* const kCommonTables;

}  // namespace strobe::trace::nsys
