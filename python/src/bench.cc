// The C++ benchmark ranges (strobe/bench/perf.h) as strobe.cvcuda uses them.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <filesystem>

#include "bindings.h"
#include "record/nvtx_ranges.h"
#include "strobe/bench/perf.h"

namespace strobe::python {
namespace {

// CV-CUDA's own errors are ValueErrors.
template <typename T>
T value_or_value_error(Result<T>&& result) {
  if (!result) {
    const std::string line = result.error().to_string();
    if (result.error().kind() == ErrorKind::kUsage) throw nb::value_error(line.c_str());
    raise(result.error());
  }
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

}  // namespace

void bind_bench(nb::module_& module) {
  nb::class_<bench::Perf>(module, "Perf")
      .def(
          "__init__",
          [](bench::Perf* self, const std::string& name, const std::string& output_dir, int device_id,
             const std::string& device_name, const std::string& meta) {
            new (self) bench::Perf(
                name, {.output_dir = output_dir, .device_id = device_id, .device_name = device_name, .meta = meta});
          },
          nb::arg("name"), nb::arg("output_dir"), nb::arg("device_id"), nb::arg("device_name"), nb::arg("meta"))
      .def_prop_ro("collecting", &bench::Perf::collecting)
      .def("push_range",
           [](bench::Perf& self, const std::string& message, const std::string& color, const std::string& domain,
              const std::string& category, std::optional<int64_t> batch_index) {
             value_or_value_error(
                 self.push_range(message, {.color = color, .domain = domain, .category = category}, batch_index));
           })
      .def("pop_range", [](bench::Perf& self, std::optional<int64_t> total_items,
                           bool delete_range) { value_or_value_error(self.pop_range(total_items, delete_range)); })
      .def("finalize", [](bench::Perf& self) {
        auto text = [&] {
          const nb::gil_scoped_release free;
          return self.finalize();
        }();
        return value_or_value_error(std::move(text));
      });
  // NVTX looks for a tool once, at the first call. Under `strobe record` the tool is our own library, which would
  // record each range of Perf a second time: this module's recorder has it already. Others that load NVTX still find
  // it.
  module.def("_without_our_nvtx", [] {
    const char* found = std::getenv("NVTX_INJECTION64_PATH");
    if (found == nullptr || std::filesystem::path(found).filename() != "libstrobe_inject.so") return;
    const std::string tool = found;
    ::unsetenv("NVTX_INJECTION64_PATH");
    record::nvtx_pop(nullptr);
    ::setenv("NVTX_INJECTION64_PATH", tool.c_str(), 1);
  });
}

}  // namespace strobe::python
