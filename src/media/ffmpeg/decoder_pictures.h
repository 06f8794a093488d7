// DecoderPictures: gives a decoder the memory for its pictures out of a PicturePool that is filled before the first
// frame is asked for.
#pragma once

#include <memory>
#include <mutex>

#include "media/ffmpeg/av.h"
#include "media/ffmpeg/picture_pool.h"

namespace strobe::media {

class DecoderPictures {
 public:
  // Before avcodec_open2. Decoders that bring their own memory (hardware, some libraries) keep it. This object must
  // outlive the decoder; pictures may outlive both.
  void serve(AVCodecContext& decoder);
  // After avcodec_open2: memory for so many pictures of the size and format that the stream announces, within a bound.
  void fill(AVCodecContext& decoder, int pictures);

 private:
  static int get_buffer(AVCodecContext* decoder, AVFrame* picture, int flags);
  std::shared_ptr<PicturePool> pool_for(size_t bytes);

  std::mutex mutex_;  // decoders ask from any of their threads
  std::shared_ptr<PicturePool> pool_;
};

}  // namespace strobe::media
