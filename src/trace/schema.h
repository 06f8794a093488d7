// The tables of a trace file; docs/trace-format.md explains them.
#pragma once

#include <cstdint>

namespace strobe::trace::schema {

// The Nsight Systems export whose tables these are.
inline constexpr const char* kNsysSchemaVersion = "3.25.0";

// ENUM_NSYS_EVENT_TYPE
inline constexpr int64_t kMark = 34;
inline constexpr int64_t kPushPopRange = 59;
inline constexpr int64_t kStartEndRange = 60;

// Tables of an Nsight Systems export: names, columns, types and their order are its own.
inline constexpr const char* kNsysTables = R"(
CREATE TABLE META_DATA_EXPORT (name TEXT NOT NULL, value TEXT);
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE PROCESSES (globalPid INTEGER, pid INTEGER, name TEXT);
CREATE TABLE ThreadNames (nameId INTEGER NOT NULL, priority INTEGER, globalTid INTEGER);
CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT, localTime TEXT, systemClockNs INTEGER);
CREATE TABLE ANALYSIS_DETAILS (globalVid INTEGER NOT NULL, duration INTEGER NOT NULL, startTime INTEGER NOT NULL,
  stopTime INTEGER NOT NULL);
CREATE TABLE DIAGNOSTIC_EVENT (timestamp INTEGER NOT NULL, timestampType INTEGER NOT NULL, source INTEGER NOT NULL,
  severity INTEGER NOT NULL, text TEXT NOT NULL, globalPid INTEGER);
CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER,
  category INTEGER, color INTEGER, text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER,
  domainId INTEGER, uint64Value INTEGER, int64Value INTEGER, doubleValue REAL, uint32Value INTEGER,
  int32Value INTEGER, floatValue REAL, jsonTextId INTEGER, jsonText TEXT, binaryData TEXT);
CREATE TABLE ENUM_NSYS_EVENT_TYPE (id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT);
CREATE TABLE ENUM_DIAGNOSTIC_SEVERITY_LEVEL (id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT);
CREATE TABLE ENUM_DIAGNOSTIC_SOURCE_TYPE (id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT);
CREATE TABLE ENUM_DIAGNOSTIC_TIMESTAMP_SOURCE (id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT);
INSERT INTO ENUM_NSYS_EVENT_TYPE VALUES (34, 'NvtxMark', 'NvtxMark'), (59, 'NvtxPushPopRange', 'NvtxPushPopRange'),
  (60, 'NvtxStartEndRange', 'NvtxStartEndRange');
INSERT INTO ENUM_DIAGNOSTIC_SEVERITY_LEVEL VALUES (1, 'Info', 'Info'), (2, 'Warning', 'Warning'), (3, 'Error', 'Error');
INSERT INTO ENUM_DIAGNOSTIC_SOURCE_TYPE VALUES (1, 'Injection', 'Injection'), (3, 'Analysis', 'Analysis');
INSERT INTO ENUM_DIAGNOSTIC_TIMESTAMP_SOURCE VALUES (1, 'TargetTimestamp', 'Target timestamp');
)";

// What an export has no place for. Ids count from 0 and are those of the Timeline; text is in StringIds.
inline constexpr const char* kStrobeTables = R"(
CREATE TABLE STROBE_META (name TEXT NOT NULL PRIMARY KEY, value);
CREATE TABLE STROBE_LANE (id INTEGER NOT NULL PRIMARY KEY, kind INTEGER NOT NULL, pid INTEGER NOT NULL,
  tid INTEGER NOT NULL, nameId INTEGER NOT NULL, globalTid INTEGER);
CREATE TABLE STROBE_RANGE (id INTEGER NOT NULL PRIMARY KEY, eventId INTEGER, laneId INTEGER NOT NULL, frame INTEGER,
  parentId INTEGER, open INTEGER NOT NULL);
CREATE TABLE STROBE_DEVICE_RANGE (rangeId INTEGER NOT NULL PRIMARY KEY, start INTEGER NOT NULL, end INTEGER NOT NULL,
  nameId INTEGER NOT NULL, isAsync INTEGER NOT NULL);
CREATE TABLE STROBE_MARK (id INTEGER NOT NULL PRIMARY KEY, eventId INTEGER NOT NULL, laneId INTEGER NOT NULL,
  frame INTEGER);
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
