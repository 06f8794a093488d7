// One gzip member at a time: by ISA-L where it is built in, else by zlib, which is slower.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace strobe::importers {

class GzipInflater {
 public:
  GzipInflater();
  GzipInflater(const GzipInflater&) = delete;
  GzipInflater& operator=(const GzipInflater&) = delete;
  ~GzipInflater();

  // For the next member; a new inflater is ready for the first one.
  void start_member();

  struct Step {
    size_t taken = 0, given = 0;  // bytes of the input used, of the output filled
    enum class State : uint8_t { kGoesOn, kMemberEnds, kDamaged } state = State::kGoesOn;
  };
  // Inflates what it can. Neither size above 1 GiB.
  Step inflate(const char* input, size_t input_size, char* output, size_t output_size);

 private:
  struct Library;
  std::unique_ptr<Library> library_;
};

}  // namespace strobe::importers
