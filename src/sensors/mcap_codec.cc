#include "sensors/mcap_codec.h"

#include <lz4frame.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <limits>

namespace strobe::sensors {

namespace {

// What is allocated on the word of a file alone.
constexpr uint64_t kTrusted = uint64_t{32} << 20;
// A byte of LZ4 stands for at most 255; four bytes of Zstandard (a block of one byte repeated) for at most 128 KiB.
constexpr uint64_t kLz4Most = 255, kZstdMost = (uint64_t{128} << 10) / 4;

Error damaged(std::string_view compression, std::string_view why) {
  return bad_data(std::string(compression) + " data is damaged: " + std::string(why));
}
Error wrong_size(std::string_view compression, uint64_t expected) {
  return damaged(compression, "it does not hold the " + std::to_string(expected) + " bytes that it should");
}

// Calls step(out position, room, in position, in left) -> {written, read, finished} until the input is used up.
struct Progress {
  size_t written = 0, read = 0;
  bool finished = false;
  std::string fault;
};
template <typename Step>
Result<void> stream(std::string_view name, ByteView stored, uint64_t size, McapBuffer& out, const Step& step) {
  out.resize(0);
  out.reserve(
      std::max<size_t>(1, static_cast<size_t>(std::min(size, std::max(kTrusted, uint64_t{stored.size()} * 16)))));
  size_t read = 0;
  size_t written = 0;
  for (bool finished = false; !finished;) {
    if (written == out.capacity() && written < size)
      out.reserve(static_cast<size_t>(std::min<uint64_t>(size, uint64_t{out.capacity()} * 2)));
    out.resize(out.capacity());
    const Progress progress =
        step(out.data() + written, static_cast<size_t>(std::min<uint64_t>(out.size(), size)) - written,
             stored.data() + read, stored.size() - read);
    if (!progress.fault.empty()) return damaged(name, progress.fault);
    if (progress.read == 0 && progress.written == 0 && !progress.finished && (written == size || read == stored.size()))
      return wrong_size(name, size);
    read += progress.read;
    written += progress.written;
    finished = progress.finished;
  }
  if (written != size) return wrong_size(name, size);
  out.resize(written);
  return {};
}

int zstd_level(McapLevel level) {
  switch (level) {
    case McapLevel::kFastest:
      return -5;
    case McapLevel::kDefault:
      return 1;
    case McapLevel::kSmallest:
      return 19;
  }
  return 1;
}
int lz4_level(McapLevel level) {
  switch (level) {
    case McapLevel::kFastest:
      return -1;
    case McapLevel::kDefault:
      return 0;
    case McapLevel::kSmallest:
      return 9;
  }
  return 0;
}

}  // namespace

std::string_view chunk_name(McapCompression compression) {
  switch (compression) {
    case McapCompression::kNone:
      return "";
    case McapCompression::kLz4:
      return "lz4";
    case McapCompression::kZstd:
      return "zstd";
  }
  return "";
}

Result<McapCompression> parse_mcap_compression(std::string_view name) {
  if (name == "none") return McapCompression::kNone;
  if (name == "lz4") return McapCompression::kLz4;
  if (name == "zstd") return McapCompression::kZstd;
  return usage_error("compression '" + std::string(name) + "': expected none, lz4 or zstd");
}

struct McapCodec::Contexts {
  struct Free {
    void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
    void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
    void operator()(LZ4F_dctx* context) const { LZ4F_freeDecompressionContext(context); }
  };
  std::unique_ptr<ZSTD_CCtx, Free> zstd_out;
  std::unique_ptr<ZSTD_DCtx, Free> zstd_in;
  std::unique_ptr<LZ4F_dctx, Free> lz4_in;
};

McapCodec::McapCodec() : contexts_(std::make_unique<Contexts>()) {}
McapCodec::McapCodec(McapCodec&&) noexcept = default;
McapCodec& McapCodec::operator=(McapCodec&&) noexcept = default;
McapCodec::~McapCodec() = default;

Result<void> McapCodec::compress(McapCompression compression, McapLevel level, ByteView plain, McapBuffer& out) {
  size_t bytes = 0;
  if (compression == McapCompression::kZstd) {
    if (!contexts_->zstd_out) contexts_->zstd_out.reset(ZSTD_createCCtx());
    out.resize(ZSTD_compressBound(plain.size()));
    bytes = ZSTD_compressCCtx(contexts_->zstd_out.get(), out.data(), out.size(), plain.data(), plain.size(),
                              zstd_level(level));
    if (ZSTD_isError(bytes) != 0) return internal_error(std::string("zstd: ") + ZSTD_getErrorName(bytes));
  } else {
    LZ4F_preferences_t preferences = LZ4F_INIT_PREFERENCES;
    preferences.frameInfo.blockSizeID = LZ4F_max4MB;
    preferences.frameInfo.blockMode = LZ4F_blockIndependent;
    preferences.frameInfo.contentSize = plain.size();
    preferences.compressionLevel = lz4_level(level);
    out.resize(LZ4F_compressFrameBound(plain.size(), &preferences));
    bytes = LZ4F_compressFrame(out.data(), out.size(), plain.data(), plain.size(), &preferences);
    if (LZ4F_isError(bytes) != 0) return internal_error(std::string("lz4: ") + LZ4F_getErrorName(bytes));
  }
  out.resize(bytes);
  return {};
}

Result<void> McapCodec::decompress(std::string_view name, ByteView stored, uint64_t size, McapBuffer& out) {
  const bool zstd = name == "zstd";
  if (!zstd && name != "lz4")
    return unsupported("compression '" + std::string(name.substr(0, 40)) + "': expected lz4, zstd or none");
  if (size / (zstd ? kZstdMost : kLz4Most) > stored.size()) return wrong_size(name, size);

  if (zstd) {
    if (!contexts_->zstd_in) contexts_->zstd_in.reset(ZSTD_createDCtx());
    ZSTD_DCtx* context = contexts_->zstd_in.get();
    if (size <= std::max(kTrusted, uint64_t{stored.size()} * 16)) {
      out.resize(static_cast<size_t>(size));
      const size_t bytes = ZSTD_decompressDCtx(context, out.data(), out.size(), stored.data(), stored.size());
      if (ZSTD_isError(bytes) != 0) return damaged(name, ZSTD_getErrorName(bytes));
      if (bytes != size) return wrong_size(name, size);
      return {};
    }
    ZSTD_DCtx_reset(context, ZSTD_reset_session_only);
    return stream(name, stored, size, out, [&](uint8_t* to, size_t room, const uint8_t* from, size_t left) {
      ZSTD_outBuffer output{to, room, 0};
      ZSTD_inBuffer input{from, left, 0};
      const size_t hint = ZSTD_decompressStream(context, &output, &input);
      Progress progress{output.pos, input.pos, hint == 0 && input.pos == left, {}};
      if (ZSTD_isError(hint) != 0) progress.fault = ZSTD_getErrorName(hint);
      return progress;
    });
  }

  if (!contexts_->lz4_in) {
    LZ4F_dctx* made = nullptr;
    if (LZ4F_isError(LZ4F_createDecompressionContext(&made, LZ4F_VERSION)) != 0)
      return internal_error("lz4: no memory for its context");
    contexts_->lz4_in.reset(made);
  }
  LZ4F_resetDecompressionContext(contexts_->lz4_in.get());
  // What was written stays where it is only until the buffer grows.
  LZ4F_decompressOptions_t options{};
  options.stableDst = size <= std::max(kTrusted, uint64_t{stored.size()} * 16) ? 1 : 0;
  return stream(name, stored, size, out, [&](uint8_t* to, size_t room, const uint8_t* from, size_t left) {
    size_t written = room;
    size_t read = left;
    const size_t hint = LZ4F_decompress(contexts_->lz4_in.get(), to, &written, from, &read, &options);
    Progress progress{written, read, hint == 0 && read == left, {}};
    if (LZ4F_isError(hint) != 0) progress.fault = LZ4F_getErrorName(hint);
    return progress;
  });
}

}  // namespace strobe::sensors
