// Shared libraries that may be absent: opened at run time and never linked, so that one program serves machines with
// and without a GPU.
#pragma once

#include <string>
#include <vector>

#include "strobe/base/result.h"

namespace strobe {

// Where a library is looked for, in this order: the path in the environment variable (then nowhere else); one that the
// process already has (two copies of CUPTI in a process are undefined); each of the names, by the loader's own rules
// where it has no folder.
struct LibrarySearch {
  const char* variable;            // e.g. "STROBE_CUPTI_LIBRARY"
  std::vector<std::string> names;  // e.g. "libcupti.so.13", "/usr/local/cuda/lib64/libcupti.so"
};

class Library {
 public:
  // It stays open until the process ends: its threads and exit handlers point into it. Errors: kNotFound (says why the
  // first name that exists could not be opened, else that none is there).
  static Result<Library> open(const LibrarySearch& search);

  // Null where the library lacks it.
  void* symbol(const char* name) const;
  template <typename Function>
  void find(Function*& function, const char* name) const {
    function = reinterpret_cast<Function*>(symbol(name));
  }
  // As the loader found it.
  const std::string& path() const { return path_; }

 private:
  Library(void* handle, std::string path) : handle_(handle), path_(std::move(path)) {}
  void* handle_;
  std::string path_;
};

}  // namespace strobe
