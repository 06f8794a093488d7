// The binary interface between NVTX version 3 and a tool, as far as this library uses it: NVIDIA's headers describe it,
// these are declarations of our own, so that no wheel is needed to build.
#pragma once

#include <cstddef>
#include <cstdint>

namespace strobe::inject::nvtx {

// Of a range or mark; 48 bytes.
struct EventAttributes {
  uint16_t version;
  uint16_t size;
  uint32_t category;
  int32_t color_type;  // 1: color is ARGB
  uint32_t color;
  int32_t payload_type;
  int32_t payload_count;  // of extended payloads
  union {
    uint64_t u64;
    int64_t i64;
    double f64;
    uint32_t u32;
    int32_t i32;
    float f32;
    const void* extended;
  } payload;
  int32_t message_type;
  union {
    const char* ascii;
    const wchar_t* wide;
    const void* registered;
  } message;
};
static_assert(sizeof(EventAttributes) == 48);
enum Message : int32_t { kNoMessage = 0, kAscii = 1, kWide = 2, kRegistered = 3 };
enum Payload : int32_t {
  kNoPayload = 0,
  kU64 = 1,
  kI64 = 2,
  kF64 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kExtended = static_cast<int32_t>(0xDFBD0009),
};

struct ResourceAttributes {
  uint16_t version;
  uint16_t size;
  int32_t identifier_type;
  union {
    const void* pointer;
    uint64_t number;
  } identifier;
  int32_t message_type;
  decltype(EventAttributes::message) message;
};
inline constexpr int32_t kNativeThread = 1 << 16 | 3;  // identifier_type of a thread by its kernel id

// Functions of the modules, by the numbers of their slots.
enum Module : int32_t { kModuleCore = 1, kModuleCore2 = 5 };
enum Core : uint32_t {
  kMarkEx = 1,
  kMarkA,
  kMarkW,
  kRangeStartEx,
  kRangeStartA,
  kRangeStartW,
  kRangeEnd,
  kRangePushEx,
  kRangePushA,
  kRangePushW,
  kRangePop,
  kNameCategoryA,
  kNameCategoryW,
  kNameOsThreadA,
  kNameOsThreadW,
};
enum Core2 : uint32_t {
  kDomainMarkEx = 1,
  kDomainRangeStartEx,
  kDomainRangeEnd,
  kDomainRangePushEx,
  kDomainRangePop,
  kDomainResourceCreate,
  kDomainResourceDestroy,
  kDomainNameCategoryA,
  kDomainNameCategoryW,
  kDomainRegisterStringA,
  kDomainRegisterStringW,
  kDomainCreateA,
  kDomainCreateW,
  kDomainDestroy,
  kInitialize,
};

using Function = void (*)();
using FunctionTable = Function**;  // of pointers to the program's own function pointers
struct CallbackTable {
  size_t struct_size;
  int (*get_module)(int32_t module, FunctionTable* table, unsigned* size);
};
using GetExportTable = const void* (*)(uint32_t id);
inline constexpr uint32_t kCallbacks = 1;  // id of the CallbackTable

// Extensions: payloads with a schema, counters.
struct ExtensionSegment {
  size_t id;
  size_t slot_count;
  intptr_t* slots;
};
struct ExtensionModule {
  uint16_t nvtx_version;
  uint16_t struct_size;
  uint16_t module_id;
  uint16_t compatibility;
  size_t segment_count;
  ExtensionSegment* segments;
  intptr_t (*get_export)(uint32_t id);
  const void* info;
};
enum Extension : uint16_t { kExtensionPayload = 2, kExtensionCounters = 4 };
enum PayloadSlot : size_t {
  kSchemaRegister = 0,
  kEnumRegister,
  kMarkPayload,
  kRangePushPayload,
  kRangePopPayload,
  kRangeStartPayload,
  kRangeEndPayload,
  kDomainIsEnabled,
  kScopeRegister = 12,
};
enum CounterSlot : size_t { kCounterRegister = 0, kSampleInt64, kSampleFloat64, kSample, kSampleNoValue };

struct PayloadData {
  uint64_t schema;
  size_t size;  // SIZE_MAX: as the schema says
  const void* bytes;
};
struct SchemaEntry {
  uint64_t flags;
  uint64_t type;
  const char* name;
  const char* description;
  uint64_t detail;  // length of an array, or index of the entry that holds it
  uint64_t offset;
  const void* semantics;
  const void* reserved;
};
struct SchemaAttributes {
  uint64_t fields;
  const char* name;
  uint64_t type;
  uint64_t flags;
  const SchemaEntry* entries;
  size_t entry_count;
  size_t static_size;
  size_t alignment;
  uint64_t id;
  void* extension;
};
// Bits of SchemaAttributes::fields: the others are not set, and may hold anything.
enum SchemaField : uint64_t {
  kSchemaName = 1 << 1,
  kSchemaEntries = 1 << 4,
  kSchemaEntryCount = 1 << 5,
  kSchemaStaticSize = 1 << 6,
  kSchemaId = 1 << 8,
};
// The same of EnumAttributes.
enum EnumField : uint64_t {
  kEnumEntries = 1 << 2,
  kEnumEntryCount = 1 << 3,
  kEnumSize = 1 << 4,
  kEnumId = 1 << 5,
};
struct EnumEntry {
  const char* name;
  uint64_t value;
  int8_t is_flag;
};
struct EnumAttributes {
  uint64_t fields;
  const char* name;
  const EnumEntry* entries;
  size_t entry_count;
  size_t size;
  uint64_t id;
  void* extension;
};
struct CounterAttributes {
  size_t struct_size;
  uint64_t schema;
  const char* name;
  const char* description;
  uint64_t scope;
  const void* semantics;
  uint64_t id;
};
inline constexpr uint64_t kFirstStaticId = uint64_t{1} << 24;
inline constexpr uint64_t kFirstDynamicId = uint64_t{1} << 32;
inline constexpr uint64_t kScopeThread = 22;

// Flags of an entry.
inline constexpr uint64_t kPointer = 1 << 1;
inline constexpr uint64_t kArrayMask = 7 << 4;
inline constexpr uint64_t kArrayFixed = 1 << 4;
inline constexpr uint64_t kArrayZeroEnded = 2 << 4;
inline constexpr uint64_t kArrayLengthEntry = 3 << 4;
inline constexpr uint64_t kHidden = 1 << 9;
inline constexpr uint64_t kIsMessageMask = 3 << 10;
inline constexpr uint64_t kIsMessage = 1 << 10;

}  // namespace strobe::inject::nvtx
