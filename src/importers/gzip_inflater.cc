#include "importers/gzip_inflater.h"

#ifdef STROBE_HAVE_ISAL
#include <isa-l/igzip_lib.h>
#else
#include <zlib.h>

#include <new>
#endif

namespace strobe::importers {

using State = GzipInflater::Step::State;

#ifdef STROBE_HAVE_ISAL

struct GzipInflater::Library {
  inflate_state state{};
};

GzipInflater::GzipInflater() : library_(std::make_unique<Library>()) {
  isal_inflate_init(&library_->state);
  library_->state.crc_flag = ISAL_GZIP;
}
GzipInflater::~GzipInflater() = default;

void GzipInflater::start_member() {
  isal_inflate_reset(&library_->state);
}

GzipInflater::Step GzipInflater::inflate(const char* input, size_t input_size, char* output, size_t output_size) {
  inflate_state& state = library_->state;
  state.next_in = reinterpret_cast<uint8_t*>(const_cast<char*>(input));
  state.avail_in = static_cast<uint32_t>(input_size);
  state.next_out = reinterpret_cast<uint8_t*>(output);
  state.avail_out = static_cast<uint32_t>(output_size);
  const int status = isal_inflate(&state);
  Step step{input_size - state.avail_in, output_size - state.avail_out, State::kGoesOn};
  if (status != ISAL_DECOMP_OK && status != ISAL_END_INPUT)
    step.state = State::kDamaged;
  else if (state.block_state == ISAL_BLOCK_FINISH)
    step.state = State::kMemberEnds;
  return step;
}

#else

struct GzipInflater::Library {
  z_stream stream{};
};

GzipInflater::GzipInflater() : library_(std::make_unique<Library>()) {
  constexpr int kGzipOnly = 16 + MAX_WBITS;
  if (inflateInit2(&library_->stream, kGzipOnly) != Z_OK) throw std::bad_alloc();
}
GzipInflater::~GzipInflater() {
  inflateEnd(&library_->stream);
}

void GzipInflater::start_member() {
  inflateReset(&library_->stream);
}

GzipInflater::Step GzipInflater::inflate(const char* input, size_t input_size, char* output, size_t output_size) {
  z_stream& stream = library_->stream;
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(input));
  stream.avail_in = static_cast<uInt>(input_size);
  stream.next_out = reinterpret_cast<Bytef*>(output);
  stream.avail_out = static_cast<uInt>(output_size);
  const int status = ::inflate(&stream, Z_NO_FLUSH);
  Step step{input_size - stream.avail_in, output_size - stream.avail_out, State::kGoesOn};
  if (status == Z_STREAM_END)
    step.state = State::kMemberEnds;
  else if (status != Z_OK && status != Z_BUF_ERROR)  // the latter: more input is needed
    step.state = State::kDamaged;
  return step;
}

#endif

}  // namespace strobe::importers
