// Who and where in an Nsight Systems export: texts, processes, threads and streams by the numbers it gives them.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "importers/nsys_file.h"
#include "strobe/trace/timeline.h"

namespace strobe::importers {

class NsysPlaces {
 public:
  explicit NsysPlaces(trace::Timeline& timeline) : timeline_(timeline) {}

  // StringIds, PROCESSES: to be called before anything is asked.
  void read(NsysFile& file);

  // The text of an id; "(text N)" and a fault where the file has none.
  trace::StringId text(int64_t id);
  // The same without the version of the interface: "cudaLaunchKernel_v7000" is cudaLaunchKernel.
  trace::StringId function(int64_t id);
  // The process of a globalTid or globalPid. Ids that differ above the process id (machines) get numbers of their own.
  int32_t process(int64_t global);
  // Of a row without one: the only process of the file, else 0.
  int32_t only_process() const { return only_process_; }
  // Lanes, made at first use.
  int32_t thread(int64_t global_tid);
  int32_t stream(int32_t pid, int32_t device, int32_t context, int32_t stream);
  // A name that a program gave to its thread.
  void name_thread(int64_t global_tid, std::string_view name) { own_names_[global_tid] = name; }
  // Names of threads and of the processes that something happened in: to be called last.
  void name_all(NsysFile& file);

 private:
  trace::Timeline& timeline_;
  std::unordered_map<int64_t, trace::StringId> texts_, functions_;
  std::unordered_map<uint64_t, int32_t> pids_;  // by the part above the thread id
  std::set<int32_t> used_pids_;
  std::map<uint64_t, std::string> process_names_;
  std::unordered_map<int64_t, int32_t> threads_;
  std::map<std::tuple<int32_t, int32_t, int32_t, int32_t>, int32_t> streams_;
  std::map<int64_t, std::string> own_names_;
  int32_t only_process_ = 0;
};

}  // namespace strobe::importers
