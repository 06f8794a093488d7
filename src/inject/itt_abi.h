// The binary interface between ITT's static part, which programs carry, and a collector, as far as this library uses
// it: Intel's ittapi describes it, these are declarations of our own.
#pragma once

#include <pthread.h>

#include <cstddef>
#include <cstdint>

namespace strobe::inject::itt {

struct Id {
  unsigned long long d1, d2, d3;  // all 0: none
};

// Objects that programs hold pointers to; the fields named extra are the collector's.
struct Domain {
  volatile int flags;  // 0: disabled; the program's macros look at it
  const char* name;
  void* wide_name;
  int extra1;
  void* extra2;
  Domain* next;
};
struct StringHandle {
  const char* text;
  void* wide_text;
  int extra1;
  void* extra2;
  StringHandle* next;
};
struct CounterInfo {
  const char* name;
  void* wide_name;
  const char* domain;
  void* wide_domain;
  int type;
  long index;
  int extra1;
  void* extra2;
  CounterInfo* next;
};

enum MetadataType : int {
  kUnknown = 0,
  kU64,
  kS64,
  kU32,
  kS32,
  kU16,
  kS16,
  kFloat,
  kDouble,
};

// One of the program's function pointers.
struct ApiInfo {
  const char* name;
  void** function;
  void* init;
  void* null;  // of the static part: what the pointer gets where the collector has nothing
  int group;
};
// What the program's copy of the static part knows. A program may have several copies.
struct Global {
  unsigned char magic[8];
  unsigned long version_major, version_minor, version_build;
  volatile long initialized, mutex_initialized, atomic_counter;
  pthread_mutex_t mutex;
  void* library;
  void* error_handler;
  const char** library_path;
  ApiInfo* functions;  // ends with a null name
  Global* next;
  void* threads;
  Domain* domains;
  StringHandle* strings;
  int state;
  CounterInfo* counters;
};
// Static parts up to this build had no ApiInfo::null.
inline constexpr unsigned long kLastBuildWithoutNull = 20101001;

}  // namespace strobe::inject::itt
