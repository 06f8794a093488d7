// Strobe's own tables of a trace file; docs/trace-format.md explains them, nsys_schema.h has the others.
#pragma once

#include <cstdint>

namespace strobe::trace::schema {

// Ids count from 0 and are those of the Timeline; text is in StringIds; NULL is "none".
inline constexpr const char* kStrobeTables = R"(
CREATE TABLE STROBE_META (name TEXT NOT NULL PRIMARY KEY, value);
CREATE TABLE STROBE_PROCESS (pid INTEGER NOT NULL, nameId INTEGER NOT NULL);
CREATE TABLE STROBE_LANE (id INTEGER NOT NULL PRIMARY KEY, kind INTEGER NOT NULL, pid INTEGER NOT NULL,
  tid INTEGER NOT NULL, nameId INTEGER NOT NULL, device INTEGER, context INTEGER, globalTid INTEGER,
  globalPid INTEGER NOT NULL);
CREATE TABLE STROBE_RANGE (id INTEGER NOT NULL PRIMARY KEY, kind INTEGER NOT NULL, laneId INTEGER NOT NULL,
  start INTEGER NOT NULL, end INTEGER NOT NULL, nameId INTEGER NOT NULL, frame INTEGER, open INTEGER NOT NULL,
  isAsync INTEGER NOT NULL);
CREATE TABLE STROBE_DEVICE_OP (rangeId INTEGER NOT NULL PRIMARY KEY, launchId INTEGER, correlation INTEGER,
  bytes INTEGER, copyKind INTEGER NOT NULL, sourceKind INTEGER NOT NULL, targetKind INTEGER NOT NULL,
  syncType INTEGER NOT NULL, syncStream INTEGER, syncCorrelation INTEGER, gridX INTEGER NOT NULL,
  gridY INTEGER NOT NULL, gridZ INTEGER NOT NULL, blockX INTEGER NOT NULL, blockY INTEGER NOT NULL,
  blockZ INTEGER NOT NULL, registers INTEGER, staticShared INTEGER, dynamicShared INTEGER);
CREATE TABLE STROBE_API_CALL (rangeId INTEGER NOT NULL PRIMARY KEY, correlation INTEGER);
CREATE TABLE STROBE_MARK (id INTEGER NOT NULL PRIMARY KEY, time INTEGER NOT NULL, nameId INTEGER NOT NULL,
  laneId INTEGER NOT NULL, frame INTEGER);
CREATE TABLE STROBE_ARGUMENT (rangeId INTEGER NOT NULL, keyId INTEGER NOT NULL, int64Value INTEGER, doubleValue REAL,
  textId INTEGER);
CREATE TABLE STROBE_FLOW (nameId INTEGER NOT NULL, start INTEGER NOT NULL, end INTEGER NOT NULL, fromRangeId INTEGER,
  toRangeId INTEGER, fromLaneId INTEGER, toLaneId INTEGER);
CREATE TABLE STROBE_COUNTER (timestamp INTEGER NOT NULL, nameId INTEGER NOT NULL, pid INTEGER NOT NULL, value REAL);
CREATE TABLE STROBE_LAYER (id INTEGER NOT NULL PRIMARY KEY, nameId INTEGER NOT NULL, typeId INTEGER NOT NULL,
  shapeId INTEGER NOT NULL, parameters INTEGER NOT NULL, flop INTEGER NOT NULL, bytes INTEGER NOT NULL);
CREATE TABLE STROBE_KERNEL (id INTEGER NOT NULL PRIMARY KEY, nameId INTEGER NOT NULL, typeId INTEGER NOT NULL,
  implementationId INTEGER NOT NULL);
CREATE TABLE STROBE_KERNEL_LAYER (kernelId INTEGER NOT NULL, layerId INTEGER NOT NULL);
CREATE TABLE STROBE_KERNEL_SAMPLE (kernelId INTEGER NOT NULL, duration INTEGER NOT NULL);
CREATE TABLE STROBE_TABLE (id INTEGER NOT NULL PRIMARY KEY, title TEXT NOT NULL, coverage REAL);
CREATE TABLE STROBE_TABLE_COLUMN (tableId INTEGER NOT NULL, name TEXT NOT NULL, help TEXT NOT NULL,
  decimals INTEGER NOT NULL);
CREATE TABLE STROBE_TABLE_CELL (tableId INTEGER NOT NULL, rowNumber INTEGER NOT NULL, columnNumber INTEGER NOT NULL,
  value);
CREATE TABLE STROBE_TABLE_NOTE (tableId INTEGER NOT NULL, text TEXT NOT NULL);
CREATE TABLE STROBE_FACT (name TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE STROBE_LOSS (kind TEXT NOT NULL, name TEXT NOT NULL, count INTEGER NOT NULL);
)";

// hardware id 8 | VM id 8 | process id 24 | thread id 24, as Nsight Systems packs them; ours is machine 1.
inline constexpr uint64_t kVmId = uint64_t{1} << 48;
inline int64_t global_tid(int32_t pid, int32_t tid) {
  return static_cast<int64_t>(kVmId | (static_cast<uint64_t>(pid) & 0xffffff) << 24 |
                              (static_cast<uint64_t>(tid) & 0xffffff));
}
inline int64_t global_pid(int32_t pid) {
  return global_tid(pid, 0);
}

}  // namespace strobe::trace::schema
